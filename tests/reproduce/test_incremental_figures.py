import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from shoal.cli import main
from shoal.errors import ParameterError
from shoal.reproduce import incremental
from shoal.reproduce.incremental.claims import claims, in_text
from shoal.reproduce.incremental.pictures import draw
from shoal.reproduce.incremental.runs import LINES, Problem, Result, gaussian_problem

SHARES = (0.1, 0.5, 0.9)
ROOT = Path(__file__).parents[2]
FULL = ROOT / "benchmarks" / "results" / "incremental_figures.json"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    rng = np.random.default_rng(0)
    sets = [gaussian_problem(400, dims, k, 1) for k in (10, 20) for dims in (5, 15)]
    sets += [Problem("census", rng.integers(0, 9, (400, 3)) * 1.0, 10)]
    report = incremental.Report(tmp_path_factory.mktemp("incremental"), {"seed": 1, "n": 400, "plain": True})
    incremental.run(report, sets, SHARES)
    return report


def test_every_line_is_measured_at_every_share(report):
    measured = {(r.data, r.dims, r.k, r.nu, r.line) for r in report.results}

    assert len(measured) == len(report.results) == 5 * len(SHARES) * len(LINES)
    assert json.loads((report.folder / "incremental.json").read_text())["seed"] == 1


def test_plain_times_are_there_where_all_columns_are(report):
    timed = {(r.dims, r.line) for r in report.results if r.plain_tau_plus is not None}

    assert timed == {(dims, line) for dims in (15, 3) for line in ("2MDAV", "NN split-mid", "NN split-end")}


def test_sentences_of_the_thesis_are_held_against_the_results(report):
    found = claims(report.results)
    text = in_text(found)

    assert {claim.figure for claim in found} >= {"5.2", "5.3", "5.4", "5.6", "5.9", "ours"}
    assert "delta about 5 % for 2MDAV" in text
    assert "NN split-end" in incremental.table(report.results)


def test_a_claim_that_does_not_hold_is_said(report):
    worse = [r._replace(delta=0.5) if r.line == "ours" else r for r in report.results]

    assert not all(claim.agrees for claim in claims(worse) if claim.figure == "ours")
    assert "NO" in in_text(claims(worse))


def test_all_pictures_are_drawn(report, tmp_path):
    draw(report.results, tmp_path)

    assert len(list(tmp_path.glob("incremental-figure*.png"))) == 8


def test_without_the_data_folder_the_rest_is_measured(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOAL_DATA", str(tmp_path))
    monkeypatch.setattr(incremental, "SMALL", incremental.Scale(400, (0.5,), (10,)))
    arguments = ["reproduce", "incremental", "--without-plain", "--output", str(tmp_path / "out")]
    result = CliRunner().invoke(main, arguments)

    assert result.exit_code == 0, result.output
    assert "Without census" in result.stderr
    assert "gaussian x 15, k=10" in result.stdout


def test_an_interrupted_run_goes_on_with_what_is_missing(report, tmp_path):
    settings = {"seed": 1, "n": 400, "plain": False}
    sets = [gaussian_problem(400, dims, 10, 1) for dims in (5, 15)]
    first = incremental.Report(tmp_path, settings)
    incremental.run(first, sets[:1], SHARES[:2])
    again = incremental.Report(tmp_path, settings, resume=True)
    incremental.run(again, sets, SHARES)

    assert again.results[: len(first.results)] == first.results
    assert [r[:6] for r in sorted(again.results)] == [
        r[:6] for r in sorted(report.results) if r.k == 10 and r.data == "gaussian"
    ]


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (None, "nothing to resume"),
        ("{", "is not what a run has left"),
        ('{"seed": 2, "n": 400, "plain": true, "results": []}', "other settings"),
    ],
)
def test_what_cannot_be_gone_on_with_is_said(left, said, tmp_path):
    if left is not None:
        (tmp_path / "incremental.json").write_text(left)
    with pytest.raises(ParameterError, match=said):
        incremental.Report(tmp_path, {"seed": 1, "n": 400, "plain": True}, resume=True)


@pytest.mark.skipif(not FULL.exists(), reason="a source distribution comes without results")
def test_the_page_says_what_the_full_run_found():
    page = (ROOT / "docs" / "incremental.md").read_text(encoding="utf-8")
    full = json.loads(FULL.read_text(encoding="utf-8"))
    found = claims([Result(**result) for result in full["results"]])

    assert full["n"] == 50_000
    for claim in found:
        assert f"| {claim.says} | {claim.found} | {'yes' if claim.agrees else '**no**'} |" in page
