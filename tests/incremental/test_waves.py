"""Two releases of overlapping people: the attacks count what an intruder could do."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import ParameterError, partition
from shoal.incremental import join
from shoal.incremental.waves import OUT, intersect

labels = st.lists(st.integers(-1, 3), min_size=1, max_size=14)


@given(
    pair=labels.flatmap(
        lambda first: st.tuples(st.just(first), st.lists(st.integers(-1, 3), min_size=len(first), max_size=len(first)))
    )
)
def test_people_hide_among_those_who_share_both_cells(pair):
    before, after = map(np.array, pair)
    both = [i for i in range(len(before)) if before[i] != OUT and after[i] != OUT]
    common = [sum(before[j] == before[i] and after[j] == after[i] for j in both) for i in both]
    found = intersect(before, after, 3)

    assert found.n_both == len(both)
    if both:
        assert found.smallest == min(common)
        assert found.mean == pytest.approx(np.mean(common))
        assert found.below_k == pytest.approx(np.mean(np.array(common) < 3))


def test_the_same_cells_twice_tell_nothing_new():
    X = np.random.default_rng(0).normal(size=(200, 3))
    cells = partition(X, 5, "mdav")
    found = intersect(cells, cells, 5)

    assert (found.smallest, found.below_k, found.n_differenced) == (5, 0.0, 0)


def test_a_newcomer_to_a_frozen_cell_is_exposed_by_the_difference_of_sums():
    X = np.random.default_rng(1).normal(size=(101, 3))
    before = np.append(partition(X[:100], 5, "mdav"), OUT)
    after = join(X, before[:100], 5, "nearest")
    cell = after[100]
    members = np.flatnonzero(before == cell)
    # What is published: size and mean of the cell, twice.
    computed = X[after == cell].mean(axis=0) * (len(members) + 1) - X[members].mean(axis=0) * len(members)

    assert intersect(before, after, 5).n_exposed == 1
    np.testing.assert_allclose(computed, X[100])


def test_newcomers_in_cells_of_their_own_are_not_exposed():
    X = np.random.default_rng(1).normal(size=(120, 3))
    before = np.append(partition(X[:100], 5, "mdav"), [OUT] * 20)
    found = intersect(before, join(X, before[:100], 5, "two-step"), 5)

    assert (found.n_exposed, found.n_differenced, found.below_k) == (0, 0, 0.0)


def test_somebody_who_leaves_is_exposed_too():
    assert intersect([0, 0, 0, 1, 1], [0, 0, -1, 1, 1], 2).n_exposed == 1


def test_fresh_cells_leave_many_alone():
    X = np.random.default_rng(2).normal(size=(1_000, 8))
    before, after = np.full(1_000, OUT), np.full(1_000, OUT)
    before[:900], after[100:] = partition(X[:900], 5, "mdav"), partition(X[100:], 5, "mdav")

    assert intersect(before, after, 5).below_k > 0.3


def test_different_lists_of_people_are_refused():
    with pytest.raises(ParameterError, match="same people"):
        intersect([0, 0], [0, 0, 0], 2)


def test_pairs_of_cells_are_counted_once():
    people = list(combinations(range(4), 2))

    assert intersect([a for a, _ in people], [b for _, b in people], 2).alone == 1.0
