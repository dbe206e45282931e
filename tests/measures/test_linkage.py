import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from shoal import ParameterError, kernels, partition
from shoal.arrays import standardize
from shoal.datasets import census
from shoal.measures import linkage
from shoal.measures.linkage import distinct_rows
from strategies import RELEASES, problems

# Figure 1 of the paper on random aggregation: companies A to F, surface and employees, k = 3.
COMPANIES = np.array([[790, 55], [710, 44], [720, 33], [610, 14], [320, 23], [330, 32]], dtype=np.float64)
RELEASED = np.repeat(np.array([[740, 44], [320, 23]], dtype=np.float64), 3, axis=0)


def expected_place(ahead, ties, rank):
    """Average over all places that the own one can have among its equals."""
    return np.mean([np.mean(ahead + np.arange(1, n + 1) <= rank) for ahead, n in zip(ahead, ties, strict=True)])


@given(problem=problems(n_most=60), seed=st.integers(0, 10**6), released=st.sampled_from(sorted(RELEASES)))
def test_every_share_is_its_definition_written_out(problem, seed, released):
    X, k = problem
    points, labels = RELEASES[released](np.random.default_rng(seed), X, k)
    originals, records = (np.vstack(ranks) for ranks in reference.linkage(X, points, labels))
    found = linkage(X, points[labels])

    assert found.dld == pytest.approx(expected_place(*originals, 1))
    assert found.dld_within_2 == pytest.approx(expected_place(*originals, 2))
    assert found.linked == pytest.approx(expected_place(*records, 1))
    assert found.within == pytest.approx({rank: expected_place(*records, rank) for rank in found.within})
    assert found.median_rank == np.median(records[0] + (records[1] + 1) / 2)
    np.testing.assert_array_equal(found.nearer, records[0])
    np.testing.assert_array_equal(found.as_near, records[1])


def test_labels_save_time_and_change_nothing():
    X = standardize(census().X)
    labels = partition(X, 5, "mdav")
    Y = (kernels.cell_sums(X, labels, labels.max() + 1) / np.bincount(labels)[:, None])[labels]

    assert linkage(X, Y, labels).to_dict() == linkage(X, Y).to_dict()


def test_the_companies_of_the_paper_are_linked_as_it_says():
    # The two nearest of (740, 44) are B and C, so A is not linked, and B is, says the paper: it counts the two nearest,
    # since C is nearer than B. At (320, 23) these are E, which did not move, and F.
    found = linkage(COMPANIES, RELEASED)

    assert found.dld == pytest.approx(2 / 6)
    assert found.dld_within_2 == pytest.approx(4 / 6)


def test_an_unchanged_release_is_linked_entirely():
    X = np.random.default_rng(1).normal(size=(300, 3))
    found = linkage(X, X)

    assert (found.dld, found.dld_within_2, found.linked, found.median_rank) == (1, 1, 1, 1)
    assert set(found.within.values()) == {1.0}


@pytest.mark.parametrize("value", [0.0, 1.7e9, 1e300])
def test_records_that_are_all_the_same_are_linked_by_luck_alone(value):
    found = linkage(np.full((20, 2), value), np.full((20, 2), value))

    assert found.dld == pytest.approx(1 / 20)
    assert found.dld_within_2 == pytest.approx(2 / 20)
    assert found.linked == pytest.approx(1 / 20)
    assert found.within == pytest.approx({1: 1 / 20, 2: 2 / 20, 10: 10 / 20})
    assert found.median_rank == 10.5


def test_cells_of_k_link_no_more_than_one_record_in_k_from_the_originals():
    X = standardize(census().X)
    labels = partition(X, 10, "mdav")
    Y = (kernels.cell_sums(X, labels, labels.max() + 1) / np.bincount(labels)[:, None])[labels]
    found = linkage(X, Y, labels)

    assert found.linked <= 0.1
    assert found.as_near.min() >= 10


def test_timestamps_are_linked_as_the_seconds_between_them_are():
    rng = np.random.default_rng(4)
    seconds = rng.integers(0, 10**6, (200, 2)).astype(float)
    released = np.round(seconds, -4)
    offset = 1.7e9

    assert linkage(seconds + offset, released + offset).to_dict() == linkage(seconds, released).to_dict()


