import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import ParameterError, SchemaError
from shoal.dp import joint, marginals
from shoal.dp.declared import GRID, Nominal, Numeric

PEOPLE = pa.table({"age": [20, 30, 40], "sex": ["f", "m", "f"]})
SECRET = 987654321


@given(st.lists(st.floats() | st.none(), min_size=1), st.floats(-1e9, 1e9), st.floats(1e-3, 1e9))
def test_any_number_becomes_a_step_between_the_bounds(values, low, width):
    column = Numeric("x", low, low + width)
    codes = column.codes(pa.chunked_array([pa.array(values, pa.float64())]))

    assert codes.min() >= 0
    assert codes.max() <= GRID
    back = np.asarray(column.values(codes.astype(float)))
    assert back.min() >= column.low
    assert back.max() <= column.high


def test_outside_is_the_bound_and_missing_the_middle():
    column = Numeric("x", 0, 10)
    codes = column.codes(pa.chunked_array([pa.array([-5.0, 99.0, None, float("nan"), float("inf")])]))

    assert codes.tolist() == [0, GRID, GRID // 2, GRID // 2, GRID]


def test_a_value_that_is_no_category_is_published_as_missing():
    column = Nominal("sex", pa.array(["f", "m"]))
    codes = column.codes(pa.chunked_array([pa.array(["m", "x", None, "f"])]))

    assert codes.tolist() == [1, 2, 2, 0]
    assert column.values(codes).to_pylist() == ["m", None, None, "f"]


@pytest.mark.parametrize("release", [marginals, joint])
@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"bounds": None}, SchemaError, "'age' has no bounds.*without looking"),
        ({"categories": None}, SchemaError, "'sex' has no categories"),
        ({"bounds": {"age": (120, 0)}}, ParameterError, "reversed"),
        ({"bounds": {"age": (5, 5)}}, ParameterError, "reversed, equal"),
        ({"bounds": {"age": (0, float("nan"))}}, ParameterError, "not numbers"),
        ({"bounds": {"age": (0, float("inf"))}}, ParameterError, "finite"),
        ({"bounds": {"age": (-1e308, 1e308)}}, ParameterError, "finite"),
        ({"bounds": {"age": 5}}, ParameterError, "two numbers"),
        ({"bounds": {"age": (0, 1, 2)}}, ParameterError, "two numbers"),
        ({"bounds": {"age": (0, 1), "sex": (0, 1)}, "categories": None}, SchemaError, "not numbers"),
        ({"bounds": {"agee": (0, 1)}}, SchemaError, "Did you mean 'age'"),
        ({"categories": {"sex": []}}, ParameterError, "at least one"),
        ({"categories": {"sex": "fm"}}, ParameterError, "list of different"),
        ({"categories": {"sex": ["f", "f"]}}, ParameterError, "different"),
        ({"drop": ["sex"]}, SchemaError, "named twice"),
        ({"bounds": None, "categories": None, "drop": ["age", "sex"]}, SchemaError, "nothing to release"),
    ],
)
def test_what_is_not_declared_as_it_should_be_is_refused(release, settings, error, words):
    given_settings = {"bounds": {"age": (0, 120)}, "categories": {"sex": ["f", "m"]}, **settings}
    with pytest.raises(error, match=words):
        release(PEOPLE, 1.0, **given_settings)


def test_no_message_shows_a_value_of_the_table():
    table = pa.table({"age": [SECRET, 1], "sex": [f"s{SECRET}", "m"]})
    with pytest.raises(SchemaError) as caught:
        marginals(table, 1.0, {"age": (0, 120)})

    assert str(SECRET) not in str(caught.value)


def test_an_empty_table_is_refused():
    with pytest.raises(ParameterError, match="no records"):
        marginals(PEOPLE.slice(0, 0), 1.0, {"age": (0, 120)}, categories={"sex": ["f", "m"]})
