import os
from pathlib import Path

import pytest

import postgres_server as server
from pages import run

ROOT = Path(__file__).parents[1]
GUIDES = ["tutorial", "roles", "audit", "report", "models", "linked"]
PAGES = [*(ROOT / "docs" / f"{name}.md" for name in GUIDES), *sorted((ROOT / "docs" / "howto").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_a_page_prints_what_stands_below_it(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if page.stem == "postgresql":
        _serve(monkeypatch)
    blocks = list(run(page))

    assert blocks
    for block in blocks:
        assert block.printed == block.shown


def _serve(monkeypatch):
    """Have the commands of a page find a server with an empty database called census."""
    for name, value in {"PGHOST": server.folder(), "PGUSER": server.OWNER}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("PATH", str(server.programs()), prepend=os.pathsep)
    server.psql("postgres", "CREATE DATABASE census")
