"""Categories: dictionary columns, which hold each different value once and its place in that list for every record.

Texts become such columns when a table is prepared, and texts again when it leaves. Everything in between counts and
compares places, and looks at a text once for all records that have it.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal import kernels
from shoal.columns.prepare import decoded
from shoal.columns.schema import Role, Schema
from shoal.sources.clean import with_columns
from shoal.typing import Labels


class Listed(NamedTuple):
    """A dictionary column: the list of its categories, with null at the end, and the place of each record in it.

    A category may be listed twice or not be used.
    """

    categories: pa.ChunkedArray
    places: Labels

    @staticmethod
    def of(values: pa.ChunkedArray) -> "Listed":
        """Take a dictionary column apart, without decoding it."""
        lists: list[pa.Array] = []
        starts, start, n_listed = [], 0, 0
        for chunk in values.chunks:
            # Chunks mostly share one list.
            if not lists or not chunk.dictionary.equals(lists[-1]):
                lists.append(chunk.dictionary)
                start, n_listed = n_listed, n_listed + len(chunk.dictionary)
            starts.append(start)
        places = [_places(chunk.indices, start, n_listed) for chunk, start in zip(values.chunks, starts, strict=True)]
        categories = pa.chunked_array([*lists, pa.nulls(1, values.type.value_type)])
        return Listed(decoded(categories), places[0] if len(places) == 1 else np.concatenate([_NONE, *places]))

    @property
    def used(self) -> pa.ChunkedArray:
        """The categories that some record has."""
        return self.categories.filter(pa.array(self.counts > 0))

    @property
    def counts(self) -> Labels:
        """Number of records at each place of the list."""
        return np.bincount(self.places, minlength=len(self.categories))


_NONE = np.empty(0, dtype=np.int64)


def _places(indices: pa.Array, start: int, n_listed: int) -> Labels:
    places = np.asarray(indices.fill_null(0) if indices.null_count else indices).astype(np.int64)
    if start:
        places += start
    if indices.null_count:
        places[np.asarray(indices.is_null())] = n_listed
    return places


def is_coded(values: pa.ChunkedArray) -> bool:
    """Return whether a column is a dictionary column."""
    return bool(pa.types.is_dictionary(values.type))


def coded(table: pa.Table, schema: Schema) -> pa.Table:
    """Return a prepared table with the texts of its quasi-identifiers as dictionary columns of one list each."""
    found = {}
    for column in schema.having(Role.QUASI, Role.BY):
        values = table[column.name]
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            values = values.dictionary_encode()
            # What is published as it came stays in its chunks, which some formats store.
            ordered = values if column.role is Role.BY else pa.chunked_array([_in_order(values.combine_chunks())])
            found[column.name] = ordered
    return with_columns(table, found)


def _in_order(values: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return a dictionary column with its categories listed in ascending order, so that its places are their ranks."""
    order = pc.sort_indices(values.dictionary)
    ranks = np.empty(len(order), dtype=np.int32)
    ranks[np.asarray(order)] = np.arange(len(order))
    return pa.DictionaryArray.from_arrays(pa.array(ranks).take(values.indices), values.dictionary.take(order))


def declared(table: pa.Table, schema: Schema) -> pa.Table:
    """Return a table with texts in place of the dictionary columns that `coded` made of them."""
    own = {column.name for column in schema.having(Role.QUASI, Role.BY) if not pa.types.is_dictionary(column.type)}
    coded = [field.name for field in table.schema if field.name in own and pa.types.is_dictionary(field.type)]
    return with_columns(table, {name: decoded(table[name]) for name in coded})


def sorted_categories(values: pa.ChunkedArray) -> pa.Array:
    """Return the different values of a column in ascending order, null last if there is one."""
    # Arrow sorts null to the end.
    distinct = pc.unique(Listed.of(values).used if is_coded(values) else decoded(values))
    return distinct.take(pc.sort_indices(distinct))


def category_codes(values: pa.ChunkedArray, categories: pa.Array) -> Labels:
    """Return the index of each value among the categories, -1 if it is not one of them; shape (n_records,)."""
    if is_coded(values):
        listed, places = Listed.of(values)
        codes = category_codes(listed, categories)
        n_needed = len(codes) - (values.null_count == 0)  # null is the last of the list
        # The texts of a prepared table are listed in the order of the categories.
        is_same_list = np.array_equal(codes[:n_needed], np.arange(n_needed))
        return places if is_same_list else np.asarray(codes[places])
    found = pc.index_in(decoded(values), value_set=categories)
    return np.asarray(found.fill_null(-1), dtype=np.int64)


def by_occurrence(codes: Labels, n_codes: int) -> Labels:
    """Return new numbers for codes, in the order in which they first occur."""
    numbers = np.empty(n_codes, dtype=np.int64)
    numbers[np.argsort(kernels.first_places(codes, n_codes))] = np.arange(n_codes)
    return np.asarray(numbers[codes])


def code_counts(codes: Labels, n_codes: int) -> tuple[Labels, Labels]:
    """Return the codes that occur, below `n_codes` and in ascending order, and how often each does."""
    if n_codes <= 4 * len(codes):
        counts = np.bincount(codes)
        found = np.flatnonzero(counts)
        return found, counts[found]
    # Sorting takes less time than so many counters, and the least with the smallest type.
    ordered = np.sort(codes.astype(np.int32) if n_codes < 2**31 else codes)
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    return ordered[first].astype(np.int64), np.diff(first, append=len(ordered))
