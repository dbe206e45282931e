import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from shoal import partition

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
PAGES = ("README.md", "docs/auto.md", "paper/paper.md")
PAGE = "# A page\n\n<!-- bench:start -->\nold\n<!-- bench:end -->\n\nThe end.\n"


def run(script, *arguments, **environment):
    command = [sys.executable, BENCHMARKS / script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    only = ("--only", "side-by-side", "--only", "yardstick", "--only", "import")
    # A data folder without data: the section that needs them has to say so.
    done = run("bench_partition.py", "--quick", *only, "--output", folder / "partition.json", SHOAL_DATA=str(folder))
    assert done.returncode == 0, done.stderr
    return done, folder / "partition.json"


@pytest.fixture(scope="module")
def results(bench):
    return json.loads(bench[1].read_text(encoding="utf-8"))


def test_results_say_what_was_measured_when_and_on_what(results):
    machine = results["machine"]

    assert results["quick"] is True
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT.*", results["date"])
    assert results["commit"] is None or re.fullmatch(r"[0-9a-f]{40}", results["commit"])
    assert machine["cpu"]
    assert machine["numpy"] == np.__version__
    assert machine["threads_at_most"] >= 1


def test_every_time_has_loss_agreement_and_memory_beside_it(results):
    for row in results["rows"]:
        assert 0 < row["seconds"] <= row["median"]
        assert 0 < row["il"] < 100
        assert row["peak_mb"] >= row["bare_mb"] > 0
        assert row["peak_mb"] > row["matrix_mb"]
        assert row["same_as"] == "numpy plain, 1 thread"


def test_all_but_single_precision_have_to_make_the_cells_of_traditional_mdav(results):
    same = {(row["method"], row["n"]): row["same_cells"] for row in results["rows"]}
    exact = {share for (method, _), share in same.items() if method != "numpy f-mdav"}

    assert {method for method, _ in same} == {"numpy plain", "numpy by columns", "numpy f-mdav", "shoal mdav"}
    assert {n for _, n in same} == {1250, 2500, 5000}
    assert exact == {1.0}


def test_growth_and_both_factors_are_reported(results):
    exponents = {entry["method"]: entry["exponent"] for entry in results["growth"]}
    times = {
        method: [(row["n"], row["seconds"]) for row in results["rows"] if row["method"] == method]
        for method in exponents
    }
    against = [claim["what"] for claim in results["claims"] if claim["unit"] == "x"]

    assert len(exponents) == 4
    assert exponents == pytest.approx({method: np.polyfit(*np.log(times[method]).T, 1)[0] for method in exponents})
    assert any("as commonly written" in what for what in against)
    assert any("laid out by columns" in what for what in against)


def test_data_that_are_missing_are_named(bench, results):
    assert [reason.split(":")[0] for reason in results["missing"]] == ["covertype", "census"]
    assert "Left out: covertype" in bench[0].stderr
    assert "left out: covertype" in bench[0].stdout


@pytest.fixture
def project(tmp_path):
    """Return a project with the pages that tables go into."""
    for page in PAGES:
        (tmp_path / page).parent.mkdir(exist_ok=True)
        (tmp_path / page).write_text(PAGE, encoding="utf-8")
    return tmp_path


def test_tables_go_between_the_markers_and_nowhere_else(bench, project):
    done = run("table.py", "--results", bench[1], "--project", project)
    once = [(project / page).read_text(encoding="utf-8") for page in PAGES]
    run("table.py", "--results", bench[1], "--project", project)

    assert done.returncode == 0
    assert [PAGE.replace("\nold\n", between_markers(page)) for page in once] == once
    assert "".join(between_markers(page)[1:] for page in once) == done.stdout
    assert "| gaussian, 5,000 x 15, k = 10 | NumPy MDAV as commonly written |" in once[0]
    assert "`import shoal` takes" in once[0]
    assert [(project / page).read_text(encoding="utf-8") for page in PAGES] == once


def test_the_pages_hold_the_tables_of_the_result_that_is_kept(project):
    root = BENCHMARKS.parent
    done = run("table.py", "--project", project)

    assert done.returncode == 0
    for page in PAGES:
        kept, made = ((folder / page).read_text(encoding="utf-8") for folder in (root, project))
        assert between_markers(kept) == between_markers(made)


def between_markers(page):
    return page.split("<!-- bench:start -->")[1].split("<!-- bench:end -->")[0]


def test_a_page_without_markers_leaves_all_as_they_are(bench, project):
    (project / "docs" / "auto.md").write_text("# A page\n", encoding="utf-8")
    done = run("table.py", "--results", bench[1], "--project", project)

    assert done.returncode == 1
    assert "bench:start" in done.stderr
    assert (project / "README.md").read_text(encoding="utf-8") == PAGE


def from_benchmarks(name, monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module(name)


@pytest.mark.parametrize(("n", "k"), [(200, 10), (203, 3), (57, 2), (39, 20), (20, 20), (40, 20), (41, 20)])
def test_the_plain_baseline_is_mdav(n, k, monkeypatch):
    plain_mdav = from_benchmarks("plain_numpy", monkeypatch).plain_mdav
    X = np.random.default_rng(n).normal(size=(n, 4))

    assert np.array_equal(plain_mdav(X, k), partition(X, k, "mdav"))


def test_the_yardstick_makes_the_cells_of_untied_records(tmp_path, monkeypatch):
    brute_force = from_benchmarks("brute_force", monkeypatch)
    if brute_force.build(tmp_path) is None:
        pytest.skip("no C++ compiler")
    X = np.random.default_rng(0).normal(size=(2000, 7))

    assert np.array_equal(brute_force.load(tmp_path)(X, 10), partition(X, 10, "mdav"))


def test_without_a_compiler_there_is_no_yardstick(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")

    assert from_benchmarks("brute_force", monkeypatch).build(tmp_path) is None


def test_linkage_gives_the_same_answers_as_brute_force_and_as_trees(tmp_path):
    done = run("bench_linkage.py", "--quick", "--output", tmp_path / "linkage.json", SHOAL_DATA=str(tmp_path))
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "linkage.json").read_text(encoding="utf-8"))
    rows = {row["method"]: row for row in results["rows"]}

    assert set(rows) == {"shoal", "scipy cKDTree", "brute force in NumPy"}
    for row in rows.values():
        assert row["dld"] == pytest.approx(rows["shoal"]["dld"])
        assert row["linked"] == pytest.approx(rows["shoal"]["linked"])
        assert row["seconds"] > 0
    assert [reason.split(":")[0] for reason in results["missing"]] == ["census", "covertype", "flights"]
    assert "brute force in NumPy" in done.stdout


def test_the_certainty_benchmark_names_what_it_did_not_find(tmp_path):
    done = run("bench_ncp.py", "--quick", "--output", tmp_path / "ncp.json", SHOAL_DATA=str(tmp_path))

    assert "adult: adult.csv.gz, classes.npz not found; SHOAL_DATA may name the folder" in done.stderr
    assert json.loads((tmp_path / "ncp.json").read_text())["rows"] == []


def test_mondrian_keeps_k_and_equal_records_together(monkeypatch):
    rng = np.random.default_rng(1)
    numbers, codes = rng.integers(0, 4, (200, 2)).astype(float), rng.integers(0, 3, (200, 1))
    labels = from_benchmarks("mondrian", monkeypatch).mondrian(numbers, codes, 7)

    assert np.bincount(labels).min() >= 7
    assert labels.max() > 5
    records = np.column_stack([numbers, codes])
    assert len(np.unique(np.column_stack([records, labels]), axis=0)) == len(np.unique(records, axis=0))


def test_the_tables_about_truthful_releases_show_what_was_measured():
    truthful, attacks = ((BENCHMARKS.parent / "docs" / f"{page}.md").read_text() for page in ("truthful", "attacks"))
    rows = json.loads((BENCHMARKS / "results" / "truthful.json").read_text())["rows"]

    def listed(row, measure, decimals):
        return ", ".join(f"{row[way][measure]:.{decimals}f}" for way in ("mean", "middle", "draw"))

    assert [row["k"] for row in rows] == [3, 5, 10, 25]
    for row in rows:
        k, known = row["k"], row["known"]
        kept = f"{listed(row, 'average', 3)} | {listed(row, 'sd', 1)} | {listed(row, 'correlation', 3)}"
        widths = " | ".join(f"{row[name]:.1f}" for name in ("ncp", "ncp_steps", "ncp_published", "alone"))
        assert f"| {k} | {kept} |" in truthful
        assert f"| {k} | {widths} % |" in truthful
        assert f"| {k} | {known['ends']:.1f} % | {known['middle']:.1f} % | {known['blind']:.1f} % |" in attacks
        assert (row["exposed"], row["false_intervals"]) == (0, 0)
