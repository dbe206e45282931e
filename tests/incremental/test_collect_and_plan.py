"""``shoal plan`` and ``shoal collect``: thin, and clear about what cannot be done."""

import json
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from shoal import cli
from shoal.incremental.collection import Collection
from shoal.sources import read, write


def shoal_command(*arguments):
    return CliRunner().invoke(cli.main, [*map(str, arguments)])


def people(n, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    return pa.table({"age": rng.normal(40 + shift, 10, n).round(2), "vote": rng.choice(["a", "b"], n)})


@pytest.fixture
def files(tmp_path):
    """Return where the files are: what came early, what came late, and the collection that has begun."""
    write(people(100), tmp_path / "early.csv")
    write(people(20, seed=1), tmp_path / "late.csv")
    begun = shoal_command(
        "collect", "begin", tmp_path / "evening", tmp_path / "early.csv", "-k", 5, "--quasi-identifiers", "age",
        "--confidential", "vote", "--seed", 3,
    )  # fmt: skip
    assert begun.exit_code == 0, begun.output
    return tmp_path


@pytest.mark.parametrize("command", [("plan",), ("collect",), ("collect", "begin"), ("collect", "finish")])
def test_help_carries_examples(command):
    result = shoal_command(*command, "--help")

    assert result.exit_code == 0
    assert "Examples:\n" in result.output


def test_begin_add_finish_make_one_release(files):
    added = shoal_command("collect", "add", files / "evening", files / "late.csv")
    done = shoal_command("collect", "finish", files / "evening", "-o", files / "release.csv")

    assert "20 records in 1 batch, to join by reopen" in added.output
    assert "holds: every class has at least" in done.output
    assert read(files / "release.csv").n_records == 120
    assert (files / "release.csv.internal.json").exists()
    assert "nothing can be added" in shoal_command("collect", "status", files / "evening").output


def test_resume_makes_the_cells_that_are_missing(files):
    collection = Collection.open(files / "evening")
    with collection._store.changing():
        for name in ("cells.npy", "centroids.npy", "sizes.npy", "neighbours.npy"):
            del collection._store.content["files"][name]
        collection._store.save()

    assert "not made yet; if `begin` was interrupted" in shoal_command("collect", "status", files / "evening").output
    assert "cells             made" in shoal_command("collect", "resume", files / "evening").output


def test_drift_is_a_warning_on_standard_error(files):
    write(people(50, seed=2, shift=30), files / "drifted.csv")
    result = shoal_command("collect", "add", files / "evening", files / "drifted.csv")

    assert "Warning: Column 'age' drifts" in result.stderr
    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("add", "{0}/evening", "{0}/early.csv"), "already in the collection"),
        (("add", "{0}/nothing", "{0}/late.csv"), "not a collection"),
        (("finish", "{0}/evening", "-o", "{0}/release.csv", "-k", "4"), "began with k=5"),
        (
            (
                "begin",
                "{0}/evening",
                "{0}/early.csv",
                "-k",
                "5",
                "--quasi-identifiers",
                "age",
                "--confidential",
                "vote",
            ),
            "exists",
        ),
    ],
)
def test_what_cannot_be_done_is_said(files, arguments, said):
    result = CliRunner().invoke(
        cli.main, ["collect", *(part.format(files) for part in arguments)], standalone_mode=True
    )

    assert result.exit_code == 2
    assert said in result.stderr
    assert not (files / "release.csv").exists()


def test_finish_does_not_replace_a_file_and_does_not_finish_then(files):
    (files / "release.csv").write_text("mine")
    result = shoal_command("collect", "finish", files / "evening", "-o", files / "release.csv")

    assert result.exit_code == 2
    assert not Collection.open(files / "evening").is_finished
    assert shoal_command("collect", "finish", files / "evening", "-o", files / "release.csv", "--force").exit_code == 0


def test_a_plan_is_printed_as_text_and_as_json_and_drawn(tmp_path):
    arguments = ("plan", "--collection", "10h", "--takes", "2h", "--deadline", "1h")
    numbers = json.loads(shoal_command(*arguments, "--json").output)
    drawn = shoal_command(*arguments, "--svg", tmp_path / "line.svg")

    assert round(numbers["late_share"], 3) == 0.073
    assert "with 92.7% arrived" in drawn.output
    assert (tmp_path / "line.svg").read_text().startswith("<svg")


def test_a_plan_takes_a_curve_and_a_clock():
    ends = datetime.now() + timedelta(days=1)
    result = shoal_command(
        "plan", "--arrived", "0h=0,8h=30%,10h=1", "--takes", "2h", "--ends", ends.isoformat(timespec="seconds")
    )  # fmt: skip

    assert result.exit_code == 0
    assert f"ready {ends.hour:02d}:" in result.output or "by the clock start" in result.output


