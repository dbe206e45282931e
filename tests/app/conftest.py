"""A folder with a small table, and a steward who works in it."""

import json

import pytest
from steward import PEOPLE, ROLES, Steward

from shoal.app.worker import perform


class Inline:
    """Does the work of a child process at once and in this process; `test_runs` and the journeys have real ones."""

    returncode = 0

    def __init__(self, command, **settings):
        self.stdin = self

    def write(self, line):
        asked = json.loads(line)
        with open(asked["file"], "a", encoding="utf-8") as out:
            perform(asked, out)

    def flush(self):
        pass

    close = kill = terminate = flush

    def poll(self):
        return 0

    def wait(self, timeout=None):
        return 0


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
