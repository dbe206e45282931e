import numpy as np
import pytest

import reference
from kernels.test_ncp_search import FAMILIES, NODES, SIZES, draw_columns, random_start, table_of
from sharing import everything_shared
from shoal import kernels


def recoded(columns, labels, k, *, steps=20, seed=0, vetoes=None):
    return kernels.ncp_recode(table_of(columns), labels, k, vetoes or kernels.Guarantees(), steps * len(labels), seed)


def draw_trees(rng, n):
    return [("tree", rng.integers(0, 6, n), NODES, SIZES), ("tree", rng.integers(0, 6, n), NODES, SIZES)]


@pytest.mark.parametrize("family", FAMILIES)
def test_recoding_keeps_k_and_never_raises_the_loss(family):
    rng = np.random.default_rng(3)
    for seed in range(12):
        n = int(rng.integers(4, 150))
        k = int(rng.integers(2, min(n, 9)))
        columns, start = draw_columns(rng, n, family), random_start(rng, n, k)
        labels = recoded(columns, start, k, seed=seed)

        assert np.bincount(labels).min() >= k
        assert reference.certainty_penalty(columns, labels) <= reference.certainty_penalty(columns, start) + 1e-9


def test_records_of_one_leaf_are_gathered_from_all_cells_at_once():
    leaves = np.tile([0] * 2 + [2] * 10, 3)
    columns = [("tree", leaves, NODES, SIZES), ("categories", leaves, 6), ("numbers", leaves.astype(float), 5.0)]

    assert reference.certainty_penalty(columns, recoded(columns, np.arange(36) // 12, 6)) == 0


def test_a_cell_that_loses_records_to_a_better_one_is_closed_if_the_others_cover_the_rest():
    leaves = np.array([0] * 3 + [2] * 3 + [0] + [2])
    columns = [("tree", leaves, NODES, SIZES)]
    labels = recoded(columns, np.array([0] * 3 + [1] * 3 + [2, 2]), 2)

    assert reference.certainty_penalty(columns, labels) == 0
    assert len(np.unique(labels)) == 2


def test_any_number_of_threads_finds_the_same_cells():
    rng = np.random.default_rng(5)
    n = 140_000  # three blocks
    columns, start = draw_trees(rng, n), np.arange(n) // 500
    found = []
    for threads in (1, 3):
        with kernels.using(threads=threads), everything_shared():
            found.append(kernels.ncp_recode(table_of(columns), start, 100, kernels.Guarantees(), 300, 1))

    assert (found[0] == found[1]).all()
    assert table_of(columns).loss(found[0]) < table_of(columns).loss(start)


def test_the_seed_decides():
    rng = np.random.default_rng(6)
    columns, start = draw_trees(rng, 300), random_start(rng, 300, 5)

    assert (recoded(columns, start, 5, seed=1) == recoded(columns, start, 5, seed=1)).all()
    assert (recoded(columns, start, 5, seed=1) != recoded(columns, start, 5, seed=2)).any()


def test_no_step_violates_a_model():
    rng = np.random.default_rng(7)
    for seed in range(8):
        n, k = 240, 4
        columns, codes = draw_trees(rng, n), rng.integers(0, 3, n)
        start = np.arange(n) // k
        codes[::k], codes[1::k] = 0, 1  # every cell has two values
        vetoes = kernels.Guarantees()
        vetoes.distinct(codes, 2)
        labels = recoded(columns, start, k, seed=seed, vetoes=vetoes)

        assert vetoes.excess(labels, len(np.bincount(labels))).max() == 0
        assert (labels != start).any()


def test_an_interrupt_leaves_a_partition_that_is_no_worse():
    rng = np.random.default_rng(8)
    columns, start = draw_columns(rng, 2_000, "ties"), random_start(rng, 2_000, 5)

    def stop(done, total):
        if done > 0:
            raise KeyboardInterrupt

    with pytest.raises(kernels.Interrupted) as stopped, kernels.using(progress=stop):
        recoded(columns, start, 5, steps=10_000)
    labels = stopped.value.labels

    assert np.bincount(labels).min() >= 5
    assert table_of(columns).loss(labels) < table_of(columns).loss(start)
