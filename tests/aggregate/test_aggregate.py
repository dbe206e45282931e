import datetime
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.aggregate import Cells, aggregate
from shoal.columns.prepare import prepare
from shoal.columns.schema import Roles, Schema, as_settings

ONE = [0, 0, 0]


def published(values, labels=ONE, weights=None, **settings):
    table = pa.table({"x": values})
    schema = Schema.of(table.schema, Roles(quasi_identifiers=("x",)), as_settings({"x": settings}))
    given_weights = None if weights is None else np.array(weights, dtype=float)
    prepared = prepare(table, schema, "own-value")
    return aggregate(prepared, schema, Cells(np.array(labels)), given_weights)["x"]


def weighted_median(values, weights):
    """The definition: half of the weight lies on either side; between two values if neither has more."""
    total = sum(weights)
    pairs = sorted(zip(values, weights, strict=True))
    low = next(value for i, (value, _) in enumerate(pairs) if 2 * sum(w for _, w in pairs[: i + 1]) >= total)
    high = next(value for i, (value, _) in enumerate(pairs) if 2 * sum(w for _, w in pairs[: i + 1]) > total)
    return Fraction(low + high) / 2


def weighted_mode(values, weights, table):
    """The definition: the value with the largest weight, of equal ones the most frequent of the table, the smallest."""

    def worth(value):
        return (-sum(w for v, w in zip(values, weights, strict=True) if v == value), -table.count(value), value)

    return min(set(values), key=worth)


@st.composite
def small_cells(draw):
    n = draw(st.integers(1, 25))
    values = draw(st.lists(st.integers(-4, 4), min_size=n, max_size=n))
    labels = np.unique(draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)), return_inverse=True)[1]
    weights = draw(st.none() | st.lists(st.integers(0, 3), min_size=n, max_size=n))
    return values, labels, weights


@given(small_cells())
def test_each_cell_gets_its_weighted_mean_median_and_mode(problem):
    values, labels, weights = problem
    found = {how: published(values, labels, weights, aggregate=how).to_pylist() for how in ("mean", "median", "mode")}

    for cell in set(labels):
        members = np.flatnonzero(labels == cell)
        own = [values[i] for i in members]
        parts = [1 if weights is None else weights[i] for i in members]
        parts = parts if any(parts) else [1] * len(own)  # weights that are all 0 do not count
        mean = Fraction(sum(v * w for v, w in zip(own, parts, strict=True)), sum(parts))
        for i in members:
            assert found["mean"][i] == pytest.approx(float(mean), abs=1e-12)
            assert found["median"][i] == weighted_median(own, parts)
            assert found["mode"][i] == weighted_mode(own, parts, values)


@given(small_cells())
def test_totals_are_kept(problem):
    values, labels, weights = problem
    weights = np.ones(len(values)) if weights is None else np.array(weights)
    found = published(values, labels, weights).to_numpy()

    assert found @ weights == pytest.approx(np.array(values) @ weights, abs=1e-9)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=9))
def test_equal_numbers_are_published_as_they_are(numbers):
    labels = np.repeat(np.arange(len(numbers)), 3)
    values = np.repeat(numbers, 3)

    for how in ("mean", "median", "mode"):
        assert published(values, labels, aggregate=how).to_pylist() == [x + 0.0 for x in values]


@pytest.mark.parametrize("how", ["mean", "median", "mode"])
@pytest.mark.parametrize("weights", [None, [1e-300, 1e300, 5e-324, 1.7e308]])
def test_the_largest_numbers_do_not_overflow(how, weights):
    found = published([1.7e308, -1.7e308, 1.7e308, 1.7e308], [0, 0, 1, 1], weights, aggregate=how)

    assert np.isfinite(found).all()
    assert found[2].as_py() == 1.7e308


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([2**53 + 1, 2**53 + 3, 2**53 + 2], 2**53 + 2),
        ([2**63 - 1, 2**63 - 3, 2**63 - 2], 2**63 - 2),
        ([-(2**63), 2**63 - 1, 0], 0),
        (pa.array([2**64 - 1, 2**64 - 3, 2**64 - 2], pa.uint64()), 2**64 - 2),
    ],
)
@pytest.mark.parametrize("how", ["mean", "median"])
def test_rounded_whole_numbers_of_any_size_keep_their_digits_and_their_type(values, expected, how):
    found = published(values, round=0, aggregate=how)

    assert found.to_pylist() == [expected] * 3
    assert found.type == pa.array(values).type


@pytest.mark.parametrize(
    ("values", "settings", "expected"),
    [
        ([1, 2, 2], {}, 5 / 3),
        ([1, 2, 2], {"round": 2}, 1.67),
        ([1, 2, 2], {"round": 0}, 2),
        ([14, 15, 17], {"round": -1}, 20),
        ([124, 125, 127], {"round": -1, "aggregate": "mode"}, 120),
        ([1.26, 1.26, 3.0], {"round": 1, "aggregate": "mode"}, 1.3),
        ([1.26, 1.27, 3.0], {"round": 1, "aggregate": "median"}, 1.3),
        ([1e300, 1e300, 1e300], {"round": 12}, 1e300),
        ([-0.2, -0.1, -0.3], {"round": 0}, 0.0),
    ],
)
def test_values_are_rounded_as_asked(values, settings, expected):
    found = published(values, **settings)

    assert found.to_pylist() == [expected] * 3
    assert math.copysign(1, found[0].as_py()) == math.copysign(1, expected)


