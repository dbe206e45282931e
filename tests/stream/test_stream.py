import datetime
import importlib
import json
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import datasets, kernels
from shoal.errors import FileError, GuaranteeError, ParameterError, SchemaError
from shoal.models import LDiversity, TCloseness
from shoal.stream import Reason, Stream
from shoal.stream import stream as stream_module
from stream_twin import Window as Twin


def census_pair():
    """TAXINC and POTHVAL of Census, min-max scaled, which the paper calls MCD."""
    data = datasets.census()
    X = data.X[:, [list(data.columns).index(name) for name in ("TAXINC", "POTHVAL")]]
    return (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))


def through(stream, X, cuts=()):
    """Push a matrix in pieces, flush, and return everything released."""
    return np.concatenate([*(stream.push(piece) for piece in np.split(X, cuts)), stream.flush()])


def balanced(stream):
    summary = stream.summary()
    return summary.n_in == summary.n_released + summary.n_side + summary.n_buffered


@pytest.mark.parametrize(
    ("weight", "mse", "spread", "moved_max", "moved_mean"),
    [(0, 0.0080, 100, 81, 26.9), (0.02, 0.0265, 31, 18, 3.2), (1, 0.0652, 9, 0, 0.0)],
)
def test_census_gives_the_numbers_of_the_design(weight, mse, spread, moved_max, moved_mean):
    stream = Stream(10, delay=100, order_weight=weight, ranges=[(0, 1), (0, 1)])
    released = through(stream, census_pair())
    summary = stream.summary()

    assert len(released) == 1080
    assert summary.mse == pytest.approx(mse, abs=5e-5)
    assert summary.spread_max == spread
    assert summary.displacement_max == moved_max
    assert summary.displacement_mean == pytest.approx(moved_mean, abs=0.05)
    assert summary.n_side == 0


@given(seed=st.integers(0, 2**32), k=st.integers(2, 6), m=st.integers(1, 4))
def test_above_the_threshold_of_proposition_2_no_tuple_changes_its_place(seed, k, m):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (80, m)).astype(float)  # corners of the cube: the worst there is
    stream = Stream(
        k,
        delay=k - 1 + int(rng.integers(0, 20)),
        order_weight=np.sqrt(m / (2 * k - 1)) * (1 + 1e-9),
        ranges=[(0, 1)] * m,
    )
    through(stream, X)

    assert stream.summary().displacement_max == 0


@pytest.mark.parametrize(("k", "m"), [(2, 1), (3, 2), (10, 5), (10, 1), (5, 3)])
def test_just_below_the_threshold_an_adversary_makes_tuples_change_places(k, m):
    # The due tuple and the one k places later lie in one corner, the one in between at its border in the other.
    X = np.zeros((k + 1, m))
    X[k - 1] = 1.0
    threshold = np.sqrt(m / (2 * k - 1))
    moved = []
    for weight in (threshold * (1 - 1e-6), threshold * (1 + 1e-6)):
        stream = Stream(k, delay=k, order_weight=weight, ranges=[(0, 1)] * m)
        stream.push(X)
        moved.append(stream.summary().spread_max)

    assert moved == [k, k - 1]


def test_the_object_makes_the_cells_of_the_twin():
    rng = np.random.default_rng(0)
    X = rng.random((500, 3))
    twin = Twin(4, delay=30, order_weight=0.01)
    cells, _ = twin.push(X, np.zeros(500))
    more, _ = twin.flush()
    expected = np.concatenate([np.tile(X[cell].mean(axis=0), (len(cell), 1)) for cell in cells + more])

    assert np.allclose(through(Stream(4, delay=30, order_weight=0.01, ranges=[(0, 1)] * 3), X, [7, 7, 90]), expected)


