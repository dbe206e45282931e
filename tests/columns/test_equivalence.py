import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from shoal.columns.equivalence import class_ids, distinct_in_classes, identity_codes, value_codes
from strategies import COLUMNS, mixed_tables


def look(value):
    """What a reader sees of a value: NaN is not null, and -0.0 is not 0.0."""
    return repr(value)


def naive_ids(rows):
    numbers = {}
    return [numbers.setdefault(tuple(map(look, row)), len(numbers)) for row in rows]


@given(mixed_tables())
def test_records_are_in_one_class_exactly_if_they_look_the_same(problem):
    table, _ = problem
    ids = class_ids(table)
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)

    assert ids.tolist() == naive_ids(rows)


def test_classes_of_extreme_numbers_are_numbered_by_their_first_records():
    wide = [2**63 - 1, -(2**63), 0, 2**63 - 1, -(2**63)]
    unsigned = pa.array([2**64 - 1, 0, 2**63, 2**64 - 1, 0], pa.uint64())
    table = pa.table({"wide": wide, "unsigned": unsigned, "small": pa.array([127, -128, 0, 127, -128], pa.int8())})

    assert [class_ids(table.select([name])).tolist() for name in table.column_names] == [[0, 1, 2, 0, 1]] * 3
    assert class_ids(table).tolist() == [0, 1, 2, 0, 1]


def test_all_representations_of_nan_are_one_value_and_0_is_not_minus_0():
    words = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0, 1 << 63, 0], dtype=np.uint64)

    assert class_ids(pa.table({"x": words.view(np.float64)})).tolist() == [0, 0, 1, 2, 1]


def test_a_hundred_columns_of_many_values_do_not_overflow():
    rng = np.random.default_rng(1)
    table = pa.table({f"c{j}": rng.integers(0, 50, 3000) for j in range(100)})

    assert len(set(class_ids(table))) == 3000


def test_a_table_without_columns_is_one_class():
    assert class_ids(pa.table({"a": [1, 2, 3]}).select([])).tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", COLUMNS)
def test_codes_go_from_0_without_gaps(name):
    codes = value_codes(pa.table({"x": COLUMNS[name](np.random.default_rng(2), 50)})["x"])

    assert sorted(set(codes)) == list(range(codes.max() + 1))


def test_lists_have_codes_too():
    assert value_codes(pa.chunked_array([[["a"], [], ["a"]], [None]])).tolist() == [0, 1, 0, 2]


def test_missing_persons_are_one_whether_null_or_nan_and_a_category_named_twice_is_one():
    numbers = pa.chunked_array([[1.0, None, float("nan"), -0.0, 0.0]])
    categories = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3, None]), pa.array(["ann", "bob", "ann", None]))

    assert identity_codes(numbers).tolist() == [0, 1, 1, 2, 2]
    assert identity_codes(pa.chunked_array([categories])).tolist() == [0, 1, 0, 2, 2]


def test_the_different_codes_of_each_class_are_counted():
    rng = np.random.default_rng(3)
    classes, codes = rng.integers(0, 5, 60), rng.integers(0, 9, 60)
    counted = [len(set(codes[classes == c])) for c in itertools.islice(itertools.count(), 5)]

    assert distinct_in_classes(classes, codes).tolist() == counted


def test_persons_whose_names_look_alike_are_one_and_nameless_ones_are_one():
    names = pa.chunked_array([["Ann", "Ann ", "Jos\u00e9", "Jose\u0301", "", None, "  "]])

    assert identity_codes(names).tolist() == [0, 0, 1, 1, 2, 2, 2]
    assert identity_codes(names.dictionary_encode()).tolist() == [0, 0, 1, 1, 2, 2, 2]
