"""Standard input and output in place of files: `-`."""

import io
import json
import os
import shlex
import subprocess
import sys

import polars as pl
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from shell import ROLES, SECRETS, is_one_paragraph, people, shoal_command, write_csv

from shoal import cli
from shoal.system import system

QUASI = ("--quasi-identifiers", "age,zip,sex,income", "-k", "3")
RELEASE = ("-k", "3", *ROLES, "--kind", "zip=nominal", "--accept", "single-record-values", "--seed", "1")


def piped(content, *arguments):
    """Run the command line in this process with bytes on standard input."""
    return CliRunner().invoke(cli.main, [str(argument) for argument in arguments], input=content)


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_release_through_pipes_is_the_same_as_through_files(csv_file, in_folder):
    by_file = shoal_command("anonymize", csv_file, *RELEASE, "-o", "release.csv")
    by_pipe = piped(csv_file.read_bytes(), "anonymize", "-", *RELEASE, "-o", "-", "--manifest", "r.internal.json")

    assert by_file.exit_code == by_pipe.exit_code == 0
    assert by_pipe.stdout_bytes == (in_folder / "release.csv").read_bytes()
    assert {path.name for path in in_folder.iterdir()} == {
        *("people.csv", "release.csv", "release.csv.public.json", "release.csv.internal.json"),
        *("r.internal.json", "r.public.json"),
    }
    manifests = [json.loads((in_folder / name).read_text()) for name in ("r.public.json", "release.csv.public.json")]
    assert manifests[0]["output_sha256"] == manifests[1]["output_sha256"]
    assert system.is_private(in_folder / "r.internal.json")


def test_messages_go_to_standard_error_and_the_detected_format_is_told(csv_file, in_folder):
    result = piped(csv_file.read_bytes(), "anonymize", "-", *RELEASE, "-o", "-", "--manifest", "r.json")

    assert result.stdout.startswith("age,zip,sex,income,diagnosis\n")
    assert result.stdout.count("\n") == 61
    assert "written           standard output, r.public.json, r.json\n" in result.stderr
    assert "Warning: Standard input is read as CSV (.csv), by its first bytes.\n" in result.stderr


def test_a_dry_run_writes_nothing_to_standard_output(csv_file, in_folder):
    result = shoal_command("anonymize", csv_file, *RELEASE, "-o", "-", "--manifest", "r.json", "--dry-run")

    assert result.exit_code == 0
    assert result.stdout == ""
    assert "would write       standard output, r.public.json, r.json" in result.stderr


def test_without_a_place_for_the_manifests_it_is_refused(csv_file, in_folder):
    result = shoal_command("anonymize", csv_file, *RELEASE, "-o", "-")

    assert result.exit_code == 2
    assert result.stdout == ""
    assert is_one_paragraph(result.stderr)
    assert "--manifest release.internal.json" in result.stderr


def as_bytes(ending, path):
    frame, buffer = pl.read_csv(path), io.BytesIO()
    writers = {"parquet": frame.write_parquet, "arrow": frame.write_ipc, "ndjson": frame.write_ndjson}
    if ending in writers:
        writers[ending](buffer)
        return buffer.getvalue()
    from shoal.sources import read, write

    write(read(path).arrow, path.with_name(f"same.{ending}"))
    return path.with_name(f"same.{ending}").read_bytes()


@pytest.mark.parametrize(
    "ending", ["ndjson", "parquet", "arrow", "xlsx", "csv.gz", "csv.zst", "ndjson.xz", "csv.bz2", "sav", "dta", "xpt"]
)
def test_every_format_is_detected_by_its_first_bytes(ending, csv_file):
    content = as_bytes(ending, csv_file)
    detected = piped(content, "inspect", "-", "--json")
    given = piped(content, "inspect", "-", "--json", "--format", ending)

    assert detected.exit_code == given.exit_code == 0
    found = json.loads(detected.stdout)
    assert f"(.{ending})" in found["notes"][0]
    assert found["n_records"] == json.loads(given.stdout)["n_records"] == 60
    assert json.loads(given.stdout)["notes"] == []


def test_the_release_has_the_format_that_is_asked_for(csv_file, in_folder):
    result = shoal_command("anonymize", csv_file, *RELEASE, "-o", "-", "--manifest", "r.json", "--to-format", "parquet")

    assert pq.read_table(io.BytesIO(result.stdout_bytes)).num_rows == 60


def test_standard_input_is_audited_and_compared(csv_file, in_folder):
    shoal_command("anonymize", csv_file, *RELEASE, "-o", "release.csv")
    audited = piped((in_folder / "release.csv").read_bytes(), "audit", "-", *QUASI, "--list", "--format", "csv")
    compared = piped(csv_file.read_bytes(), "compare", "-", "-k", "3", "--methods", "mdav", *ROLES, "--accept", "codes")

    assert audited.exit_code == 0
    assert audited.stderr == ""
    assert compared.exit_code == 0
    assert "Standard input is read as CSV" in compared.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("inspect", "-", "--format", "docx"), "--format 'docx'|--format docx"),
        (("inspect", "people.csv", "--format", "csv"), "--format cannot be given for a .csv file"),
        (
            ("anonymize", "people.csv", *RELEASE, "-o", "r.csv", "--to-format", "csv"),
            "a file has that of its extension",
        ),
        (("anonymize", "people.csv", *RELEASE, "-o", "-", "--manifest", "r.json", "--to-format", "doc"), "--to-format"),
        (
            ("anonymize", "people.csv", *RELEASE, "-o", "-", "--manifest", "r.json", "--to-format", "sas7bdat"),
            "read only",
        ),
    ],
)
def test_a_format_that_cannot_be_is_refused_and_nothing_is_written(arguments, words, csv_file, in_folder):
    result = piped(csv_file.read_bytes(), *arguments)

    assert result.exit_code == 2
    assert result.stdout == ""
    assert is_one_paragraph(result.stderr)
    assert any(word in result.stderr for word in words.split("|"))
    assert [path.name for path in in_folder.iterdir()] == ["people.csv"]


