"""Every kind of bad input ends in one paragraph, exit code 2, no file, and no value of the table."""

import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shell import ROLES, SECRETS, is_one_paragraph, people, shoal_command, shoal_process, write_csv


def refused(result, folder, words, *, code=2):
    """Assert that nothing was done, and that the message has all the words and no secret."""
    exit_code = result.returncode if isinstance(result, subprocess.CompletedProcess) else result.exit_code

    assert exit_code == code, result.stderr
    assert result.stdout == ""
    assert is_one_paragraph(result.stderr), result.stderr
    assert [word for word in words if word not in result.stderr] == [], result.stderr
    assert [secret for secret in SECRETS if secret in result.stderr] == []
    assert [file.name for file in folder.iterdir() if not file.name.startswith(("people", "job"))] == []


def anonymize(file, *arguments, roles=ROLES, k=5):
    return shoal_command("anonymize", file, "-k", k, *roles, "-o", file.parent / "release.parquet", *arguments)


@pytest.mark.parametrize(
    ("roles", "words"),
    [
        (("--quasi-identifiers", "agee,zip,sex,income", *ROLES[2:]), ["'agee'", "Did you mean 'age'?"]),
        ((*ROLES, "--other", "wave"), ["'wave'", "Columns: 'name', 'age'"]),
        ((*ROLES, "--subject", "nme"), ["'nme'", "Did you mean 'name'?"]),
        ((*ROLES, "--weight", "aeg=2"), ["'aeg'", "Did you mean 'age'?"]),
        ((*ROLES, "--other", "age"), ["'age'", "named twice", "quasi-identifier", "other"]),
        (("--quasi-identifiers", "age,age,zip,sex,income", *ROLES[2:]), ["'age'", "named twice"]),
        (ROLES[2:], ["No quasi-identifier is named", "--quasi-identifiers"]),
        (ROLES[:2], ["2 of 6 columns have no role: 'name', 'diagnosis'", "--identifiers", "shoal inspect"]),
        ((*ROLES, "--kind", "sex=numeric"), ["'sex'", "declared numeric", "holds text"]),
        ((*ROLES, "--kind", "sex=number"), ["--kind sex cannot be used", "'numeric'"]),
        ((*ROLES, "--round", "age=x"), ["--round age cannot be used"]),
        ((*ROLES, "--rho", "2"), ["--rho cannot be used"]),
        ((*ROLES, "--max-unpacked-gb", "x"), ["--max-unpacked-gb cannot be used"]),
        ((*ROLES, "--steer", "zip=0"), ["--steer zip cannot be used: it should be a finite number other than 0"]),
        ((*ROLES, "--t-closeness", "age=0.1"), ["Name it there: --confidential age."]),
        ((*ROLES, "--sheet", "one"), ["--sheet cannot be given for a .csv file", "Leave it out"]),
        ((*ROLES, "--l-diversity", "diagnosis=9"), ["l-diversity of 'diagnosis' with l = 9 cannot be satisfied"]),
        ((*ROLES, "--report", "report.pdf"), ["'report.pdf'", "HTML", "ends in .html"]),
        ((*ROLES, "--json", "report.html"), ["'report.html'", "JSON", "ends in .json"]),
        ((*ROLES, "--metod", "mdav"), ["--method", "See `"]),
        ((*ROLES, "--top", "diagnosis=3"), ["--top", "'diagnosis'", "confidential"]),
        ((*ROLES, "--kind", "zip=nominal", "--kind", "zip=numeric"), ["--kind", "'zip' is given twice"]),
        ((*ROLES, "--kind", "zip"), ["--kind", "COLUMN=VALUE"]),
        ((*ROLES, "--options", "efort=best"), ["'efort'", "effort"]),
        ((*ROLES, "--method", "mdvav"), ["--method", "mdav"]),
        ((*ROLES, "--form", "public"), ["--report"]),
        ((*ROLES, "--bound", "cheap"), ["--report"]),
    ],
)
def test_roles_and_settings_that_do_not_fit(roles, words, csv_file):
    refused(anonymize(csv_file, roles=roles), csv_file.parent, words)


@pytest.mark.parametrize(
    ("k", "words"),
    [("2.5", ["-k", "integer"]), ("ten", ["-k", "integer"]), (1, ["k=1"]), (61, ["k=61", "60 records"])],
)
def test_a_k_that_cannot_be(k, words, csv_file):
    refused(anonymize(csv_file, k=k), csv_file.parent, words)


