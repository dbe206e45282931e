"""The size of values does not depend on batches, missing values elsewhere, or the width of a type."""

from decimal import Decimal

import pyarrow as pa
import pytest

from shoal.sources.columnar_size import value_bytes

COLUMNS = {
    "numbers": pa.array([1, None, 3, 4, 5]),
    "flags": pa.array([True, None, False, True, True]),
    "texts": pa.array(["a", None, "", "four", "\u00e9"]),
    "prices": pa.array([Decimal("1.5"), None, Decimal("2"), None, Decimal("3")], pa.decimal128(9, 2)),
    "categories": pa.array(["long name", "x", None, "x", "x"]).dictionary_encode(),
    "lists": pa.array([[1, 2], None, [], [None], [3]]),
    "records": pa.array([{"x": 1, "y": "ab"}, None, {"x": None, "y": None}, {"x": 2, "y": "c"}, {"x": 3, "y": ""}]),
    "maps": pa.array([[("a", 1)], None, [], [("bc", None), ("d", 2)], [("e", 3)]], pa.map_(pa.string(), pa.int64())),
    "nothing": pa.nulls(5),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_the_size_is_the_sum_over_any_batches(name):
    values = COLUMNS[name]
    whole = value_bytes(pa.chunked_array([values]))

    for cut in range(len(values) + 1):
        parts = [pa.chunked_array([part]) for part in (values.slice(0, cut), values.slice(cut))]
        assert sum(map(value_bytes, parts)) == whole


def test_long_texts_count_wherever_they_are():
    text = "x" * 1_000
    nested = [pa.array([text]), pa.array([[text]]), pa.array([{"a": text}]), pa.array([text]).dictionary_encode()]

    for values in [*nested, pa.array([[(text, 1)]], pa.map_(pa.string(), pa.int64()))]:
        assert 1_000 <= value_bytes(pa.chunked_array([values])) < 1_050


def test_the_width_of_a_number_does_not_matter():
    assert value_bytes(pa.chunked_array([pa.array([1, 2], pa.int16())])) == value_bytes(pa.chunked_array([[1, 2]]))
