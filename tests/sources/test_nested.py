"""Nested values have one text each."""

import datetime

import pyarrow as pa
import pytest

from shoal import sources as table
from shoal.columns.equivalence import identity_codes, value_codes
from shoal.sources.nested import text_of, text_of_json


@pytest.mark.parametrize(
    "spellings",
    [
        ['{"x":1,"y":"Ä"}', '{"y": "\\u00c4", "x": 1}', '{"x":1.0,"y":"Ä "}', '{"x":10e-1,"y":"Ä","z":null}'],
        ["1", "1.0", "1e0", "10E-1", '"1"'],
        ["0", "-0", "-0.0", "0e9"],
        ["0.1", "0.10", "1e-1", "0.1000000000000000000001"],
        ["10000000000000001", "10000000000000001.0", "1.0000000000000001e16"],
        ["[1, [2]]", "[1.0,[2e0]]"],
        ['"Ä"', '"\\u00c4"'],
    ],
)
def test_one_value_has_one_text_however_it_is_spelled(spellings):
    assert len({text_of_json(text) for text in spellings}) == 1


def test_different_values_have_different_texts():
    values = [
        "1",
        "2",
        "[1]",
        "[2]",
        "[1,2]",
        "[2,1]",
        '{"a":1}',
        '{"b":1}',
        "[]",
        "{}",
        "true",
        '"a"',
        "1e400",
        "2e400",
    ]
    values += ["10000000000000001", "10000000000000002", "9" * 5000, "[" * 5000]

    assert len({text_of_json(text) for text in values}) == len(values)
    assert text_of_json("null") is None


def test_structures_and_maps_are_compared_as_values():
    structures = pa.chunked_array([pa.array([{"x": 0.0}, {"x": -0.0}, {"x": None}, None])])
    pairs = [[("a", 1), ("b", 2)], [("b", 2), ("a", 1)], [("a", 2), ("b", 1)]]
    maps = pa.chunked_array([pa.array(pairs, pa.map_(pa.string(), pa.int64()))])
    words = pa.chunked_array([pa.array([["flu"], ["flu "], ["cold"]])])

    assert value_codes(structures).tolist() == [0, 0, 1, 2]
    assert value_codes(maps).tolist() == [0, 0, 1]
    assert identity_codes(words).tolist() == [0, 0, 1]
    assert text_of([datetime.date(2020, 1, 2)]) == '["2020-01-02"]'


def test_objects_in_a_column_of_several_types_are_read_as_one_text_each(tmp_path):
    values = ['{"x":1,"y":2}', '{"y": 2.0, "x": 1}', '{"x":"other"}', '"text"']
    (tmp_path / "t.ndjson").write_text("".join(f'{{"v":{value}}}\n' for value in values))
    found = table.read(tmp_path / "t.ndjson").arrow["v"].to_pylist()

    assert found == ['{"x": 1, "y": 2}', '{"x": 1, "y": 2}', '{"x": "other"}', "text"]
