"""Findings of one sort are one question with one answer; inspect prints a command that answers all, and it runs."""

import shlex

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import shoal
from shoal import cli
from shoal.findings import Finding, QuestionError, Remedy
from shoal.sources import write

pytestmark = pytest.mark.filterwarnings("ignore::shoal.ShoalWarning")
CODED = {"sex": [1, 2], "roof": [2, 4, 5, 6, 9], "walls": [2, 3, 9], "region": [101, 205, 990]}


def people_in_codes():
    """Return a table as that of sdcMicro: codes with gaps, beside amounts."""
    rng = np.random.default_rng(1)
    codes = {name: rng.choice(values, 300) for name, values in CODED.items()}
    return pa.table({**codes, "age": rng.integers(0, 90, 300), "income": rng.integers(1000, 90_000, 300)})


def questions(table=None, **settings):
    table = people_in_codes() if table is None else table
    with pytest.raises(QuestionError) as caught:
        shoal.anonymize(table, k=5, seed=1, quasi_identifiers=table.column_names, **settings)
    return caught.value


def test_columns_of_codes_are_one_question():
    error = questions()
    found = [finding.column for finding in error.findings if finding.name == "codes"]

    assert len(found) > 1
    for dialect, way in (
        ("option", f"--codes {','.join(found)}"),
        ("key", f"codes = {found}".replace("'", '"')),
        ("argument", f"codes={found}".replace("'", '"')),
    ):
        told = error.worded(dialect)
        assert f"{len(found)} columns hold few whole numbers: " in told
        assert "Which are codes?" in told
        assert way in told
        assert way.replace("codes", "numbers", 1) in told


def test_one_answer_settles_them_and_the_job_remembers_it():
    names = [finding.column for finding in questions().findings]
    release = shoal.anonymize(
        people_in_codes(), k=5, seed=1, quasi_identifiers=people_in_codes().column_names, codes=names
    )

    assert all(str(release.job.columns[name].kind) == "nominal" for name in names)
    for name in names:
        assert set(release.published[name].to_pylist()) <= set(CODED[name])


def test_questions_of_several_sorts_are_counted():
    findings = [
        Finding(f"sort-{i}", f"c{i}", "it is odd", "It matters", (Remedy("column", f"c{i}", {"fold": True}),), True)
        for i in range(5)
    ]
    told = QuestionError(findings).worded("option")

    assert "Settle it by --fold c0" in told
    assert "There are 2 more questions." in told


def test_different_answers_are_spelled_together():
    remedies = [
        Remedy("field", "a", {"date_format": "%d.%m.%Y"}),
        Remedy("field", "b", {"date_format": "%m/%d/%Y"}),
    ]
    findings = [Finding("dates-as-text", r.column, "x", "Why", (r,), True) for r in remedies]
    error = QuestionError(findings)

    assert 'reading={"fields": {"a": {"date_format": "%d.%m.%Y"}, "b": {"date_format": "%m/%d/%Y"}}}' in str(error)
    assert "--date-format a=%d.%m.%Y --date-format b=%m/%d/%Y" in error.worded("option")


def office_file(path):
    """Write a file with nearly everything that is asked about."""
    rng = np.random.default_rng(2)
    lines = ["name;born;sex;roof;walls;age;hours;income"]
    total = 0
    for i in range(200):
        born = "NA" if i % 20 == 0 else f"{1 + i % 28:02d}.{1 + i % 12:02d}.{1940 + i % 60}"
        age = "n = 400" if i in (7, 80) else rng.integers(18, 90)
        hours = -9 if i % 25 == 0 else rng.integers(10, 60)
        pay = int(rng.integers(1000, 9000))
        total += pay
        roof, walls = rng.choice(CODED["roof"]), rng.choice(CODED["walls"])
        lines.append(f"P{i};{born};{1 + i % 2};{roof};{walls};{age};{hours};{pay}")
    path.write_text("\n".join([*lines, f"Summe;;;;;;;{total}"]) + "\n")


def test_the_command_of_inspect_answers_all_questions_and_runs_as_it_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    office_file(tmp_path / "people.csv")
    found = shoal.inspect("people.csv")
    command = found.command()
    assert len({finding.name for finding in found.findings if finding.question}) >= 4

    for secret in ("-9", "Summe", "n = 400"):
        assert secret not in command
    assert "--skip-rows 201" in command
    assert "--codes sex,roof,walls" in command
    result = CliRunner().invoke(cli.main, shlex.split(command)[1:])
    assert result.exit_code == 0, result.output
    assert "200, and 1 left out" in result.output
    assert "Summe" not in (tmp_path / "release.parquet.public.json").read_text()


def test_the_job_of_inspect_answers_them_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    office_file(tmp_path / "people.csv")
    job = shoal.inspect("people.csv").job()

    assert shoal.run(job).verdict.holds


def rents(rng, n):
    return np.where(np.arange(n) % 3 == 0, 0, 90 + rng.lognormal(6, 0.9, n)).round()


NOTES = {
    "perhaps-codes": ("part", lambda rng: rng.integers(1, 13, 300), "--kind part=nominal"),
    "outliers": ("age", lambda rng: [*rng.integers(18, 90, 299), 1999], "--accept age=outliers"),
    "two-forms": ("smoker", lambda rng: rng.choice(["yes", "no", "1", "0"], 300), "--kind smoker=nominal"),
    "spelling-variants": ("town", lambda rng: rng.choice(["Reus", "reus", "Flix"], 300), "--fold town"),
    "zeros": ("rent", lambda rng: rents(rng, 300), "--keep-zeros rent"),
    "other-forms": ("town", lambda rng: [*rng.choice(["Reus", "Flix"], 299), "53111"], "--null-values town=form:9"),
}


@pytest.mark.parametrize("name", NOTES)
def test_strictly_every_note_stops_the_command_and_its_answer_lets_it_through(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    column, values, answer = NOTES[name]
    rng = np.random.default_rng(6)
    texts = [f"{value};{pay}" for value, pay in zip(values(rng), rng.integers(1000, 90_000, 300), strict=True)]
    (tmp_path / "people.csv").write_text("\n".join([f"{column};pay", *texts]) + "\n")
    command = f"anonymize people.csv -k 5 --quasi-identifiers {column},pay -o r.csv --missing own-value"

    def run(*more):
        return CliRunner().invoke(cli.main, [*command.split(), "--force", *more])

    assert run().exit_code == 0
    asked = run("--strict")
    assert asked.exit_code == 2
    assert f"Column '{column}'" in asked.output
    assert answer in asked.output
    assert run("--strict", *answer.split()).exit_code == 0
    assert run("--strict", "--accept", name).exit_code == 0


def test_a_job_stays_strict(tmp_path):
    table = pa.table({"part": [1 + i % 12 for i in range(300)]})
    job = shoal.job.Job.of(k=5, roles={"quasi_identifiers": ["part"]}, strict=True)

    assert shoal.job.Job.from_toml(job.to_toml()).strict
    with pytest.raises(QuestionError, match="part"):
        shoal.run(job, table)


def test_clean_files_need_no_answer(tmp_path):
    rng = np.random.default_rng(3)
    table = pa.table(
        {
            "age": rng.integers(18, 90, 400),
            "income": np.round(rng.lognormal(8, 1, 400), 2),
            "town": rng.choice(["Reus", "Valls", "Flix"], 400),
        }
    )
    write(table, tmp_path / "people.csv")

    assert [finding for finding in shoal.inspect(tmp_path / "people.csv").findings if finding.question] == []