@pytest.mark.parametrize(("k", "delay", "weight"), [(3, 10, 0.0), (10, 100, 0.01), (4, 30, 1.0)])
def test_the_plain_python_of_the_benchmark_makes_the_same_cells(k, delay, weight, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    plain_stream = importlib.import_module("plain_stream").plain_stream
    X = np.random.default_rng(k).random((400, 3))
    cells = list(plain_stream(X.tolist(), k, delay, weight))
    means = np.concatenate([np.tile(X[cell].mean(axis=0), (len(cell), 1)) for cell in cells])

    assert np.allclose(through(Stream(k, delay=delay, order_weight=weight, ranges=[(0, 1)] * 3), X), means)


@given(seed=st.integers(0, 2**32))
def test_the_output_does_not_depend_on_how_the_stream_is_cut_into_batches(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 2))
    options = {"delay": int(rng.integers(4, 60)), "adapt": float(rng.choice([0, 0.5])), "max_cell": 7}
    whole = through(Stream(5, **options), X)
    cut = through(Stream(5, **options), X, np.sort(rng.integers(0, 200, 5)))

    assert np.array_equal(whole, cut)


@pytest.mark.parametrize("type_", [pa.date32(), pa.timestamp("s"), pa.timestamp("ns")], ids=str)
def test_dates_do_not_depend_on_how_the_stream_is_cut(type_):
    units = np.random.default_rng(0).integers(-200, 200, 60)
    table = pa.table({"day": as_times(units, type_)})

    def released(at_once):
        stream = Stream(2, delay=7)
        parts = [stream.push(table.slice(begin, at_once)) for begin in range(0, 60, at_once)]
        return pa.concat_tables([*parts, stream.flush()])

    assert released(60).equals(released(1))


@pytest.mark.parametrize(
    ("units", "mean"), [([0, 1], 0), ([1, 2], 2), ([-8_500 * 10**15, 9_000 * 10**15], 250 * 10**15)]
)
def test_the_mean_of_dates_lies_between_them_whatever_their_distance_and_halves_go_to_even_units(units, mean):
    stream = Stream(2, delay=1)
    parts = [stream.push(pa.table({"day": as_times(units, pa.timestamp("ns"))})), stream.flush()]

    assert pa.concat_tables(parts)["day"].cast(pa.int64()).to_pylist() == [mean, mean]


def as_times(units, type_):
    return pa.array(units, pa.int64()).cast(pa.int32() if type_.bit_width == 32 else pa.int64()).cast(type_)


@given(seed=st.integers(0, 2**32), n_subjects=st.sampled_from([3, 8, 40, 1000]))
def test_every_released_tuple_has_k_subjects_and_every_tuple_is_accounted_for_at_every_moment(seed, n_subjects):
    rng = np.random.default_rng(seed)
    n, k = 300, 5
    frame = pd.DataFrame({"who": rng.integers(0, n_subjects, n), "x": rng.random(n), "tag": np.arange(n)})
    aside = []
    stream = Stream(
        k, quasi_identifiers=["x"], other=["tag"], subject="who", delay=20, on_side=lambda rows, why: aside.append(rows)
    )
    released = []
    for begin in range(0, n, 37):
        released.append(stream.push(frame[begin : begin + 37]))
        assert balanced(stream)
        assert len(stream) <= 21
    released.append(stream.flush())
    out = pd.concat(released).merge(frame[["who", "tag"]], on="tag")
    gone = [*out["tag"], *(tag for rows in aside for tag in rows["tag"])]

    assert sorted(gone) == list(range(n))
    assert balanced(stream)
    assert "who" not in pd.concat(released).columns
    if len(out):
        assert out.groupby("x")["who"].nunique().min() >= k


def test_with_fewer_than_k_subjects_everything_goes_to_the_side_output():
    aside = []
    stream = Stream(3, subject="0", delay=5, on_side=lambda rows, why: aside.extend(why))
    X = np.column_stack([np.arange(50) % 2, np.arange(50)])
    released = through(stream, X)

    assert len(released) == 0
    assert aside == [Reason.TOO_FEW_SUBJECTS] * 48 + [Reason.TOO_FEW_TUPLES] * 2
    assert stream.summary().reasons == {"too-few-subjects": 48, "too-few-tuples": 2}
    assert balanced(stream)


@given(seed=st.integers(0, 2**32), k=st.integers(2, 6), extra=st.integers(0, 8))
def test_counted_in_tuples_and_without_subjects_none_is_lost_before_the_end(seed, k, extra):
    rng = np.random.default_rng(seed)
    stream = Stream(k, delay=k - 1 + extra, ranges=[(0, 1)])
    stream.push(rng.random((300, 1)) ** 4)

    assert stream.summary().n_side == 0
    assert stream.summary().delay_max <= k - 1 + extra


