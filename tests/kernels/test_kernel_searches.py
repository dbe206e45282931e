"""Searches that have no naive twin, against what they promise, recounted on thousands of small problems.

The problems are made of what rounding spoils: ties, great offsets, far outliers, and all of them at once.
"""

import numpy as np
import pytest

from shoal import kernels
from shoal.models import AlphaK, Codes, DeltaDisclosure, LDiversity, TCloseness

VALUES = {
    "ties beside outliers": lambda rng, shape: rng.choice([0.1, 0.2, 0.3, 1e5, 3e7], shape),
    "ties on an offset": lambda rng, shape: rng.integers(0, 4, shape) * 0.1 + 1e9,
    "outliers of 1e8": lambda rng, shape: np.where(rng.random(shape) < 0.1, 1e8, 1.0) * rng.normal(size=shape),
    "a code for missing": lambda rng, shape: np.where(rng.random(shape) < 0.1, 99_999_999, rng.integers(0, 9, shape)),
    "lattice": lambda rng, shape: rng.integers(0, 3, shape) / 3,
    "uneven columns": lambda rng, shape: rng.integers(0, 5, shape) * 10.0 ** rng.integers(-9, 9, shape[1]),
    "plain": lambda rng, shape: rng.normal(size=shape),
}
MODELS = {
    "distinct": lambda: LDiversity("c", l=2),
    "entropy": lambda: LDiversity("c", l=2, kind="entropy"),
    "recursive": lambda: LDiversity("c", l=2, kind="recursive", c=2),
    "t-closeness": lambda: TCloseness("c", t=0.3),
    "share limits": lambda: AlphaK("c", alpha=0.6),
    "delta": lambda: DeltaDisclosure("c", delta=1.5),
}
N_PROBLEMS = 250


@pytest.fixture(autouse=True)
def one_thread():
    """For problems this small a second thread only waits."""
    with kernels.using(threads=1):
        yield


