import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.columns.schema import Column, ColumnSettings, Kind, Role
from shoal.output.report.distributions import MOST_BARS, distribution


def column(kind, type_, **settings):
    return Column("c", Role.QUASI, kind, type_, ColumnSettings(**settings))


def told(before, after, k, kind=Kind.NOMINAL, **settings):
    before = pa.chunked_array([before])
    after = pa.chunked_array([after])
    return distribution(column(kind, before.type, **settings), before, after, k)


words = st.lists(st.integers(0, 40).map(lambda i: f"w{int(i**0.5)}" if i else None), min_size=1, max_size=200)


@given(words, st.integers(2, 9))
def test_no_bar_and_no_remainder_tells_about_fewer_than_k_records(values, k):
    found = told(pa.array(values, pa.string()), pa.array(values, pa.string()), k)
    bars = [*found.get("bars", []), *([found["others"]] if "others" in found else [])]

    assert all(bar["before"] >= k and bar["after"] >= k for bar in bars)
    assert not bars or sum(bar["before"] for bar in bars) == len(values)


def test_rare_categories_are_pooled_with_as_many_others_as_it_takes():
    found = told(["a"] * 9 + ["b"] * 8 + ["c"] * 5 + ["rare"], ["a"] * 12 + ["b"] * 11, k=5)

    assert [bar["category"] for bar in found["bars"]] == ["a", "b"]
    assert found["others"] == {"categories": 2, "before": 6, "after": 0}


def test_a_category_that_is_rare_before_is_not_told_even_if_it_is_published():
    found = told(["a"] * 20 + ["b"] * 17 + ["rare"] * 3, ["a"] * 20 + ["rare"] * 20, k=5)

    assert "rare" not in str(found)


def test_many_categories_make_few_bars():
    values = [f"word {i}" for i in range(100) for _ in range(10 + i)]
    found = told(values, values, k=5)

    assert len(found["bars"]) == MOST_BARS
    assert found["bars"][0]["category"] == "word 99"
    assert found["others"]["categories"] == 100 - MOST_BARS


def test_ordered_categories_stand_in_their_order():
    values = ["low"] * 5 + ["high"] * 20 + ["middle"] * 10
    found = told(values, values, 5, Kind.ORDINAL, categories=("low", "middle", "high"))

    assert [bar["category"] for bar in found["bars"]] == ["low", "middle", "high"]


def test_missing_is_a_category_of_its_own():
    found = told(["a"] * 5 + [None] * 6, ["a"] * 5 + [None] * 6, k=5)

    assert [bar["category"] for bar in found["bars"]] == ["(missing)", "a"]


def test_long_numbers_stay_apart_as_categories():
    values = [12345678.0] * 5 + [12345679.0] * 5
    found = told(values, values, k=5)

    assert [bar["category"] for bar in found["bars"]] == ["12345678", "12345679"]


@pytest.mark.parametrize(
    "values",
    [
        pa.array(range(0, 4000, 40), pa.int32()).cast(pa.date32()),
        pa.array(range(0, 10**15, 10**13), pa.timestamp("us")),
        pa.array(range(0, 10**9, 10**7), pa.timestamp("s", "Europe/Madrid")),
        pa.array(range(0, 86400000, 864000), pa.time32("ms")),
        pa.array(range(0, 10**6, 10**4), pa.duration("s")),
    ],
    ids=lambda values: str(values.type),
)
def test_every_kind_of_time_has_a_histogram(values):
    found = told(values, values, 5, Kind.DATE)

    assert found["figure"] == "histogram"
    assert sum(bin["before"] for bin in found["bins"]) == 100


def test_infinities_and_nan_are_left_out_of_the_histogram():
    values = pa.array([np.nan, -np.inf, np.inf, *np.linspace(0, 1, 50)])
    found = told(values, values, 5, Kind.NUMERIC)

    assert sum(bin["before"] for bin in found["bins"]) == 50
    assert found["summary"]["before"]["mean"] == 0.5


@pytest.mark.parametrize("values", [[[1, 2]] * 20, [{"a": 1}] * 20, [b"\xff\xfe"] * 20, [None] * 20])
def test_values_that_cannot_be_drawn_are_said_to_be_so(values):
    found = told(pa.array(values), pa.array(values), 5)

    assert found["figure"] is None
    assert found["note"]