def test_a_release_that_goes_nowhere(csv_file):
    refused(shoal_command("anonymize", csv_file, "-k", 5, *ROLES), csv_file.parent, ["-o release.parquet"])


def test_column_names_that_occur_twice(tmp_path):
    table = pa.table([[1, 2], [3, 4], [5, 6]], names=["age", "age", "zip"])
    pq.write_table(table, tmp_path / "people.parquet")
    result = anonymize(tmp_path / "people.parquet", k=2, roles=("--quasi-identifiers", "age,zip"))

    refused(result, tmp_path, ["'age'", "same name"])


def test_missing_values_without_a_policy(tmp_path):
    rows = people()
    rows[3][1] = rows[7][1] = rows[9][4] = ""
    file = write_csv(tmp_path / "people.csv", rows)

    refused(anonymize(file), tmp_path, ["'age' (2), 'income' (1), of 60 records", "--missing own-value"])


@pytest.mark.parametrize("value", [float("inf"), float("-inf")])
def test_infinite_values(value, tmp_path):
    table = pa.table({"age": [1.0, value, 3.0, 77777.0], "sex": ["f", "m", "f", "m"]})
    pq.write_table(table, tmp_path / "people.parquet")
    result = anonymize(
        tmp_path / "people.parquet", "--missing", "own-value", k=2, roles=("--quasi-identifiers", "age,sex")
    )

    refused(result, tmp_path, ["'age' has 1 infinite values", "record 2"])


def test_not_a_number_is_missing(tmp_path):
    table = pa.table({"age": [1.0, float("nan"), 3.0, 77777.0]})
    pq.write_table(table, tmp_path / "people.parquet")

    refused(
        anonymize(tmp_path / "people.parquet", k=2, roles=("--quasi-identifiers", "age")),
        tmp_path,
        ["'age' (1), of 4 records"],
    )


def test_a_stratum_smaller_than_k(tmp_path):
    rows = people()
    for row in rows[1:4]:
        row[3] = "x"
    file = write_csv(tmp_path / "people.csv", rows)
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

    refused(anonymize(file, roles=roles), tmp_path, ["1 of 3 strata", "'sex'", "k=5", "3 records"])


def test_a_truncated_parquet_file(tmp_path):
    header, *records = people()
    table = pa.table({name: list(values) for name, values in zip(header, zip(*records, strict=True), strict=True)})
    file = tmp_path / "people.parquet"
    pq.write_table(table, file)
    file.write_bytes(file.read_bytes()[:-40])

    refused(anonymize(file), tmp_path, ["'people.parquet'", "truncated"])


def test_broken_csv_records(tmp_path):
    rows = people()
    rows[4].append("more")
    del rows[8][2]
    file = write_csv(tmp_path / "people.csv", rows)

    refused(anonymize(file), tmp_path, ["2 records of 'people.csv'", "6 fields", "line(s) 5, 9"])


def test_a_file_that_is_not_utf8(tmp_path):
    file = write_csv(tmp_path / "people.csv", people())
    file.write_bytes(file.read_bytes().replace(b"Zyxwv9", "Zyxwvü".encode("latin-1")))

    refused(anonymize(file), tmp_path, ["'people.csv' is not UTF-8", "line 11", "encoding"])


@pytest.mark.parametrize("name", ["people", "people.docx", "people.parquet", "."])
def test_a_file_that_is_none(name, tmp_path):
    refused(shoal_command("anonymize", tmp_path / name, "-k", 5, *ROLES, "-o", tmp_path / "r.csv"), tmp_path, [])


def test_an_empty_file(tmp_path):
    (tmp_path / "people.csv").write_text("")

    refused(anonymize(tmp_path / "people.csv"), tmp_path, ["'people.csv' is empty"])


def test_a_csv_file_without_a_header(tmp_path):
    file = write_csv(tmp_path / "people.csv", people()[1:])

    refused(anonymize(file), tmp_path, ["'people.csv' looks like a record"])


def test_an_output_that_exists_and_stays_as_it_was(csv_file, tmp_path):
    kept = tmp_path / "people-release.parquet"
    kept.write_text("kept")
    result = shoal_command("anonymize", csv_file, "-k", 5, *ROLES, "-o", kept)

    refused(result, tmp_path, ["people-release.parquet' already exists"])
    assert kept.read_text() == "kept"


