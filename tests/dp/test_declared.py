import numpy as np
import pandas as pd
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
        ({"bounds": None}, SchemaError, r"'age' has no bounds.*data: bounds=\{\"age\": \[0, 120\]\}; or"),
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
        ({"identifiers": ["sex"]}, SchemaError, "given more than once"),
        ({"bounds": None, "categories": None, "identifiers": ["age", "sex"]}, SchemaError, "nothing to release"),
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


@pytest.mark.parametrize("odd", ["2.5", "x", "", "01", "1.0", "true"])
@pytest.mark.parametrize("categories", [[1, 2, 3], ["1", "2", "3"], [1.0, 2.0, 3.0]])
def test_published_types_and_spellings_come_from_the_declaration_alone(odd, categories, tmp_path):
    made = []
    for last in ("3", odd):
        (tmp_path / "in.csv").write_text("c,x\n" + "1,1\n2,2\n" * 30 + f"{last},3\n")
        settings = {"bounds": {"x": (0, 10)}, "categories": {"c": categories}, "reading": {"delimiter": ","}}
        made.append(marginals(tmp_path / "in.csv", 1e4, **settings))
        made[-1].write(tmp_path / f"out-{last}.csv")
    texts = [(tmp_path / f"out-{last}.csv").read_text().split() for last in ("3", odd)]

    assert made[0].published.schema == made[1].published.schema
    assert made[0].published.schema.field("c").type == pa.array(categories).type
    assert made[0].manifest == made[1].manifest
    spelled = [{line.split(",")[0] for line in lines[1:]} for lines in texts]
    assert spelled[0] == {str(value) for value in categories}
    assert spelled[1] <= spelled[0] | {""}
    assert {str(value) for value in categories[:2]} <= spelled[1]


@pytest.mark.parametrize("release", [marginals, joint])
@pytest.mark.parametrize("categories", [[1, 2], ["1", "2"]])
def test_one_missing_value_does_not_change_the_frame_that_is_published(release, categories):
    made = [
        release(
            pd.DataFrame({"c": [1, 2] * 30 + [last], "x": [1, 2] * 30 + [last]}),
            1e4,
            {"x": (0, 10)},
            categories={"c": categories},
        )
        for last in (2, None)
    ]

    assert made[0].published.schema == made[1].published.schema
    assert made[0].manifest == made[1].manifest
    assert set(made[1].published["c"].drop_null().to_pylist()) == set(categories)
    assert set(made[1].table["c"].dropna()) == set(categories)


def test_the_dtypes_that_came_in_are_not_looked_at():
    made = [
        marginals(pd.DataFrame({"c": pd.Series([1, 2] * 30, dtype=dtype)}), 1e4, categories={"c": [1, 2]}).table
        for dtype in ("int64", "float64", "Int64", "category", "int64[pyarrow]")
    ]

    assert {str(frame["c"].dtype) for frame in made} == {"int64"}


def test_categories_that_are_one_value_in_another_type_are_refused():
    with pytest.raises(ParameterError, match=r"1, 1\.0 and '1' are the same value"):
        marginals(PEOPLE, 1.0, {"age": (0, 120)}, categories={"sex": ["1", "1.0"]})
    with pytest.raises(ParameterError, match="of one type"):
        marginals(PEOPLE, 1.0, {"age": (0, 120)}, categories={"sex": [1, "f"]})


def test_categories_that_no_value_of_the_column_could_be_are_refused():
    with pytest.raises(SchemaError, match=r"'age' do not match its type, int64"):
        marginals(PEOPLE, 1.0, categories={"age": ["f", "m"], "sex": ["f"]})
