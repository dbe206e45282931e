"""A folder of hierarchy files, named as ARX names them or after their columns."""

import pyarrow as pa
import pytest
from click.testing import CliRunner

import shoal
from shoal.cli import main

PEOPLE = pa.table({"age": [20, 21, 22, 40, 44, 46], "marital-status": [*"aabbcd"], "job": [*"xxyyzz"]})
ASKED = {"k": 2, "seed": 1, "truthful": True, "quasi_identifiers": ["age", "marital-status"], "other": ["job"]}
STATUS = "a;north;*\nb;north;*\nc;south;*\nd;south;*\n"

pytestmark = pytest.mark.filterwarnings("ignore::shoal.ShoalWarning")


@pytest.fixture
def folder(tmp_path):
    found = tmp_path / "hierarchies"
    found.mkdir()
    (found / "adult_hierarchy_Marital-Status.csv").write_text(STATUS)
    (found / "adult_hierarchy_education.csv").write_text("x;y;*\n")
    (found / "README.md").write_text("of ARX")
    return found


def test_each_file_is_the_hierarchy_of_the_column_it_is_named_after(folder):
    file = folder / "adult_hierarchy_Marital-Status.csv"
    by_folder = shoal.anonymize(PEOPLE, hierarchies=folder, **ASKED)
    by_column = shoal.anonymize(PEOPLE, columns={"marital-status": {"hierarchy": str(file)}}, **ASKED)

    assert by_folder.published == by_column.published
    assert by_folder.job == by_column.job
    assert set(by_folder.published["marital-status"].to_pylist()) <= {"a", "b", "c", "d", "north", "south", "*"}


def test_a_plain_name_is_understood_and_what_a_column_says_goes_first(folder):
    (folder / "age.csv").write_text("".join(f"{age};young;*\n" for age in range(20, 50)))
    roles = {"quasi_identifiers": ["age", "marital-status"]}
    job = shoal.Job.of(k=2, roles=roles, hierarchies=folder, columns={"age": {"hierarchy": "steps:5,10"}})

    assert job.columns["age"].hierarchy == "steps:5,10"
    assert job.columns["marital-status"].hierarchy == str(folder / "adult_hierarchy_Marital-Status.csv")
    assert shoal.Job.from_toml(job.to_toml()) == job


def test_the_command_line_takes_the_folder(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shoal.sources.write(PEOPLE, "people.csv")
    roles = ["--quasi-identifiers", "age,marital-status", "--other", "job", "--truthful", "--seed", "1"]
    done = CliRunner().invoke(
        main, ["anonymize", "people.csv", "-k", "2", *roles, "--hierarchies", "hierarchies", "-o", "r.csv"]
    )

    assert done.exit_code == 0, done.output
    assert ",south," in (tmp_path / "r.csv").read_text()


def test_a_folder_that_helps_nobody_or_twice_is_refused(folder, tmp_path):
    with pytest.raises(shoal.SchemaError, match=r"named after a quasi-identifier.*Quasi-identifiers: 'age'\."):
        shoal.anonymize(PEOPLE.select(["age"]), k=2, quasi_identifiers="age", hierarchies=folder)
    with pytest.raises(shoal.FileError, match="cannot be read"):
        shoal.anonymize(PEOPLE, hierarchies=tmp_path / "nowhere", **ASKED)
    (folder / "marital-status.csv").write_text(STATUS)
    with pytest.raises(shoal.SchemaError, match="are all named after column 'marital-status'"):
        shoal.anonymize(PEOPLE, hierarchies=folder, **ASKED)
