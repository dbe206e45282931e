"""Databases with a table of people."""

import pytest

from stores import STORES, fill


@pytest.fixture(params=STORES)
def store(request, tmp_path):
    return fill(STORES[request.param](tmp_path))


@pytest.fixture
def postgres(tmp_path):
    return fill(STORES["postgresql"](tmp_path))


@pytest.fixture
def sqlite(tmp_path):
    return fill(STORES["sqlite"](tmp_path))


@pytest.fixture
def duck(tmp_path):
    return fill(STORES["duckdb"](tmp_path))


@pytest.fixture(autouse=True)
def _inside(tmp_path, monkeypatch):
    """Internal manifests of a server go to the current folder."""
    monkeypatch.chdir(tmp_path)
