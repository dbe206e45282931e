"""V-MDAV: the cells of the naive twin, and cells that grow where records lie together."""

import numpy as np
import pytest

import reference
from shoal import ParameterError, partition
from strategies import FAMILIES, draw_problem


@pytest.mark.parametrize("gamma", [0, 0.2, 1.1])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_cells_are_those_of_the_naive_twin(family, gamma):
    rng = np.random.default_rng(sorted(FAMILIES).index(family))
    for number in range(15):
        X, k = draw_problem(rng, family, n_most=100)
        labels = partition(X, k, "vmdav", gamma=gamma, threads=1 + number % 2)

        np.testing.assert_array_equal(
            labels, reference.vmdav(X, k, gamma), err_msg=f"problem {number}: {X.shape}, k={k}"
        )


def test_a_natural_cluster_of_more_than_k_stays_together():
    rng = np.random.default_rng(0)
    X = np.concatenate([middle + 0.01 * rng.random((4, 2)) for middle in ([0, 0], [50, 0], [0, 80], [90, 90])])

    assert np.bincount(partition(X, 3, "vmdav", gamma=1.1)).tolist() == [4] * 4
    assert sorted(np.bincount(partition(X, 3, "vmdav", gamma=0))) == [3, 3, 3, 3, 4]


def test_cells_hold_fewer_than_2k_records_unless_left_over_ones_join():
    X = np.random.default_rng(2).normal(size=(500, 3))

    assert sorted(np.bincount(partition(X, 5, "vmdav", gamma=10)))[-5] <= 9


@pytest.mark.parametrize("gamma", [-0.1, float("nan"), float("inf")])
def test_a_gamma_that_means_nothing_is_refused(gamma):
    with pytest.raises(ParameterError, match="gamma"):
        partition(np.ones((9, 1)), 3, "vmdav", gamma=gamma)
