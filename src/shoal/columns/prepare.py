"""Prepare: recoding of columns before records become points.

Declared codes become missing values, extremes are top- or bottom-coded, and what would distort distances is refused:
missing values without a policy, infinities, categories that are not in the order.
"""

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.columns.schema import Column, Kind, Role, Schema, is_text
from shoal.errors import SchemaError
from shoal.sources.clean import nulled, with_columns
from shoal.sources.nested import text_of
from shoal.spelling import named, setting

Missing = Literal["error", "own-value"]
"""What to do with missing values: refuse them, or treat missing as a value of its own."""
NumberOf = Callable[[int], int] | None
"""Returns the number of a record in its source, by its place in a table; None where records have no numbers."""
CAST_ERRORS = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError)
"""What Arrow raises for values that a type cannot hold, or a conversion that does not exist."""


def from_one(place: int) -> int:
    """Return the number of a record where none was left out."""
    return place + 1


def prepare(table: pa.Table, schema: Schema, missing: Missing = "error", number_of: NumberOf = from_one) -> pa.Table:
    """Return the table with its quasi-identifiers recoded as set, or raise for a column that cannot be used.

    Parameters
    ----------
    table : pyarrow.Table
        Holds at least the columns that `schema` needs. Not changed.
    schema : Schema
        Roles, kinds and settings of the columns.
    missing : {"error", "own-value"}
        What to do with missing quasi-identifiers.
    number_of : callable, optional
        Returns the number of a record in messages, by its place in `table`; None if records have no numbers.

    Returns
    -------
    pyarrow.Table
        Same records, same columns; in quasi-identifiers, missing values are null and nothing is NaN.

    Raises
    ------
    SchemaError
        If a quasi-identifier has infinities, missing values that `missing` does not allow, or categories that its
        order does not name.
    """
    used = schema.having(Role.QUASI, Role.BY)
    table = with_columns(table, {column.name: _prepared(table[column.name], column, number_of) for column in used})
    if missing == "error":
        refuse_missing({column.name: table[column.name].null_count for column in schema.quasi}, table.num_rows, schema)
    return table


def _prepared(values: pa.ChunkedArray, column: Column, number_of: NumberOf) -> pa.ChunkedArray:
    """Return one column, recoded by its settings."""
    values = _with_plain_categories(values) if pa.types.is_dictionary(values.type) else one_missing(values)
    if column.settings.fold:
        values = _folded(values)
    if column.settings.missing_codes:
        values = _without_codes(values, column)
    for limit, beyond in ((column.settings.top, pc.greater), (column.settings.bottom, pc.less)):
        if limit is not None:
            values = _limited(values, column, limit, beyond)
    if pa.types.is_floating(values.type):
        _refuse_infinite(values, column, number_of)
    if column.kind is Kind.ORDINAL:
        _refuse_unordered(values, column)
    return values


