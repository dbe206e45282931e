from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.columns.coarse import Ranges, Sets, form_of
from shoal.columns.coarse.interval_ends import grid_of
from shoal.columns.coarse.sets import read_set, written_set
from shoal.columns.schema import ColumnSettings, Roles, Schema
from shoal.errors import ParameterError, SchemaError


def column_of(values, **settings):
    table = pa.table({"x": values})
    schema = Schema.of(table.schema, Roles(quasi_identifiers=("x",)), {"x": ColumnSettings(**settings)})
    return table["x"], schema["x"]


@given(st.lists(st.text(), min_size=1, unique=True), st.booleans())
def test_a_set_is_read_back_whatever_its_values_hold(values, missing):
    assert read_set(written_set(values, missing)) == (tuple(values), missing)


@pytest.mark.parametrize("text", ["married", "{a", "{a, {b}", '{"a}', "{a b, c} or missing"])
def test_what_is_no_set_is_refused(text):
    with pytest.raises(ParameterError, match="not a set"):
        read_set(text)


def test_intervals_of_shoal_and_of_arx_are_read():
    found = Ranges.of(["[30, 39]", "[15, 20[", "[85, inf)", "(-inf, 1.5]", "[-2.5, -1] or missing", None])
    whole = pa.chunked_array([[39, 20, 10**9, -7, None, None]])

    assert found.low.tolist()[:3] == [30, 15, 85]
    assert found.holds(whole).tolist() == [True, False, True, True, True, True]
    assert found.midpoint[[0, 2, 3]].tolist() == [34.5, 85, 1.5]
    assert np.isnan(found.draw(seed=1)).tolist() == [False, False, True, True, False, True]


@pytest.mark.parametrize("texts", [["[2, 1]"], ["2021/2019"], ["2020-13"], ["2020-00"], ["[1, 2]", "2020"]])
def test_what_is_no_range_is_refused(texts):
    with pytest.raises(ParameterError):
        Ranges.of(texts)


def test_periods_hold_their_days():
    found = shoal.read_published(["2024-05", "2024-Q2", "2024", "2020s", "1980s/1990s"])

    assert found.first_day.astype(str).tolist() == [
        "2024-05-01",
        "2024-04-01",
        "2024-01-01",
        "2020-01-01",
        "1980-01-01",
    ]
    assert found.last_day.astype(str).tolist() == ["2024-05-31", "2024-06-30", "2024-12-31", "2029-12-31", "1999-12-31"]
    days = pa.chunked_array(
        [[date(2024, 5, 31), date(2024, 7, 1), date(2024, 1, 1), date(2019, 1, 1), date(1999, 1, 1)]]
    )
    assert found.holds(days).tolist() == [True, False, True, False, True]
    drawn = found.draw_days(seed=3)
    assert (found.first_day <= drawn).all()
    assert (drawn <= found.last_day).all()


@pytest.mark.parametrize("as_frame", [list, pa.array, lambda v: pd.Series(v), lambda v: pl.Series(v)])
def test_columns_of_every_frame_are_read_for_analysis(as_frame):
    ages = shoal.read_published(as_frame(["[30, 39]", "[40, 49]", None]))

    assert ages.midpoint.tolist()[:2] == [34.5, 44.5]
    assert np.isnan(ages.midpoint[2])
    assert ages.draw(seed=1).tolist()[:2] == ages.draw(seed=1).tolist()[:2]


def test_sets_and_ancestors_are_drawn_from_their_values(tmp_path):
    (tmp_path / "jobs.csv").write_text("nurse;health;*\ndoctor;health;*\ncook;food;*\n")
    jobs = shoal.read_published(["health", "cook", "* or missing"], hierarchy=tmp_path / "jobs.csv")
    sets = shoal.read_published(["{a, b}", "{c}"])

    assert set(jobs.draw(seed=1)[:1]) <= {"nurse", "doctor"}
    assert jobs.holds(pa.chunked_array([["doctor", "nurse", None]])).tolist() == [True, False, True]
    assert sets.draw(seed=4)[1] == "c"
    with pytest.raises(ParameterError, match="not a label of the hierarchy"):
        shoal.read_published(["wealth"], hierarchy=tmp_path / "jobs.csv")