def test_cells_hold_as_many_different_confidential_values_as_asked():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"x": rng.random(400), "diagnosis": rng.choice(list("aaaaaaabc"), 400)})
    stream = Stream(
        4, quasi_identifiers=["x"], confidential=["diagnosis"], models=[LDiversity("diagnosis", l=3)], delay=60
    )
    out = pd.concat([stream.push(frame), stream.flush()])

    assert out.groupby("x")["diagnosis"].nunique().min() >= 3
    assert balanced(stream)


def test_max_cell_takes_on_what_is_close_and_lowers_the_loss_of_clustered_data():
    rng = np.random.default_rng(0)
    X = rng.random((12, 3))[rng.integers(0, 12, 3000)] + 0.03 * rng.normal(size=(3000, 3))
    mse = {}
    for max_cell in (None, 15):
        stream = Stream(10, delay=100, max_cell=max_cell)
        through(stream, X)
        mse[max_cell] = stream.summary().mse

    assert mse[15] < mse[None]


def test_seconds_decide_when_tuples_are_due_and_time_is_told_from_outside():
    stream = Stream(2, max_age=10, ranges=[(0, 10)])
    assert len(stream.push(np.array([[1.0], [2.0], [9.0]]), now=0)) == 0
    assert len(stream.push(np.array([[8.0]]), now=9.9)) == 0

    assert stream.advance(10).tolist() == [[1.5], [1.5], [8.5], [8.5]]
    assert stream.summary().seconds_max == 10


def test_a_tuple_that_is_too_old_and_alone_goes_to_the_side_output():
    stream = Stream(2, max_age=10, ranges=[(0, 10)])
    stream.push(np.array([[1.0]]), now=0)
    stream.advance(10)

    assert stream.summary().reasons == {"too-few-tuples": 1}


def test_a_clock_that_goes_backwards_is_held_and_counted():
    stream = Stream(2, max_age=10, ranges=[(0, 10)])
    stream.push(np.array([[1.0], [2.0]]), now=[100.0, 50.0])
    stream.push(np.array([[3.0]]), now=20.0)

    assert stream.summary().n_clock_held == 2
    assert len(stream.advance(109)) == 0
    assert len(stream.advance(110)) == 3


def test_ages_are_counted_on_where_a_clock_jumped_and_came_back():
    now = [100.0]
    stream = Stream(2, max_age=10, ranges=[(0, 10)], clock=lambda: now[0])
    stream.push(np.array([[1.0]]))
    for reading, x in ((5000.0, [[1.0], [2.0]]), (101.0, [[3.0]])):
        now[0] = reading
        stream.push(np.array(x))
    assert (len(stream), stream.summary().n_clock_held) == (2, 1)
    # Nor does a restart forget where the time was.
    again = Stream.restore(stream.dump(), clock=lambda: now[0])
    for one in (stream, again):
        now[0] = 105.0
        assert len(one.advance(one.clock())) == 0
        assert one.clock() - one.oldest == pytest.approx(4.0 if one is stream else 0.0)
        now[0] = 116.0

        assert len(one.advance(one.clock())) == 2


@pytest.mark.parametrize("cuts", [[], [1], [2], [3], [4], [1, 2, 3, 4]])
def test_time_goes_by_with_tuples_that_cannot_be_used(cuts):
    X = np.array([[1.0], [2.0], [np.nan], [3.0], [np.nan]])
    times = np.array([0.0, 0.0, 10.0, 10.0, 20.0])
    stream = Stream(2, max_age=10, ranges=[(0, 10)], on_error="side")
    parts = zip(np.split(X, cuts), np.split(times, cuts), strict=True)
    released = np.concatenate([stream.push(part, now=when) for part, when in parts])

    assert released.tolist() == [[1.5], [1.5]]
    assert stream.summary().reasons == {"missing-value": 2, "too-few-tuples": 1}


