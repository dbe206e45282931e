"""Values of databases as Arrow: text that is checked, decimals, and dates that exist."""

import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import DatabaseError, FileError

_DAYS = (-719_162, 2_932_896)  # 0001-01-01 and 9999-12-31
_DIGITS = 38


def checked(arrow: pa.Table) -> pa.Table:
    """Return the records; raise if a text is not UTF-8, or a date is infinite or outside the years 1 to 9999."""
    for name, column in zip(arrow.column_names, arrow.columns, strict=True):
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            _check_text(name, column)
        elif pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
            _check_dates(name, column)
    return arrow


def _check_text(name: str, column: pa.ChunkedArray) -> None:
    try:
        column.validate(full=True)
    except pa.ArrowException:  # its message may contain a value
        raise DatabaseError(
            f"Column {name!r} holds text that is not UTF-8. Repair it in the database, or leave the column out by a "
            "query."
        ) from None


def _check_dates(name: str, column: pa.ChunkedArray) -> None:
    per_day = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
    is_date = pa.types.is_date32(column.type)
    ends = pc.min_max(column.cast(pa.int32() if is_date else pa.int64())).as_py()
    unit = 1 if is_date else per_day[column.type.unit] if pa.types.is_timestamp(column.type) else per_day["ms"]
    if ends["min"] is not None and not (_DAYS[0] * unit <= ends["min"] and ends["max"] < (_DAYS[1] + 1) * unit):
        raise DatabaseError(
            f"Column {name!r} holds dates that are infinite or outside the years 1 to 9999. Replace them by a query, "
            "with NULL for instance."
        )


def in_microseconds(name: str, column: pa.ChunkedArray, title: str) -> pa.ChunkedArray:
    """Return timestamps in microseconds, in UTC if they have a zone; raise if some are finer."""
    try:
        return column.cast(pa.timestamp("us", "UTC" if column.type.tz else None))
    except pa.ArrowInvalid:  # its message contains a value
        raise FileError(
            f"Column {name!r} has times finer than a microsecond, which {title} cannot store. Round them, or write "
            "Parquet."
        ) from None


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
