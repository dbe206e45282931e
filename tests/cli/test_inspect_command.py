import json
import re
import shlex

import pyarrow.parquet as pq
import pytest
from shell import SECRETS, shoal_command

import shoal
from shoal.sources import read


def test_it_prints_counts_and_roles_and_no_value(csv_file):
    result = shoal_command("inspect", csv_file)

    assert result.exit_code == 0, result.output
    assert re.search(r"^name +nominal +text +0 +60 +100\.0% +identifier ", result.stdout, re.MULTILINE)
    assert re.search(r"^diagnosis +nominal +text +0 +3 +0\.0% +confidential ", result.stdout, re.MULTILINE)
    assert [secret for secret in SECRETS if secret in result.output] == []


def test_the_proposed_command_works_as_it_stands(csv_file, monkeypatch):
    monkeypatch.chdir(csv_file.parent)
    line = next(line for line in shoal_command("inspect", "people.csv", "-k", 3).stdout.splitlines() if "-o" in line)
    words = shlex.split(line)[1:]
    result = shoal_command(*words[: words.index("--report")])

    assert words[:4] == ["anonymize", "people.csv", "-k", "3"]
    assert result.exit_code == 0, result.output


def test_the_proposed_job_is_one(csv_file):
    text = shoal_command("inspect", csv_file, "--job", "-k", 4).stdout

    assert shoal.Job.from_toml(text) == shoal.inspect(csv_file).job(4)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_json_is_what_the_python_call_gives(ending, csv_file):
    file = csv_file.with_suffix(f".{ending}")
    if ending == "parquet":
        pq.write_table(read(csv_file).arrow, file)
    result = shoal_command("inspect", file, "--json")

    assert json.loads(result.stdout) == shoal.inspect(file).to_dict()


def test_json_and_job_are_not_asked_for_together(csv_file):
    assert shoal_command("inspect", csv_file, "--json", "--job").exit_code == 2