def test_plain_columns_are_not_taken_for_coarse_ones():
    assert form_of(pa.chunked_array([["married", "[1, 2]"]])) is None
    assert form_of(pa.chunked_array([[1, 2]])) is None
    assert form_of(pa.chunked_array([["4300", "4301", None]])) is None
    assert form_of(pa.chunked_array([["43001", "43002"]])) is None
    assert shoal.read_published([2021, 2022]).is_period
    with pytest.raises(ParameterError, match="neither intervals"):
        shoal.read_published(["married"])


def test_the_value_that_most_records_may_have_stands_in_for_a_set():
    sets = Sets.of(["{a, b}", "{b, c}", "{d}"]).take(np.array([0, 0, 1, 2]))

    assert sets.likeliest(["a", "b", "c", "d"]).tolist() == [1, 1, 3]
    assert sets.middle(["a", "b", "c"]).tolist() == [0, 1, -1]


NUMBERS = st.one_of(
    st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=40),
    st.lists(st.decimals(-999, 999, places=2).map(float), min_size=1, max_size=40),
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40),
)


CODES = st.tuples(st.sampled_from([None, -500, 0]), st.sampled_from([None, 10, 800.5]))


def limited(numbers, bottom, top):
    """Return numbers as `prepare` leaves them: those beyond a code are the code."""
    found = numbers if bottom is None else [max(number, bottom) for number in numbers]
    return found if top is None else [min(number, top) for number in found]


@given(NUMBERS, st.integers(1, 6), CODES, st.booleans())
def test_k_people_are_where_an_interval_ends_and_it_holds_every_number(numbers, k, codes, subjects):
    bottom, top = (None if code is None else type(numbers[0])(code) for code in codes)
    numbers = limited(numbers, bottom, top)
    persons = np.arange(len(numbers)) // 2 if subjects else np.arange(len(numbers))
    values, column = column_of(numbers, aggregate="interval", bottom=bottom, top=top)
    grid = grid_of(values, column, k, persons if subjects else None)
    units = grid.units(values)
    own = Ranges.of(grid.intervals(units, units))

    assert own.holds(values).all()
    for low, high in set(zip(own.low, own.high, strict=True)):
        assert (low, high) == (-np.inf, np.inf) or len(set(persons[(own.low == low) & (own.high == high)])) >= k
    # Whatever the cell, its interval begins and ends as those of its lowest and highest value alone do.
    ends = np.sort(units), np.sort(units)[::-1]
    across = Ranges.of(grid.intervals(np.minimum(*ends), np.maximum(*ends)))
    assert set(across.low) <= set(own.low)
    assert set(across.high) <= set(own.high)


@given(NUMBERS, st.integers(1, 6), st.randoms())
def test_ends_do_not_depend_on_the_order_of_records(numbers, k, random):
    mixed = random.sample(numbers, len(numbers))
    ends = [grid_of(*column_of(each), k).ends for each in (numbers, mixed)]

    assert repr(ends[0]) == repr(ends[1])


def test_an_end_does_not_show_the_outermost_person():
    """One income of 1,234,567 was published as [4550, 1234599]."""
    others = [*range(4_560, 90_000, 170)]

    def highest(income):
        values, column = column_of([*others, income])
        grid = grid_of(values, column, 5)
        units = grid.units(values)
        return grid.intervals(units[:1], units[-1:])[0]

    assert highest(1_234_567) == highest(1_700_000) == "[4000, 1999999]"