def test_ranges_are_learned_from_the_tuples_that_wait_when_the_first_is_due():
    X = np.arange(40.0)[::-1, None] * [1, 1000]
    learned, declared = Stream(3, delay=9), Stream(3, delay=9, ranges=[(30, 39), (30_000, 39_000)])

    assert np.array_equal(through(learned, X, [4]), through(declared, X))
    assert learned.summary().n_outside == {"0": 30, "1": 30}


def test_values_outside_the_range_count_as_on_the_border_but_are_published_as_they_are():
    stream = Stream(2, delay=1, ranges=[(0, 1)])
    released = stream.push(np.array([[50.0], [150.0]]))

    assert released.tolist() == [[100.0], [100.0]]
    assert stream.summary().n_outside == {"0": 2}
    assert stream.summary().mse == 0


def test_adapting_ranges_follow_a_stream_that_drifts():
    rng = np.random.default_rng(0)
    X = rng.random((60_000, 2)) + np.linspace(0, 2, 60_000)[:, None] * [1, 0]
    outside = {}
    for adapt in (0, 0.5):
        stream = Stream(5, delay=50, adapt=adapt)
        released = through(stream, X)
        outside[adapt] = stream.summary().n_outside["0"]
        assert len(released) == len(X)

    assert outside[0.5] < outside[0]


def mixed(n=200):
    rng = np.random.default_rng(5)
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(int(d)) for d in rng.integers(0, 300, n)]
    return pa.table(
        {
            "name": [f"person {i}" for i in range(n)],
            "age": rng.integers(18, 90, n),
            "zip": rng.choice(["8001", "8002", "9000"], n),
            "school": rng.choice(["low", "mid", "high"], n),
            "seen": days,
            "at": pa.array(rng.integers(0, 10**18, n), pa.timestamp("ns")),
            "diagnosis": rng.choice(list("abc"), n),
        }
    )


MIXED = {
    "quasi_identifiers": ["age", "zip", "school", "seen", "at"],
    "confidential": ["diagnosis"],
    "identifiers": ["name"],
    "columns": {"school": {"categories": ["low", "mid", "high"]}},
}


@pytest.mark.parametrize("kind", [pa.Table.to_pandas, pl.from_arrow, lambda table: table, lambda t: t.to_batches()[0]])
def test_any_frame_comes_back_as_the_same_kind_with_every_kind_of_column(kind):
    frame = kind(mixed())
    stream = Stream(5, delay=60, **MIXED)
    released, rest = stream.push(frame), stream.flush()
    out = pa.concat_tables([pa.table(pl.DataFrame(part).to_arrow()) for part in (released, rest)])

    assert type(released) is type(frame)
    assert out.num_rows == 200
    assert out.column_names == ["age", "zip", "school", "seen", "at", "diagnosis"]
    cells = out.to_pandas().groupby(["age", "zip", "school", "seen", "at"]).size()
    assert cells.min() >= 5
    assert sorted(out["diagnosis"].to_pylist()) == sorted(mixed()["diagnosis"].to_pylist())


def test_a_cell_publishes_mean_mode_median_and_mean_date():
    table = pa.table(
        {
            "age": [20, 30, 40],
            "zip": ["b", "a", "b"],
            "school": ["low", "high", "mid"],
            "seen": [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2), datetime.date(2020, 1, 6)],
        }
    )
    stream = Stream(3, delay=2, columns={"school": {"categories": ["low", "mid", "high"]}})
    released = stream.push(table).to_pylist()

    assert released == [{"age": 30.0, "zip": "b", "school": "mid", "seen": datetime.date(2020, 1, 3)}] * 3


def test_missing_as_a_value_of_its_own_never_splits_a_cell():
    frame = pd.DataFrame({"x": [1.0, None, 3.0, None, None, 6.0], "c": ["a", None, "a", None, "b", None]})
    stream = Stream(3, delay=2, missing="own-value", ranges={"x": (0, 10)})
    out = pd.concat([stream.push(frame), stream.flush()])

    assert len(out) == 6
    assert out.groupby(["x", "c"], dropna=False).size().min() >= 3


