"""The order of a released file: from what is published alone, the same whatever holds the values."""

import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.columns.value_hashes import record_hashes
from shoal.output.published_order import Alike, published_order
from strategies import mixed_tables


def order(table):
    return published_order(table.columns, table.num_rows)


def hashes(*values):
    """Return the two halves of the hash of each value, as a list of pairs."""
    return [tuple(pair) for pair in record_hashes([pa.chunked_array([value]) for value in values], len(values[0])).T]


@given(mixed_tables(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_has_no_part_in_it(problem, random):
    table, _ = problem
    shuffled = table.take(pa.array(random.sample(range(table.num_rows), table.num_rows)))

    assert repr(shuffled.take(order(shuffled)).to_pylist()) == repr(table.take(order(table)).to_pylist())


@given(mixed_tables())
def test_a_table_can_be_hashed_in_parts(problem):
    table, _ = problem
    cut = table.num_rows // 3
    parts = pa.concat_tables([table.slice(0, cut), table.slice(cut)])
    pieces = [record_hashes(table.slice(*part).columns, n) for part, n in (((0, cut), cut), ((cut,), len(table) - cut))]

    np.testing.assert_array_equal(record_hashes(parts.columns, len(table)), record_hashes(table.columns, len(table)))
    np.testing.assert_array_equal(np.hstack(pieces), record_hashes(table.columns, len(table)))


@given(mixed_tables(), st.integers(0, 2**32), st.booleans())
def test_groups_of_records_that_agree_are_sorted_as_their_records_are(problem, seed, all_agree):
    table, k = problem
    groups = np.unique(np.random.default_rng(seed).integers(0, k, table.num_rows), return_inverse=True)[1]
    first = np.unique(groups, return_index=True)[1]
    table = table.take(pa.array(first[groups])).append_column("twice", pa.array(first[groups] // 2))
    places = frozenset(range(table.num_columns - (not all_agree)))
    if not all_agree:
        table = table.set_column(table.num_columns - 1, "own", pa.array(np.arange(table.num_rows) % 3))

    assert published_order(table.columns, table.num_rows, Alike(groups, places)).tolist() == order(table).tolist()


@pytest.mark.parametrize(
    ("values", "types"),
    [
        ([3, 0, None, 117], [pa.int8(), pa.uint16(), pa.int64(), pa.float32(), pa.float64()]),
        ([0.5, None], [pa.float16(), pa.float32(), pa.float64()]),
        (["a", "", None, "é" * 200], [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]),
        (
            [datetime.datetime(2020, 1, 2), None],
            [pa.date32(), pa.date64(), pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns")],
        ),
    ],
)
def test_the_place_of_a_record_does_not_depend_on_the_type_that_holds_it(values, types):
    first = {tuple(half for half, _ in hashes(pa.array(values).cast(kind))) for kind in types}

    assert len(first) == 1


@pytest.mark.parametrize(
    "alike",
    [
        pa.array(["", None, "  "]),
        pa.array(["a", "a  "]),
        pa.array([0.0, -0.0]),
        pa.array([float("nan"), None]),
        pa.array([2**53, 2**53 + 1]),
        pa.array([1, 2], pa.timestamp("ns")),
    ],
)
def test_what_some_format_cannot_hold_decides_only_among_records_that_look_the_same_there(alike):
    found = hashes(alike)

    assert len({first for first, _ in found}) == 1
    assert len(set(found)) == len(alike)


@pytest.mark.parametrize(
    "values",
    [
        pa.array(range(-5000, 5000)),
        pa.array(np.linspace(-1, 1, 10_001)),
        pa.array([f"{i}" for i in range(10_000)]),
        pa.array([f"{'x' * 300}{i}" for i in range(2_000)]),
        pa.array(["x" * n for n in range(600)]),
        pa.array([b"\0" * n for n in range(30)]),
        pa.array([True, False, None]),
        pa.array([[1], [1, 2], [], None, [None]]),
        pa.array([{"a": 1}, {"a": 2}, None]),
        pa.array(np.arange(1000), pa.duration("ns")),
        pa.array(np.arange(1000), pa.time64("ns")),
        pa.array([(1, 2, 3), (1, 2, 4), None], pa.month_day_nano_interval()),
    ],
    ids=lambda values: str(values.type),
)
def test_values_that_differ_have_hashes_that_differ(values):
    assert len(set(hashes(values))) == len(values)


def test_the_same_values_in_other_columns_are_other_records():
    first, second = pa.array([1, 2]), pa.array([2, 1])

    assert len(set(hashes(first, second))) == 2


def test_half_of_the_records_stand_on_either_side_of_where_they_were():
    n = 10_000
    places = published_order([pa.chunked_array([np.arange(n)])], n)

    assert abs(np.corrcoef(places, np.arange(n))[0, 1]) < 0.03
