"""Diameter: the cells of the naive twin, and the losses that the TFRP paper prints."""

import numpy as np
import pytest

import reference
from shoal import datasets, partition
from shoal.arrays import standardize
from shoal.measures import loss
from strategies import FAMILIES, draw_problem


@pytest.mark.parametrize("family", FAMILIES)
def test_the_cells_are_those_of_the_naive_twin(family):
    rng = np.random.default_rng(sorted(FAMILIES).index(family))
    for number in range(25):
        X, k = draw_problem(rng, family, n_most=120)
        labels = partition(X, k, "diameter", threads=1 + number % 2)

        np.testing.assert_array_equal(labels, reference.diameter(X, k), err_msg=f"problem {number}: {X.shape}, k={k}")


@pytest.mark.parametrize(
    ("data", "k", "method", "printed"),
    [
        (datasets.census, 45, "diameter", 33.66),
        (datasets.census, 45, "diameter+", 29.58),
        (datasets.eia, 9, "diameter", 2.90),
        (datasets.eia, 9, "diameter+", 2.32),
    ],
)
def test_the_losses_that_the_paper_prints(data, k, method, printed):
    X = standardize(data().X)

    assert 100 * loss(X, partition(X, k, method)).il == pytest.approx(printed, abs=0.03)


@pytest.mark.parametrize(("n", "sizes"), [(7, [7]), (8, [4, 4]), (11, [4, 7]), (12, [4, 4, 4])])
def test_there_are_as_many_cells_as_fit(n, sizes):
    X = np.random.default_rng(n).normal(size=(n, 1)) + np.array([[100.0]] * (n - 1) + [[0.0]])

    assert len(np.bincount(partition(X, 4, "diameter"))) == len(sizes)


def test_few_different_points_take_no_time():
    X = np.random.default_rng(0).integers(0, 3, (20_000, 2)).astype(float)

    assert np.bincount(partition(X, 10, "diameter")).min() == 10
