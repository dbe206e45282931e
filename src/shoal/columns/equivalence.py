"""Equivalence classes: records that agree in some columns, where missing counts as a value."""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal import kernels
from shoal.columns.categories import Listed, by_occurrence, is_coded
from shoal.columns.prepare import as_seen, decoded, one_missing
from shoal.sources.nested import text_of
from shoal.typing import Labels


def class_ids(table: pa.Table) -> Labels:
    """Return a number for each record, the same for records that look the same in all columns; shape (n_records,).

    Numbers start at 0 without gaps. What a reader of the table can distinguish is different: null and NaN, 0 and -0.
    """
    words = list(_packed(map(_words, table.columns)))
    return kernels.agreeing_records(words) if words else np.zeros(table.num_rows, dtype=np.int64)


_MOST_PACKED = 2**63


def _packed(columns: Iterable[tuple[Labels, int]]) -> Iterator[Labels]:
    """Yield columns of words, several in one word where it can hold them, since every word is compared."""
    packed, n_packed = None, 1
    for words, n_words in columns:
        if n_words > _MOST_PACKED:
            yield words
        elif packed is None:
            packed, n_packed = words, n_words
        elif n_packed * n_words > _MOST_PACKED:
            yield packed
            packed, n_packed = words, n_words
        else:
            packed, n_packed = packed * n_words + words, n_packed * n_words
    if packed is not None:
        yield packed


def _words(values: pa.ChunkedArray) -> tuple[Labels, int]:
    """Return a word for each value, from 0, and how many there may be; equal for values that look the same."""
    if is_coded(values):
        categories, places = Listed.of(values)
        numbers = value_codes(categories)
        is_once = int(numbers[-1]) == len(numbers) - 1
        return places if is_once else numbers[places], len(numbers)
    if len(values) and not values.null_count and pa.types.is_integer(values.type):
        numbers = values.to_numpy()
        n_words = int(numbers.max()) - int(numbers.min()) + 1
        return numbers.astype(np.int64) - numbers.min().astype(np.int64), n_words
    if len(values) and not values.null_count and pa.types.is_float64(values.type):
        numbers = values.to_numpy()
        if np.isnan(numbers.min()):
            numbers = np.where(np.isnan(numbers), np.nan, numbers)  # which has many representations
        return numbers.view(np.int64), 2**64
    codes = value_codes(values)
    return codes, int(codes.max(initial=0)) + 1


def value_codes(values: pa.ChunkedArray) -> Labels:
    """Return a number for each value, from 0 by first occurrence, where null counts as a value; shape (n_records,)."""
    if is_coded(values):
        categories, places = Listed.of(values)
        numbers = value_codes(categories)
        return by_occurrence(numbers[places], len(numbers))
    if isinstance(values.type, pa.BaseExtensionType):
        values = values.cast(values.type.storage_type)
    if pa.types.is_nested(values.type):
        # Arrow does not number lists and structures.
        seen: dict[str, int] = {}
        return np.array([seen.setdefault(text_of(value), len(seen)) for value in values.to_pylist()], dtype=np.int64)
    chunks = decoded(values).dictionary_encode(null_encoding="encode").chunks
    # All chunks share one dictionary.
    return np.concatenate([np.zeros(0, np.int64), *(np.asarray(chunk.indices) for chunk in chunks)]).astype(np.int64)


def value_counts(values: pa.ChunkedArray) -> tuple[pa.Array, NDArray[np.int64]]:
    """Return the different values in the order in which they first occur, null among them, and their counts."""
    if not is_coded(values):
        counted = pc.value_counts(decoded(values))
        return counted.field(0), np.asarray(counted.field(1))
    listed = Listed.of(values)
    numbers = value_codes(listed.categories)  # a category may be listed twice
    counts = np.bincount(numbers, listed.counts).astype(np.int64)
    first = np.full(len(counts), len(values))
    np.minimum.at(first, numbers, kernels.first_places(listed.places, len(numbers)))
    found = np.argsort(first)[: np.count_nonzero(counts)]
    places = kernels.first_places(numbers, len(counts))[found]
    return listed.categories.take(pa.array(places)).combine_chunks(), counts[found]


def identity_codes(values: pa.ChunkedArray) -> Labels:
    """Return a number for each person or household; names that look alike are the same, and so are all missing ones."""
    return value_codes(as_seen(one_missing(decoded(values))))


def distinct_in_classes(classes: Labels, codes: Labels) -> NDArray[np.int64]:
    """Count the different codes in each class, shape (n_classes,)."""
    n_codes = codes.max() + 1
    return np.bincount(np.unique(classes * n_codes + codes) // n_codes)
