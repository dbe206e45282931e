"""Values of databases as Arrow: text that is checked, decimals, and dates that exist."""

import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import DatabaseError
from shoal.sources.clean import beyond_years, not_storable

_DIGITS = 38


def checked(arrow: pa.Table) -> pa.Table:
    """Return the records; raise if a text is not UTF-8, or a date is infinite or outside the years 1 to 9999."""
    for name, column in zip(arrow.column_names, arrow.columns, strict=True):
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            _check_text(name, column)
        elif beyond_years(column):
            raise DatabaseError(
                f"Column {name!r} holds dates that are infinite or outside the years 1 to 9999. Replace them by a "
                "query, with NULL for instance."
            )
    return arrow


def _check_text(name: str, column: pa.ChunkedArray) -> None:
    try:
        column.validate(full=True)
    except pa.ArrowException:  # its message may contain a value
        raise DatabaseError(
            f"Column {name!r} holds text that is not UTF-8. Repair it in the database, or leave the column out by a "
            "query."
        ) from None


def in_microseconds(name: str, column: pa.ChunkedArray, title: str) -> pa.ChunkedArray:
    """Return times, or timestamps, in UTC if they have a zone, in microseconds; raise if some are finer."""
    is_time = pa.types.is_time(column.type)
    try:
        return column.cast(pa.time64("us") if is_time else pa.timestamp("us", "UTC" if column.type.tz else None))
    except pa.ArrowInvalid:  # its message contains a value
        raise not_storable(name, "times finer than a microsecond", title, "Round them") from None


def decimals(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return numbers that are written as text as decimals with as many places as occur."""
    text = column.cast(pa.string())
    point = pc.find_substring(text, ".")
    has_point = pc.greater_equal(point, 0)
    places = pc.if_else(has_point, pc.subtract(pc.subtract(pc.binary_length(text), point), 1), 0)
    before = pc.if_else(has_point, point, pc.binary_length(text))  # the sign counts as a digit
    scale = pc.max(places).as_py() or 0
    # A cast checks neither: it wraps around beyond 38 digits.
    if (
        not pc.all(pc.match_substring_regex(text, "^-?[0-9.]+$")).as_py()
        or (pc.max(before).as_py() or 0) > _DIGITS - scale
    ):
        raise DatabaseError(
            f"Column {name!r} holds numbers that are NaN, infinite or have more than {_DIGITS} digits. Convert it by a "
            'query: CAST("column" AS double precision).'
        )
    return text.cast(pa.decimal128(_DIGITS, scale))
