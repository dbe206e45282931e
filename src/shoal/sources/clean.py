"""Column names, and removal of hidden data before a table is published."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from shoal.errors import FileError, ParameterError, SchemaError, did_you_mean, listed
from shoal.sources.arrow_buffers import OrdersDifferError, bare

_FLOAT_DIGITS = 15  # that a float keeps of every decimal
_YEAR_1 = -719_162  # days from 0001-01-01 to 1970-01-01


def has_column(table: pa.Table, name: str) -> bool:
    """Return whether a table has a column. Its list of names would be made anew for each question."""
    return bool(table.schema.get_field_index(name) >= 0)


def with_columns(table: pa.Table, columns: Mapping[str, pa.ChunkedArray]) -> pa.Table:
    """Return the table with some columns replaced; one by one, each would copy the list of all columns."""
    if not columns:
        return table
    return pa.table(
        {name: columns.get(name, values) for name, values in zip(table.column_names, table.columns, strict=True)}
    )


def nulled(values: pa.ChunkedArray, mask: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the values with null where a mask is true or null."""
    # Beside a scalar, Arrow before 24 takes the wrong texts of a slice, in silence; beside a column it does not.
    nothing = None if pa.types.is_dictionary(values.type) else pa.nulls(len(values), values.type)
    return pc.if_else(mask, nothing, values)


def check_names(names: Sequence[str]) -> None:
    """Raise if a name occurs twice: roles could not distinguish such columns."""
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise SchemaError(
            f"Several columns have the same name: {listed(twice)}. Rename them, so that each name is unique."
        )


def check_wanted(wanted: Sequence[str] | None, names: Sequence[str]) -> list[str]:
    """Return the wanted columns, all for None; raise if any is missing, with similar names as suggestions."""
    if wanted is None:
        return list(names)
    if isinstance(wanted, str):
        wanted = [wanted]
    known = set(names)
    missing = [name for name in wanted if name not in known]
    if missing:
        meant = did_you_mean(*missing, known=names)
        raise SchemaError(f"The table has no column {listed(missing)}.{meant} Columns: {', '.join(names)}.")
    check_names(wanted)
    return list(wanted)


def check_flat(schema: pa.Schema) -> None:
    """Raise if a column has a type that only Parquet and Arrow files can hold."""
    is_bytes = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    is_odd = (pa.types.is_nested, pa.types.is_interval, *is_bytes)
    odd = [
        field.name
        for field in schema
        if isinstance(field.type, pa.BaseExtensionType) or any(is_so(field.type) for is_so in is_odd)
    ]
    if odd:
        raise FileError(
            f"Column(s) {listed(odd)} hold lists, structs, bytes or other types that this file format cannot store. "
            "Write Parquet or Arrow, or leave them out."
        )


def check_finite(table: pa.Table, title: str) -> None:
    """Raise if a column has NaN or infinite values, for file formats without them."""
    odd = [
        name
        for name in table.column_names
        if pa.types.is_floating(table[name].type) and pc.all(pc.is_finite(table[name])).as_py() is False
    ]
    if odd:
        raise FileError(
            f"Column(s) {listed(odd)} hold NaN or infinite values, which {title} cannot store. Make them missing, or "
            "write Parquet."
        )


def beyond_years(column: pa.ChunkedArray, first: int = _YEAR_1) -> bool:
    """Return whether a column has dates before a day, by default 0001-01-01, or after the year 9999."""
    if not (pa.types.is_date(column.type) or pa.types.is_timestamp(column.type)):
        return False
    per_day = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
    is_short = pa.types.is_date32(column.type)
    unit = 1 if is_short else per_day[column.type.unit] if pa.types.is_timestamp(column.type) else per_day["ms"]
    ends = pc.min_max(column.cast(pa.int32() if is_short else pa.int64())).as_py()
    return ends["min"] is not None and not first * unit <= ends["min"] <= ends["max"] < 2_932_897 * unit


def check_texts(table: pa.Table, title: str) -> None:
    """Raise if a text has a NUL character, for file formats that end texts there."""
    for name in table.column_names:
        kind = table[name].type
        values = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not (pa.types.is_string(values) or pa.types.is_large_string(values)):
            continue
        if pc.any(pc.match_substring(table[name].cast(values), "\0")).as_py():
            raise FileError(
                f"Column {name!r} holds text with a NUL character, which {title} cannot store. Remove it first."
            )


def not_storable(name: str, what: str, title: str, advice: str) -> FileError:
    """Return the error for a column that a file format cannot store without changing its values."""
    return FileError(f"Column {name!r} has {what}, which {title} cannot store. {advice}, or write Parquet.")


