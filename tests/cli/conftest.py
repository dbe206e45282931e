"""A small table of people, in a folder of its own."""

import pytest
from shell import people, write_csv


@pytest.fixture
def csv_file(tmp_path):
    return write_csv(tmp_path / "people.csv", people())
