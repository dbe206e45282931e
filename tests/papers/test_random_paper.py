import dataclasses
import json

import numpy as np
import pytest
from papers_shell import papers_command

from papers import random
from papers.random.methods import METHODS, partitioned


def write_files(folder):
    """Stand small sets in for the two files, a missing value among them."""
    rng = np.random.default_rng(0)
    for name, n_columns in (("breast_cancer_wisconsin.csv", 11), ("pima_diabetes.csv", 9)):
        X = rng.integers(1, 11, (60, n_columns)).astype(str)
        X[3, 6] = ""
        rows = [",".join(f"c{j}" for j in range(n_columns)), *(",".join(row) for row in X)]
        (folder / name).write_text("\n".join(rows) + "\n")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("n", "k", "c"), [(40, 3, 1), (41, 5, 4), (10, 5, 2), (7, 5, 3)])
def test_both_partitions_have_cells_of_k_to_2k_records(method, n, k, c):
    X = np.random.default_rng(n).normal(size=(n, 3))
    sizes = np.bincount(partitioned(X, k, c, 1, METHODS[method]))

    assert sizes.sum() == n
    assert sizes.min() >= k
    assert sizes.max() < 2 * k


def test_the_figures_are_printed_written_and_drawn(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    write_files(tmp_path)
    monkeypatch.setenv("SHOAL_DATA", str(tmp_path))
    out = tmp_path / "out"
    result = papers_command("random", "-k", "3,5", "--repeats", 1, "-c", 2, "--output", out)

    assert result.exit_code == 0, result.output
    for words in ("Breast Cancer: processor seconds (figure 4)", "Diabetes: DLD in %", "k - 1 known", "rho 0.8"):
        assert words in result.stdout
    saved = json.loads((out / "random.json").read_text())
    assert len(saved["partitions"]) == 2 * 2 * 3
    assert len(saved["scattered"]) == 2 * 2 * 4
    known = {(line["data"], line["k"]): line["recovered"] for line in saved["scattered"] if line["rho"] == 0}
    assert set(known.values()) == {1.0}
    assert len(list(out.glob("random-*.png"))) == 5


def test_without_its_data_sets_shipped_ones_stand_in_and_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOAL_DATA", str(tmp_path))
    small = {
        name: lambda load=load: dataclasses.replace(load(), X=load().X[:60]) for name, load in random.STAND_INS.items()
    }
    monkeypatch.setattr(random, "STAND_INS", small)
    result = papers_command("random", "-k", "3", "--repeats", 1, "--output", tmp_path / "out")

    assert result.exit_code == 0, result.output
    assert "Without Breast Cancer: breast_cancer_wisconsin.csv not found" in result.stderr
    assert "Neither set is at hand; these stand in: Census (stand-in), Tarragona (stand-in)" in result.stderr
    assert "Census (stand-in): IL in % (figure 5)" in result.stdout
    assert "random aggregation satisfies differential privacy" in result.stdout
    assert len(json.loads((tmp_path / "out" / "random.json").read_text())["partitions"]) == 2 * 3


@pytest.mark.parametrize("ks", ["many", "1", "0,5"])
def test_sizes_that_cannot_be_are_refused(ks, tmp_path):
    result = papers_command("random", "-k", ks, "--output", tmp_path)

    assert result.exit_code == 2
