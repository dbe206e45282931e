import datetime
import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import shoal
from shoal import SchemaError
from shoal.columns.numbers import date_units
from shoal.columns.prepare import categories_in_order, prepare
from shoal.columns.schema import Roles, Schema, as_settings
from strategies import mixed_tables

NAN = float("nan")


def prepared(values, missing="own-value", *, by=False, **settings):
    table = pa.table({"x": values, "y": np.arange(len(values))})
    quasi, strata = (("y",), ("x",)) if by else (("x", "y"), ())
    schema = Schema.of(table.schema, Roles(quasi_identifiers=quasi, by=strata), as_settings({"x": settings}))
    return prepare(table, schema, missing)["x"]


@pytest.mark.parametrize("by", [True, False])
def test_nan_becomes_null_and_zero_loses_its_sign(by):
    found = prepared([NAN, None, -0.0, 0.0, 2.5], by=by)

    assert repr(found.to_pylist()) == "[None, None, 0.0, 0.0, 2.5]"


def test_half_floats_are_widened():
    found = prepared(pa.array(np.array([1.5, np.nan, -0.0], np.float16)))

    assert repr(found.to_pylist()) == "[1.5, None, 0.0]"


def test_a_list_of_categories_names_each_once_and_none_that_is_missing():
    chunks = [
        pa.DictionaryArray.from_arrays(
            pa.array([0, 1, 2, 3], pa.int8()), pa.array(["z", "a", "z", None]), ordered=True
        ),
        pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int8()), pa.array(["b"]), ordered=True),
    ]
    found = prepared(pa.chunked_array(chunks))

    assert found.to_pylist() == ["z", "a", "z", None, "b", None]
    assert found.type.ordered
    assert [chunk.dictionary.to_pylist() for chunk in found.chunks] == [["z", "a", "b"]]


def test_chunks_may_list_more_categories_in_all_than_each_has_room_for():
    chunks = [
        pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), pa.array([f"{i} {j}" for j in range(100)]))
        for i in range(2)
    ]
    found = prepared(pa.chunked_array(chunks))

    assert len(found.chunk(0).dictionary) == 200
    assert prepared(pa.chunked_array(chunks[:1])).type == chunks[0].type


@pytest.mark.parametrize(
    ("values", "codes", "expected"),
    [
        ([-9, 1, 2, None], [-9], [None, 1, 2, None]),
        ([-9, 1, 99], ["-9", "99"], [None, 1, None]),
        ([0.5, -9.0, NAN], [-9], [0.5, None, None]),
        ([float("inf"), 1.0], [float("inf")], [None, 1.0]),
        (["9", "x", ""], ["", 9], [None, "x", None]),
        (pa.array(["9", "x", "9"]).dictionary_encode(), ["9"], [None, "x", None]),
        (pa.array([1, 2]).cast(pa.decimal128(21, 2)), [2.0], None),
        (pa.array([0, 3], pa.int32()).cast(pa.date32()), ["1970-01-04"], [datetime.date(1970, 1, 1), None]),
        ([True, False], ["true"], [None, False]),
    ],
)
def test_missing_codes_become_missing(values, codes, expected):
    found = prepared(values, missing_codes=codes).to_pylist()

    assert found == (expected or [pa.array([1]).cast(pa.decimal128(21, 2))[0].as_py(), None])


@pytest.mark.parametrize(
    ("values", "codes"),
    [([1, 2], ["x"]), ([1, 2], [0.5]), ([1, 2], ["1", "two"]), (pa.array([1], pa.uint8()), [-9]), ([NAN], ["1;5"])],
)
def test_a_missing_code_that_cannot_be_a_value_is_refused(values, codes):
    with pytest.raises(SchemaError, match="missing code of column 'x' cannot be a value of it") as refusal:
        prepared(values, missing_codes=codes)

    assert refusal.value.__suppress_context__


@pytest.mark.parametrize(
    ("values", "settings", "expected"),
    [
        ([1, 5, 9, None], {"top": 5, "bottom": 2}, [2, 5, 5, None]),
        ([1.0, 5.5, NAN, float("inf")], {"top": 5.25}, [1.0, 5.25, None, 5.25]),
        ([-float("inf"), 5.0], {"bottom": 0}, [0.0, 5.0]),
        ([99, 120, -1], {"top": 90, "missing_codes": [99]}, [None, 90, -1]),
        (pa.array([100, 7], pa.uint8()), {"top": 90.0}, [90, 7]),
    ],
)
def test_extremes_are_coded_after_missing_codes_and_keep_the_type(values, settings, expected):
    found = prepared(values, **settings)

    assert found.to_pylist() == expected
    assert found.type == pa.array(values).type


