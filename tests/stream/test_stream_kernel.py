import numpy as np
import pytest

from shoal import kernels
from strategies import FAMILIES, RUNNABLE
from stream_twin import Window as Twin


def no_keys(n):
    return np.empty((n, 0), dtype=np.uint64)


def unit(X):
    """Scale to [0, 1] as a stream does."""
    span = X.max(axis=0) - X.min(axis=0)
    return np.ascontiguousarray((X - X.min(axis=0)) / np.where(span > 0, span, 1.0))


def draw_stream(rng, family):
    """Return tuples and rules at random, with delays, ages, weights, codes and tags at which windows stumble."""
    n, m = int(rng.integers(1, 400)), int(rng.choice([0, 1, 2, 5, 9]))
    k = int(rng.integers(2, 9))
    n_codes = int(rng.choice([0, 0, 1, 2])) if m else 1
    least = [(), (), (k,), (k, 2), (0, 3)][rng.integers(5)]
    tuples = kernels.Tuples(
        unit(FAMILIES[family](rng, (n, m))) if m else np.empty((n, 0)),
        rng.integers(0, 4, (n, n_codes)).astype(np.uint64),
        rng.integers(0, int(rng.choice([3, 12, 1000])), (n, len(least))).astype(np.uint64),
        np.cumsum(rng.integers(-1, 4, n)).astype(float),
    )
    by_count, by_age = [(True, False), (False, True), (True, True)][rng.integers(3)]
    rules = {
        "delay": int(k - 1 + rng.choice([0, 1, 5, 60, 300])) if by_count else None,
        "max_age": float(rng.integers(1, 200)) if by_age else None,
        "order_weight": float(rng.choice([0, 0.001, 0.05, 2])),
        "max_cell": int(rng.choice([0, k, k + 2, 2 * k - 1])),
        "code_weights": tuple(rng.choice([1.0, 0.3], n_codes)),
        "least": least,
    }
    return k, tuples, rules


def twin_of(k, rules):
    given = {name: value for name, value in rules.items() if value is not None}
    return Twin(k, **{**given, "max_cell": given["max_cell"] or None})


def batches(rng, tuples):
    """Cut a stream at random places."""
    cuts = np.sort(rng.integers(0, len(tuples.X) + 1, rng.integers(0, 6)))
    for begin, end in zip([0, *cuts], [*cuts, len(tuples.X)], strict=True):
        yield kernels.Tuples(*(np.ascontiguousarray(part[begin:end]) for part in tuples))


class ByNumber:
    """Follows a window from outside, and says which arrival numbers have left."""

    def __init__(self, window):
        self.window, self.waiting, self.n_in = window, [], 0
        self.cells, self.side = [], []

    def push(self, tuples):
        self.waiting += range(self.n_in, self.n_in + len(tuples.X))
        self.n_in += len(tuples.X)
        self.note(self.window.push(tuples))

    def note(self, gone):
        numbers = np.array(self.waiting, dtype=int)
        ends = np.cumsum(gone.sizes)
        self.cells += [list(numbers[gone.rows[end - size : end]]) for end, size in zip(ends, gone.sizes, strict=True)]
        self.side += list(zip(numbers[gone.side], gone.reasons, strict=True))
        self.waiting = list(numbers[gone.kept])
        assert len(gone.rows) + len(gone.side) + len(gone.kept) == len(numbers)


@pytest.mark.parametrize("simd", RUNNABLE)
@pytest.mark.parametrize("family", FAMILIES)
def test_cells_are_those_of_the_twin_however_the_stream_is_cut(family, simd):
    rng = np.random.default_rng([7, sorted(FAMILIES).index(family)])
    for _ in range(12):
        k, tuples, rules = draw_stream(rng, family)
        twin = twin_of(k, rules)
        cells, side = twin.push(tuples.X, tuples.times, tuples.codes, tuples.tags)
        more_cells, more_side = twin.flush()
        with kernels.using(simd=simd):
            window = ByNumber(kernels.Window(tuples.X.shape[1], k, **rules))
        for batch in batches(rng, tuples):
            window.push(batch)
        window.note(window.window.flush())

        assert window.cells == cells + more_cells
        assert window.side == side + more_side
        assert window.waiting == []


def test_time_that_goes_by_lets_go_what_the_twin_lets_go():
    rng = np.random.default_rng(3)
    for _ in range(40):
        k, tuples, rules = draw_stream(rng, "rounded")
        rules["max_age"] = float(rng.integers(1, 30))
        twin, window = twin_of(k, rules), ByNumber(kernels.Window(tuples.X.shape[1], k, **rules))
        for batch in batches(rng, tuples):
            expected = twin.push(batch.X, batch.times, batch.codes, batch.tags)
            window.push(batch)
            assert (window.cells, window.side) == expected
            now = twin.clock + float(rng.integers(-3, 30))
            window.cells, window.side = [], []
            expected = twin.advance(now)
            window.note(window.window.advance(now))
            assert (window.cells, window.side) == expected
            window.cells, window.side = [], []


