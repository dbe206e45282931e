"""What the compiled module refuses: mistakes of a caller that would read or write outside of an array."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from shoal import kernels

X = np.arange(12.0).reshape(6, 2)
TWO = np.array([0, 0, 0, 1, 1, 1])
NONE = np.empty(0, dtype=np.int64)
NO_KEYS = np.empty((6, 0), dtype=np.uint64)
NAN = X.copy()
NAN[3, 1] = np.nan
ENDLESS = X.copy()
ENDLESS[3, 1] = -np.inf
EMPTY = np.empty((0, 2))
# Without columns a matrix of any length takes no memory.
TOO_MANY = np.empty((2**31, 0))


def labels(*numbers):
    return np.array(numbers, dtype=np.int64)


def vetoes(name, *arguments):
    return getattr(kernels.Guarantees(), name)(*arguments)


def guarded_search(matrix, start, k, codes=TWO):
    guarantees = kernels.Guarantees()
    guarantees.distinct(codes, 1)
    kernels.guarded_search(matrix, start, k, guarantees, kernels.Effort(1, 5, 0.0, False))


def refine_around(matrix, start, k, touched=NONE, lists=NONE, origins=NONE, neighbours=5):
    kernels.refine_around(matrix, start, kernels.RefineHints(touched, lists, origins), k, 1, neighbours, 0.0)


def ncp_search(matrix, start, k):
    schedule = kernels.Schedule(10, 0.5, 4.0)
    kernels.ncp_search(kernels.NcpTable(6), matrix, start, k, kernels.Guarantees(), 1, schedule, 1)


def ncp_recode(start, k):
    kernels.ncp_recode(ncp_table(), start, k, kernels.Guarantees(), 10, 1)


def ncp_table():
    table = kernels.NcpTable(6)
    table.numbers(np.arange(6.0), 5.0, 1.0)
    return table


def inside(own=TWO, n_high=2, n_centres=2):
    intervals = kernels.Intervals(np.ones(2), np.ones(n_high), np.ones(n_centres), 1.0)
    return kernels.inside_intervals(np.arange(6.0), 0, 0.0, own, intervals)


PARTITIONED = {
    "too short": TWO[:5],
    "too long": labels(0, 0, 0, 1, 1, 1, 1),
    "negative": labels(0, 0, 0, 1, 1, -1),
    "too high": labels(0, 0, 0, 1, 1, 2**40),
    "with a gap": labels(0, 0, 0, 2, 2, 2),
    "below k": labels(0, 0, 0, 0, 1, 1),
}

ON_A_MATRIX = {
    "mdav": lambda X: kernels.mdav(X, 2),
    "refine": lambda X: kernels.refine(X, TWO, 2, 1, 5, 0.0, False),
    "refine_around": lambda X: refine_around(X, TWO, 2),
    "guarded_search": lambda X: guarded_search(X, TWO, 2),
    "cell_neighbours": lambda X: kernels.cell_neighbours(X, TWO, 2, 5),
    "arrive": lambda X: kernels.arrive(X, TWO[:4], 2, inertial=True, split_mid=True),
    "anneal": lambda X: kernels.anneal(X, TWO, 2, kernels.Schedule(10, 0.1, 1.0), 1),
    "ncp_search": lambda X: ncp_search(X, TWO, 2),
    "split": lambda X: kernels.split(X, TWO, 2),
    "assign": lambda X: kernels.assign(X, np.ones((2, 2))),
    "assign to": lambda points: kernels.assign(X, points),
    "dissolve_cells": lambda X: kernels.dissolve_cells(X, TWO, 2),
    "linkage": lambda X: kernels.ranks(X, np.ones((2, 2)), TWO, labels(0), labels(0)),
    "linkage to": lambda points: kernels.ranks(X, points, TWO, labels(0), labels(0)),
    "cell_sums": lambda X: kernels.cell_sums(X, TWO, 2),
    "cell_spread": lambda X: kernels.cell_spread(X, TWO, 2),
    "balanced_cells": lambda X: kernels.balanced_cells(X, TWO, 2, 2),
    "Remaining": lambda X: kernels.Remaining(X),
}


@pytest.mark.parametrize("matrix", [NAN, ENDLESS, EMPTY, TOO_MANY], ids=["nan", "infinite", "empty", "too many"])
@pytest.mark.parametrize("call", ON_A_MATRIX.values(), ids=ON_A_MATRIX)
def test_a_matrix_that_is_empty_too_long_or_not_finite_is_refused(call, matrix):
    with pytest.raises(ValueError, match=r"finite|empty|more than"):
        call(matrix)


ON_A_PARTITION = {
    "refine": lambda labels: kernels.refine(X, labels, 3, 1, 5, 0.0, False),
    "refine_around": lambda labels: refine_around(X, labels, 3),
    "anneal": lambda labels: kernels.anneal(X, labels, 3, kernels.Schedule(10, 0.1, 1.0), 1),
    "ncp_search": lambda labels: ncp_search(X, labels, 3),
    "ncp_recode": lambda labels: ncp_recode(labels, 3),
    "split": lambda labels: kernels.split(X, labels, 3),
}


@pytest.mark.parametrize("labels", PARTITIONED.values(), ids=PARTITIONED)
@pytest.mark.parametrize("call", ON_A_PARTITION.values(), ids=ON_A_PARTITION)
def test_labels_that_are_no_partition_into_cells_of_k_are_refused(call, labels):
    with pytest.raises(ValueError, match=r"length|out of range|more cells|fewer than k"):
        call(labels)


ON_LABELS = {
    "guarded_search": lambda labels: guarded_search(X, labels, 2),
    "cell_neighbours": lambda labels: kernels.cell_neighbours(X, labels, 2, 5),
    "dissolve_cells": lambda labels: kernels.dissolve_cells(X / 12, labels, 2),
    "linkage": lambda given: kernels.ranks(X, np.ones((2, 2)), given, labels(0), labels(0)),
    "cell_sums": lambda labels: kernels.cell_sums(X, labels, 2),
    "cell_spread": lambda labels: kernels.cell_spread(X, labels, 2),
}


@pytest.mark.parametrize("how", ["too short", "too long", "negative", "too high"])
@pytest.mark.parametrize("call", ON_LABELS.values(), ids=ON_LABELS)
def test_labels_of_other_records_or_of_cells_that_are_not_there_are_refused(call, how):
    with pytest.raises(ValueError, match=r"length|out of range|more cells"):
        call(PARTITIONED[how])


WITH_K = {
    "mdav": lambda k: kernels.mdav(X, k),
    "mdav of some": lambda k: kernels.mdav(X, k, np.arange(6)),
    "refine": lambda k: kernels.refine(X, TWO, k, 1, 5, 0.0, False),
    "refine_around": lambda k: refine_around(X, TWO, k),
    "guarded_search": lambda k: guarded_search(X, TWO, k),
    "cell_neighbours": lambda k: kernels.cell_neighbours(X, TWO, k, 5),
    "arrive": lambda k: kernels.arrive(X, TWO, k, inertial=True, split_mid=True),
    "anneal": lambda k: kernels.anneal(X, TWO, k, kernels.Schedule(10, 0.1, 1.0), 1),
    "ncp_search": lambda k: ncp_search(X, TWO, k),
    "ncp_recode": lambda k: ncp_recode(TWO, k),
    "ncp_specialise": lambda k: kernels.ncp_specialise(ncp_table(), k),
    "univariate": lambda k: kernels.univariate(X[:, 0].copy(), k),
    "split": lambda k: kernels.split(X, TWO, k),
    "dissolve_cells": lambda k: kernels.dissolve_cells(X / 12, TWO, k),
    "balanced_cells": lambda size: kernels.balanced_cells(X, TWO, size, 1),
    "gather": lambda k: kernels.Remaining(X).gather(0, k),
    "grow": lambda k: kernels.Remaining(X).grow(0, k),
}


@pytest.mark.parametrize("k", [0, 7, 2**62])
@pytest.mark.parametrize("call", WITH_K.values(), ids=WITH_K)
def test_a_k_of_0_or_above_the_number_of_records_is_refused(call, k):
    with pytest.raises(ValueError, match=r"k is not between"):
        call(k)


def stream_window(n_dims=2, k=2, delay=3, max_age=np.inf, order_weight=0.0, codes=(), least=()):
    return kernels.Window(
        n_dims, k, delay=delay, max_age=max_age, order_weight=order_weight, code_weights=codes, least=least
    )


def pushed(matrix=X, codes=NO_KEYS, tags=NO_KEYS, times=None):
    times = np.zeros(len(matrix)) if times is None else times
    return stream_window().push(kernels.Tuples(matrix, codes, tags, times))


def restored(matrix=X[:1], times=np.zeros(1), positions=labels(0), window=None, **figures):  # noqa: B008
    tally = {**stream_window().tally(), "n_in": 1, **figures}
    none = np.empty((len(matrix), 0), dtype=np.uint64)
    (window or stream_window()).restore(kernels.Tuples(matrix, none, none, times), positions, tally)


def used():
    window = stream_window()
    window.push(kernels.Tuples(X, NO_KEYS, NO_KEYS, np.zeros(6)))
    return window


def written(*columns, names=("a",), n_rows=1):
    return kernels.TextWriter(names, False, ",").write(list(columns), n_rows)


BYTES = np.zeros(2, dtype=np.uint8)
ONE = np.ones(1)
COUNTS = labels(3, 3)
MISTAKES = {
    "neighbours: none": lambda: kernels.cell_neighbours(X, TWO, 2, 0),
    "mdav of some: not finite": lambda: kernels.mdav(NAN, 2, np.arange(len(NAN))),
    "mdav of some: records": lambda: kernels.mdav(X, 2, labels(0, 1, 6)),
    "halves: not finite": lambda: kernels.halves(NAN, np.arange(len(NAN)), np.ones(2), 1.0),
    "halves: records": lambda: kernels.halves(X, labels(0, 6), np.ones(2), 1.0),
    "halves: not ascending": lambda: kernels.halves(X, labels(1, 0), np.ones(2), 1.0),
    "halves: no records": lambda: kernels.halves(X, NONE, np.ones(2), 1.0),
    "halves: direction": lambda: kernels.halves(X, np.arange(6), np.ones(3), 1.0),
    "guarded_search: codes": lambda: guarded_search(X, TWO, 2, TWO[:5]),
    "refine_around: no neighbours": lambda: refine_around(X, TWO, 2, neighbours=0),
    "refine_around: touched": lambda: refine_around(X, TWO, 2, labels(2), NONE, NONE),
    "refine_around: lists": lambda: refine_around(X, TWO, 2, NONE, labels(1, 7), NONE),
    "refine_around: ragged": lambda: refine_around(X, TWO, 2, NONE, labels(1), NONE),
    "refine_around: origins": lambda: refine_around(X, TWO, 2, NONE, NONE, labels(1)),
    "refine_around: all new": lambda: refine_around(X, TWO, 2, NONE, NONE, labels(0, 0)),
    "arrive: more labels than records": lambda: kernels.arrive(X[:4], TWO, 2, inertial=True, split_mid=True),
    "arrive: no labels": lambda: kernels.arrive(X, NONE, 2, inertial=True, split_mid=True),
    "arrive: a gap": lambda: kernels.arrive(X, labels(0, 0, 2, 2), 2, inertial=True, split_mid=True),
    "univariate: descending": lambda: kernels.univariate(X[::-1, 0].copy(), 2),
    "univariate: nan": lambda: kernels.univariate(np.array([1.0, np.nan, 2.0]), 2),
    "univariate: empty": lambda: kernels.univariate(np.empty(0), 1),
    "assign: other columns": lambda: kernels.assign(X, np.ones((2, 3))),
    "dissolve_cells: above 1": lambda: kernels.dissolve_cells(X, TWO, 2),
    "linkage: other columns": lambda: kernels.ranks(X, np.ones((2, 1)), TWO, labels(0), labels(0)),
    "linkage: asked": lambda: kernels.ranks(X, np.ones((2, 2)), TWO, labels(6), labels(0)),
    "linkage: asked twice": lambda: kernels.ranks(X, np.ones((2, 2)), TWO, labels(1, 1), labels(0)),
    "linkage: asked point": lambda: kernels.ranks(X, np.ones((2, 2)), TWO, labels(0), labels(2)),
    "distances: other columns": lambda: kernels.distances(X, np.ones(3)),
    "co_moments: no columns": lambda: kernels.co_moments([], [], np.empty(0)),
    "co_moments: no records": lambda: kernels.co_moments([np.empty(0)], [0], ONE),
    "co_moments: columns": lambda: kernels.co_moments([np.ones(3), np.ones(2)], [0, 0], np.ones(2)),
    "co_moments: exponents": lambda: kernels.co_moments([np.ones(3)], [], ONE),
    "co_moments: origins": lambda: kernels.co_moments([np.ones(3)], [0], np.ones(2)),
    "co_moments: weights": lambda: kernels.co_moments([np.ones(3)], [0], ONE, np.ones(2)),
    "balanced_cells: codes": lambda: kernels.balanced_cells(X, TWO[:5], 2, 2),
    "balanced_cells: parts": lambda: kernels.balanced_cells(X, TWO, 2, 3),
    "balanced_cells: no parts": lambda: kernels.balanced_cells(X, TWO, 2, 0),
    "closeness: codes": lambda: vetoes("ordered_closeness", labels(0, 2), COUNTS, 1, 5),
    "closeness: nominal codes": lambda: vetoes("nominal_closeness", labels(0, -1), COUNTS, 1, 5),
    "closeness: counts": lambda: vetoes("ordered_closeness", labels(0, 1), labels(3, -3), 1, 5),
    "closeness: no fraction": lambda: vetoes("nominal_closeness", labels(0, 1), COUNTS, 1, 0),
    "delta: codes": lambda: vetoes("delta", labels(0, 2), COUNTS, 0.5, 2.0),
    "delta: nan": lambda: vetoes("delta", labels(0, 1), COUNTS, np.nan, 2.0),
    "diversity: l": lambda: vetoes("distinct", labels(0, 1), 0),
    "diversity: entropy": lambda: vetoes("entropy", labels(0, 1), -1),
    "diversity: recursive": lambda: vetoes("recursive", labels(0, 1), 0, 1, 1),
    "diversity: codes": lambda: vetoes("distinct", labels(0, -1), 2),
    "Remaining: point": lambda: kernels.Remaining(X).nearest(np.ones(1), 2),
    "Remaining: nan": lambda: kernels.Remaining(X).farthest(np.array([1.0, np.nan])),
    "Remaining: k": lambda: kernels.Remaining(X).nearest(np.ones(2), 7),
    "Remaining: record": lambda: kernels.Remaining(X).gather(6, 2),
    "Remaining: negative record": lambda: kernels.Remaining(X).grow(-1, 2),
    "Remaining: taken out twice": lambda: kernels.Remaining(X).remove(labels(1, 1)),
    "Remaining: not a record": lambda: kernels.Remaining(X).remove(labels(2**32)),
    "stream: k": lambda: stream_window(k=0),
    "stream: delay": lambda: stream_window(delay=-1),
    "stream: age": lambda: stream_window(max_age=np.nan),
    "stream: order": lambda: stream_window(order_weight=np.inf),
    "stream: codes": lambda: stream_window(codes=(np.nan,)),
    "push: columns": lambda: pushed(np.ones((6, 3))),
    "push: nan": lambda: pushed(NAN),
    "push: codes": lambda: pushed(codes=np.empty((6, 1), dtype=np.uint64)),
    "push: fewer codes": lambda: pushed(codes=NO_KEYS[:5]),
    "push: tags": lambda: pushed(tags=np.empty((6, 1), dtype=np.uint64)),
    "push: times": lambda: pushed(times=np.zeros(5)),
    "push: endless": lambda: pushed(times=np.full(6, np.inf)),
    "advance": lambda: stream_window().advance(np.nan),
    "recode: rows": lambda: stream_window().recode(X),
    "recode: columns": lambda: stream_window().recode(np.ones((0, 3))),
    "restore: positions": lambda: restored(positions=labels(0, 1)),
    "restore: negative": lambda: restored(positions=labels(-1)),
    "restore: not come yet": lambda: restored(positions=labels(1)),
    "restore: descending": lambda: restored(X[:2], np.zeros(2), labels(4, 3), n_in=5),
    "restore: means": lambda: restored(mean_x=[0.0]),
    "restore: squares": lambda: restored(sst_x=[]),
    "restore: in use": lambda: restored(window=used()),
    "agreeing_records: lengths": lambda: kernels.agreeing_records([TWO, TWO[:5]]),
    "agreeing_records: none": lambda: kernels.agreeing_records([]),
    "first_places": lambda: kernels.first_places(TWO, 1),
    "inside_intervals: own": lambda: inside(own=TWO[:5]),
    "inside_intervals: values": lambda: inside(own=TWO + 1),
    "inside_intervals: ends": lambda: inside(n_high=1),
    "inside_intervals: centres": lambda: inside(n_centres=3),
    "text_keys: none": lambda: kernels.text_keys(NONE, BYTES),
    "text_keys: descending": lambda: kernels.text_keys(labels(0, 2, 1), BYTES),
    "text_keys: behind": lambda: kernels.text_keys(labels(0, 3).astype(np.int32), BYTES),
    "text_keys: before": lambda: kernels.text_keys(labels(-1, 1), BYTES),
    "cell_means: too many": lambda: kernels.cell_means(np.ones(3), labels(2, 2)),
    "cell_means: too few": lambda: kernels.cell_means(np.ones(3), labels(2)),
    "cell_means: negative": lambda: kernels.cell_means(np.ones(3), labels(-1, 4)),
    "differ_within_cells": lambda: kernels.differ_within_cells(np.ones(3), labels(4)),
    "least_different": lambda: kernels.least_different(np.ones(3, dtype=np.uint64), labels(4)),
    "most_frequent": lambda: kernels.most_frequent(np.ones(3, dtype=np.uint64), labels(0, 1, 2), labels(4)),
    "most_frequent: ranks": lambda: kernels.most_frequent(np.ones(3, dtype=np.uint64), labels(0), labels(3)),
    "place: length": lambda: kernels.place([ONE], 2, ONE, ONE, ONE),
    "place: ranges": lambda: kernels.place([ONE, ONE], 1, ONE, ONE, ONE),
    "place: endless": lambda: kernels.place([ONE], 1, np.array([-np.inf]), ONE, ONE),
    "reader: reads": lambda: kernels.TextReader(["a"], [], True, ","),
    "reader: how": lambda: kernels.TextReader(["a"], [4], True, ","),
    "reader: separator": lambda: kernels.TextReader(["a"], [0], True, ""),
    "reader: two bytes": lambda: kernels.TextReader(["a"], [0], True, "§"),
    "writer: separator": lambda: kernels.TextWriter(["a"], True, "\n"),
    "writer: columns": lambda: written(ONE, ONE),
    "writer: rows": lambda: written(ONE, n_rows=2),
    "writer: parts": lambda: written((labels(0, 1), BYTES)),
    "writer: offsets": lambda: written((labels(0), BYTES, BYTES[:1])),
    "writer: behind": lambda: written((labels(0, 3), BYTES, BYTES[:1])),
    "writer: there": lambda: written((labels(0, 1), BYTES, BYTES[:0])),
}


@pytest.mark.parametrize("call", MISTAKES.values(), ids=MISTAKES)
def test_what_does_not_fit_together_is_refused_before_a_loop_begins(call):
    with pytest.raises(ValueError, match=r"\w"):
        call()


def test_a_guarantee_about_other_records_is_refused():
    guarantees = kernels.Guarantees()
    guarantees.distinct(TWO, 2)

    with pytest.raises(ValueError, match="length"):
        guarantees.excess(TWO[:5], 2)
    with pytest.raises(ValueError, match="out of range"):
        guarantees.excess(TWO, 1)
    with pytest.raises(ValueError, match="out of range"):
        guarantees.part(labels(6))


def test_columns_to_be_written_may_be_arrays_that_are_converted_first():
    rng = np.random.default_rng(5)
    values = rng.integers(0, 1000, 4000)
    texts = (np.arange(4001, dtype=np.int32), np.full(4000, 120), np.ones(4000))
    lines = written(values, texts, names=("a", "b"), n_rows=4000)

    assert lines == b"".join(b'{"a":%d,"b":x}\n' % value for value in values)


def test_a_range_too_narrow_to_divide_by_puts_all_values_at_0():
    values = np.array([0.0, 5e-324, 1.0, np.nan])
    placed, outside = kernels.place([values], 4, np.zeros(1), np.array([5e-324]), np.ones(1))

    assert np.isfinite(placed).all()
    assert outside.tolist() == [1]


def at_once(work, n=4):
    """Run the same work on some threads that begin together."""
    ready = threading.Barrier(n)

    def one(number):
        ready.wait()
        return work(number)

    with ThreadPoolExecutor(n) as threads:
        return list(threads.map(one, range(n)))


def test_threads_that_push_into_one_window_lose_and_double_nothing():
    window = kernels.Window(3, 5, delay=40)
    rng = np.random.default_rng(3)
    batches = rng.random((4, 30, 50, 3))
    none = np.empty((50, 0), dtype=np.uint64)
    gone = at_once(
        lambda number: [window.push(kernels.Tuples(X, none, none, np.zeros(50))) for X in batches[number]], n=4
    )
    gone.append([window.flush()])
    tally = window.tally()

    assert sum(len(one.rows) for of_thread in gone for one in of_thread) == 4 * 30 * 50
    assert min(size for of_thread in gone for one in of_thread for size in one.sizes) >= 5
    assert (tally["n_in"], tally["n_released"], len(window)) == (6000, 6000, 0)


def test_threads_that_ask_one_set_of_remaining_records_get_the_answers_of_one():
    rng = np.random.default_rng(4)
    matrix = rng.random((2000, 3))
    remaining = kernels.Remaining(matrix)
    points = rng.random((200, 3))
    expected = [remaining.nearest(point, 5)[0].tolist() for point in points]
    found = at_once(lambda _: [remaining.nearest(point, 5)[0].tolist() for point in points])

    assert found == [expected] * 4


def test_threads_that_share_a_reader_read_what_one_reads():
    reader = kernels.TextReader(["a", "b"], [0, 1], False, ",")
    text = b"".join(b'{"a":%d,"b":"\\u00e4%d"}\n' % (i, i) for i in range(2000))
    n_bytes, n_lines, _, columns, bad, _ = reader.read(text, True)
    found = at_once(lambda _: [reader.read(text, True) for _ in range(10)])

    assert (n_bytes, n_lines, bad) == (len(text), 2000, [])
    for parsed in (one for of_thread in found for one in of_thread):
        np.testing.assert_array_equal(parsed[3][0], columns[0])
        np.testing.assert_array_equal(parsed[3][1][1], columns[1][1])
