"""Columns: their names, and what a column may carry out of a table."""

from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import SchemaError


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


def plain(table: pa.Table) -> pa.Table:
    """Return the table without metadata of any kind, and with text in a type that all of pyarrow computes on."""
    fields = [pa.field(field.name, _plain_type(field.type)) for field in table.schema]
    return table.replace_schema_metadata(None).cast(pa.schema(fields))


def publishable(table: pa.Table) -> pa.Table:
    """Return the table without metadata and without categories that no record has."""
    columns = [_without_unused(column) if pa.types.is_dictionary(column.type) else column for column in table.columns]
    return plain(pa.table(columns, names=table.column_names))


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    return kind


def _without_unused(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Drop the categories that do not occur, keeping the order of the others."""
    kind = column.type
    whole = column.unify_dictionaries().combine_chunks()
    whole = pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) and whole.num_chunks else whole
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.array([], kind)
    used = pc.unique(whole.indices.drop_null()).sort()
    if len(used) == len(whole.dictionary):
        return column
    indices = pc.index_in(whole.indices, used).cast(kind.index_type)
    compact = pa.DictionaryArray.from_arrays(indices, whole.dictionary.take(used), ordered=kind.ordered)
    return pa.chunked_array([compact])


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)
