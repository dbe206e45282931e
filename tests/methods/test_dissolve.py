"""Dissolving cells: never a higher loss, for any partition, and the labels of the naive twin."""

import numpy as np
import pytest

import reference
from shoal import datasets, partition
from shoal.arrays import standardize
from shoal.measures import loss
from shoal.methods import ALGORITHMS
from shoal.methods.dissolve import dissolve
from strategies import FAMILIES, draw_problem


def as_one(X, k):
    """Leave a large cell as it is."""
    return np.zeros(len(X), dtype=np.int64)


def same_cells(labels, others):
    return len(np.unique(np.stack([labels, others]), axis=1).T) == labels.max() + 1 == others.max() + 1


@pytest.mark.parametrize("family", FAMILIES)
def test_the_cells_are_those_of_the_naive_twin(family):
    rng = np.random.default_rng(sorted(FAMILIES).index(family))
    for number in range(15):
        X, k = draw_problem(rng, family, n_most=150)
        labels = partition(X, k, "mdav")
        found = dissolve(X, labels, k, reference.mdav)

        assert same_cells(found, reference.dissolve(X, labels, k, reference.mdav)), f"problem {number}"


@pytest.mark.parametrize("draw", [np.random.Generator.normal, lambda rng, size: rng.integers(0, 9, size) * 1.0])
def test_an_index_of_many_centroids_finds_the_same_cells(draw):
    """Of so many that it is rebuilt, with and without ties."""
    rng = np.random.default_rng(3)
    X = draw(rng, size=(2_000, 4))
    labels = rng.permutation(np.arange(2_000) // 2)
    found = dissolve(X, labels, 2, as_one)

    assert same_cells(found, reference.dissolve(X, labels, 2, as_one))


@pytest.mark.parametrize("seed", range(5))
def test_a_partition_at_random_loses_less_and_keeps_k(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 3))
    labels = rng.permutation(np.arange(300) // 6)
    found = dissolve(X, labels, 6, as_one)

    assert loss(X, found).sse < loss(X, labels).sse
    assert np.bincount(found).min() >= 6
    assert np.bincount(found).max() <= 4 * 6 - 1


def test_one_cell_has_nowhere_to_go():
    X = np.random.default_rng(0).normal(size=(7, 2))

    assert dissolve(X, np.zeros(7, dtype=np.int64), 4, as_one).tolist() == [0] * 7


def test_cells_without_room_take_nobody_in():
    X = np.array([[0.0]] * 7 + [[1.0], [-1.0]])
    labels = np.array([0] * 7 + [1] * 2)

    assert same_cells(dissolve(X, labels, 2, as_one), labels)


def test_a_cell_that_was_large_from_the_start_is_cut():
    X = np.arange(12.0).reshape(-1, 1)

    assert np.bincount(dissolve(X, np.zeros(12, dtype=np.int64), 3, ALGORITHMS["mdav"])).tolist() == [3] * 4


@pytest.mark.parametrize("base", ["mdav", "diameter", "centroid"])
@pytest.mark.parametrize("load", [datasets.census, datasets.tarragona], ids=lambda load: load.__name__)
def test_the_plus_forms_lose_less(base, load):
    X = standardize(load().X)
    for k in (3, 10, 40):
        assert loss(X, partition(X, k, f"{base}+")).sse < loss(X, partition(X, k, base)).sse


def test_progress_of_a_plus_form_counts_the_records_of_the_whole():
    seen = []
    X = np.random.default_rng(0).normal(size=(500, 2))
    partition(X, 3, "mdav+", progress=lambda *report: seen.append(report))

    assert {n_records for _, n_records in seen} == {500}
