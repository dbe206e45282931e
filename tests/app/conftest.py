"""A folder with a small table, and a steward who works in it."""

import pytest
from steward import PEOPLE, ROLES, Inline, Steward


@pytest.fixture
def folder(tmp_path, monkeypatch):
    root = tmp_path / "data"
    root.mkdir()
    (root / "people.csv").write_text("\n".join(PEOPLE) + "\n", encoding="utf-8")
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def steward(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("shoal.app.runs.subprocess.Popen", Inline)
    found = Steward(folder, tmp_path / "state")
    yield found
    found.close()


@pytest.fixture
def ready(steward):
    """A steward with a job that can be carried out."""
    steward.open("people.csv")
    steward.roles(**ROLES)
    steward.post("protection", k="5", seed="1")
    return steward
