import shlex

import pytest
from click.testing import CliRunner

from shoal.app.repeat import arguments_of, command_of, script_of
from shoal.cli import anonymize
from shoal.job import Job

RICH = {
    "k": 4,
    "method": "mdav",
    "missing": "own-value",
    "objective": "ncp",
    "truthful": True,
    "intervals": "columns",
    "seed": 7,
    "roles": {
        "identifiers": ["name"],
        "quasi_identifiers": ["age", "zip code", "a,b"],
        "by": ["sex"],
        "confidential": ["income"],
        "subject": "name",
    },
    "columns": {
        "age": {"kind": "numeric", "round": 0, "top": 70.0, "missing_codes": [-9, 99]},
        "zip code": {"kind": "ordinal", "order": ["low", "mid, or so", "high"]},
        "a,b": {"fold": True, "hierarchy": "prefix:1,3", "level": 2},
    },
    "models": [{"model": "t-closeness", "column": "income", "t": 0.4}],
    "accept": ["age=codes"],
    "steer": {"age": 0.5},
    "input": {
        "path": "people.csv",
        "delimiter": ";",
        "null_values": ["NA", "n/a"],
        "fields": {"age": {"date_format": "%d.%m.%Y"}},
    },
    "output": {"path": "release.csv", "report": "report.html", "title": "A title", "order": "keep"},
}
PLAIN = {
    "k": 4,
    "seed": 3,
    "roles": {"identifiers": ["name"], "quasi_identifiers": ["age", "sex"], "confidential": ["income"]},
    "models": [{"model": "l-diversity", "column": "income", "l": 2}],
    "input": {"path": "people.csv"},
    "output": {"path": "release.csv"},
}


def parsed(command):
    """Return the job that the command line makes of a command."""
    found = []
    original, anonymize.run_and_tell = anonymize.run_and_tell, lambda job, **_: found.append(job)
    try:
        result = CliRunner().invoke(anonymize.command, shlex.split(command)[2:], catch_exceptions=False)
    finally:
        anonymize.run_and_tell = original
    assert result.exit_code == 0, result.output
    return found[0]


@pytest.mark.parametrize("settings", [RICH, PLAIN], ids=["rich", "plain"])
def test_the_command_says_what_the_job_says(settings):
    job = Job.of(**settings)

    assert parsed(command_of(job)) == job


def test_the_arguments_make_the_same_job():
    job = Job.of(**RICH)
    arguments = arguments_of(job)

    assert arguments["columns"]["age"] == {"kind": "numeric", "round": 0, "top": 70.0, "missing_codes": [-9, 99]}
    assert arguments["quasi_identifiers"] == ["age", "zip code", "a,b"]
    assert arguments["reading"]["fields"] == {"age": {"date_format": "%d.%m.%Y"}}


def test_script_and_command_make_the_same_release_byte_for_byte(tmp_path, monkeypatch):
    rows = ["name,age,sex,income", *(f"p{i},{20 + i * 7 % 50},{'fm'[i % 2]},{100 + i % 9}" for i in range(40))]
    (tmp_path / "people.csv").write_text("\n".join(rows) + "\n")
    monkeypatch.chdir(tmp_path)
    job = Job.of(**PLAIN)
    exec(compile(script_of(job), "release.py", "exec"), {})
    by_script = (tmp_path / "release.csv").read_bytes()
    (tmp_path / "release.csv").unlink()
    result = CliRunner().invoke(anonymize.command, shlex.split(command_of(job))[2:], catch_exceptions=False)

    assert result.exit_code == 0
    assert (tmp_path / "release.csv").read_bytes() == by_script
