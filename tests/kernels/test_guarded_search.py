"""The guarded search takes the same steps on any number of threads, whatever the model."""

import numpy as np
import pytest

from sharing import everything_shared
from shoal import kernels

EFFORT = kernels.Effort(rounds=3, neighbours=10, least_gain=0.0, at_any_cost=True)


def closeness(vetoes, codes):
    vetoes.ordered_closeness(codes, np.bincount(codes), 15, 100)


def nominal_closeness(vetoes, codes):
    vetoes.nominal_closeness(codes, np.bincount(codes), 4, 10)


def delta(vetoes, codes):
    vetoes.delta(codes, np.bincount(codes), 0.1, 4.0)


def persons(vetoes, codes):
    """Two records of a person with the same value count once."""
    pairs = 2 * codes + np.arange(len(codes)) % 2
    vetoes.distinct(pairs, 3)
    vetoes.persons_once(pairs, np.arange(2 * codes.max() + 2) // 2)


MODELS = {
    "closeness of ranks": (closeness, 40),
    "closeness of shares": (nominal_closeness, 5),
    "distinct values": (lambda vetoes, codes: vetoes.distinct(codes, 3), 6),
    "entropy": (lambda vetoes, codes: vetoes.entropy(codes, 3), 6),
    "recursive": (lambda vetoes, codes: vetoes.recursive(codes, 2, 3, 1), 6),
    "delta": (delta, 3),
    "persons": (persons, 6),
}


def drawn(n, k, model):
    """Return records, cells of k neighbours along a line, and a model that some of them violate."""
    rng = np.random.default_rng(n)
    guard, n_values = MODELS[model]
    X = np.ascontiguousarray(rng.normal(size=(n, 3)))
    X = X[np.argsort(X[:, 0])]
    codes = np.argsort(np.argsort(X[:, 0] + 2 * rng.normal(size=n))) * n_values // n
    vetoes = kernels.Guarantees()
    guard(vetoes, codes)
    return X, np.minimum(np.arange(n) // k, n // k - 1), vetoes


def searched(problem, k, threads):
    X, start, vetoes = problem
    with kernels.using(threads=threads):
        return kernels.guarded_search(X, start, k, vetoes, EFFORT)


def check_threads(model, n, k):
    """Compare numbers of threads on a problem of n records."""
    problem = drawn(n, k, model)
    alone = searched(problem, k, 1)

    assert problem[2].excess(problem[1], n // k).any()
    assert not problem[2].excess(alone, int(alone.max()) + 1).any()
    with everything_shared():
        for threads in (2, 3, 16):
            np.testing.assert_array_equal(searched(problem, k, threads), alone)


@pytest.mark.parametrize("model", MODELS)
def test_the_number_of_threads_does_not_matter(model):
    check_threads(model, 2_000, 6)


def test_the_number_of_threads_does_not_matter_where_all_cells_are_neighbours():
    check_threads("closeness of shares", 1_000, 8)


def test_the_number_of_threads_does_not_matter_where_there_are_many_cells():
    check_threads("distinct values", 7_000, 4)
