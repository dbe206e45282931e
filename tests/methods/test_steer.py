"""Steering: more columns, weighted, for any algorithm."""

import numpy as np
import pytest

from shoal import ParameterError, partition
from shoal.methods import ALGORITHMS
from shoal.methods.steer import steer


def test_attributes_are_scaled_to_their_weights():
    steered = steer(np.zeros((3, 1)), [[10, 7], [20, 7], [30, 7]], [4, 5])

    np.testing.assert_array_equal(steered, [[0, 0, 0], [0, 2, 0], [0, 4, 0]])


def test_a_weight_of_zero_changes_nothing():
    X = np.random.default_rng(0).normal(size=(60, 2))

    np.testing.assert_array_equal(partition(steer(X, np.arange(60), 0), 5, "mdav"), partition(X, 5, "mdav"))


# The cells of V-MDAV vary in size, so that fewer than k records of a region may be left for the last one.
@pytest.mark.parametrize("method", [method for method in ALGORITHMS if method not in ("univariate", "vmdav")])
def test_a_large_weight_keeps_cells_within_regions_without_strata(method):
    X, region = np.random.default_rng(0).random((120, 2)), np.repeat([0, 1, 2], 40)
    labels = partition(steer(X, region, 1000), 4, method, 1)

    for cell in range(labels.max() + 1):
        assert len(set(region[labels == cell])) == 1


@pytest.mark.parametrize("method", ["mdav", "auto", "tfrp"])
def test_a_large_weight_on_time_makes_cells_of_successors(method):
    X = np.random.default_rng(0).random((60, 2))
    labels = partition(steer(X, np.arange(60), 1e6), 5, method, 1)

    for cell in range(labels.max() + 1):
        members = np.flatnonzero(labels == cell)
        assert members.max() - members.min() == len(members) - 1


@pytest.mark.parametrize(
    ("attributes", "weights", "said"),
    [
        (np.arange(4), 1, "one row per record"),
        (np.arange(5), [1, 2], "weights"),
        (np.arange(5), -1, "at least 0"),
        (np.arange(5), float("nan"), "at least 0"),
        ([1, 2, 3, 4, float("inf")], 1, "finite"),
    ],
)
def test_what_does_not_fit_is_refused(attributes, weights, said):
    with pytest.raises(ParameterError, match=said):
        steer(np.zeros((5, 1)), attributes, weights)
