import itertools
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import ParameterError
from shoal.arrays import standardize
from shoal.datasets import census
from shoal.measures import linkage, matching


def naive_share(X, Y):
    """Try all matchings; count the own ones of the cheapest, over all orders of equal records on either side."""
    n = len(X)
    cost = ((X[:, None] - Y[None]) ** 2).sum(axis=2)
    everything = list(itertools.permutations(range(n)))
    totals = np.array([cost[range(n), list(slots)].sum() for slots in everything])
    best = [slots for slots, total in zip(everything, totals, strict=True) if total <= totals.min() + 1e-9]
    return np.mean([np.mean(np.array(slots) == np.arange(n)) for slots in best])


@given(seed=st.integers(0, 10**6), n=st.integers(1, 6), repeats=st.booleans())
def test_the_share_is_that_of_all_cheapest_matchings(seed, n, repeats):
    rng = np.random.default_rng(seed)
    # Numbers without ties, but for whole records that are equal.
    X = rng.normal(size=(n, 2))[rng.integers(0, n, n) if repeats else np.arange(n)]
    Y = rng.normal(size=(n, 2))[rng.integers(0, n, n)]

    assert matching(X, Y).linked == pytest.approx(naive_share(X, Y))


def test_an_unchanged_release_is_matched_entirely_in_any_blocks():
    X = np.random.default_rng(1).normal(size=(500, 3))

    assert matching(X, X, block=64, most_blocks=100, seed=0).linked == 1
    assert matching(X, X, block=64, most_blocks=100, seed=0).n_tried == 500


def test_cells_are_not_cut_and_blocks_hold_at_most_what_was_asked_for():
    X = np.random.default_rng(2).normal(size=(100, 2))
    labels = np.arange(100) // 10
    found = matching(X, X[labels * 10], labels, block=35, most_blocks=100)

    assert (found.n_tried, found.n_blocks) == (100, 4)


def test_cells_larger_than_a_block_are_tried_whole():
    X = np.random.default_rng(2).normal(size=(20, 2))
    found = matching(X, np.zeros((20, 2)), block=5)

    assert found.to_dict() == {"linked": pytest.approx(1 / 20), "n_tried": 20, "n_blocks": 1}


def test_a_seed_repeats_the_draw_of_blocks():
    X = standardize(census().X)
    Y = X + np.random.default_rng(3).normal(size=X.shape)
    first, second, third = (matching(X, Y, block=50, most_blocks=3, seed=seed) for seed in (1, 1, 2))

    assert first == second
    assert first.n_blocks == 3
    assert first != third


def test_matching_links_more_than_the_nearest_does():
    X = standardize(census().X)
    Y = X + np.random.default_rng(3).normal(size=X.shape) * 0.3

    assert matching(X, Y, block=2000).linked > linkage(X, Y).linked


@pytest.mark.parametrize("offset", [1.7e9, -1.7e9])
def test_an_offset_does_not_matter(offset):
    rng = np.random.default_rng(5)
    X = rng.integers(0, 1000, (60, 2)).astype(float)
    Y = np.round(X, -2)

    assert matching(X + offset, Y + offset) == matching(X, Y)


def test_records_that_are_all_the_same_are_matched_by_luck_alone():
    assert matching(np.ones((8, 2)), np.ones((8, 2))).linked == pytest.approx(1 / 8)


@pytest.mark.parametrize("option", ["block", "most_blocks"])
@pytest.mark.parametrize("value", [0, -1, 2.0, True])
def test_options_below_1_are_refused(option, value):
    with pytest.raises(ParameterError, match=option):
        matching([[1.0]], [[1.0]], **{option: value})


def test_scipy_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)

    with pytest.raises(ParameterError, match=r"shoal-privacy\[bound\]"):
        matching([[1.0]], [[1.0]])


def test_numbers_of_any_magnitude_are_matched():
    X = np.random.default_rng(0).uniform(-1, 1, (60, 2))

    assert matching(X * 1.7e308, X * 1.7e308).linked == matching(X, X).linked == 1.0
