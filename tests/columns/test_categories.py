import numpy as np
import pyarrow as pa
import pytest

from shoal import anonymize
from shoal.columns.categories import Listed, category_codes, code_counts, coded, declared, sorted_categories
from shoal.columns.equivalence import value_codes, value_counts
from shoal.columns.schema import Roles, Schema

TEXTS = ["b", None, "", "b", "é", "e\u0301", "a", None, "b "]


def listed(values, categories, chunks=1):
    """A dictionary column with its own list of categories in each chunk."""
    parts = np.array_split(np.arange(len(values)), chunks)
    return pa.chunked_array(
        [
            pa.DictionaryArray.from_arrays(
                pa.array([None if values[i] is None else categories.index(values[i]) for i in part], pa.int8()),
                pa.array(categories),
            )
            for part, categories in zip(parts, (categories[i:] + categories[:i] for i in range(chunks)), strict=True)
        ]
    )


def dictionaries():
    present = list(dict.fromkeys(text for text in TEXTS if text is not None))
    twice = pa.DictionaryArray.from_arrays(pa.array([2, None, 1, 0, 3]), pa.array(["x", None, "x", "y"]))
    return {
        "encoded": pa.chunked_array([TEXTS]).dictionary_encode(),
        "with unused categories": listed(TEXTS, ["unused", *present, "z"]),
        "in chunks with different lists": listed(TEXTS, [*present, "unused"], chunks=3),
        "with a category listed twice and a null one": pa.chunked_array([twice]),
        "without records": pa.chunked_array([pa.array([], pa.string()).dictionary_encode()]),
        "without chunks": pa.chunked_array([], pa.dictionary(pa.int32(), pa.string())),
        "all missing": pa.chunked_array([pa.nulls(3, pa.dictionary(pa.int32(), pa.string()))]),
        "a part of another": pa.chunked_array([TEXTS]).dictionary_encode().slice(2, 4),
    }


@pytest.mark.parametrize("values", dictionaries().values(), ids=dictionaries())
def test_a_dictionary_column_is_counted_as_the_texts_that_it_stands_for(values):
    plain = values.cast(pa.string())
    categories, places = Listed.of(values)
    distinct, counts = value_counts(values)
    expected, expected_counts = value_counts(plain)

    assert categories.take(pa.array(places)).to_pylist() == plain.to_pylist()
    assert value_codes(values).tolist() == value_codes(plain).tolist()
    assert (distinct.to_pylist(), counts.tolist()) == (expected.to_pylist(), expected_counts.tolist())
    assert sorted_categories(values).equals(sorted_categories(plain))
    for known in (sorted_categories(plain), pa.array(["b", "other"])):
        assert category_codes(values, known).tolist() == category_codes(plain, known).tolist()


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string()], ids=str)
def test_texts_that_were_coded_are_the_same_texts_again(type_):
    texts = pa.chunked_array([TEXTS[:4], TEXTS[4:]], type_)
    table = pa.table({"city": texts, "area": texts, "name": texts, "kind": texts.dictionary_encode()})
    schema = Schema.of(table.schema, Roles(quasi_identifiers=("city", "kind"), by=("area",), other=("name",)))
    inside = coded(table, schema)

    assert [pa.types.is_dictionary(field.type) for field in inside.schema] == [True, True, False, True]
    assert declared(inside, schema).equals(table)
    assert [len(chunk) for chunk in declared(inside, schema)["area"].chunks] == [4, 5]


def test_a_release_has_texts_where_its_table_has_texts_and_categories_where_it_has_categories():
    texts = pa.array(["f", "m", "f", None] * 5)
    table = pa.table({"sex": texts, "kind": texts.dictionary_encode(), "area": ["n"] * 10 + ["s"] * 10})
    release = anonymize(table, k=2, quasi_identifiers=["sex", "kind"], by=["area"], missing="own-value", seed=1)

    assert release.table.schema.types == [pa.string(), pa.dictionary(pa.int32(), pa.string()), pa.string()]
    assert release.table["area"].to_pylist() == table["area"].to_pylist()


@pytest.mark.parametrize("n_codes", [1, 30, 5_000, 2**40])
def test_codes_are_counted_by_counters_and_by_sorting_alike(n_codes):
    codes = np.random.default_rng(4).integers(0, n_codes, 500)
    expected, counts = np.unique(codes, return_counts=True)
    found = code_counts(codes, n_codes)

    assert (found[0].tolist(), found[1].tolist()) == (expected.tolist(), counts.tolist())
