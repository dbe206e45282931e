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

    assert same_classes(ids, naive_ids(rows))


def same_classes(one, other):
    pairs = set(zip(list(one), list(other), strict=True))
    return len(pairs) == len(set(one)) == len(set(other)) and sorted(set(one)) == list(range(len(set(one))))


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
