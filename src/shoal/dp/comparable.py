"""Comparable: the key by which a value is compared, which depends on that value alone.

The type of a column may depend on one record: a single `2.5` turns the integers of a file into floats, a single word
turns them into text, one missing value turns the integers of a frame into floats. `1`, `1.0`, ` 1` and "1" are
therefore one value here, whatever else the column holds.
"""

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from math import isnan
from typing import Any

import pyarrow as pa

from shoal.columns.prepare import decoded
from shoal.columns.schema import is_text

# A value with a leading plus or zero is a code and stays text, as when a CSV file is read.
_NUMBER = re.compile(
    r"\s*-?(?:(?:0|[1-9][0-9]*)(?:[.,][0-9]*)?(?:e[+-]?[0-9]+)?|[.,][0-9]+(?:e[+-]?[0-9]+)?|inf(?:inity)?|nan)\s*",
    re.IGNORECASE,
)
_TRUTH = re.compile(r"true|false|True|False|TRUE|FALSE")
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T][0-9].*)?")


class ValueForm(StrEnum):
    """The form of a value."""

    NUMBER = "number"
    TRUTH = "truth value"
    DATE = "date"
    TEXT = "text"


Comparable = tuple[ValueForm, object]


def comparable(value: Any) -> Comparable | None:
    """Return the key by which a value is compared; None for a missing one, such as NaN and the empty string.

    Examples
    --------
    >>> comparable(1) == comparable(1.0) == comparable("1") == comparable(" 1.0"), comparable("01")
    (True, (<ValueForm.TEXT: 'text'>, '01'))
    """
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return ValueForm.TRUTH, value
    if isinstance(value, int | float | Decimal):
        return _number(float(value))
    if isinstance(value, date):
        return ValueForm.DATE, _moment(value)
    return _read(value) if isinstance(value, str) else (ValueForm.TEXT, value)


def comparables(values: pa.Array | pa.ChunkedArray) -> list[Comparable | None]:
    """Return the keys of the values of a column; nanoseconds are ignored."""
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us", values.type.tz), safe=False)
    return [comparable(value) for value in values.to_pylist()]


def form_of(type_: pa.DataType) -> ValueForm | None:
    """Return the form of the values of a type, None if they cannot be compared."""
    types = pa.types
    if types.is_dictionary(type_):
        return form_of(type_.value_type)
    if types.is_integer(type_) or types.is_floating(type_) or types.is_decimal(type_):
        return ValueForm.NUMBER
    if types.is_date(type_) or types.is_timestamp(type_):
        return ValueForm.DATE
    if types.is_boolean(type_):
        return ValueForm.TRUTH
    return ValueForm.TEXT if is_text(type_) or types.is_null(type_) else None


def as_floats(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return numbers as float64, each converted independently of the other values of the column."""
    values = decoded(values)
    # The precision of a decimal column depends on its longest value; as text each number is independent.
    return (values.cast(pa.string()) if pa.types.is_decimal(values.type) else values).cast(pa.float64(), safe=False)


def _read(text: str) -> Comparable | None:
    """Parse a string as a CSV reader might."""
    if _NUMBER.fullmatch(text):
        return _number(float(text.replace(",", ".")))
    if _TRUTH.fullmatch(text):
        return ValueForm.TRUTH, text.lower() == "true"
    if _MOMENT.fullmatch(text):
        try:
            return ValueForm.DATE, _moment(datetime.fromisoformat(text))
        except ValueError:
            pass
    return ValueForm.TEXT, text


def _number(number: float) -> Comparable | None:
    return None if isnan(number) else (ValueForm.NUMBER, number + 0.0)


def _moment(value: date) -> datetime:
    if not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return value if value.tzinfo is None else value.astimezone(UTC)