def assert_same(departures, others):
    for name in ("rows", "sizes", "side", "reasons", "kept"):
        np.testing.assert_array_equal(getattr(departures, name), getattr(others, name))


def test_a_window_that_is_stopped_and_restored_goes_on_as_if_nothing_had_happened():
    rng = np.random.default_rng(5)
    for _ in range(40):
        k, tuples, rules = draw_stream(rng, "gaussian")
        whole = kernels.Window(tuples.X.shape[1], k, **rules)
        cut = kernels.Window(tuples.X.shape[1], k, **rules)
        begin = 0
        waiting = kernels.Tuples(*(part[:0] for part in tuples))
        for batch in batches(rng, tuples):
            expected, found = whole.push(batch), cut.push(batch)
            assert_same(expected, found)
            begin += len(batch.X)
            together = [np.concatenate(parts) for parts in zip(waiting, batch, strict=True)]
            positions, times = cut.waiting()
            waiting = kernels.Tuples(*(np.ascontiguousarray(part[found.kept]) for part in together[:3]), times)
            again = kernels.Window(tuples.X.shape[1], k, **rules)
            again.restore(waiting, positions, cut.tally())
            cut = again
        assert_same(whole.flush(), cut.flush())

        assert whole.tally() == cut.tally()


def test_the_tally_measures_what_a_plain_recount_of_the_cells_measures():
    rng = np.random.default_rng(11)
    X = rng.random((700, 3))
    codes = rng.integers(0, 3, (700, 1)).astype(np.uint64)
    times = np.cumsum(rng.random(700))
    window = ByNumber(kernels.Window(3, 5, delay=40, code_weights=(1.0,)))
    window.push(kernels.Tuples(X, codes, no_keys(700), times))
    tally = window.window.tally()

    out = [number for cell in window.cells for number in cell]
    one_hot = np.sqrt(0.5) * (codes == np.arange(3))
    space = np.column_stack([X, one_hot])
    off = np.concatenate([space[cell] - space[cell].mean(axis=0) for cell in window.cells])
    squared = np.square(off).sum(axis=1)
    spreads = [max(cell) - min(cell) for cell in window.cells]
    moved = np.abs(np.arange(len(out)) - out)

    assert tally["sse"] == pytest.approx(squared.sum())
    assert tally["sae"] == pytest.approx(np.sqrt(squared).sum())
    assert (tally["spread_max"], tally["spread_sum"]) == (max(spreads), sum(spreads))
    assert (tally["moved_max"], tally["moved_sum"]) == (moved.max(), moved.sum())
    assert tally["n_in"] == 700 == tally["n_released"] + len(window.window)
    assert tally["waited_max"] == 40


def test_means_of_equal_values_are_that_value_and_great_ones_do_not_overflow():
    values = np.array([0.1, 0.1, 0.1, 1.7e308, -1.7e308, 1.7e308, 1.7e308, 3.0, 4.0])
    means, any_missing = kernels.cell_means(values, np.array([3, 4, 2]))

    assert means.tolist() == [0.1] * 3 + [pytest.approx(0.85e308)] * 4 + [3.5] * 2
    assert not any_missing


def test_a_mean_is_missing_where_more_than_half_of_its_cell_is():
    values = np.array([np.nan, 1.0, 3.0, np.nan, 1.0, np.nan, np.nan])
    means, any_missing = kernels.cell_means(values, np.array([4, 3]))

    np.testing.assert_array_equal(means, [2.0] * 4 + [np.nan] * 3)
    assert any_missing


@pytest.mark.parametrize("kind", [np.float64, np.uint64])
def test_values_that_differ_within_a_cell_are_found_and_those_of_other_cells_may(kind):
    values = np.array([1, 1, 2, 2, 2], dtype=kind)

    assert not kernels.differ_within_cells(values, np.array([2, 3]))
    assert kernels.differ_within_cells(values, np.array([3, 2]))


def test_values_are_finite_unless_one_of_them_is_not():
    assert kernels.all_finite([np.ones(2), np.zeros(0)])
    assert not kernels.all_finite([np.ones(2), np.array([np.nan])])
    assert not kernels.all_finite([np.array([np.inf, 1.0])])


def test_keys_are_equal_for_equal_texts_only():
    texts = ["", "a", "b", "ab", "a\0", "same length 1", "same length 2", "a", "längere Wörter, auch über acht Zeichen"]
    data = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, data)])
    joined = np.frombuffer(b"".join(data), dtype=np.uint8)
    keys = kernels.text_keys(offsets, joined)

    assert keys[1] == keys[7]
    assert len(set(keys.tolist())) == len(set(texts))
    assert np.array_equal(kernels.text_keys(offsets.astype(np.int32), joined), keys)


def test_the_most_frequent_key_wins_and_ties_go_to_the_lowest_rank():
    keys = np.array([5, 5, 7, 7, 9, 1, 2, 2], dtype=np.uint64)
    ranks = np.array([3, 3, 1, 1, 0, 0, 4, 4])

    assert kernels.most_frequent(keys, ranks, np.array([5, 3])).tolist() == [2, 6]
    assert kernels.least_different(keys, np.array([5, 3])) == 2
