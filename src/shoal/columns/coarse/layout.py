"""Layout: intervals in a table as text, in columns of their own, or as a struct.

Inside shoal an interval is always text. The other layouts exist only in the table that leaves: ``age.low`` and
``age.high``, null where the interval is open, and for a column with missing values ``age.missing``, which says whether
``none``, ``some`` or ``all`` of the records of the class have no value. A struct has the same parts as fields.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.columns.categories import declared
from shoal.columns.coarse.column import read_coarse
from shoal.columns.coarse.missing import OR_MISSING
from shoal.columns.coarse.ranges import Ranges
from shoal.columns.schema import Column, Schema
from shoal.errors import ParameterError, SchemaError
from shoal.sources.clean import has_column, nulled

_ENDS = ("low", "high")
_PARTS = (*_ENDS, "missing")


def check_intervals(layout: str, schema: Schema) -> None:
    """Refuse a layout that no column has, or whose columns have names that are taken."""
    if layout == "text":
        return
    columns = _laid_out(schema, layout)
    if not columns:
        raise ParameterError(
            f"Intervals are to be published as {layout}, but no column is published as an interval. Say "
            'aggregate="interval" for some, or leave it out.'
        )
    names = {column.name for column in schema.columns}
    taken = [name for column in columns for name in _names(column) if name in names]
    if taken and layout == "columns":
        raise SchemaError(
            f"The ends of intervals need a column {taken[0]!r}, but the table has one already. Rename it, or publish "
            "intervals as text."
        )


def written_names(names: Sequence[str], schema: Schema, layout: str, replaced: pa.Table) -> list[str]:
    """Return the columns of the table that leaves, given those published and the replaced, intervals as text."""
    if layout != "columns":
        return list(names)
    split = {column.name for column in _laid_out(schema, layout)}
    return [
        written
        for name in names
        for written in ([f"{name}.{part}" for part in _present(replaced[name])] if name in split else [name])
    ]


def laid_out(table: pa.Table, schema: Schema, layout: str) -> pa.Table:
    """Return a table as it leaves: texts are texts again, and intervals have the layout."""
    table = declared(table, schema)
    intervals = {column.name: column for column in _laid_out(schema, layout)}
    if not intervals:
        return table
    found: dict[str, pa.ChunkedArray | pa.Array] = {}
    for name, values in zip(table.column_names, table.columns, strict=True):
        parts = _parts(values, intervals[name]) if name in intervals else {}
        if parts and layout == "struct":
            found[name] = pa.StructArray.from_arrays(list(parts.values()), list(parts))
        else:
            found |= {f"{name}.{part}": ends for part, ends in parts.items()} or {name: values}
    return pa.table(found)


def gathered(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return columns of a table that was read back, with intervals as text, whichever layout they have there."""
    return pa.table({name: _gathered(table, name) for name in names})


def _gathered(table: pa.Table, name: str) -> pa.ChunkedArray:
    if not has_column(table, name):
        parts = {part: f"{name}.{part}" for part in _PARTS}
        return _texts({part: table[full] for part, full in parts.items() if has_column(table, full)})
    values = table[name]
    if not is_interval_struct(values.type):
        return values
    struct = values.combine_chunks()
    return pa.chunked_array([_texts({field.name: struct.field(field.name) for field in struct.type})])


def is_interval_struct(type_: pa.DataType) -> bool:
    """Return whether a type is that of intervals as structs."""
    return pa.types.is_struct(type_) and [field.name for field in type_][:2] == list(_ENDS)


def _laid_out(schema: Schema, layout: str) -> list[Column]:
    """Return the columns that are published as intervals, unless as text."""
    return [column for column in schema.quasi if column.form == "interval"] if layout != "text" else []


def _names(column: Column) -> list[str]:
    return [f"{column.name}.{part}" for part in _PARTS]


def _present(texts: pa.ChunkedArray) -> tuple[str, ...]:
    """Name the parts of a column of intervals: what is missing is one of them only where something is."""
    different = texts.unique().cast(pa.string())
    some = different.null_count or pc.any(pc.ends_with(different, OR_MISSING)).as_py()
    return _PARTS if some else _ENDS


def _parts(texts: pa.ChunkedArray, column: Column) -> dict[str, pa.Array]:
    """Return the ends of intervals as numbers, whole ones where they are, and what is missing where something is."""
    ranges = read_coarse(texts, "interval")
    assert isinstance(ranges, Ranges)
    grid = column.grid
    whole = grid is not None and grid.decimals == 0
    parts = {}
    for part, ends in zip(_ENDS, (ranges.low, ranges.high), strict=True):
        values = pa.array(ends, mask=~np.isfinite(ends))
        parts[part] = values.cast(pa.int64()) if whole else values
    if "missing" in _present(texts):
        words = np.where(np.isnan(ranges.low), "all", np.where(ranges.missing, "some", "none"))
        parts["missing"] = pa.array(words.tolist(), pa.string())
    return parts


def _texts(parts: dict[str, pa.ChunkedArray]) -> pa.ChunkedArray:
    """Return intervals as text, from their parts."""
    low, high = (parts[part].cast(pa.string()) for part in _ENDS)
    lower = pc.fill_null(pc.binary_join_element_wise("[", low, ""), "(-inf")
    upper = pc.fill_null(pc.binary_join_element_wise(high, "]", ""), "inf)")
    found = pc.binary_join_element_wise(lower, upper, ", ")
    if "missing" not in parts:
        return found
    some = pc.binary_join_element_wise(found, OR_MISSING, "")
    is_all, is_some = (pc.equal(parts["missing"], word) for word in ("all", "some"))
    return nulled(pc.if_else(is_some, some, found), is_all)