def in_few_types(
    name: str, column: pa.ChunkedArray, title: str, years: str, first_day: int = _YEAR_1
) -> pa.ChunkedArray:
    """Return a column in types of a file format whose numbers are floats, and whose times have no zone.

    Raises
    ------
    FileError
        If that would change a value; `years` says which dates the format has.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        return in_few_types(name, column.cast(kind.value_type), title, years, first_day)
    if pa.types.is_duration(kind):
        raise not_storable(name, "durations", title, "Convert them to numbers")
    if pa.types.is_decimal(kind):
        return decimals_as_floats(name, column, title)
    if pa.types.is_float16(kind) or pa.types.is_null(kind):
        return column.cast(pa.float64())
    if pa.types.is_integer(kind):
        ends = [end for end in pc.min_max(column).as_py().values() if end is not None]
        if any(abs(end) > 2**53 for end in ends):
            raise not_storable(name, "integers of more than 15 digits", title, "Convert it to text")
    if beyond_years(column, first_day):
        raise not_storable(name, f"dates {years}", title, "Convert it to text")
    return pc.local_timestamp(column) if pa.types.is_timestamp(kind) and kind.tz else column


def decimals_as_floats(name: str, column: pa.ChunkedArray, title: str) -> pa.ChunkedArray:
    """Return decimals as floats, for file formats without decimals; raise if a float has too few digits for one."""
    digits = pc.replace_substring_regex(column.cast(pa.string()), r"E.*|[-.]", "")
    if (pc.max(pc.utf8_length(pc.utf8_trim(digits, "0"))).as_py() or 0) > _FLOAT_DIGITS:
        raise FileError(
            f"Column {name!r} has decimals of more than {_FLOAT_DIGITS} digits, which {title} would round. Round them "
            "first, convert it to text, or write Parquet."
        )
    return column.cast(pa.float64())


def without_records(types: pa.Schema) -> pa.Table:
    """Return a table of these columns without records, also of types of which Arrow makes no empty arrays."""
    return pa.Table.from_batches([], types)


def plain(table: pa.Table) -> pa.Table:
    """Return the table without metadata, with types that all pyarrow compute functions support."""
    for place, field in enumerate(table.schema):
        if _is_encoded(field.type):
            table = table.set_column(place, field.name, _publishable(field.name, table.column(place)))
    schema = pa.schema([pa.field(field.name, _plain_type(field.type)) for field in table.schema])
    table = table.replace_schema_metadata(None)
    return table if table.schema.equals(schema, check_metadata=True) else table.cast(schema)


def publishable(table: pa.Table) -> pa.Table:
    """Return the table without metadata and without hidden data in its buffers.

    Raises
    ------
    SchemaError
        If a column has a type from which hidden data cannot be removed, or ordered categories without one order.
    """
    return pa.table({name: _publishable(name, table[name]) for name in table.column_names})


def _publishable(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return bare(column)
    except OrdersDifferError:
        raise SchemaError(
            f"The ordered categories of column {name!r} are not listed in one order in all parts of the table, so that "
            "they have none that could be published. List them in the same order everywhere, or convert the column to "
            "text."
        ) from None
    except pa.ArrowException:  # its message may contain a value
        raise SchemaError(
            f"Column {name!r} has type {column.type}, from which hidden values cannot be removed, so it is not "
            "published. Convert it to a simpler type, or leave it out."
        ) from None


def empty_made_missing(table: pa.Table) -> pa.Table:
    """Return the table with empty strings replaced by null, for file formats that do not distinguish them."""
    texts = [
        field.name for field in table.schema if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
    ]
    return with_columns(table, {name: nulled(table[name], pc.equal(table[name], "")) for name in texts})


def reordered(table: pa.Table, order: NDArray[np.int64]) -> pa.Table:
    """Return the records in the given order."""
    for i, field in enumerate(table.schema):
        # An array of type string cannot hold more than this.
        if pa.types.is_string(field.type) and table[i].nbytes >= 2**31 - 1:
            table = table.set_column(i, field.name, table[i].cast(pa.large_string()))
    return table.take(order)


def as_permutation(order: ArrayLike, n: int) -> NDArray[np.int64]:
    """Return `order` as an array; raise unless it is a permutation of 0 to n - 1."""
    array = np.asarray(order)
    if array.shape != (n,) or array.dtype.kind not in "iu" or not np.array_equal(np.sort(array), np.arange(n)):
        raise ParameterError(f"order must hold each record number from 0 to {n - 1} once.")
    return array.astype(np.int64, copy=False)


def _is_encoded(kind: pa.DataType) -> bool:
    """Return whether Arrow has to rebuild a type: run-end encoding, or views and extensions within another type."""
    if pa.types.is_run_end_encoded(kind):
        return True
    if pa.types.is_dictionary(kind):
        return _is_encoded(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return _is_encoded(kind.storage_type)
    inner = [kind.field(i).type for i in range(kind.num_fields)]
    return any(
        isinstance(each, pa.BaseExtensionType) or _plain_type(each) != each or _is_encoded(each) for each in inner
    )


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _plain_type(kind.value_type), kind.ordered)
    if pa.types.is_decimal128(kind) and kind.scale < 0:  # which no file format has
        return pa.decimal128(min(kind.precision - kind.scale, 38), 0)
    return kind


def different_names(names: Sequence[str]) -> list[str]:
    """Return names with a number behind those that were there already, and for those that are empty.

    Examples
    --------
    >>> different_names(["rent", "", "rent", "rent", "rent_2"])
    ['rent', 'column_2', 'rent_3', 'rent_4', 'rent_2']
    """
    found: list[str] = []
    for place, name in enumerate(names, 1):
        if name.strip() and name not in found:
            found.append(name)
            continue
        stem, first = (name, 2) if name.strip() else ("column", place)
        others = (f"{stem}_{number}" for number in count(first))
        found.append(next(other for other in others if other not in found and other not in names))
    return found


def printable(text: str) -> str:
    r"""Return a text with its control characters escaped, so that it is safe to print on a terminal.

    Examples
    --------
    >>> printable("age"), printable("\x1b[2Jage")
    ('age', '\\x1b[2Jage')
    """
    return "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in text)