@pytest.mark.parametrize("content", [b"", b"\x1f\x8bZyxwv", b"PK\x03\x04Zyxwv", b"PAR1Zyxwv", b'{"a": "Zyxwv'])
def test_bad_bytes_on_standard_input_are_refused_without_a_value(content):
    result = piped(content, "inspect", "-")

    assert result.exit_code == 2
    assert is_one_paragraph(result.stderr)
    assert not any(secret in result.stderr for secret in SECRETS)


def test_the_copy_of_standard_input_is_private_and_removed(csv_file, tmp_path):
    code = (
        "import os, stat, sys, shoal.sources\n"
        "table = shoal.sources.read('-')\n"
        "folder = table.path.parent\n"
        "print(oct(stat.S_IMODE(os.stat(folder).st_mode)), folder)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=csv_file.read_bytes(),
        capture_output=True,
        check=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    mode, folder = done.stdout.decode().split()

    assert mode == "0o700"
    assert folder.startswith(str(tmp_path))
    assert not os.path.exists(folder)


def test_the_copy_that_a_killed_process_left_is_removed_by_the_next(csv_file, tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    left = []
    for end in ("os.kill(os.getpid(), 9)", "pass"):
        program = f"import os, shoal.sources\nshoal.sources.read('-')\n{end}"
        environment = {**os.environ, "TMPDIR": str(temporary)}
        with csv_file.open("rb") as content:
            subprocess.run([sys.executable, "-c", program], stdin=content, env=environment, check=False)
        left.append(len(list(temporary.iterdir())))

    assert left == [1, 0]


@pytest.mark.parametrize("place", ["absent", "people.csv"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("inspect", "-"),
        ("anonymize", "people.csv", *RELEASE, "-o", "-", "--manifest", "r.json"),
        ("audit", "people.csv", *QUASI, "--memory", "1GB"),
        ("app", "--no-browser"),
    ],
)
def test_a_folder_for_temporary_files_that_cannot_be_used_is_refused(
    arguments, place, csv_file, in_folder, monkeypatch
):
    monkeypatch.setenv("TMPDIR", place)
    result = piped(csv_file.read_bytes(), *arguments)

    assert (result.exit_code, result.stdout) == (2, "")
    assert is_one_paragraph(result.stderr)
    assert f"{str(in_folder / place)!r}, which TMPDIR names, cannot be written to" in result.stderr
    assert [path.name for path in in_folder.iterdir()] == ["people.csv"]


def test_a_full_folder_for_temporary_files_is_refused(csv_file, tmp_path):
    (tmp_path / "full").mkdir()
    code = (
        "import resource, shoal.cli\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "shoal.cli.main(['inspect', '-'])"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path / "full")}
    command = [sys.executable, "-B", "-c", code]
    with csv_file.open("rb") as content:
        done = subprocess.run(command, stdin=content, capture_output=True, text=True, env=environment, check=False)

    assert (done.returncode, done.stdout) == (2, "")
    assert is_one_paragraph(done.stderr)
    assert "which TMPDIR names, cannot be written to" in done.stderr


def test_a_reader_that_goes_away_leaves_no_manifest(tmp_path):
    write_csv(tmp_path / "people.csv", people())
    command = [
        sys.executable,
        "-m",
        "shoal.cli",
        "anonymize",
        "people.csv",
        *RELEASE,
        "-o",
        "-",
        "--manifest",
        "r.json",
    ]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        error = process.stderr.read().decode()

    assert process.returncode == 75
    assert "has ended before it had the whole release" in error
    assert "Traceback" not in error
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


def test_a_job_reads_and_writes_the_standard_streams(csv_file, in_folder):
    shoal_command("anonymize", csv_file, *RELEASE, "-o", "release.csv", "--save-job", "job.toml")
    job = (in_folder / "job.toml").read_text().replace(f'"{csv_file}"', '"-"\nformat = "csv"')
    (in_folder / "job.toml").write_text(job.replace('"release.csv"', '"-"\nmanifest = "r.json"\nto_format = "ndjson"'))
    result = piped(csv_file.read_bytes(), "run", "job.toml")

    assert result.exit_code == 0
    assert result.stdout.count("\n") == 60
    assert pyarrow.csv.read_csv(in_folder / "release.csv")["age"].to_pylist() == [
        json.loads(line)["age"] for line in result.stdout.splitlines()
    ]


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (">&-", "which is closed. Redirect it"),
        pytest.param(
            ">/dev/full",
            "cannot be written to standard output: no space left on device",
            marks=pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full"),
        ),
    ],
)
def test_a_standard_output_that_takes_nothing_is_a_message_and_leaves_no_manifest(csv_file, in_folder, target, words):
    arguments = ["-m", "shoal.cli", "anonymize", csv_file, *RELEASE, "-o", "-", "--manifest", "r.internal.json"]
    command = shlex.join([sys.executable, *map(str, arguments)])
    ran = subprocess.run(f"{command} {target}", shell=True, stderr=subprocess.PIPE, text=True)

    assert ran.returncode == 2
    assert words in ran.stderr
    assert "fault" not in ran.stderr
    assert [path.name for path in in_folder.iterdir()] == ["people.csv"]
