"""Centroid: the cells of the naive twin, and the losses that the TFRP paper prints."""

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
    for number in range(40):
        X, k = draw_problem(rng, family, n_most=200)
        labels = partition(X, k, "centroid", threads=1 + number % 2)

        np.testing.assert_array_equal(
            labels, reference.centroid_method(X, k), err_msg=f"problem {number}: {X.shape}, k={k}"
        )


@pytest.mark.parametrize(
    ("data", "k", "method", "printed"),
    [
        (datasets.census, 45, "centroid", 31.01),
        (datasets.census, 45, "centroid+", 29.21),
        (datasets.eia, 9, "centroid", 3.07),
        (datasets.eia, 9, "centroid+", 2.34),
    ],
)
def test_the_losses_that_the_paper_prints(data, k, method, printed):
    X = standardize(data().X)

    assert 100 * loss(X, partition(X, k, method)).il == pytest.approx(printed, abs=0.01)


def test_all_cells_but_those_joined_by_left_over_records_hold_k():
    X = np.random.default_rng(1).normal(size=(103, 2))

    assert sorted(np.bincount(partition(X, 5, "centroid")))[:-3] == [5] * 17