@pytest.mark.parametrize(
    ("value", "reason"), [(np.nan, "missing-value"), (np.inf, "infinite-value"), (-np.inf, "infinite-value")]
)
def test_a_number_that_is_none_fails_the_push_with_nothing_taken_in_or_goes_to_the_side(value, reason):
    X = np.array([[1.0, 5.0], [2.0, value], [3.0, 7.0]])
    strict, lenient = Stream(2, delay=2), Stream(2, delay=2, on_error="side")
    with pytest.raises(SchemaError, match=f"column '1', {reason}, 1 times, the first in tuple 1"):
        strict.push(X)
    lenient.push(X)

    assert strict.summary().n_in == 0
    assert lenient.summary().reasons == {reason: 1}
    assert balanced(lenient)


def test_a_level_that_is_not_in_the_list_is_refused_without_being_shown():
    stream = Stream(2, delay=2, columns={"school": {"categories": ["low", "high"]}})
    with pytest.raises(SchemaError, match="unknown-level") as error:
        stream.push(pa.table({"school": ["low", "secret"]}))

    assert "secret" not in str(error.value)


@pytest.mark.parametrize("n_levels", [1, 2, 50, 99])
def test_any_number_of_levels_has_a_median(n_levels):
    levels = [f"level {rank}" for rank in range(n_levels)]
    stream = Stream(2, delay=2, columns={"school": {"categories": levels}})
    pushed = pa.table({"school": np.repeat(levels, 2)})
    released = pa.concat_tables([stream.push(pushed), stream.flush()])

    assert released["school"].to_pylist() == pushed["school"].to_pylist()


@pytest.mark.parametrize(
    ("later", "words"),
    [
        ({"x": [1.0]}, "'y'|y are not in the batch"),
        ({"x": [1.0], "y": ["a"], "z": [1]}, "z have no role"),
        ({"x": ["text"], "y": ["a"]}, "schema has changed"),
    ],
)
def test_a_schema_that_changes_in_mid_stream_is_refused_and_the_stream_goes_on(later, words):
    stream = Stream(2, quasi_identifiers=["x"], confidential=["y"], delay=3)
    stream.push(pa.table({"x": [1.0, 2.0], "y": ["a", "b"]}))
    with pytest.raises(SchemaError, match=words) as error:
        stream.push(pa.table(later))
    assert "text" not in str(error.value)
    stream.push(pa.table({"x": [3, 4], "y": ["c", "d"]}))

    assert stream.summary().n_in == 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delay": 8}, "delay=8 is too short for k=10"),
        ({}, "Say when a tuple is due"),
        ({"delay": 2.5}, "delay cannot be used: it should be a whole number"),
        ({"max_age": 0}, "max_age"),
        ({"delay": 20, "order_weight": -1}, "order_weight"),
        ({"delay": 20, "order_weight": np.nan}, "order_weight"),
        ({"delay": 20, "max_cell": 5}, "max_cell=5 is below k=10"),
        ({"delay": 20, "adapt": 2}, "adapt"),
        ({"delay": 20, "missing": "guess"}, "missing cannot be used: input should be 'error' or 'own-value'"),
        ({"delay": 20, "on_error": "ignore"}, "on_error cannot be used: input should be 'fail' or 'side'"),
        ({"delay": 20, "ranges": [(1, 0)]}, "lowest value first"),
        ({"delay": 20, "quasi_identifiers": ["a"], "confidential": ["a"]}, "two roles"),
        ({"delay": 20, "quasi_identifiers": ["a"], "columns": {"b": {"weight": 2}}}, "not a quasi-identifier"),
        ({"delay": 20, "models": [LDiversity("b", l=3)]}, "not among the confidential"),
        ({"delay": 20, "dealy": 3}, "Did you mean 'delay'"),
        ({"delay": 20, "models": [TCloseness("b", t=0.1)]}, "does not know the distribution"),
        ({"delay": 20, "columns": {"b": {"round": 1}}}, "only kind, categories and weight"),
        ({"delay": 20, "seed": "x"}, "seed"),
        ({"delay": 20, "subject": "a", "identifiers": ["a"]}, "subject"),
    ],
)
def test_options_that_cannot_be_used_are_refused_with_a_reason(options, words):
    with pytest.raises(ParameterError, match=words):
        Stream(10, **options)


