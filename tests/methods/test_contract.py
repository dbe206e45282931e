"""What every registered algorithm promises, whatever it does inside."""

import numpy as np
import pytest
from hypothesis import given

from sharing import everything_shared
from shoal.methods import ALGORITHMS, partition
from strategies import problems, untied_problems

every_method = pytest.mark.parametrize("method", ALGORITHMS)


def every_method_that_promises(what):
    """Parametrize over the methods that do not except themselves."""
    return pytest.mark.parametrize("method", [name for name in ALGORITHMS if what not in ALGORITHMS[name].not_promised])


def same_cells(labels, others):
    """Say whether two labelings put the same records together."""
    pairs = len(np.unique(np.stack([labels, others]), axis=1).T)
    return pairs == labels.max() + 1 == others.max() + 1


@every_method
@given(problem=problems())
def test_every_cell_holds_at_least_k_records(method, problem):
    X, k = problem
    labels = partition(X, k, method, seed=0)

    assert np.bincount(labels).min() >= k


@every_method
@given(problem=problems())
def test_labels_are_whole_numbers_from_zero_without_gaps(method, problem):
    X, k = problem
    labels = partition(X, k, method, seed=0)

    assert labels.dtype == np.int64
    assert labels.shape == (len(X),)
    assert set(labels) == set(range(labels.max() + 1))


@every_method
@given(problem=problems())
def test_the_input_is_unchanged(method, problem):
    X, k = problem
    before = X.copy()
    partition(X, k, method, seed=0)

    np.testing.assert_array_equal(X, before)


@every_method
@given(problem=problems())
def test_a_seed_repeats_the_labels_on_any_number_of_threads(method, problem):
    X, k = problem
    alone = partition(X, k, method, seed=7, threads=1)

    with everything_shared():
        for threads in (2, 3, 16):
            np.testing.assert_array_equal(partition(X, k, method, seed=7, threads=threads), alone)


@every_method_that_promises("order")
@given(problem=untied_problems())
def test_the_order_of_the_records_does_not_matter(method, problem):
    X, k = problem
    order = np.random.default_rng(0).permutation(len(X))
    shuffled = np.empty(len(X), dtype=np.int64)
    shuffled[order] = partition(np.ascontiguousarray(X[order]), k, method, seed=0)

    assert same_cells(partition(X, k, method, seed=0), shuffled)


@every_method
@given(problem=problems())
def test_scaling_by_a_power_of_two_does_not_matter(method, problem):
    X, k = problem

    np.testing.assert_array_equal(partition(X, k, method, seed=0), partition(X * 2.0**-30, k, method, seed=0))


@every_method_that_promises("shift")
@given(problem=untied_problems())
def test_shifting_all_records_does_not_matter(method, problem):
    X, k = problem
    # Whole numbers times 2**-20, shifted by whole numbers: no digit is lost, so only the algorithm could make a change.
    X = np.round(X * 2.0**20) / 2.0**20

    assert same_cells(partition(X, k, method, seed=0), partition(X + 8.0, k, method, seed=0))
