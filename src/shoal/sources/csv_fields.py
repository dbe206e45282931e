"""CSV fields: how the values of a column are parsed, where the caller specifies it.

Null values, decimal mark, thousands separator and date format, for all columns or for one. Settings of a single column
must match every value of it; otherwise they are refused.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import ParameterError
from shoal.sources.clean import check_wanted, nulled

_BLANKS = " \u00a0\u202f"
_PARTS = {"d": r"\d{1,2}", "m": r"\d{1,2}", "Y": r"\d{4}", "y": r"\d{2}", "j": r"\d{1,3}"}
_TIMES = dict.fromkeys("HIMS", r"\d{1,2}")
_NAMES = dict.fromkeys("bBhaAp", r"[^\W\d_]+\.?")


@dataclass(frozen=True)
class FieldReading:
    """Parsing options for the fields of a column.

    Attributes
    ----------
    null_values : tuple of str
        Strings that mean a missing value, quoted or not.
    decimal, thousands : str or None
        Decimal mark and thousands separator.
    date_format : str or None
        Date format, as in ``%d.%m.%Y``.
    """

    null_values: tuple[str, ...] = ()
    decimal: str | None = None
    thousands: str | None = None
    date_format: str | None = None

    def __post_init__(self) -> None:
        if self.decimal not in (None, ".", ","):
            raise ParameterError(f"decimal={self.decimal!r} cannot be used here; it is '.' or ','.")
        mark = self.thousands
        if mark is not None and (len(mark) != 1 or mark.isalnum() or mark in "+-" or mark == self.decimal):
            raise ParameterError(
                f"thousands={mark!r} cannot be used here; it must be one character such as ',' or '.' and differ from "
                "the decimal mark."
            )
        if self.date_format is not None:
            pattern_of(self.date_format)

    @property
    def is_typed(self) -> bool:
        """Whether it specifies the type, number or date, and not only null values."""
        return not (self.decimal is None and self.thousands is None and self.date_format is None)

    @property
    def decimal_mark(self) -> str | None:
        """The decimal mark, given or implied by the thousands separator."""
        return self.decimal or (None if self.thousands is None else "," if self.thousands == "." else ".")

    def over(self, whole_file: "FieldReading") -> "FieldReading":
        """Return these options, completed by those of the whole file."""
        given = {field.name: getattr(self, field.name) for field in fields(self) if getattr(self, field.name)}
        if "decimal" in given and "thousands" not in given and whole_file.thousands == given["decimal"]:
            given["thousands"] = None
        if "thousands" in given and "decimal" not in given and whole_file.decimal == given["thousands"]:
            given["decimal"] = None
        return replace(whole_file, **given)


def as_fields(given: Mapping[str, Any] | None, names: Sequence[str]) -> dict[str, FieldReading]:
    """Return the options of single columns; raise if a column or an option is unknown."""
    if given is None:
        return {}
    check_wanted(list(given), names)
    known = [field.name for field in fields(FieldReading)]
    found = {}
    for name, settings in given.items():
        unknown = sorted(set(settings) - set(known))
        if unknown:
            raise ParameterError(f"Unknown key {unknown[0]!r} for the fields of a column. Keys: {', '.join(known)}.")
        null_values = settings.get("null_values") or ()
        if isinstance(null_values, str):
            raise ParameterError("null_values must be a list of strings, as in null_values=['NA'].")
        found[name] = FieldReading(**{**settings, "null_values": tuple(null_values)})
    return found


def without_nulls(text: pa.ChunkedArray, null_values: Sequence[str]) -> pa.ChunkedArray:
    """Return the strings with null values replaced by null; surrounding whitespace is ignored."""
    if not null_values:
        return text
    is_missing = pc.is_in(pc.utf8_trim_whitespace(text), value_set=pa.array([*null_values], pa.string()))
    return nulled(text, is_missing)


def grouped_pattern(thousands: str, decimal: str) -> str:
    """Return the pattern of a number with optional thousands separators."""
    mark = f"[{_BLANKS}]" if thousands in _BLANKS else re.escape(thousands)
    return rf"^[-+]?([1-9][0-9]{{0,2}}({mark}[0-9]{{3}})+|[0-9]+)({re.escape(decimal)}[0-9]+)?$"


def ungrouped(text: pa.ChunkedArray, thousands: str, decimal: str) -> pa.ChunkedArray:
    """Return numbers without thousands separators and with a decimal point."""
    for mark in _BLANKS if thousands in _BLANKS else thousands:
        text = pc.replace_substring(text, mark, "")
    return text if decimal == "." else pc.replace_substring(text, decimal, ".")


def pattern_of(date_format: str) -> str:
    """Return the regular expression that matches a date format.

    Examples
    --------
    >>> re.fullmatch(pattern_of("%d.%m.%Y"), "31.12.1980")["d"]
    '31'
    """
    known, pattern, rest = _PARTS | _TIMES | _NAMES, "", date_format
    while rest:
        piece, rest = (rest[:2], rest[2:]) if rest[0] == "%" else (rest[0], rest[1:])
        if piece[0] != "%" or piece == "%%":
            pattern += re.escape(piece[-1])
        elif piece[1:] in known and f"P<{piece[1]}>" not in pattern:
            pattern += f"(?P<{piece[1]}>{known[piece[1]]})"
        else:
            raise ParameterError(
                f"date_format={date_format!r} cannot be used: {piece!r} is unknown or occurs twice. Known: "
                f"{', '.join(f'%{letter}' for letter in known)}."
            )
    if not {"Y", "y"} & set(re.findall(r"P<(\w)>", pattern)):
        raise ParameterError(f"date_format={date_format!r} cannot be used: it has no year. Add %Y or %y.")
    return f"^{pattern}$"


def as_dates(text: pa.ChunkedArray, date_format: str) -> pa.ChunkedArray:
    """Parse strings as dates, or as timestamps if the format has a time; null where a string does not match."""
    pattern = pattern_of(date_format)
    parts = pc.extract_regex(text, pattern)
    found = pc.strptime(nulled(text, pc.is_null(parts)), format=date_format, unit="s", error_is_null=True)
    if "(?P<d>" in pattern:
        # Arrow parses 30 February as 1 March.
        same_day = pc.equal(pc.struct_field(parts, "d").cast(pa.int64()), pc.day(found))
        found = nulled(found, pc.invert(same_day))
    has_time = any(f"(?P<{letter}>" in pattern for letter in _TIMES)
    return found if has_time else found.cast(pa.date32())
