"""Columns: their names, and what a column may carry out of a table."""

from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from shoal.errors import FileError, ParameterError, SchemaError


def check_names(names: Sequence[str]) -> None:
    """Refuse names that occur twice: no role could tell such columns apart."""
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise SchemaError(
            f"Several columns have the same name: {_listed(twice)}. Rename them, each to a name of its own."
        )


def check_wanted(wanted: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the wanted columns, or say which are not there and what was meant, perhaps."""
    if isinstance(wanted, str):
        wanted = [wanted]
    missing = [name for name in wanted if name not in set(names)]
    if missing:
        near = [match for name in missing for match in get_close_matches(str(name), names, n=1)]
        meant = f" Did you mean {_listed(near)}?" if near else ""
        raise SchemaError(f"The table has no column {_listed(missing)}.{meant} Columns: {', '.join(names)}.")
    check_names(wanted)
    return list(wanted)


def check_flat(schema: pa.Schema) -> None:
    """Refuse columns that only Parquet and Arrow files can hold."""
    is_odd = (pa.types.is_nested, pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    odd = [
        field.name
        for field in schema
        if isinstance(field.type, pa.BaseExtensionType) or any(is_so(field.type) for is_so in is_odd)
    ]
    if odd:
        raise FileError(
            f"Column(s) {_listed(odd)} hold lists, structures, bytes or the like, which such a file cannot. Write "
            "Parquet or Arrow, or leave them out."
        )


def plain(table: pa.Table) -> pa.Table:
    """Return the table without metadata of any kind, and with text in a type that all of pyarrow computes on."""
    fields = [pa.field(field.name, _plain_type(field.type)) for field in table.schema]
    return table.replace_schema_metadata(None).cast(pa.schema(fields))


def publishable(table: pa.Table) -> pa.Table:
    """Return the table without metadata, without categories that no record has, and with nothing behind its gaps."""
    columns = [_without_unused(column) if pa.types.is_dictionary(column.type) else column for column in table.columns]
    bare = [pa.chunked_array(map(_bare, column.chunks), column.type) for column in columns]
    return plain(pa.table(bare, names=table.column_names))


def reordered(table: pa.Table, order: NDArray[np.int64]) -> pa.Table:
    """Return the records in another order."""
    for i, field in enumerate(table.schema):
        # One array cannot hold more than this of the smaller text type.
        if pa.types.is_string(field.type) and table[i].nbytes >= 2**31 - 1:
            table = table.set_column(i, field.name, table[i].cast(pa.large_string()))
    return table.take(order)


def as_permutation(order: ArrayLike, n: int) -> NDArray[np.int64]:
    """Return `order` as an array that holds each of 0 to n - 1 once, or say that it does not."""
    array = np.asarray(order)
    if array.shape != (n,) or array.dtype.kind not in "iu" or not np.array_equal(np.sort(array), np.arange(n)):
        raise ParameterError(f"order must hold each record number from 0 to {n - 1} once.")
    return array.astype(np.int64, copy=False)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    return kind


def _bare(array: pa.Array) -> pa.Array:
    """Return an array whose memory holds nothing but its values.

    A missing value only hides what stands in its place: pandas, polars and Arrow itself leave it there, as they leave
    what is before and after a slice. An Arrow file would publish it.
    """
    if pa.types.is_struct(array.type):
        parts = [_bare(part) for part in array.flatten()]
        return pa.StructArray.from_arrays(parts, fields=list(array.type), mask=array.is_null())
    if array.null_count == 0 and array.get_total_buffer_size() == array.nbytes and not pa.types.is_nested(array.type):
        return array
    return array.take(pa.array(np.arange(len(array))))


def _without_unused(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Drop the categories that do not occur, keeping the order of the others."""
    kind = column.type
    chunks = column.unify_dictionaries().chunks
    whole = pa.concat_arrays(chunks) if chunks else pa.array([], kind)
    used = pc.unique(whole.indices.drop_null()).sort()
    if len(used) == len(whole.dictionary):
        return column
    indices = pc.index_in(whole.indices, used).cast(kind.index_type)
    compact = pa.DictionaryArray.from_arrays(indices, whole.dictionary.take(used), ordered=kind.ordered)
    return pa.chunked_array([compact])


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)


def printable(text: str) -> str:
    r"""Return a text, such as a name, without characters that would move the cursor of a terminal.

    Examples
    --------
    >>> printable("age"), printable("\x1b[2Jage")
    ('age', '\\x1b[2Jage')
    """
    return "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in text)
