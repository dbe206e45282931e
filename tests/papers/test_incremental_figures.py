import json
from pathlib import Path

import numpy as np
import pytest
from papers_shell import papers_command

from papers import incremental
from papers.claims import as_text
from papers.data_and_results import agreement
from papers.incremental import reference_times
from papers.incremental.claims import claims
from papers.incremental.pictures import figures
from papers.incremental.plain import PLAIN
from papers.incremental.variant_runs import LINES, Problem, Result, gaussian_problem
from papers.paper import Run
from shoal import partition
from shoal.errors import ParameterError
from shoal.incremental import join

SHARES = (0.1, 0.5, 0.9)
ROOT = Path(__file__).parents[2]
FULL = ROOT / "papers" / "results" / "incremental.json"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    rng = np.random.default_rng(0)
    sets = [gaussian_problem(400, dims, k, 1) for k in (10, 20) for dims in (5, 15)]
    sets += [Problem("census", rng.integers(0, 9, (400, 3)) * 1.0, 10)]
    return measured(tmp_path_factory.mktemp("incremental"), sets, SHARES, plain=True)


def measured(folder, sets, shares, plain, resume=False):
    run = Run(folder / "incremental.json", incremental.PAPER.rows, resume)
    run.begin(seed=1, n=400, plain=plain)
    incremental.fill(run, sets, shares)
    return run


def test_every_line_is_measured_at_every_share(report):
    measured = {(r.data, r.dims, r.k, r.nu, r.line) for r in report.content["results"]}

    assert len(measured) == len(report.content["results"]) == 5 * len(SHARES) * len(LINES)
    assert json.loads(report.file.read_text())["seed"] == 1


def test_plain_times_are_there_where_all_columns_are(report):
    timed = {(r.dims, r.line) for r in report.content["results"] if r.plain_tau_plus is not None}

    assert timed == {(dims, line) for dims in (15, 3) for line in ("2MDAV", "NN", "NN split-mid", "NN split-end")}


def test_every_figure_of_the_thesis_is_held_against_the_results(report):
    found = claims(report.content)
    places = " ".join(claim.where for claim in found)

    for figure in ("5.1", "5.2", "5.3", "5.4", "5.5", "5.6", "5.7", "5.8", "5.9", "5.10", "6.1", "6.2", "6.3"):
        assert f"{figure} " in f"{places} ".replace(",", " ")
    assert "table 5.2" in places
    assert "tau_+ of NN split-end never surpasses 10 %" in as_text(found)
    assert "NN split-end" in incremental.tables(report.content)


def test_a_claim_that_does_not_hold_is_said(report):
    def never_above(tau):
        slow = [r._replace(plain_tau_plus=tau) if r.line == "NN split-end" else r for r in report.content["results"]]
        return {claim.holds for claim in claims({**report.content, "results": slow}) if "never surpasses" in claim.says}

    assert never_above(0.05) == {True}
    assert never_above(0.5) == {False}


def test_what_was_not_measured_is_not_testable():
    found = claims({"results": [], "table_5_2": []})

    assert {claim.holds for claim in found} == {None}
    assert all(claim.why for claim in found)


@pytest.mark.parametrize("variant", PLAIN)
@pytest.mark.parametrize("late", [3, 150, 700])
def test_the_plain_twins_make_the_cells_of_the_kernels(variant, late):
    X = np.random.default_rng(late).normal(size=(900, 4))
    base = partition(X[: 900 - late], 5, "mdav")

    assert agreement(PLAIN[variant](X, base, 5), join(X, base, 5, variant)) == 1.0


def test_table_5_2_has_all_lines_and_says_what_was_not_run(tmp_path):
    def make(data, n, k, dims):
        return gaussian_problem(400 + n // 10_000, min(dims, 5), 10, 1)._replace(data=data)

    rows = list(reference_times.rows(make, [], plain_up_to=50_000))
    again = list(reference_times.rows(make, rows[:5], plain_up_to=50_000))
    text = reference_times.as_text(rows)

    assert len(rows) == len(reference_times.PRINTED) == 14
    assert len(again) == 9
    assert text.count("not run") == 2
    assert "11,220.00" in text  # three hours and seven minutes
    assert [claim.holds for claim in claims({"results": [], "table_5_2": rows})][:2] == [None] * 2


def test_all_pictures_are_drawn(report, tmp_path):
    drawn = dict(figures(report.content))
    drawn["figure-6.3"].savefig(tmp_path / "some.png")

    assert len(drawn) == 8


def test_without_the_data_folder_the_rest_is_measured(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOAL_DATA", str(tmp_path))
    monkeypatch.setattr(incremental, "SMALL", incremental.Scale(400, (0.5,), (10,)))
    arguments = ["incremental", "--without-plain", "--output", str(tmp_path / "out")]
    result = papers_command(*arguments)

    assert result.exit_code == 0, result.output
    assert "Without census" in result.stderr
    assert "gaussian x 15, k=10" in result.stdout


def test_an_interrupted_run_goes_on_with_what_is_missing(report, tmp_path):
    sets = [gaussian_problem(400, dims, 10, 1) for dims in (5, 15)]
    first = measured(tmp_path, sets[:1], SHARES[:2], plain=False).content["results"]
    again = measured(tmp_path, sets, SHARES, plain=False, resume=True).content["results"]

    assert again[: len(first)] == first
    assert [r[:6] for r in sorted(again)] == [
        r[:6] for r in sorted(report.content["results"]) if r.k == 10 and r.data == "gaussian"
    ]


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (None, "nothing to resume"),
        ("{", "is not a result file of a run"),
        ('{"seed": 2, "n": 400, "plain": true, "results": [], "machine": {}}', "other settings"),
    ],
)
def test_what_cannot_be_gone_on_with_is_said(left, said, tmp_path):
    if left is not None:
        (tmp_path / "incremental.json").write_text(left)
    with pytest.raises(ParameterError, match=said):
        measured(tmp_path, [], (), plain=True, resume=True)


def test_in_the_full_run_reopening_loses_less_than_every_other_variant_up_to_a_half():
    full = json.loads(FULL.read_text(encoding="utf-8"))
    results = [Result(**result) for result in full["results"] if result["k"] == 10 and result["nu"] <= 0.5]
    least = {}
    for r in results:
        least.setdefault((r.data, r.dims, r.nu), []).append((r.delta, r.line))

    assert full["n"] == 50_000
    assert {min(lines)[1] for lines in least.values()} == {"ours"}
