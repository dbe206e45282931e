"""Refining: less loss, never fewer than k records to a cell, the same end from the same start."""

import threading

import numpy as np
import pytest
from hypothesis import given

from sharing import everything_shared
from shoal import GuaranteeError, ParameterError, datasets, kernels, partition
from shoal.arrays import standardize
from shoal.measures import loss
from shoal.methods.refine import refine
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
        ends = []
        for simd in RUNNABLE:
            with kernels.using(threads=1, simd=simd):
                ends.append(kernels.refine(X, start, k, 10, 20, 0.0, True))

        for end in ends:
            np.testing.assert_array_equal(end, ends[0])


@pytest.mark.parametrize(("n_dims", "k"), [(5, 10), (2, 2)], ids=["16 regions", "64 regions"])
def test_any_number_of_threads_takes_the_same_steps(n_dims, k):
    X = np.random.default_rng(3).normal(size=(34_000, n_dims))
    start = partition(X, k, "blocks", size=2_000)
    ends = []
    for threads in (1, 2, 3, 16):
        with kernels.using(threads), everything_shared():
            ends.append(refine(X, start, k))

    for end in ends[1:]:
        np.testing.assert_array_equal(end, ends[0])


@pytest.mark.parametrize("n_dims", [1, 3, 9, 17])
def test_the_neighbours_of_a_cell_are_the_nearest_ones(n_dims):
    X = np.random.default_rng(n_dims).normal(size=(3_000, n_dims))
    labels = np.arange(3_000) // 3
    lists = kernels.cell_neighbours(X, labels, 3, 7).reshape(1_000, 7)
    means = X.reshape(1_000, 3, n_dims).mean(axis=1)
    apart = ((means[:, None] - means[None]) ** 2).sum(axis=2)
    np.fill_diagonal(apart, np.inf)

    np.testing.assert_allclose(
        np.take_along_axis(apart, lists, axis=1), np.sort(apart, axis=1)[:, :7], rtol=1e-5, atol=1e-12
    )


def test_cells_that_lie_on_one_point_are_neighbours_of_each_other():
    lists = kernels.cell_neighbours(np.zeros((500, 2)), np.arange(500) // 2, 2, 5).reshape(250, 5)

    assert all(len(set(near) - {cell}) == 5 for cell, near in enumerate(lists))


def test_records_of_different_strata_stay_apart():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(4_000, 3))
    strata = rng.integers(0, 7, size=4_000)
    start = np.empty(4_000, dtype=np.int64)
    start[np.argsort(strata, kind="stable")] = np.repeat(np.arange(7), np.bincount(strata))
    labels = refine(X, start, 5, strata=strata)

    assert len(np.unique(np.column_stack([strata, labels]), axis=0)) == labels.max() + 1
    assert np.bincount(labels).min() >= 5
    assert loss(X, labels).sse < 0.5 * loss(X, start).sse


def test_strata_are_refined_side_by_side_each_as_by_itself():
    rng = np.random.default_rng(5)
    X, strata = rng.normal(size=(1_200, 3)), np.sort(rng.integers(0, 9, size=1_200))
    start = np.concatenate([100 * stratum + in_order(int((strata == stratum).sum()), 4) for stratum in range(9)])
    start = np.unique(start, return_inverse=True)[1]
    told = []
    with kernels.using(threads=3, progress=lambda done, total: told.append((done, total, threading.current_thread()))):
        labels = refine(X, start, 4, strata=strata)
    with kernels.using(threads=1):
        np.testing.assert_array_equal(refine(X, start, 4, strata=strata), labels)

    for stratum in range(9):
        here = strata == stratum
        alone = refine(X[here], start[here] - start[here].min(), 4)
        np.testing.assert_array_equal(labels[here] - labels[here].min(), alone)
    # One total for all strata, on the calling thread.
    assert {(total, thread) for _, total, thread in told} == {(1_200, threading.current_thread())}
    assert told[-1][0] == 1_200


def test_a_cell_across_strata_is_refused():
    with pytest.raises(ParameterError, match="several strata"):
        refine(np.zeros((4, 1)), [0, 0, 1, 1], 2, strata=[0, 1, 1, 1])
    with pytest.raises(ParameterError, match="strata must have one entry for each"):
        refine(np.zeros((4, 1)), [0, 0, 1, 1], 2, strata=[0, 1])


@given(problem=problems())
def test_thorough_refining_never_loses_more_and_keeps_k(problem):
    X, k = problem
    start = refine(X, in_order(len(X), k), k)
    labels = refine(X, start, k, thorough=True)

    assert np.bincount(labels).min() >= k
    assert loss(X, labels).sse <= loss(X, start).sse * (1 + 1e-12)


def test_chains_and_new_cuts_win_what_moves_and_swaps_do_not():
    X = standardize(datasets.census().X)
    quick = refine(X, partition(X, 5, "mdav"), 5, least_gain=0.0, rounds=100)

    assert loss(X, refine(X, quick, 5, rounds=100, least_gain=0.0)).sse == pytest.approx(loss(X, quick).sse)
    assert loss(X, refine(X, quick, 5, rounds=100, least_gain=0.0, thorough=True)).sse < 0.999 * loss(X, quick).sse


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


def test_thousands_of_cells_are_refined():
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


@pytest.mark.parametrize("k", [-1, 0, 1, 2.0, True, None])
def test_a_k_that_is_no_cell_size_is_refused(k):
    with pytest.raises(ParameterError, match="k must be"):
        refine(np.zeros((5, 1)), [0, 0, 0, 1, 1], k)


@pytest.mark.parametrize("labels", [[0, 0], [0.0] * 5, [-1, 0, 0, 0, 0], [0, 0, 0, 0, 99]])
def test_labels_that_number_no_cells_are_refused(labels):
    with pytest.raises(ParameterError, match="labels"):
        refine(np.zeros((5, 1)), labels, 2)


def test_an_empty_cell_in_the_numbering_is_refused():
    with pytest.raises((GuaranteeError, ParameterError)):
        refine(np.zeros((6, 1)), [0, 0, 0, 2, 2, 2], 3)