@pytest.mark.parametrize("limit", [4.5, 300, -1])
def test_a_limit_that_the_type_cannot_hold_is_refused(limit):
    with pytest.raises(SchemaError, match="cannot be a value of it: the column holds uint8"):
        prepared(pa.array([1], pa.uint8()), top=limit)


def test_infinity_is_refused_with_its_place():
    with pytest.raises(SchemaError, match="'x' has 2 infinite values, the first in record 2"):
        prepared([1.0, float("inf"), -float("inf")])


def test_missing_values_need_a_policy():
    with pytest.raises(SchemaError, match=r"'x' \(2\), of 3 records.*own-value"):
        prepared([NAN, None, 1.0], "error")
    with pytest.raises(SchemaError, match=r"'x' \(1\), of 2 records"):
        prepared([9, 1], "error", missing_codes=[9])


def test_a_missing_stratum_is_a_stratum():
    assert prepared([None, "a"], "error", by=True).to_pylist() == [None, "a"]


@pytest.mark.parametrize(
    ("values", "order"),
    [(["lo", "hi"], ["lo", "hi"]), ([3, 1], [1, 3]), ([3, 1], ["1", "3"]), (["3", "1"], [1, 3]), ([True], [0, 1])],
)
def test_an_order_may_name_texts_and_numbers(values, order):
    assert prepared(values, categories=order).to_pylist() == values


@pytest.mark.parametrize(
    ("values", "order", "message"),
    [
        (["lo", "mid", "mid"], ["lo", "hi"], "2 of its values are not among the 2 categories"),
        ([1, 2], ["lo", "hi"], "cannot be values of it: the column holds int64"),
        (["lo"], ["lo", "hi", "lo"], "names a category twice"),
        ([1], [1, "1"], "names a category twice"),
        (["lo"], [], "1 of its values are not among the 0 categories"),
    ],
)
def test_an_order_has_to_name_every_category_once(values, order, message):
    with pytest.raises(SchemaError, match=message):
        prepared(values, categories=order)


def test_without_an_order_numbers_are_ordered_by_size_and_categories_as_they_are_listed():
    numbers = pa.table({"x": [3, None, 1], "y": [1, 2, 3]})
    schema = Schema.of(numbers.schema, Roles(quasi_identifiers=("x", "y")), as_settings({"x": {"kind": "ordinal"}}))

    assert categories_in_order(numbers["x"], schema["x"]).to_pylist() == [1, 3]


@given(mixed_tables())
def test_what_is_prepared_has_neither_nan_nor_signed_zeros_and_the_input_is_unchanged(problem):
    table, _ = problem
    before = repr([column.to_pylist() for column in table.columns])
    found = prepare(table, Schema.of(table.schema, Roles(quasi_identifiers=tuple(table.column_names))), "own-value")

    assert repr([column.to_pylist() for column in table.columns]) == before
    shown = repr([column.to_pylist() for column in found.columns])
    assert "nan" not in shown
    assert not re.search(r"-0\.0(?![0-9e])", shown)


@pytest.mark.parametrize("type_", [pa.date32(), pa.time32("s"), pa.date64(), pa.time64("ns"), pa.duration("s")])
def test_dates_are_counted_in_the_units_of_their_type(type_):
    values = pa.array([0, 86_400_000], pa.int64())
    values = values if type_.bit_width == 64 else pa.array([0, 3], pa.int32())

    assert date_units(pa.chunked_array([values.cast(type_)])).tolist() == values.to_pylist()


def settled(engine="memory", **settings):
    table = pa.table({"age": [20 + i % 30 for i in range(90)], "rent": [float(i % 7) for i in range(90)]})
    return shoal.anonymize(
        table, k=3, seed=1, engine=engine, quasi_identifiers=["age", "rent"], columns=settings, missing="own-value"
    )


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize(
    ("name", "setting", "given", "fitting"),
    [
        ("age", "missing_codes", [-9], [-9, 21]),
        ("rent", "missing_codes", [99.5], [1]),
        ("age", "keep_zeros", True, None),
    ],
)
@pytest.mark.filterwarnings("ignore::shoal.ShoalWarning")
def test_a_setting_that_names_values_no_record_has_is_refused(engine, name, setting, given, fitting):
    with pytest.raises(SchemaError, match=f"^{setting} is set for column '{name}', but no record has"):
        settled(engine, **{name: {setting: given}})
    column = name if fitting else "rent"

    assert settled(engine, **{column: {setting: fitting or given}}).verdict.holds
