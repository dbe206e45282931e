import csv
import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shell import ROLES, is_one_paragraph, people, shoal_command, write_csv

import shoal
from shoal.columns.schema import ColumnSettings, Roles
from shoal.spelling import as_listed, option_name
from shoal.system import system

FILES = {"release.csv", "release.csv.public.json", "release.csv.internal.json"}


def anonymize(file, *arguments, roles=ROLES, output="release.csv"):
    return shoal_command("anonymize", file, "-k", 5, *roles, "--seed", 7, "-o", file.parent / output, *arguments)


def test_a_release_with_its_manifests_is_written_and_told_about(csv_file):
    result = anonymize(csv_file)

    assert result.exit_code == 0, result.output
    assert re.search(r"verdict +holds: every class has at least \d+ records\n", result.stdout)
    assert re.search(r"information loss +\d+\.\d+ %\n", result.stdout)
    assert {file.name for file in csv_file.parent.iterdir()} == FILES | {"people.csv"}
    assert [name for name in FILES if name not in result.stdout] == []


@pytest.mark.filterwarnings("ignore::shoal.ShoalWarning")
def test_it_is_the_release_of_the_python_call(csv_file):
    anonymize(csv_file, "--kind", "zip=nominal", "--round", "age=0", "--weight", "income=2", "--order", "keep")
    release = shoal.anonymize(
        csv_file,
        k=5,
        quasi_identifiers=["age", "zip", "sex", "income"],
        confidential=["diagnosis"],
        identifiers=["name"],
        columns={"zip": {"kind": "nominal"}, "age": {"round": 0}, "income": {"weight": 2}},
        seed=7,
    )

    assert shoal.sources.read(csv_file.parent / "release.csv").arrow.to_pylist() == release.table.to_pylist()


def test_the_same_seed_gives_the_same_bytes_and_another_one_another_order(csv_file):
    anonymize(csv_file)
    anonymize(csv_file, output="again.csv")
    anonymize(csv_file, "--threads", "1", output="alone.csv")
    anonymize(csv_file, "--seed", "8", output="other.csv")
    release, again, alone, other = (
        (csv_file.parent / f"{name}.csv").read_bytes() for name in ("release", "again", "alone", "other")
    )

    assert release == again == alone
    assert release != other


def test_every_setting_of_a_column_reaches_the_job(tmp_path):
    rows = people()
    for row, school in zip(rows, ["school", *["low", "mid", "high, or more"] * 20], strict=True):
        row[1:1] = [f'"{school}"', "born" if school == "school" else "1980-05-01"]
        row[4] = {"zip": "zip", "D77777": 0}.get(row[4], row[4][1:])  # numbers, with a zip that is kept
    (tmp_path / "sex.csv").write_text("f;adult;*\nm;adult;*\n")
    file = write_csv(tmp_path / "people.csv", rows)
    result = anonymize(
        file,
        *(
            "--quasi-identifiers",
            "school",
            "--categories",
            'school=low,mid,"high, or more"',
            "--missing-codes",
            "income=-9,1000",
        ),
        *("--missing", "own-value", "--aggregate", "age=median", "--top", "age=70", "--bottom", "age=25"),
        *("--keep-zeros", "zip", "--round", "income=-1", "--weight", "sex=0.5", "--kind", "sex=nominal"),
        *("--fold", "sex", "--hierarchy", f"sex={tmp_path / 'sex.csv'}", "--outside", "sex=root"),
        *("--aggregate", "sex=ancestor", "--level", "sex=1", "--distance", "sex=information"),
        *("--aggregate", "zip=interval", "--step", "zip=2"),
        *("--quasi-identifiers", "born", "--aggregate", "born=period", "--precision", "born=year"),
        *("--save-job", tmp_path / "job.toml"),
    )
    job = shoal.Job.load(tmp_path / "job.toml")

    assert result.exit_code == 0, result.output
    assert {name for column in job.columns.values() for name in column.model_fields_set} == set(
        ColumnSettings.model_fields
    )
    assert job.columns["school"].categories == ("low", "mid", "high, or more")
    assert job.columns["income"].missing_codes == (-9, 1000)
    assert job.columns["income"].round == -1
    assert (job.columns["age"].top, job.columns["age"].bottom, job.columns["age"].aggregate) == (70, 25, "median")
    assert job.columns["zip"].keep_zeros is True


