"""With --quiet a command prints only what it was asked for, and warnings and errors."""

import json

import pytest
from shell import ROLES, shoal_command

from shoal.cli import progress


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)


def test_a_release_says_nothing_but_its_warnings(csv_file, tmp_path):
    made = shoal_command("anonymize", csv_file, "-k", 5, *ROLES, "--order", "keep", "-o", tmp_path / "r.csv", "--quiet")

    assert made.exit_code == 0, made.output
    assert made.stdout == ""
    assert made.stderr
    assert all(line.startswith("Warning: ") for line in made.stderr.splitlines())
    assert (tmp_path / "r.csv").is_file()


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_the_other_commands_that_write_say_nothing_too(csv_file, tmp_path, more):
    job = tmp_path / "job.toml"
    shoal_command("anonymize", csv_file, "-k", 5, *ROLES, "-o", tmp_path / "r.csv", "--save-job", job)
    folder, roles = tmp_path / "late", ("-k", 5, *ROLES)
    done = [
        shoal_command("run", job, "--force", "-q", *more),
        shoal_command("collect", "begin", folder, csv_file, *roles, "-q"),
        shoal_command("collect", "finish", folder, "-o", tmp_path / "c.csv", "-q"),
        shoal_command("audit", tmp_path / "c.csv", "--quasi-identifiers", "age,zip,sex,income", "-k", 5, "-q"),
    ]

    assert [(each.exit_code, each.stdout) for each in done] == [(0, "")] * 4, [each.output for each in done]
    assert all("..." not in each.stderr for each in done)


def test_what_was_asked_for_is_printed_without_progress(csv_file):
    inspected = shoal_command("inspect", csv_file, "--json", "--quiet")
    audited = shoal_command("audit", csv_file, "--quasi-identifiers", "sex", "--json", "--quiet")
    refused = shoal_command("audit", csv_file, "--quasi-identifiers", "age", "-k", 5, "--quiet")

    assert (inspected.stderr, audited.stderr) == ("", "")
    assert json.loads(inspected.stdout)["columns"]
    assert json.loads(audited.stdout)["holds"]
    assert (refused.exit_code, refused.stdout) == (1, "")
