"""What commands print with --json is what their schema and docs/json.md state."""

import json
import re

import pytest
from pydantic import ValidationError
from shell import ROLES, people, shoal_command, write_csv

from shoal.cli.json_schemas import SCHEMAS


def printed(*arguments, codes=(0,)):
    """Return what a command prints, after it was compared with its schema."""
    done = shoal_command(*arguments, "--json")
    assert done.exit_code in codes, done.output
    SCHEMAS[arguments[0]].validate_json(done.stdout, strict=True)
    return json.loads(done.stdout)


@pytest.fixture
def job(csv_file, tmp_path):
    file = tmp_path / "job.toml"
    more = ("--l-diversity", "diagnosis=2", "--seed", 1, "--save-job", file)
    made = shoal_command("anonymize", csv_file, "-k", 5, *ROLES, *more, "-o", tmp_path / "release.csv")
    assert made.exit_code == 0, made.output
    return file


def test_a_release_says_what_its_manifest_says(job, tmp_path):
    found = printed("run", job, "--force")
    manifest = json.loads((tmp_path / "release.csv.internal.json").read_text(encoding="utf-8"))

    assert found["written"][0] == str(tmp_path / "release.csv")
    assert {
        name: found[name] for name in ("job", "verdict", "loss", "risk", "utility", "attacks", "quality", "reading")
    } == {
        name: manifest[name] for name in ("job", "verdict", "loss", "risk", "utility", "attacks", "quality", "reading")
    }


def test_a_dry_run_writes_nothing_and_says_what_it_would(job, tmp_path):
    (tmp_path / "release.csv").unlink()
    found = printed("run", job, "--dry-run", "--force")

    assert found["would_write"][0] == str(tmp_path / "release.csv")
    assert not (tmp_path / "release.csv").exists()


@pytest.mark.parametrize("more", [("--truthful",), ("--memory", "1GB"), ("--key", "name", "--reserve", "0.1")])
def test_releases_of_every_kind_have_the_schema(csv_file, tmp_path, more):
    roles = ("--quasi-identifiers", "age,income", "--confidential", "diagnosis", "--other", "zip,sex")
    roles += () if more[0] == "--key" else ("--identifiers", "name")
    place, file = tmp_path / "r.csv", tmp_path / "job.toml"
    made = shoal_command("anonymize", csv_file, "-k", 5, *roles, *more, "-o", place, "--save-job", file)

    assert made.exit_code == 0, made.output
    assert printed("run", file, "--force")["verdict"]["holds"]


def test_linked_records_have_the_schema(tmp_path):
    rows = [["patient", "age", "month"], *([i // 2, 20 + i // 2 % 40, i % 2] for i in range(160))]
    visits = write_csv(tmp_path / "visits.csv", rows)
    more = (
        "--quasi-identifiers",
        "age,month",
        "--subject",
        "patient",
        "--keep-link",
        "subject",
        "--link-order",
        "month",
    )
    made = shoal_command(
        "anonymize", visits, "-k", 3, *more, "-o", tmp_path / "r.csv", "--save-job", tmp_path / "j.toml"
    )

    assert made.exit_code == 0, made.output
    assert printed("run", tmp_path / "j.toml", "--force")["linking"]["n_persons"] == 80


def test_the_other_commands_have_their_schemas(csv_file, job, tmp_path):
    release, quasi = tmp_path / "release.csv", ("--quasi-identifiers", "age,zip,sex,income")
    models = ("--confidential", "diagnosis", "--t-closeness", "diagnosis=0.1")
    both = [write_csv(tmp_path / f"{name}.csv", people(40)) for name in "ab"]
    printed("audit", release, *quasi, *models, "-k", 5, "--original", csv_file, codes=(0, 1))
    printed("audit", csv_file, *quasi, "-k", 2, "--list", codes=(1,))
    printed("audit", "--series", *both, "--key", "name", "--quasi-identifiers", "sex", "-k", 2)
    printed("inspect", csv_file)
    printed("compare", csv_file, "-k", "3,40", "--methods", "mdav", *ROLES)
    printed(
        "attack", release, "--original", csv_file, "--quasi-identifiers", "age,income", "--confidential", "diagnosis"
    )
    printed("plan", "--collection", "10h", "--takes", "2h")


@pytest.mark.parametrize("command", SCHEMAS)
def test_the_schema_is_printed_without_a_file_and_refuses_keys_that_it_does_not_state(command):
    done = shoal_command(command, "--json-schema")

    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == SCHEMAS[command].json_schema()
    with pytest.raises(ValidationError):
        SCHEMAS[command].validate_python({"new": 1})


def test_json_is_not_mixed_with_a_release_on_standard_output(job):
    text = job.read_text(encoding="utf-8")
    job.write_text(re.sub(r"\[output\]\npath = .*\n", '[output]\npath = "-"\nmanifest = "m.json"\n', text))
    done = shoal_command("run", job, "--json")

    assert done.exit_code == 2
    assert "Standard output is for the release" in done.stderr