def drawn(family):
    """Yield matrices of a family, a k for each, and a partition at random."""
    rng = np.random.default_rng(7)
    for _ in range(N_PROBLEMS):
        k = int(rng.integers(2, 5))
        n = int(rng.integers(2 * k, 41))
        X = np.ascontiguousarray(VALUES[family](rng, (n, int(rng.integers(1, 4)))), dtype=np.float64)
        yield rng, X, k, rng.permutation(np.arange(n) % (n // k))


def loss(X, labels):
    return kernels.cell_spread(X, labels, int(labels.max()) + 1).sum()


def is_partition(labels, n, k):
    """Say whether all records have cells of at least k records, numbered from 0 and without gaps."""
    return labels.shape == (n,) and labels.min() == 0 and np.bincount(labels).min() >= k


def rises(X, before, after):
    """Say whether the loss of a partition is above that of another, but for the last digits of the sum."""
    return loss(X, after) > loss(X, before) * (1 + 1e-12)


@pytest.mark.parametrize("thorough", [False, True])
@pytest.mark.parametrize("family", VALUES)
def test_refining_ends_keeps_k_and_never_raises_the_loss(family, thorough):
    for _, X, k, start in drawn(family):
        labels = kernels.refine(X, start, k, 50, 20, 0.0, thorough)

        assert is_partition(labels, len(X), k)
        assert not rises(X, start, labels)


@pytest.mark.parametrize("family", VALUES)
def test_refining_around_some_cells_ends_keeps_k_and_never_raises_the_loss(family):
    none = np.empty(0, dtype=np.int64)
    for rng, X, k, start in drawn(family):
        touched = np.flatnonzero(rng.random(int(start.max()) + 1) < 0.5)
        labels = kernels.refine_around(X, start, kernels.RefineHints(touched, none, none), k, 50, 20, 0.0)

        assert is_partition(labels, len(X), k)
        assert not rises(X, start, labels)


@pytest.mark.parametrize("family", VALUES)
def test_annealing_ends_keeps_k_and_never_raises_the_loss(family):
    for rng, X, k, start in drawn(family):
        labels = kernels.anneal(X, start, k, kernels.Schedule(3_000, hot=4, fall=7), int(rng.integers(99)))

        assert is_partition(labels, len(X), k)
        assert not rises(X, start, labels)


def guarded(rng, n):
    """Return some models, the codes of a column that they are about, and their vetoes."""
    codes = rng.integers(0, int(rng.integers(2, 6)), n)
    codes = np.unique(codes, return_inverse=True)[1]
    column = Codes(codes, int(codes.max()) + 1, bool(rng.integers(2)))
    models = [MODELS[name]() for name in rng.choice(list(MODELS), int(rng.integers(1, 3)), replace=False)]
    vetoes = kernels.Guarantees()
    for model in models:
        model.guard(vetoes, column, np.bincount(codes))
    return models, column, vetoes


@pytest.mark.parametrize("family", VALUES)
def test_the_guarded_search_ends_repairs_what_can_be_and_then_never_raises_the_loss(family):
    n_repaired = 0
    effort = kernels.Effort(rounds=50, neighbours=20, least_gain=0.0, at_any_cost=True)
    for rng, X, k, start in drawn(family):
        models, column, vetoes = guarded(rng, len(X))
        repaired = kernels.guarded_search(X, start, k, vetoes, effort)
        refined = kernels.guarded_search(X, repaired, k, vetoes, effort)
        together = np.zeros(len(X), dtype=np.int64)

        assert is_partition(repaired, len(X), k)
        assert is_partition(refined, len(X), k)
        if all(model.measure(together, column).holds for model in models):
            assert all(model.measure(repaired, column).holds for model in models)
            assert all(model.measure(refined, column).holds for model in models)
            assert not rises(X, repaired, refined)
            n_repaired += 1

    assert n_repaired > N_PROBLEMS / 3


@pytest.mark.parametrize("family", VALUES)
def test_a_guarded_search_of_the_neighbours_alone_leaves_no_cell_further_from_its_models(family):
    effort = kernels.Effort(rounds=50, neighbours=20, least_gain=0.0, at_any_cost=False)
    for rng, X, k, start in drawn(family):
        _, _, vetoes = guarded(rng, len(X))
        labels = kernels.guarded_search(X, start, k, vetoes, effort)
        before, after = (vetoes.excess(cells, int(cells.max()) + 1) for cells in (start, labels))

        assert is_partition(labels, len(X), k)
        assert after.sum() <= before.sum() * (1 + 1e-12)
        assert (after > 0).sum() <= (before > 0).sum()
        if not before.any():
            assert not rises(X, start, labels)


def test_a_model_that_no_cell_can_keep_leaves_one_cell():
    X = np.random.default_rng(1).normal(size=(40, 2))
    vetoes = kernels.Guarantees()
    vetoes.distinct(np.zeros(40, dtype=np.int64), 2)
    effort = kernels.Effort(rounds=9, neighbours=20, least_gain=0.0, at_any_cost=True)
    labels = kernels.guarded_search(X, np.arange(40) // 4, 4, vetoes, effort)

    assert labels.tolist() == [0] * 40


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n", [60, 2_000])
def test_ties_beside_outliers_do_not_keep_the_guarded_search_going(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.choice([0.1, 0.2, 0.3, 1e5, 3e7], n)[:, None]
    persons = rng.integers(0, n // 3, n)
    vetoes = kernels.Guarantees()
    vetoes.distinct(np.unique(persons, return_inverse=True)[1], 3)
    effort = kernels.Effort(rounds=60, neighbours=40, least_gain=1e-5, at_any_cost=True)
    start = np.minimum(np.arange(n) // 3, n // 3 - 1)
    labels = kernels.guarded_search(X, start, 3, vetoes, effort)

    assert not np.any(vetoes.excess(labels, int(labels.max()) + 1))
