"""Refining: less loss, never fewer than k records to a cell, the same end from the same start."""

import numpy as np
import pytest
from hypothesis import given

from shoal import GuaranteeError, ParameterError, _kernels, datasets, partition
from shoal.metrics import loss
from shoal.partition.refine import refine
from shoal.space import standardize
from strategies import FAMILIES, RUNNABLE, draw_problem, problems


def in_order(n, k):
    """Return the partition that puts neighbours in the table together."""
    return np.minimum(np.arange(n) // k, n // k - 1)


@given(problem=problems())
def test_the_loss_never_rises_and_no_cell_falls_below_k(problem):
    X, k = problem
    start = in_order(len(X), k)
    labels = refine(X, start, k)
    before, after = loss(X, start), loss(X, labels)

    assert np.bincount(labels).min() >= k
    assert after.sse <= before.sse * (1 + 1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_all_instruction_sets_take_the_same_steps(family):
    rng = np.random.default_rng(5)
    for _ in range(10):
        X, k = draw_problem(rng, family)
        start = in_order(len(X), k)
        ends = [_kernels.refine(X, start, k, 10, 20, 0.0, None, simd) for simd in RUNNABLE]

        for end in ends:
            np.testing.assert_array_equal(end, ends[0])


def test_a_bad_partition_of_two_clusters_is_put_right():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(20, 3)), rng.normal(size=(20, 3)) + 100])
    labels = refine(X, np.arange(40) % 2, 5)

    assert len(set(labels[:20]) & set(labels[20:])) == 0


def test_cells_with_records_to_spare_give_them_away():
    # The third record of the first cell is at home in the second.
    X = np.array([[0.0], [1.0], [10.0], [11.0], [12.0]])

    np.testing.assert_array_equal(refine(X, np.array([0, 0, 0, 1, 1]), 2), [0, 0, 1, 1, 1])


def test_a_cell_that_costs_too_much_is_scattered():
    # The records of the cell in the middle lie one by one beside the other cells.
    X = np.array([[0.0], [0.1], [100.0], [100.1], [0.05], [100.05]])

    assert refine(X, np.array([0, 0, 1, 1, 2, 2]), 2).max() == 1


@pytest.mark.parametrize("k", [3, 5, 10])
@pytest.mark.parametrize("load", [datasets.census, datasets.tarragona, datasets.eia])
def test_mdav_of_the_reference_sets_gets_better_by_more_than_five_percent(load, k):
    X = standardize(load().X)
    start = partition(X, k, "mdav")

    assert loss(X, refine(X, start, k)).sse < 0.95 * loss(X, start).sse


def test_thousands_of_cells_are_refined_by_approximate_neighbours():
    X = np.random.default_rng(0).normal(size=(12_000, 6))
    start = partition(X, 4, "mdav")

    assert loss(X, refine(X, start, 4)).sse < 0.97 * loss(X, start).sse


def test_one_huge_cell_among_many_small_ones_is_cut_first():
    X = np.random.default_rng(0).normal(size=(40_000, 8))
    start = np.minimum(np.arange(40_000) // 4, 5_000)
    labels = refine(X, start, 4)

    assert 4 <= np.bincount(labels).min() <= np.bincount(labels).max() < 8
    assert loss(X, labels).sse < loss(X, start).sse


def test_a_start_that_breaks_k_is_refused():
    with pytest.raises(GuaranteeError, match=r"k=3 .* smallest cell has 2"):
        refine(np.zeros((5, 1)), [0, 0, 0, 1, 1], 3)


@pytest.mark.parametrize("labels", [[0, 0], [0.0] * 5, [-1, 0, 0, 0, 0], [0, 0, 0, 0, 99]])
def test_labels_that_number_no_cells_are_refused(labels):
    with pytest.raises(ParameterError, match="labels"):
        refine(np.zeros((5, 1)), labels, 2)


def test_an_empty_cell_in_the_numbering_is_refused():
    with pytest.raises((GuaranteeError, ParameterError)):
        refine(np.zeros((6, 1)), [0, 0, 0, 2, 2, 2], 3)