def test_the_step_follows_the_grain_and_k():
    def step(numbers, k):
        return grid_of(*column_of(numbers), k).step

    assert step([*range(20, 60)] * 5, 5) == "1"  # five records share every value
    assert step([*range(20, 60)] * 2, 5) == "5"
    assert step([5 * i for i in range(40)], 2) == "10"
    assert step([i / 4 for i in range(40)], 4) == "1.25"
    assert step([7, 7, 7], 2) == "1"  # all records share the value


def test_a_step_beyond_the_range_is_refused_and_one_as_fine_as_the_values_is_marked():
    with pytest.raises(SchemaError, match="more than the range"):
        grid_of(*column_of([1, 2, 9], aggregate="interval", step=10), 2)

    assert grid_of(*column_of([1, 2, 9], aggregate="interval", step=1), 2).shows_values
    assert not grid_of(*column_of([1, 2, 9], aggregate="interval", step=2.5), 2).shows_values


def test_a_step_says_itself_what_is_wrong_with_it():
    with pytest.raises(SchemaError, match=r"The step .* so fine that"):
        grid_of(*column_of([0, 10**12], aggregate="interval", step=1e-9), 2)
    with pytest.raises(SchemaError, match=r"The step .* so fine that"):
        grid_of(*column_of([1 / 3, 1e9], aggregate="interval", step=1e-9), 2)
    with pytest.raises(SchemaError, match=r"The step .* more than the range"):
        grid_of(*column_of([0, 9], aggregate="interval", step=1e300), 2)

    assert grid_of(*column_of([0.4, 0.5, 0.7], aggregate="interval", step=0.3), 2).step == "0.3"  # the range itself


def test_decimals_have_the_grain_that_they_are_written_with():
    prices = [Decimal(i).scaleb(-2) for i in range(0, 5_000, 7)]

    assert grid_of(*column_of(prices), 5).step == "0.35"  # five times 0.07


def test_numbers_that_intervals_cannot_write_are_refused():
    with pytest.raises(SchemaError, match="more than 15 digits"):
        grid_of(*column_of([0, 2**60]), 2)


def test_a_single_value_is_published_as_it_is_only_if_k_records_share_it():
    def interval(numbers, k):
        values, column = column_of(numbers)
        grid = grid_of(values, column, k)
        return grid.intervals(*[grid.units(values.drop_null())[:1]] * 2)

    assert interval([7] * 5, 5) == ["[7, 7]"]
    assert interval([7] * 4 + [None], 5) == ["(-inf, inf)"]


def test_ancestors_of_steps_are_read_as_intervals():
    ages = shoal.read_published(["[20, 25)", "23", "* or missing", None, "[20, 40) or missing"], hierarchy="steps:5,20")

    assert ages.low.tolist()[:3] == [20, 23, -np.inf]
    assert ages.missing.tolist() == [False, False, True, False, True]
    assert ages.holds(pa.chunked_array([[25, 23, 99, None, None]])).tolist() == [False, True, True, True, True]


def test_ancestors_of_the_calendar_are_read_as_periods():
    days = shoal.read_published(["2024-05", "2024-05-31", "2020s", "*"], hierarchy="calendar")

    assert days.is_period
    assert days.first_day.astype(str).tolist() == ["2024-05-01", "2024-05-01", "2020-01-01", "NaT"]
    own = pa.chunked_array([[date(2024, 5, 1), date(2024, 6, 1), date(2021, 1, 1), date(1, 1, 1)]])
    assert days.holds(own).tolist() == [True, False, True, True]


def test_ancestors_of_prefixes_are_sets_of_the_codes_that_are_given():
    zips = shoal.read_published(["43***", "50001", "*"], hierarchy="prefix:2", values=["43001", "43002", "50001"])

    assert zips.members == (("43001", "43002"), ("50001",), ("43001", "43002", "50001"))
    with pytest.raises(ParameterError, match="values="):
        shoal.read_published(["43***"], hierarchy="prefix:2")
    with pytest.raises(ParameterError, match="without a rule"):
        shoal.read_published(["{a}"], values=["a"])