def test_one_record_alone_is_found():
    found = linkage([[1.0]], [[5.0]])

    assert (found.dld, found.linked, found.median_rank) == (1, 1, 1)


def test_two_cells_that_were_released_alike_are_as_near_as_each_other():
    found = linkage([[0.0], [1.0], [2.0], [3.0]], [[1.5]] * 4, labels=[0, 0, 1, 1])

    assert found.as_near.tolist() == [4, 4, 4, 4]
    assert found.linked == 0.25


def test_the_inputs_are_unchanged():
    X, Y = COMPANIES.copy(), RELEASED.copy()
    linkage(X, Y)

    np.testing.assert_array_equal(X, COMPANIES)
    np.testing.assert_array_equal(Y, RELEASED)


@pytest.mark.parametrize(
    ("X", "Y", "labels", "message"),
    [
        (COMPANIES, RELEASED[:3], None, r"\(6, 2\) and \(3, 2\)"),
        (COMPANIES, COMPANIES, [0, 0, 0, 1, 1, 1], "4 records differ from the first of their cell"),
        (COMPANIES, RELEASED, [0, 0, 0], "each of the 6 records"),
        (COMPANIES, RELEASED, [0.0] * 6, "whole numbers"),
        (np.empty((0, 2)), np.empty((0, 2)), None, "no records"),
        (COMPANIES, np.full((6, 2), np.nan), None, "12 entries are NaN"),
    ],
)
def test_what_does_not_fit_is_refused(X, Y, labels, message):
    with pytest.raises(ParameterError, match=message):
        linkage(X, Y, labels)


def test_cells_may_have_any_numbers():
    assert linkage(COMPANIES, RELEASED, [7, 7, 7, -2, -2, -2]).to_dict() == linkage(COMPANIES, RELEASED).to_dict()


def test_a_sample_has_the_ranks_that_its_records_have_among_all():
    rng = np.random.default_rng(3)
    X = np.vstack([rng.normal(size=(700, 4)), np.repeat(rng.normal(size=(3, 4)), 40, axis=0)])
    labels = np.arange(len(X)) // 5
    Y = np.stack([X[labels == cell].mean(axis=0) for cell in range(labels.max() + 1)])[labels]
    drawn = np.sort(np.random.default_rng(8).choice(len(X), 90, replace=False))
    everybody, some = linkage(X, Y, labels), linkage(X, Y, labels, sample=90, seed=8)

    assert some.n_ranked == 90
    assert np.array_equal(some.nearer, everybody.nearer[drawn])
    assert np.array_equal(some.as_near, everybody.as_near[drawn])
    assert linkage(X, Y, labels, sample=5000).dld == everybody.dld


def test_the_shares_of_a_sample_are_near_those_of_all_records():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(20_000, 3))
    labels = np.arange(len(X)) // 4
    Y = (np.add.reduceat(X, np.arange(0, len(X), 4)) / 4)[labels]
    exact, near = linkage(X, Y, labels), linkage(X, Y, labels, sample=4_000, seed=1)

    assert abs(near.dld - exact.dld) < 5 * 0.5 / 4_000**0.5
    assert abs(near.linked - exact.linked) < 5 * 0.5 / 4_000**0.5


def test_an_empty_sample_is_refused():
    with pytest.raises(ParameterError, match="at least 1"):
        linkage([[0.0], [1.0]], [[0.5], [0.5]], sample=0)


@pytest.mark.parametrize(("n", "m", "n_values"), [(1, 1, 1), (60, 30, 1), (300, 1, 3), (400, 9, 2), (500, 20, 2)])
def test_distinct_rows_are_in_lexicographic_order(n, m, n_values):
    Y = np.random.default_rng(n).integers(0, n_values, (n, m)).astype(np.float64)
    points, labels = distinct_rows(Y)

    np.testing.assert_array_equal(points, np.unique(Y, axis=0))
    np.testing.assert_array_equal(points[labels], Y)
