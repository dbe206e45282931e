import numpy as np
import pytest

import reference
from sharing import everything_shared
from shoal import kernels

NODES = np.array([[0, 6, 9], [1, 6, 9], [2, 7, 9], [3, 7, 9], [4, 7, 9], [5, 8, 9]], dtype=np.int32)
SIZES = np.array([1, 1, 1, 1, 1, 1, 2, 3, 1, 6])
FAMILIES = {
    "plain": lambda rng, n: rng.normal(size=n),
    "ties": lambda rng, n: rng.integers(0, 4, n).astype(float),
    "missing": lambda rng, n: np.where(rng.random(n) < 0.3, np.nan, rng.integers(0, 9, n)),
    "all missing": lambda rng, n: np.full(n, np.nan),
    "constant": lambda rng, n: np.full(n, 3.3),
    "constant or missing": lambda rng, n: np.where(rng.random(n) < 0.3, np.nan, 3.3),
    "far outlier": lambda rng, n: np.where(np.arange(n) == n // 2, 1e9, rng.normal(size=n)),
}


def draw_columns(rng, n, family):
    """Return a column of each kind."""
    numbers = FAMILIES[family](rng, n)
    width = 0.0 if np.isnan(numbers).all() else float(np.nanmax(numbers) - np.nanmin(numbers))
    return [
        ("numbers", numbers, width),
        ("categories", rng.integers(0, 5, n), 5),
        ("categories", rng.integers(0, 200, n), 200),
        ("categories", np.zeros(n, dtype=np.int64), 1),
        ("tree", rng.integers(0, 6, n), NODES, SIZES),
    ]


def table_of(columns, weights=None):
    table = kernels.NcpTable(len(columns[0][1]))
    for place, (kind, *arrays) in enumerate(columns):
        getattr(table, kind)(*arrays, 1.0 if weights is None else weights[place])
    return table


def points(columns):
    return np.ascontiguousarray(np.column_stack([np.nan_to_num(values.astype(float)) for _, values, *_ in columns]))


def searched(columns, labels, k, *, steps=20, seed=0, vetoes=None, rounds=2):
    vetoes = vetoes or kernels.Guarantees()
    schedule = kernels.Schedule(steps * len(labels), hot=0.5, fall=4)
    return kernels.ncp_search(table_of(columns), points(columns), labels, k, vetoes, rounds, schedule, seed)


def random_start(rng, n, k):
    labels = np.minimum(np.arange(n) // k, n // k - 1)
    return np.unique(labels[rng.permutation(n)], return_inverse=True)[1]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_loss_is_that_of_the_plain_definition(family):
    rng = np.random.default_rng(1)
    for _ in range(30):
        n, k = int(rng.integers(2, 60)), int(rng.integers(1, 6))
        columns, labels = draw_columns(rng, n, family), random_start(rng, n, min(k, n))

        assert table_of(columns).loss(labels) == pytest.approx(
            reference.certainty_penalty(columns, labels), rel=1e-12, abs=1e-12
        )


def test_weights_multiply_the_penalties_of_their_columns():
    rng = np.random.default_rng(2)
    columns, labels = draw_columns(rng, 40, "ties"), random_start(rng, 40, 4)
    weights = [2.0, 0.5, 3.0, 1.0, 0.25]
    alone = [table_of([column]).loss(labels) for column in columns]

    assert table_of(columns, weights).loss(labels) == pytest.approx(np.dot(weights, alone))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_search_ends_keeps_k_and_never_raises_the_loss(family):
    rng = np.random.default_rng(3)
    for seed in range(12):
        n = int(rng.integers(4, 150))
        k = int(rng.integers(2, min(n, 9)))
        columns, start = draw_columns(rng, n, family), random_start(rng, n, k)
        labels = searched(columns, start, k, seed=seed)

        assert np.bincount(labels).min() >= k
        assert len(np.bincount(labels)) == len(np.bincount(start))
        assert reference.certainty_penalty(columns, labels) <= reference.certainty_penalty(columns, start)


def test_records_that_are_all_alike_keep_their_cells():
    columns = [("numbers", np.ones(12), 0.0), ("categories", np.zeros(12, dtype=np.int64), 1)]
    start = np.arange(12) % 4

    assert (searched(columns, start, 3) == start).all()


def test_a_single_cell_stays():
    columns = draw_columns(np.random.default_rng(4), 7, "plain")

    assert (searched(columns, np.zeros(7, dtype=np.int64), 4) == 0).all()


def test_records_apart_from_their_like_are_brought_together():
    values = np.repeat([0.0, 5.0, 9.0], 8)
    leaves = np.repeat([0, 2, 5], 8)
    columns = [("numbers", values, 9.0), ("categories", leaves, 6), ("tree", leaves, NODES, SIZES)]
    labels = searched(columns, np.arange(24) % 6, 4, steps=400)

    assert reference.certainty_penalty(columns, labels) == 0


def test_a_cell_of_a_number_that_some_records_miss_says_nothing_about_it():
    columns = [("numbers", np.array([1.0, 1.0, np.nan, np.nan]), 4.0)]

    assert table_of(columns).loss(np.array([0, 1, 0, 1])) == 4
    assert table_of(columns).loss(np.array([0, 0, 1, 1])) == 0


def test_any_number_of_threads_finds_the_same_cells():
    rng = np.random.default_rng(5)
    columns, start = draw_columns(rng, 17_000, "ties"), random_start(rng, 17_000, 2)
    found = []
    for threads in (1, 2, 3):
        with kernels.using(threads=threads), everything_shared():
            found.append(searched(columns, start, 2, steps=2))

    assert (found[0] == found[1]).all()
    assert (found[0] == found[2]).all()
    assert (found[0] != start).any()


def test_the_seed_decides():
    rng = np.random.default_rng(6)
    columns, start = draw_columns(rng, 300, "plain"), random_start(rng, 300, 5)

    assert (searched(columns, start, 5, seed=1) == searched(columns, start, 5, seed=1)).all()
    assert (searched(columns, start, 5, seed=1) != searched(columns, start, 5, seed=2)).any()


def test_no_step_violates_a_model():
    rng = np.random.default_rng(7)
    for seed in range(8):
        n, k = 120, 4
        columns, codes = draw_columns(rng, n, "plain"), rng.integers(0, 3, n)
        start = np.arange(n) // k
        codes[::k], codes[1::k] = 0, 1  # every cell has two values
        vetoes = kernels.Guarantees()
        vetoes.distinct(codes, 2)
        vetoes.entropy(codes, 1)
        labels = searched(columns, start, k, seed=seed, vetoes=vetoes)

        assert vetoes.excess(labels, len(np.bincount(labels))).max() == 0
        assert (labels != start).any()


def test_an_interrupt_leaves_a_partition_that_is_no_worse():
    rng = np.random.default_rng(8)
    columns, start = draw_columns(rng, 2_000, "plain"), random_start(rng, 2_000, 5)

    def stop(done, total):
        if done > 0:  # not while neighbours are looked for
            raise KeyboardInterrupt

    with pytest.raises(kernels.Interrupted) as stopped, kernels.using(progress=stop):
        searched(columns, start, 5, steps=10_000)
    labels = stopped.value.labels

    assert np.bincount(labels).min() >= 5
    assert table_of(columns).loss(labels) < table_of(columns).loss(start)


WRONG = {
    "too short": lambda t: t.numbers(np.zeros(3), 1.0, 1.0),
    "infinite": lambda t: t.numbers(np.array([0.0, 1.0, 2.0, np.inf]), 1.0, 1.0),
    "negative width": lambda t: t.numbers(np.zeros(4), -1.0, 1.0),
    "negative weight": lambda t: t.categories(np.zeros(4, dtype=np.int64), 1, -1.0),
    "code out of range": lambda t: t.categories(np.array([0, 1, 2, 3]), 3, 1.0),
    "leaf out of range": lambda t: t.tree(np.array([0, 1, 2, 6]), NODES, SIZES, 1.0),
    "node out of range": lambda t: t.tree(np.zeros(4, dtype=np.int64), NODES, SIZES[:9], 1.0),
    "two roots": lambda t: t.tree(np.zeros(4, dtype=np.int64), NODES[:, :2].copy(), SIZES, 1.0),
}


@pytest.mark.parametrize("add", WRONG.values(), ids=WRONG)
def test_columns_that_cannot_be_are_refused(add):
    with pytest.raises(ValueError, match=r"."):
        add(kernels.NcpTable(4))
