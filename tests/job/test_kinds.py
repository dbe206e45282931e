"""The kinds of many columns at once: in a call, a job, a data dictionary; and notes that are questions."""

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.errors import FileError, SchemaError
from shoal.findings import QuestionError
from shoal.job import Job
from shoal.sources import write

ROLES = {"quasi_identifiers": ["roof", "kids"]}
AS_COLUMNS = {"roof": {"kind": "nominal"}, "kids": {"kind": "numeric"}}


def kinds_of(job):
    return {name: str(settings.kind) for name, settings in job.columns.items()}


@pytest.fixture
def people():
    rng = np.random.default_rng(3)
    return pa.table({"roof": rng.choice([2, 4, 5, 6, 9], 200), "kids": rng.integers(0, 5, 200)})


def test_every_way_gives_the_same_job(tmp_path):
    dictionary, other = tmp_path / "dictionary.csv", tmp_path / "other.toml"
    dictionary.write_text("variable;label;Kind\nroof;Roof, see handbook;Code\nkids;Children;number\nhint;;\n")
    other.write_text(Job.of(k=9, roles=ROLES, columns=AS_COLUMNS).to_toml())
    workbook = tmp_path / "dictionary.xlsx"
    write(pa.table({"name": ["roof", "kids"], "kind": ["factor", "scale"]}), workbook)
    ways = [
        {"columns": AS_COLUMNS},
        {"codes": ["roof"], "numbers": "kids"},
        {"kinds": {"roof": "nominal", "kids": "numeric"}},
        *({"kinds": path} for path in (dictionary, str(dictionary), other, workbook)),
        {"kinds": {"roof": "numeric", "kids": "numeric"}, "codes": "roof"},
    ]
    jobs = [Job.of(k=5, roles=ROLES, **way) for way in ways]

    assert all(job == jobs[0] for job in jobs)
    assert all(Job.from_toml(job.to_toml()) == job for job in jobs)
    assert kinds_of(jobs[0]) == {"roof": "nominal", "kids": "numeric"}


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"codes": ["a"], "numbers": ["a"]}, "numbers says that column 'a' is numeric, and another setting that it is"),
        ({"codes": ["a"], "columns": {"a": {"kind": "ordinal"}}}, "codes says that column 'a' is nominal"),
        ({"codes": [3]}, "codes should be a list of names"),
        ({"kinds": 3}, "kinds should be the path of a file"),
    ],
)
def test_what_contradicts_itself_is_refused(settings, complaint):
    with pytest.raises(SchemaError, match=complaint):
        Job.of(k=5, roles=ROLES, **settings)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("name,type\nroof,code\n", "has no column 'kind' after its first one"),
        ("name,kind\nroof,code\nkids,beautiful\n", "Row 2 of the data dictionary 'dictionary.csv' has an unknown kind"),
        ("name,kind\nroof,code\nroof,code\n", "Row 2 of the data dictionary 'dictionary.csv' repeats a column"),
        ("name,kind\n,code\n", "Row 1 of the data dictionary 'dictionary.csv' names no column"),
    ],
)
def test_a_dictionary_that_is_none_is_refused(text, complaint, tmp_path):
    path = tmp_path / "dictionary.csv"
    path.write_text(text)
    with pytest.raises(FileError, match=complaint):
        Job.of(k=5, roles=ROLES, kinds=path)


def test_key_variables_are_categories_and_numeric_variables_numbers(people):
    release = shoal.anonymize(people, k=5, seed=1, keyVars=["roof"], numVars=["kids"])

    assert set(release.published["roof"].to_pylist()) <= {2, 4, 5, 6, 9}
    assert kinds_of(release.job) == {"roof": "nominal", "kids": "numeric"}
    assert release.job.roles.quasi_identifiers == ("roof", "kids")


def test_the_kind_that_a_key_variable_has_already_stays(people):
    release = shoal.anonymize(people, k=5, seed=1, keyVars=["roof", "kids"], columns={"kids": {"kind": "ordinal"}})

    assert kinds_of(release.job) == {"roof": "nominal", "kids": "ordinal"}


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_strictly_a_note_is_a_question(engine, tmp_path):
    path = tmp_path / "people.csv"
    write(pa.table({"walls": [1 + i % 5 for i in range(200)], "pay": [i * 7 % 311 for i in range(200)]}), path)
    settings = {"k": 5, "seed": 1, "quasi_identifiers": ["walls", "pay"], "engine": engine}
    if not shoal.inspect(path).findings:
        pytest.fail("the table has nothing that could be misread")

    with pytest.raises(QuestionError, match="walls"):
        shoal.anonymize(path, strict=True, **settings)
    with shoal.anonymize(path, strict=True, codes="walls", **settings) as release:
        assert release.verdict.holds