def test_a_batch_that_is_no_table_is_refused():
    stream = Stream(2, delay=3)
    for batch in ([1, 2], np.array(["a"]), np.zeros(3), 7):
        with pytest.raises(ParameterError):
            stream.push(batch)
    with pytest.raises(ParameterError):
        stream.push(np.zeros((3, 1)), now=[1.0, 2.0])


def test_a_cell_that_the_recount_finds_too_small_is_not_released(monkeypatch):
    stream = Stream(3, delay=5, ranges=[(0, 1)])
    push = kernels.Window.push

    def cut_short(self, tuples):
        gone = push(self, tuples)
        sizes = np.array([2, 1]) if len(gone.sizes) == 1 else gone.sizes
        return SimpleNamespace(rows=gone.rows, sizes=sizes, side=gone.side, reasons=gone.reasons, kept=gone.kept)

    monkeypatch.setattr(stream_module.Window, "push", cut_short)
    with pytest.raises(GuaranteeError, match="fewer than k=3"):
        stream.push(np.linspace(0, 1, 6)[:, None])


@given(seed=st.integers(0, 2**32))
def test_a_stream_that_is_saved_and_loaded_anywhere_gives_the_same_bytes(seed, tmp_path_factory):
    rng = np.random.default_rng(seed)
    table = mixed()
    options = {**MIXED, "delay": int(rng.integers(5, 50)), "adapt": 0.3, "max_cell": 7, "order_weight": 0.001}
    whole, cut = Stream(5, **options), Stream(5, **options)
    path = tmp_path_factory.mktemp("state") / "stream.state"
    place = 0
    for size in rng.integers(1, 60, 6):
        batch = table.slice(place, int(size))
        place += int(size)
        assert whole.push(batch).equals(cut.push(batch))
        cut.save(path)
        cut = Stream.load(path)

    assert whole.flush().equals(cut.flush())
    assert whole.summary() == cut.summary()


def test_a_checkpoint_that_is_damaged_in_any_byte_is_refused(tmp_path):
    stream = Stream(2, delay=3)
    stream.push(np.array([[1.0], [2.0]]))
    path = tmp_path / "stream.state"
    stream.save(path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in [*range(100), *rng.integers(0, len(content), 60), len(content) - 1]:
        damaged = bytearray(content)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(FileError):
            Stream.load(path)
    for size in (0, 10, 80, len(content) - 1):
        path.write_bytes(content[:size])
        with pytest.raises(FileError):
            Stream.load(path)
    path.write_bytes(content.replace(b"version 2", b"version 9", 1))
    with pytest.raises(FileError, match="another version"):
        Stream.load(path)


def test_the_old_checkpoint_stays_when_the_disk_is_full(tmp_path):
    stream = Stream(2, delay=3)
    stream.push(np.array([[1.0], [2.0]]))
    path = tmp_path / "stream.state"
    stream.save(path)
    before = path.read_bytes()
    stream.push(np.array([[3.0]]))
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
        with pytest.raises(FileError):
            stream.save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)

    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["stream.state"]


def test_the_summary_is_plain_values():
    stream = Stream(2, delay=3)
    stream.push(np.array([[1.0], [2.0], [3.0], [4.0], [5.0]]))

    assert json.loads(json.dumps(asdict(stream.summary())))["n_in"] == 5


@pytest.mark.parametrize("ends", [(-np.inf, 0), (0, np.inf), (np.float32(-np.inf), 0.0), (0, 10**400)])
def test_a_range_that_is_not_finite_is_refused(ends):
    with pytest.raises(ParameterError, match="'x' has an end that is not finite"):
        Stream(2, delay=2, quasi_identifiers=["x"], ranges={"x": ends})


@pytest.mark.parametrize("ends", [(0, 5e-324), (-1.7e308, 1.7e308), (0, 1e-310)])
def test_a_range_of_any_finite_width_keeps_k_and_every_tuple(ends):
    values = np.array([*ends, 0.0, 1.0] * 6).reshape(-1, 1)
    released = through(Stream(3, delay=5, ranges=[ends]), values)

    assert len(released) == len(values)
    assert np.unique(released, return_counts=True)[1].min() >= 3