def test_a_manifest_that_exists_is_an_output_that_exists(csv_file, tmp_path):
    kept = tmp_path / "people-release.csv.internal.json"
    kept.write_text("kept")
    result = shoal_command("anonymize", csv_file, "-k", 5, *ROLES, "-o", tmp_path / "people-release.csv")

    refused(result, tmp_path, ["internal.json' already exists"])
    assert {file.name for file in tmp_path.iterdir()} == {"people.csv", kept.name}


def test_the_input_is_no_output(csv_file, tmp_path):
    before = csv_file.read_bytes()
    result = shoal_command("anonymize", csv_file, "-k", 5, *ROLES, "-o", csv_file)

    refused(result, tmp_path, ["is the same file as the input"])
    assert csv_file.read_bytes() == before


def test_a_folder_that_does_not_exist(csv_file, tmp_path):
    result = shoal_command("anonymize", csv_file, "-k", 5, *ROLES, "-o", tmp_path / "none" / "release.csv")

    refused(result, tmp_path, ["folder does not exist"])


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_a_disk_that_is_full(ending, tmp_path):
    file = write_csv(tmp_path / "people.csv", people(3000))
    import resource

    small = (4096, 4096)
    result = shoal_process(
        *("anonymize", file, "-k", 5, *ROLES, "--method", "blocks", "-o", tmp_path / f"release.{ending}"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, small),
    )

    refused(result, tmp_path, ["cannot be written", "larger than the system allows"])


@pytest.fixture
def tiny_disk(tmp_path):
    disk = tmp_path / "people-disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(disk)]
    if sys.platform != "linux" or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may make a small disk, on Linux")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_that_is_really_full(tiny_disk, tmp_path):
    file = write_csv(tmp_path / "people.csv", people(3000))
    result = shoal_process(
        *("anonymize", file, "-k", 5, *ROLES, "--method", "blocks", "-o", tiny_disk / "release.csv"),
    )

    refused(result, tmp_path, ["cannot be written", "the disk is full"])
    assert list(tiny_disk.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("k = 5\nseeed = 1\n[roles]\nquasi_identifiers = ['age']\n", ["'seeed'", "Did you mean 'seed'?"]),
        ("k = 5\n[roles]\nquasi_identifier = ['age']\n", ["'roles.quasi_identifier'", "'quasi_identifiers'"]),
        ("k = 5\n[roles]\nquasi_identifiers = ['age']\n[columns.age]\nrund = 0\n", ["rund", "'round'"]),
        ("k = 5.0\n[roles]\nquasi_identifiers = ['age']\n", ["k cannot be used"]),
        ("[roles]\nquasi_identifiers = ['age']\n", ["'k' is missing"]),
        ("k = = 5", ["not valid TOML", "line 1"]),
        ("k = 5", ["The job file '", "job.toml' cannot be used", "'roles' is missing"]),
        ("k = 5\n[role]\n", ["The job file '", "no key 'role'. Did you mean 'roles'?"]),
        (
            'k = 5\n[roles]\nsensibleVar = ["a"]\n',
            ["no key 'roles.sensibleVar'. In sdcMicro, that is what confidential"],
        ),
        ("k = 5\n[roles]\nquasi_identifiers = ['age']\n", ["[input] path", "[output] path"]),
    ],
)
def test_a_job_file_that_cannot_be_carried_out(text, words, tmp_path):
    (tmp_path / "job.toml").write_text(text)

    refused(shoal_command("run", tmp_path / "job.toml"), tmp_path, words)


def test_a_job_file_that_is_not_there(tmp_path):
    refused(shoal_command("run", tmp_path / "job.toml"), tmp_path, ["job.toml", "cannot be read"])


@pytest.mark.parametrize("command", ["inspect", "audit", "compare"])
def test_other_commands_refuse_a_bad_file_alike(command, tmp_path):
    rows = people()
    rows[4].append("more")
    file = write_csv(tmp_path / "people.csv", rows)
    roles = {"inspect": (), "audit": ("--quasi-identifiers", "age"), "compare": ROLES}[command]

    refused(shoal_command(command, file, *roles), tmp_path, ["line(s) 5"])


@pytest.mark.parametrize("command", ["audit", "compare"])
def test_other_commands_name_the_nearest_column_too(command, csv_file):
    result = shoal_command(
        command, csv_file, "--quasi-identifiers", "agee", *(ROLES[2:] if command == "compare" else ())
    )

    refused(result, csv_file.parent, ["'agee'", "Did you mean 'age'?"])