@pytest.mark.parametrize(
    ("values", "type_", "expected"),
    [([127, 126, 127], pa.int8(), 130), ([7, 6, 7], pa.int8(), 10), ([2**63 - 1] * 3, pa.int64(), 2**63 - 1)],
)
def test_numbers_rounded_to_tens_are_whole_and_of_64_bits_whatever_the_values(values, type_, expected):
    found = published(pa.array(values, type_), round=-1)

    assert found.to_pylist() == [expected] * 3
    assert found.type == pa.int64()


@pytest.mark.parametrize(
    ("type_", "units", "mean"),
    [
        (pa.date32(), [0, 1, 4], 2),
        (pa.date64(), [0, 86_400_000, 86_400_000], 0),
        (pa.timestamp("s", "Europe/Rome"), [10, 20, 31], 20),
        (pa.timestamp("ns"), [-(2**63) + 1, 2**63 - 1, 0], 0),
        (pa.timestamp("ns"), [2**62 + 1, 2**62 + 3, 2**62 + 2], 2**62 + 2),
        (pa.time32("ms"), [0, 1000, 2001], 1000),
        (pa.time64("us"), [1, 2, 3], 2),
        (pa.duration("ms"), [-5, 5, 6], 2),
    ],
)
def test_dates_are_published_at_the_resolution_of_their_column(type_, units, mean):
    stored = pa.int32() if type_.bit_width == 32 else pa.int64()
    found = published(pa.array(units, stored).cast(type_))

    assert found.type == type_
    assert found.cast(stored).to_pylist() == [mean] * 3


def test_the_median_of_dates_and_ranks_is_the_lower_middle_one():
    days = [datetime.date(2024, 1, day) for day in (1, 9, 2, 7)]
    levels = ["high", "low", "mid", "high"]

    assert published(days, [0] * 4, aggregate="median").to_pylist() == [days[2]] * 4
    assert published(levels, [0] * 4, categories=["low", "mid", "high"]).to_pylist() == ["mid"] * 4


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([None, None, 5.0], None),
        ([None, 4.0, 5.0], 4.5),
        (["a", None, None], None),
        (["a", None, "a"], "a"),
        ([None, None, None], None),
    ],
)
def test_a_value_is_missing_if_more_than_half_of_the_cell_misses_it(values, expected):
    assert published(values if any(values) else pa.array(values, pa.string())).to_pylist() == [expected] * 3


def test_half_of_a_cell_is_not_more_than_half():
    assert published([None, 3], [0, 0]).to_pylist() == [3.0, 3.0]


def test_whether_a_value_is_missing_is_counted_in_records_not_in_weights():
    assert published([None, 3.0, 5.0], weights=[100, 1, 3]).to_pylist() == [4.5] * 3


def test_categories_keep_their_order_and_type_and_lose_those_that_are_gone():
    values = pa.DictionaryArray.from_arrays(
        pa.array([0, 0, 1, 2, 2, 1], pa.int8()), pa.array(["z", "a", "m", "unused"]), ordered=True
    )
    found = published(values, [0, 0, 0, 1, 1, 1])

    assert found.type == values.type
    assert found.dictionary.to_pylist() == ["z", "m"]
    assert found.to_pylist() == ["z"] * 3 + ["m"] * 3


def test_of_equally_frequent_categories_the_first_in_order_is_published():
    assert published(["b", "a", "c"]).to_pylist() == ["a"] * 3
    assert published(["b", "a", "c"], categories=["c", "b", "a"], aggregate="mode").to_pylist() == ["c"] * 3


def test_household_columns_are_aggregated_in_their_own_cells():
    table = pa.table({"rent": [1.0, 1.0, 3.0, 3.0], "age": [1.0, 2.0, 3.0, 4.0]})
    schema = Schema.of(table.schema, Roles(quasi_identifiers=("rent", "age")))
    cells = Cells(np.array([0, 1, 0, 1]), np.array([0, 0, 0, 0]), ("rent",))
    found = aggregate(table, schema, cells)

    assert found["rent"].to_pylist() == [2.0] * 4
    assert found["age"].to_pylist() == [2.0, 3.0, 2.0, 3.0]


def test_whole_numbers_have_the_mean_that_they_have_as_floats():
    values, labels = [5, 5, 6, 0, 10**7, 10**7], [0, 0, 0, 1, 1, 1]
    whole = published(pa.array(values), labels).to_pylist()

    assert whole == published(pa.array(values, pa.float64()), labels).to_pylist()
    assert whole[0] == pytest.approx(16 / 3, rel=1e-15)


def test_the_mean_of_whole_numbers_is_the_number_nearest_to_it():
    numbers = [4413, 4412, 4415, 4414, 4413, 2**40, -(2**40) + 1, 3, 5, 7]
    table = pa.table({"x": numbers})
    schema = Schema.of(table.schema, Roles(quasi_identifiers=("x",)))
    found = aggregate(table, schema, Cells(np.repeat([0, 1], 5)))["x"].to_pylist()

    assert found[0] == 4413.4
    assert found[5] == 16 / 5