def test_what_has_ended_starts_now():
    before = datetime.now()
    result = shoal_command("plan", "--collection", "10h", "--takes", "2h", "--ends", "2020-01-01T20:00", "--json")
    told = shoal_command("plan", "--collection", "10h", "--takes", "2h", "--ends", "2020-01-01T20:00")

    assert json.loads(result.stdout)["late_share"] == 0
    assert any(f"start {now:%H:}" in told.stdout for now in (before, datetime.now()))


def test_a_collection_begins_from_a_job_file_with_models(files):
    job = files / "job.toml"
    job.write_text(
        'k = 5\nseed = 3\n[roles]\nquasi_identifiers = ["age"]\nconfidential = ["vote"]\n'
        '[[models]]\nmodel = "l-diversity"\ncolumn = "vote"\nl = 2\n'
    )
    begun = shoal_command("collect", "begin", files / "other", files / "early.csv", "--job", job)
    done = shoal_command("collect", "finish", files / "other", "-o", files / "release.csv")

    assert "l-diversity: vote" in begun.output
    assert "and keeps the models" in done.output


def test_models_are_options_of_begin(files):
    arguments = ("--quasi-identifiers", "age", "--confidential", "vote", "--l-diversity", "vote=2", "-k", 5)
    begun = shoal_command("collect", "begin", files / "other", files / "early.csv", *arguments)

    assert begun.exit_code == 0, begun.output
    assert [str(model.column) for model in Collection.open(files / "other").job.models] == ["vote"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--job", "job.toml", "-k", 5), "-k beside it"),
        (("--quasi-identifiers", "age"), "-k 10, or name a job file"),
        (
            ("-k", 5, "--quasi-identifiers", "age", "--confidential", "vote", "--l-diversity", "age=2"),
            "confidential columns",
        ),
    ],
)
def test_what_cannot_be_begun_is_said(files, arguments, said):
    result = shoal_command("collect", "begin", files / "other", files / "early.csv", *arguments)

    assert result.exit_code == 2
    assert said in result.stderr
    assert not (files / "other").exists()


def test_a_late_file_without_records_is_fine(files):
    (files / "nobody.csv").write_text("age,vote\n")
    result = shoal_command("collect", "add", files / "evening", files / "nobody.csv")

    assert result.exit_code == 0, result.output
    assert shoal_command("collect", "finish", files / "evening", "-o", files / "release.csv").exit_code == 0


def test_a_plan_is_made_from_a_measurement(tmp_path):
    write(people(300), tmp_path / "early.csv")
    arguments = (
        "--measure",
        tmp_path / "early.csv",
        "--records",
        1_000,
        "-k",
        5,
        "--quasi-identifiers",
        "age",
        "--other",
        "vote",
    )
    result = shoal_command("plan", "--collection", "1h", *arguments, "--seconds", 1, "--json")

    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["variant"] == "reopen"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--takes", "2h"), "Say when records arrive"),
        (("--collection", "10h"), "Say how long the job takes"),
        (("--collection", "10h", "--takes", "2h", "-k", "5"), "for --measure"),
        (("--collection", "10h", "--takes", "2h", "--seconds", "5"), "seconds is for --measure"),
        (("--collection", "10h", "--measure", "x.csv"), "--measure needs"),
        (("--collection", "10h", "--takes", "soon"), "not a duration"),
        (("--collection", "10h", "--takes", "2h", "--deadline", "1min"), "the earliest is 2 min 33 s"),
        (("--collection", "10h", "--takes", "2h", "--deadline", "20:30"), "needs the end"),
        (("--collection", "10h", "--takes", "2h", "--ends", "2020-01-01T20:00", "--deadline", "20:30"), "in the past"),
        (("--collection", "10h", "--takes", "2h", "--ends", "2020-01-01T20:00", "--deadline", "1h"), "is ready at"),
        (("--collection", "10h", "--takes", "2h", "--ends", "8 pm"), "is not a time"),
        (("--arrived", "0h=0,8h", "--takes", "2h"), "has to be TIME=SHARE"),
    ],
)
def test_a_plan_that_cannot_be_made_is_refused(arguments, said):
    result = shoal_command("plan", *arguments)

    assert result.exit_code == 2
    assert said in result.stderr


def test_a_plan_is_made_for_a_variant():
    result = shoal_command("plan", "--collection", "10h", "--takes", "2h", "--variant", "split-end", "--json")

    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["variant"] == "split-end"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--variant", "reopen"), "no rule"),
        (("--variant", "two-step", "--alpha", "0.3"), "--alpha is for"),
        (("--alpha", "0.3"), "--alpha is for"),
    ],
)
def test_a_variant_without_a_rule_is_refused(arguments, said):
    result = shoal_command("plan", "--collection", "10h", "--takes", "2h", *arguments)

    assert result.exit_code == 2
    assert said in result.stderr
