import os
import re
from pathlib import Path

import pytest

import postgres_server as server
from pages import run

ROOT = Path(__file__).parents[1]
GUIDES = [
    *("tutorial", "roles", "audit", "report", "models", "linked", "index", "attacks", "bound", "dp", "incremental"),
    *("ncp", "plan", "random", "risk", "series", "steering", "streams", "tables", "json"),
]
PAGES = [
    ROOT / "README.md",
    *(ROOT / "docs" / f"{name}.md" for name in GUIDES),
    *sorted((ROOT / "docs" / "howto").glob("*.md")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_a_page_prints_what_stands_below_it(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if page.stem == "postgresql":
        _serve(monkeypatch)
    blocks = list(run(page))

    assert blocks
    for block in blocks:
        assert block.printed == block.shown


@pytest.mark.parametrize(
    ("page", "extra"),
    [
        *[("howto/excel", "excel"), ("howto/spss", "spss"), ("howto/sas", "spss"), ("howto/postgresql", "postgresql")],
        *[("howto/sqlite", "sqlite"), ("howto/duckdb", "duckdb"), ("howto/estimator", "sklearn"), ("dp", "dp")],
        *[("app", "app"), ("spark", "spark"), ("spark_streams", "spark"), ("operations", "redis"), ("risk", "bound")],
    ],
)
def test_a_page_that_needs_a_package_says_so_before_its_first_block(page, extra):
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    before = re.split(r"^```(?:python|console|pycon)", text, maxsplit=1, flags=re.MULTILINE)[0]

    assert f"shoal-privacy[{extra}]" in before


def _serve(monkeypatch):
    """Have the commands of a page find a server with an empty database called census."""
    for name, value in {"PGHOST": server.folder(), "PGUSER": server.OWNER}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("PATH", str(server.programs()), prepend=os.pathsep)
    server.psql("postgres", "CREATE DATABASE census")