def test_ranges_that_move_stay_finite_wherever_the_values_go():
    stream = Stream(2, delay=4, adapt=0.5)
    one_epoch = stream_module.EPOCH // 2
    X = np.concatenate([np.tile([[-1.7e308], [-1.6e308]], (one_epoch, 1)), np.tile([[1.6e308], [1.7e308]], (6000, 1))])
    released = through(stream, X, range(1000, len(X), 1000))

    assert np.isfinite([stream._ranges.low, stream._ranges.high]).all()
    assert len(released) == len(X)


def test_time_that_is_not_finite_is_refused():
    stream = Stream(2, max_age=10, ranges=[(0, 10)])
    stream.push(np.ones((1, 1)), now=0.0)

    for way in (stream.advance, lambda now: stream.push(np.ones((1, 1)), now=now)):
        for now in (np.nan, "noon"):
            with pytest.raises(ParameterError, match="finite number of seconds"):
                way(now)


@pytest.mark.parametrize("ranges", [3, "0:10", {"0": 3}, {"0": (1, 2, 3)}, {"0": (2, 1)}, {"0": (1, "x")}, {"0": "01"}])
def test_what_is_no_pair_of_numbers_is_refused_as_a_range(ranges):
    with pytest.raises(ParameterError, match=r"lowest( and the highest)? value"):
        Stream(2, delay=3, ranges=ranges)


def test_threads_may_share_a_stream_and_every_tuple_leaves_once_in_a_cell_of_k():
    aside = []
    keep = {"on_side": lambda tuples, reasons: aside.extend(tuples["number"].to_pylist())}
    stream = Stream(3, delay=10, quasi_identifiers=["x"], other=["number"], ranges={"x": (0, 1)}, **keep)
    x = np.random.default_rng(8).random(2000)
    batches = [pa.table({"x": x[i : i + 25], "number": np.arange(i, i + 25)}) for i in range(0, 2000, 25)]
    with ThreadPoolExecutor(4) as threads:
        released = pa.concat_tables([*threads.map(stream.push, batches), stream.flush()])

    assert sorted(released["number"].to_pylist() + aside) == list(range(2000))
    assert len(aside) < 3  # in some orders of the batches, fewer than k tuples are left at the end
    assert min(released.group_by("x").aggregate([([], "count_all")])["count_all"].to_pylist()) >= 3
    assert balanced(stream)


def test_categories_of_tuples_that_wait_do_not_leave_before_them():
    town = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int8()), ["Ulm", "Turin", "SECRET"])
    stream = Stream(k=2, delay=2, quasi_identifiers=["x"], confidential=["town"], ranges={"x": (0, 10)})
    released = stream.push(pa.table({"x": [1.0, 1.0, 9.0], "town": town}))

    assert released["town"].to_pylist() == ["Ulm", "Turin"]
    assert released["town"].chunk(0).dictionary.to_pylist() == ["Turin", "Ulm"]


@pytest.mark.parametrize(
    "values",
    [
        ["", None],
        ["flu", "flu "],
        [{"a": 1.0, "b": "flu"}, {"b": "flu ", "a": 1.0}],
        [["flu"], ["flu "]],
        [[0.0], [-0.0]],
    ],
)
def test_values_that_look_alike_do_not_make_a_cell_of_a_stream_diverse(values):
    aside = []
    stream = Stream(
        k=2,
        delay=2,
        quasi_identifiers=["x"],
        confidential=["d"],
        models=LDiversity("d", l=2),
        ranges={"x": (0, 10)},
        on_side=lambda rows, why: aside.extend(why),
    )
    stream.push(pa.table({"x": [1.0, 1.0, 1.0, 1.0], "d": values * 2}))

    assert stream.flush().num_rows == 0
    assert len(aside) == 4


def test_a_role_takes_one_name_as_well_as_a_list():
    stream = Stream(2, quasi_identifiers="x", other="y", delay=3)

    assert (stream.rules.quasi_identifiers, stream.rules.other) == (("x",), ("y",))
