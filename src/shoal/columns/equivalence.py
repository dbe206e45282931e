"""Equivalence classes: records that agree in some columns, where missing counts as a value."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.columns.categories import Listed, by_occurrence, first_places, is_coded
from shoal.columns.prepare import as_seen, decoded, one_missing
from shoal.typing import Labels


def class_ids(table: pa.Table) -> Labels:
    """Return a number for each record, the same for records that look the same in all columns; shape (n_records,).

    Numbers start at 0 without gaps. What a reader of the table can distinguish is different: null and NaN, 0 and -0.
    """
    ids, n_ids = np.zeros(table.num_rows, dtype=np.int64), 1
    for column in table.columns:
        codes = value_codes(column)
        n_codes = int(codes.max(initial=0)) + 1
        if n_ids * n_codes >= 2**63:
            ids, n_ids = _renumbered(ids)
        ids, n_ids = ids * n_codes + codes, n_ids * n_codes
    return _renumbered(ids)[0]


def _renumbered(ids: Labels) -> tuple[Labels, int]:
    """Return the numbers without gaps, and how many there are."""
    numbers = value_codes(pa.chunked_array([pa.array(ids)]))
    return numbers, int(numbers.max(initial=-1)) + 1


def value_codes(values: pa.ChunkedArray) -> Labels:
    """Return a number for each value, from 0 by first occurrence, where null counts as a value; shape (n_records,)."""
    if is_coded(values):
        categories, places = Listed.of(values)
        numbers = value_codes(categories)
        return by_occurrence(numbers[places], len(numbers))
    if pa.types.is_nested(values.type):
        # Arrow does not number lists and structures.
        seen: dict[str, int] = {}
        return np.array([seen.setdefault(repr(value), len(seen)) for value in values.to_pylist()], dtype=np.int64)
    chunks = decoded(values).dictionary_encode(null_encoding="encode").chunks
    # All chunks share one dictionary.
    return np.concatenate([np.zeros(0, np.int64), *(np.asarray(chunk.indices) for chunk in chunks)]).astype(np.int64)


def value_counts(values: pa.ChunkedArray) -> tuple[pa.Array, NDArray[np.int64]]:
    """Return the different values in the order in which they first occur, null among them, and their counts."""
    if not is_coded(values):
        counted = pc.value_counts(decoded(values))
        return counted.field(0), np.asarray(counted.field(1))
    categories, places = Listed.of(values)
    codes = value_codes(values)
    counts = np.bincount(codes)
    distinct = categories.take(pa.array(places[first_places(codes, len(counts))]))
    return distinct.combine_chunks(), counts


def identity_codes(values: pa.ChunkedArray) -> Labels:
    """Return a number for each person or household; names that look alike are the same, and so are all missing ones."""
    return value_codes(as_seen(one_missing(decoded(values))))


def distinct_in_classes(classes: Labels, codes: Labels) -> NDArray[np.int64]:
    """Count the different codes in each class, shape (n_classes,)."""
    n_codes = codes.max() + 1
    return np.bincount(np.unique(classes * n_codes + codes) // n_codes)
