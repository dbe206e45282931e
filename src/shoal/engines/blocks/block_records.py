"""Block records: a batch as it travels between the stages: prepared columns, and a hash of its content for each record.

The order of records is that of their hashes wherever an order can matter, so that no result depends on the order, the
files or the batches that records came in. Records with the same hash are equal in every column and interchangeable.
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.columns.prepare import NumberOf, as_seen, decoded, one_missing, prepare
from shoal.columns.schema import Schema, value_type
from shoal.columns.value_hashes import record_hashes, value_hashes
from shoal.errors import SchemaError
from shoal.typing import Labels

HASHES = ("_shoal_hash_1", "_shoal_hash_2")
"""Columns of the hash, int64."""

CELL = "_shoal_cell"
"""Column of the cell number, unique in the whole table, int64."""

ALONE = "_shoal_alone"
"""Column that says whether no other record of the table has the same quasi-identifiers, bool."""

SUBJECT = "_shoal_subject"
"""Column of the hash of the subject, int64; beside published records, so that subjects can be recounted."""

_OURS = "_shoal_"


def check_column_names(names: list[str]) -> None:
    """Refuse names that the stages use for their own columns."""
    for name in names:
        if name.startswith(_OURS):
            raise SchemaError(
                f"Column {name!r} has a name that is used internally. Rename it: no column starts {_OURS!r}."
            )


def carried(schema: Schema) -> list[str]:
    """Return the columns that travel: all that are published or needed to make cells, in the order of the table."""
    needed = {*schema.needed, *(column.name for column in schema.published)}
    return [column.name for column in schema.columns if column.name in needed]


def plain_schema(schema: Schema) -> Schema:
    """Return the schema with the types that travel: categories as the values that they stand for."""
    columns = tuple(replace(column, type=value_type(column.type)) for column in schema.columns)
    return replace(schema, columns=columns)


def travelling(batch: pa.Table, schema: Schema, number_of: NumberOf = None) -> pa.Table:
    """Return the records of a batch as they travel; missing values are allowed.

    Parameters
    ----------
    batch : pyarrow.Table
        Records as they were read.
    schema : Schema
        Roles, kinds and settings of the columns.
    first_record : int, optional
        The number of the first record, for messages, if records have numbers.
    """
    table = prepare(batch.select(carried(schema)), schema, "own-value", number_of)
    columns = {name: decoded(table[name].cast(value_type(table[name].type))) for name in table.column_names}
    hashes = record_hashes(columns.values(), table.num_rows).view(np.int64)
    return pa.table({**columns, **dict(zip(HASHES, map(pa.array, hashes), strict=True))})


def hashes_of(records: pa.Table) -> NDArray[np.uint64]:
    """Return the two halves of the hash of each record, shape (2, n_records)."""
    return np.stack([np.asarray(records[name]).view(np.uint64) for name in HASHES])


def by_content(records: pa.Table) -> pa.Table:
    """Return the records in the order of their content, and of their cells where they are in cells."""
    keys = [np.asarray(records[CELL])] if CELL in records.column_names else []
    first, second = hashes_of(records)
    order = np.lexsort((*keys, second, first))
    return records.take(pa.array(order)).combine_chunks()


def dealt(hashes: NDArray[np.uint64], n_parts: int) -> Labels:
    """Deal records, in the order of their content, to parts in turn; return the part of each, shape (n_records,).

    So each part has its share of the records that are equal in every column, and of every value.
    """
    first, second = hashes.view(np.int64)
    parts = np.empty(len(first), dtype=np.int64)
    parts[np.lexsort((second, first))] = np.arange(len(first)) % n_parts
    return parts


def labels_of(records: pa.Table) -> Labels:
    """Return the cells of records in content order, numbered from 0 by first occurrence."""
    return np.asarray(records[CELL].combine_chunks().dictionary_encode().indices).astype(np.int64)


def in_cells(records: pa.Table, labels: Labels, block: int) -> pa.Table:
    """Return the records of a block with their cells."""
    cells = pa.array((np.int64(block) << np.int64(32)) + labels)
    names = [name for name in records.column_names if name != CELL]
    return records.select(names).append_column(CELL, cells)


def person_hashes(subjects: pa.ChunkedArray) -> pa.Array:
    """Return a number for each person, the same for names that look alike."""
    seen = as_seen(one_missing(decoded(subjects))).combine_chunks()
    return pa.array(value_hashes(seen)[1].view(np.int64))