def _folded(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return texts with those that differ only in case or blanks replaced by the most frequent of them."""
    plain = decoded(values)
    found = pc.value_counts(plain.drop_null())
    texts, counts = found.field("values"), np.asarray(found.field("counts"))
    keys = pc.utf8_lower(pc.utf8_trim_whitespace(pc.replace_substring_regex(texts, r"\s+", " ")))
    groups = np.asarray(keys.dictionary_encode().indices)
    # The most frequent of each group first; ties in alphabetical order.
    rank = np.asarray(pc.rank(texts, tiebreaker="first")).astype(np.int64)
    order = np.lexsort((rank, -counts, groups))
    first = order[np.searchsorted(groups[order], groups)]
    return texts.take(pa.array(first)).take(pc.index_in(plain, value_set=texts))


def one_missing(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the values with null instead of NaN and 0 instead of -0, which would reveal a difference."""
    if not pa.types.is_floating(values.type):
        return values
    values = decoded(values)
    return pc.add(nulled(values, pc.is_nan(values)), pa.scalar(0.0, values.type))


def as_seen(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return texts as a reader sees them: without blanks around them, accents in one form, and an empty one missing.

    Most CSV readers treat `""` as missing; SPSS and Stata have no other missing text and strip blanks. Lists and
    structures become texts.
    """
    values = decoded(values)
    if pa.types.is_nested(values.type):
        found = (None if value is None else text_of(value, as_seen=True) for value in values.to_pylist())
        values = pa.chunked_array([pa.array(found, pa.large_string())])
    if not is_text(values.type):
        return values
    # Arrow computes on views only after a cast.
    text = values.cast(pa.large_string()) if pa.types.is_string_view(values.type) else values
    text = pc.utf8_trim_whitespace(pc.utf8_normalize(text, form="NFC"))
    return nulled(text, pc.equal(text, ""))


def _with_plain_categories(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a dictionary column with one dictionary, in which each category occurs once and none is missing."""
    categories = listed_categories(values)
    indices = pc.index_in(one_missing(decoded(values)), value_set=categories).combine_chunks()
    if (
        len(categories) <= np.iinfo(values.type.index_type.to_pandas_dtype()).max
    ):  # chunks may list more categories in total
        indices = indices.cast(values.type.index_type)
    return pa.chunked_array([pa.DictionaryArray.from_arrays(indices, categories, ordered=values.type.ordered)])


def listed_categories(values: pa.ChunkedArray) -> pa.Array:
    """Return the categories of a dictionary column, used or not, in its order: of ordered ones in the longest list."""
    lists = [chunk.dictionary for chunk in values.chunks]
    if values.type.ordered:
        lists.sort(key=len, reverse=True)
    return pc.unique(one_missing(pa.chunked_array(lists, values.type.value_type))).drop_null()


def _without_codes(values: pa.ChunkedArray, column: Column) -> pa.ChunkedArray:
    """Return the column with its missing codes made null."""
    plain = decoded(values)
    try:
        codes = _as_values(column.settings.missing_codes, plain.type)
    except CAST_ERRORS:
        raise SchemaError(
            f"A missing code of column {column.name!r} cannot be a value of it: the column holds {plain.type}."
        ) from None
    return nulled(values, pc.is_in(plain, value_set=codes))


def _as_values(entries: tuple[str | int | float, ...], type_: pa.DataType) -> pa.Array:
    """Return what a user wrote as values of a type; Arrow raises where that is impossible."""
    # One by one, since a user may write -9 and "NA" side by side.
    return pa.concat_arrays([pa.array([], type_), *(pa.array([entry]).cast(type_) for entry in entries)])


def _refuse_infinite(values: pa.ChunkedArray, column: Column, number_of: NumberOf) -> None:
    infinite = np.asarray(pc.fill_null(pc.is_inf(values), False))
    if infinite.any():
        where = "" if number_of is None else f", the first in record {number_of(int(infinite.argmax()))}"
        raise SchemaError(
            f"Column {column.name!r} has {infinite.sum():,} infinite values{where}. "
            "Infinity has no distance: make these values missing, or limit them (top, bottom)."
        )


def _refuse_unordered(values: pa.ChunkedArray, column: Column) -> None:
    order = categories_in_order(values, column)
    strange = pc.and_(pc.is_valid(values), pc.invert(pc.is_in(decoded(values), value_set=order)))
    count = pc.sum(strange).as_py() or 0
    if count:
        raise SchemaError(
            f"Column {column.name!r} is ordinal, and {count:,} of its values are not among the {len(order)} categories "
            "of its order. Add their categories to the order, or declare them as missing codes."
        )


def _limited(values: pa.ChunkedArray, column: Column, limit: float, beyond: object) -> pa.ChunkedArray:
    """Return the column with the values beyond a limit replaced by it."""
    try:
        bound = pa.scalar(limit).cast(values.type)
    except pa.ArrowInvalid:
        raise SchemaError(
            f"A top or bottom code of column {column.name!r} cannot be a value of it: the column holds {values.type}."
        ) from None
    assert callable(beyond)
    return pc.if_else(beyond(values, bound), bound, values)


def refuse_missing(
    n_missing: Mapping[str, int], n_records: int, schema: Schema, what: str = "quasi-identifiers"
) -> None:
    """Raise if quasi-identifiers, or other columns, have missing values that their file does not declare."""
    found = {column.name: n_missing[column.name] for column in schema.quasi if not column.own_missing}
    found = {name: count for name, count in found.items() if count}
    if found:
        listed = ", ".join(f"{name!r} ({count:,})" for name, count in found.items())
        raise SchemaError(
            f"Missing values in {what}: {listed}, of {n_records:,} records. Say what to do with them: "
            f"{setting('missing', 'own-value')} treats missing as a value of its own; or drop or fill these records "
            "first."
        )


def n_with_named_values(table: pa.Table, prepared: pa.Table, schema: Schema) -> dict[tuple[str, str], int]:
    """Return for each setting that names values of a column how many records have one, before it was prepared."""
    found = {}
    for column in schema.quasi:
        values = prepared[column.name]
        if column.settings.missing_codes:
            missing = one_missing(decoded(table[column.name])).null_count
            found["missing_codes", column.name] = values.null_count - missing
        if column.settings.keep_zeros:
            found["keep_zeros", column.name] = pc.sum(pc.equal(values.cast(pa.float64(), safe=False), 0.0)).as_py() or 0
    return found


def refuse_without_effect(n_with_value: Mapping[tuple[str, str], int]) -> None:
    """Raise for a setting of a column whose values no record has."""
    for (key, name), count in n_with_value.items():
        if not count:
            raise SchemaError(
                f"{named(key)} is set for column {name!r}, but no record has {_NAMED[key]}, so it has no effect. Check "
                "how the column was read, correct the setting, or leave it out."
            )


_NAMED = {"missing_codes": "one of these values", "keep_zeros": "a zero there"}


def decoded(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a dictionary column decoded, in a type that Arrow can compute on."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    return values.cast(pa.float32()) if pa.types.is_float16(values.type) else values


def is_present(values: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Return which records have a value, shape (n_records,)."""
    return np.asarray(values.is_valid()) if values.null_count else np.ones(len(values), dtype=bool)


def categories_in_order(values: pa.ChunkedArray, column: Column) -> pa.Array:
    """Return the categories of an ordinal column, lowest first: as given, as the type has them, or by size."""
    plain = decoded(values).type
    if column.settings.categories is not None:
        try:
            order = _as_values(column.settings.categories, plain)
        except CAST_ERRORS:
            raise SchemaError(
                f"The order of column {column.name!r} names categories that cannot be values of it: the column holds "
                f"{'text' if is_text(plain) else plain}."
            ) from None
        if len(pc.unique(order)) < len(order):
            raise SchemaError(f"The order of column {column.name!r} names a category twice.")
        return order
    if pa.types.is_dictionary(values.type) and values.type.ordered:
        return listed_categories(values)
    distinct = pc.unique(decoded(values)).drop_null()
    return distinct.take(pc.sort_indices(distinct))
