"""A small table of people, in a folder of its own; and no progress on standard error, however busy the machine is."""

import pytest
from shell import people, write_csv

from shoal.cli import progress


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 1e6)


@pytest.fixture
def csv_file(tmp_path):
    return write_csv(tmp_path / "people.csv", people())
