"""What is not for the public is readable by its owner alone, by modes or by access lists."""

import os

import pyarrow as pa
import pytest

import shoal
from shoal.files import hidden_folder, open_private, replacing
from shoal.incremental.collection import begin
from shoal.stream import Stream
from shoal.system import system

PEOPLE = pa.table({"age": [float(i * 7 % 50) for i in range(40)], "illness": ["flu", "cold"] * 20})
ROLES = {"quasi_identifiers": ["age"], "confidential": ["illness"]}


@pytest.fixture(autouse=True)
def open_folder(tmp_path):
    """Where new files are for all, whatever the settings of this user."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def private(folder):
    return {path.name for path in folder.rglob("*") if system.is_private(path)}


def test_of_a_release_only_the_table_and_its_public_manifest_are_for_all(tmp_path):
    found = shoal.anonymize(PEOPLE, k=4, seed=1, **ROLES)
    found.write(tmp_path / "r.csv", report=tmp_path / "report.html", json=tmp_path / "report.json")

    assert private(tmp_path) == {"r.csv.internal.json", "report.html", "report.json"}


def test_a_file_that_is_replaced_stays_private_and_one_in_the_making_is(tmp_path):
    with open_private(tmp_path / "a", "xb") as file:
        file.write(b"old")
    for name in ("a", "b"):
        with replacing(tmp_path / name, force=True) as temporary:
            temporary.write_text("new")

            assert temporary.name in private(tmp_path)

    assert private(tmp_path) == {"a"}


def test_a_file_that_others_can_read_becomes_private(tmp_path):
    (tmp_path / "a").write_text("older")

    assert private(tmp_path) == set()

    with open_private(tmp_path / "a", "wb") as file:
        file.write(b"new")

    assert private(tmp_path) == {"a"}


def test_folders_of_records_are_private(tmp_path):
    begin(tmp_path / "evening", PEOPLE, k=4, seed=1, **ROLES)
    with hidden_folder(tmp_path / "scratch") as folder:
        assert folder.name in private(tmp_path)
    Stream(2, delay=3).save(tmp_path / "state")

    assert private(tmp_path) == {path.name for path in tmp_path.rglob("*")}