OF_PERSONS = [
    {"subject": "name", "keep_link": "subject", "link_order": ("income",)},
    {"key": "name"},
]
"""Roles of linked records and of a series, which exclude each other and households."""


@pytest.mark.parametrize("given", OF_PERSONS, ids=["linked", "series"])
def test_roles_of_persons_reach_the_job(csv_file, given):
    options = [word for name, value in given.items() for word in (option_name(name), "".join(value))]
    roles = ("--quasi-identifiers", "age,zip,sex", "--other", "income,diagnosis", *options)
    result = anonymize(csv_file, "--save-job", csv_file.with_name("job.toml"), roles=roles)

    assert result.exit_code == 0, result.output
    assert shoal.Job.load(csv_file.with_name("job.toml")).roles == Roles(
        quasi_identifiers=("age", "zip", "sex"), other=("income", "diagnosis"), **given
    )


def test_every_role_reaches_the_job(tmp_path):
    header, *records = people()
    homes = [[*row, i // 2, 1 + i % 3, i // 30] for i, row in enumerate(records)]
    for home in homes:
        home[1] = 30 + home[6] % 9  # everybody in a home has the same age
    file = write_csv(tmp_path / "people.csv", [[*header, "home", "w", "region"], *homes])
    given = {
        "identifiers": ("name",),
        "quasi_identifiers": ("age", "zip", "sex"),
        "by": ("region",),
        "confidential": ("diagnosis",),
        "other": ("income",),
        "subject": "name",
        "household": "home",
        "household_level": ("age",),
        "weights": "w",
    }
    roles = (
        *(
            "--identifiers",
            "name",
            "--quasi-identifiers",
            "age",
            "--quasi-identifiers",
            "zip,sex",
            "--by",
            "region",
            "--confidential",
            "diagnosis",
        ),
        *("--other", "income", "--subject", "name", "--household", "home", "--household-level", "age"),
        *("--weights", "w", "--save-job", tmp_path / "job.toml"),
    )
    result = anonymize(file, "-k", 3, roles=roles)

    assert result.exit_code == 0, result.output
    assert set(given).union(*OF_PERSONS) == set(Roles.model_fields)
    assert shoal.Job.load(tmp_path / "job.toml").roles == Roles(**given)


def test_names_with_commas_stand_in_quotes(tmp_path):
    pq.write_table(
        pa.table({"last, first": ["a", "b"] * 4, "a=b": [1, 2] * 4, "c": [1, 2] * 4}), tmp_path / "p.parquet"
    )
    result = anonymize(
        tmp_path / "p.parquet",
        *("--weight", '"a=b"=2', "--save-job", tmp_path / "job.toml", "-k", "2"),
        roles=("--quasi-identifiers", '"last, first","a=b"', "--other", "c"),
    )

    assert result.exit_code == 0, result.output
    assert shoal.Job.load(tmp_path / "job.toml").roles.quasi_identifiers == ("last, first", "a=b")
    assert shoal.Job.load(tmp_path / "job.toml").columns["a=b"].weight == 2


def test_options_of_the_method_are_handed_on(csv_file):
    result = anonymize(csv_file, "--method", "tfrp", "--options", "phases=1")

    assert result.exit_code == 0, result.output
    assert "tfrp, k = 5" in result.stdout


def test_a_csv_file_is_read_as_told(tmp_path):
    file = tmp_path / "people.csv"
    text = "".join(f"{i % 9},5;Zyxwvü;{i % 2 or '-'}\n" for i in range(40))
    file.write_bytes(text.encode("latin-1"))
    result = shoal_command(
        *(
            "anonymize",
            file,
            "-k",
            5,
            "--quasi-identifiers",
            "age,sick",
            "--other",
            "who",
            "-o",
            tmp_path / "release.csv",
        ),
        *(
            "--delimiter",
            ";",
            "--decimal",
            ",",
            "--encoding",
            "latin-1",
            "--null-values",
            "-",
            "--names",
            "age,who,sick",
        ),
        *("--missing", "own-value"),
    )

    assert result.exit_code == 0, result.output
    assert (tmp_path / "release.csv").read_text(encoding="utf-8").startswith("age;who;sick\n")


def test_a_dry_run_says_what_would_be_done_and_writes_nothing(csv_file):
    before = set(csv_file.parent.iterdir())
    roles = (
        "--quasi-identifiers",
        "age,zip,income",
        "--by",
        "sex",
        "--confidential",
        "diagnosis",
        "--identifiers",
        "name",
    )
    result = anonymize(csv_file, "--dry-run", "--kind", "zip=nominal", roles=roles)

    assert result.exit_code == 0, result.output
    assert "60 records, 6 columns" in result.stdout
    assert "by auto, k = 5, in 2 strata" in result.stdout
    assert "age (numeric), zip (nominal), income (numeric)" in result.stdout
    assert [name for name in FILES if name not in result.stdout] == []
    assert set(csv_file.parent.iterdir()) == before


@pytest.mark.parametrize("arguments", [("-k", "99"), ("--kind", "sex=numeric"), ("--quasi-identifiers", "nobody")])
def test_a_dry_run_refuses_what_the_run_would(arguments, csv_file):
    result = anonymize(csv_file, "--dry-run", *arguments)

    assert result.exit_code == 2
    assert is_one_paragraph(result.stderr)


def test_a_file_is_replaced_only_if_asked_to(csv_file):
    anonymize(csv_file)
    before = (csv_file.parent / "release.csv").read_bytes()
    refused = anonymize(csv_file, "-k", "10")
    kept = (csv_file.parent / "release.csv").read_bytes()
    forced = anonymize(csv_file, "-k", "10", "--force")

    assert (refused.exit_code, forced.exit_code) == (2, 0)
    assert kept == before
    assert (csv_file.parent / "release.csv").read_bytes() != before


ACCEPTED = ("--accept", "name=published-identifier")


def test_warnings_go_to_standard_error(tmp_path):
    rows = people()
    for row in rows[1:]:
        row[3] = "f"
    result = anonymize(write_csv(tmp_path / "people.csv", rows), "--other", "name", *ACCEPTED, roles=ROLES[:4])

    assert result.exit_code == 0
    assert "Warning: Column 'sex' has the same value in all records" in result.stderr
    assert "Warning: Column 'name' is published unchanged, and 100% of the records" in result.stderr
    assert "Zyxwv" not in result.output


def test_the_saved_job_repeats_the_release_and_is_nobody_elses(csv_file):
    job = csv_file.parent / "job.toml"
    anonymize(csv_file, "--save-job", job)
    before = (csv_file.parent / "release.csv").read_bytes()
    again = shoal_command("run", job, "--force")

    assert again.exit_code == 0, again.output
    assert system.is_private(job)
    assert (csv_file.parent / "release.csv").read_bytes() == before


def test_the_public_manifest_tells_neither_seed_nor_input(csv_file):
    anonymize(csv_file)
    public = (csv_file.parent / "release.csv.public.json").read_text()
    internal = json.loads((csv_file.parent / "release.csv.internal.json").read_text())

    assert internal["job"]["seed"] == 7
    assert internal["input_sha256"] not in public
    assert "seed" not in public
    assert "people.csv" not in public


def test_cells_that_look_like_formulas_come_out_as_they_went_in(tmp_path):
    cells = ["=1+2", "+3", "-4", "@SUM(A1)", "plain"] * 8
    file = tmp_path / "people.csv"
    with file.open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows([["age", "note"], *([i, cell] for i, cell in enumerate(cells))])
    anonymize(file, "--order", "keep", roles=("--quasi-identifiers", "age", "--other", "note"))
    with (tmp_path / "release.csv").open(newline="", encoding="utf-8") as lines:
        released = [record["note"] for record in csv.DictReader(lines)]

    assert released == cells


HARMFUL = "<script>alert('x')</script><img src=x onerror=alert(1)>"


@pytest.mark.parametrize("form", ["internal", "public"])
def test_names_with_html_in_them_do_no_harm_in_the_report(form, tmp_path):
    table = pa.table({HARMFUL: [i % 7 for i in range(40)], "sex": ["f", "m"] * 20, f"{HARMFUL}2": ["a", "b"] * 20})
    pq.write_table(table, tmp_path / "people.parquet")
    result = anonymize(
        tmp_path / "people.parquet",
        *("--report", tmp_path / "report.html", "--json", tmp_path / "report.json", "--form", form),
        roles=("--quasi-identifiers", f"{as_listed(HARMFUL)},sex", "--confidential", as_listed(f"{HARMFUL}2")),
    )
    page = (tmp_path / "report.html").read_text(encoding="utf-8")

    assert result.exit_code == 0, result.output
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["form"] == form
