"""More records like those at hand: for measuring time only."""

import numpy as np
import pytest

from shoal.incremental.sample_enlarged import Donors, enlarged

X = np.random.default_rng(0).integers(0, 50, size=(90, 3)) * 1.0


@pytest.mark.parametrize("n_records", [40, 90, 91, 1_000])
def test_there_are_as_many_records_as_asked_for_and_no_new_values(n_records):
    more = enlarged(X, n_records, seed=1)

    assert more.shape == (n_records, 3)
    assert all(set(more[:, column]) <= set(X[:, column]) for column in range(3))


def test_the_records_at_hand_are_among_them():
    more = {tuple(record) for record in enlarged(X, 500, seed=1)}

    assert {tuple(record) for record in X} <= more


def test_values_come_from_records_nearby():
    two = np.concatenate([X, X + 1_000])
    more = enlarged(two, 2_000, seed=1)
    far = more > 500

    assert (far.all(axis=1) | ~far.any(axis=1)).all()


def test_everybody_is_a_model_about_equally_often():
    counts = np.bincount(Donors(X, 400, 1).models)

    assert counts.min() == 4
    assert counts.max() == 5


def test_a_seed_repeats_them():
    assert np.array_equal(enlarged(X, 200, seed=1), enlarged(X, 200, seed=1))
