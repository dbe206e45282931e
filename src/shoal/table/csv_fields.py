"""Fields: how the texts of one CSV column are to be read, where its owner says so.

Missing values, the decimal mark, the mark between thousands and the format of dates; for all columns or for one. What
is said for one column has to fit every text of it: a reading that fits only some of them is refused.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import ParameterError
from shoal.table.clean import check_wanted

_BLANKS = " \u00a0\u202f"
_PARTS = {"d": r"\d{1,2}", "m": r"\d{1,2}", "Y": r"\d{4}", "y": r"\d{2}", "j": r"\d{1,3}"}
_TIMES = dict.fromkeys("HIMS", r"\d{1,2}")
_NAMES = dict.fromkeys("bBhaAp", r"[^\W\d_]+\.?")


@dataclass(frozen=True)
class FieldReading:
    """How the fields of a column are read.

    Attributes
    ----------
    null_values : tuple of str
        Texts that mean a missing value, quoted or not.
    decimal, thousands : str or None
        Marks in numbers.
    date_format : str or None
        Format of dates, as in ``%d.%m.%Y``.
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
                f"thousands={mark!r} cannot be used here; it is one mark such as ',' or '.' and not the decimal mark."
            )
        if self.date_format is not None:
            pattern_of(self.date_format)

    @property
    def is_typed(self) -> bool:
        """Whether it says what the texts are, numbers or dates, and not only which of them are missing."""
        return not (self.decimal is None and self.thousands is None and self.date_format is None)

    @property
    def decimal_mark(self) -> str | None:
        """The decimal mark, given or the one that goes with the mark between thousands."""
        return self.decimal or (None if self.thousands is None else "," if self.thousands == "." else ".")

    def over(self, whole_file: "FieldReading") -> "FieldReading":
        """Return this, completed by what is said about the whole file."""
        given = {field.name: getattr(self, field.name) for field in fields(self) if getattr(self, field.name)}
        if "decimal" in given and "thousands" not in given and whole_file.thousands == given["decimal"]:
            given["thousands"] = None
        if "thousands" in given and "decimal" not in given and whole_file.decimal == given["thousands"]:
            given["decimal"] = None
        return replace(whole_file, **given)


def as_fields(given: Mapping[str, Any] | None, names: Sequence[str]) -> dict[str, FieldReading]:
    """Return what was said about single columns, or say which column or setting there is not."""
    if given is None:
        return {}
    check_wanted(list(given), names)
    known = [field.name for field in fields(FieldReading)]
    found = {}
    for name, settings in given.items():
        unknown = sorted(set(settings) - set(known))
        if unknown:
            raise ParameterError(
                f"There is no key {unknown[0]!r} for the fields of a column. Known: {', '.join(known)}."
            )
        null_values = settings.get("null_values") or ()
        if isinstance(null_values, str):
            raise ParameterError("null_values must be a list of texts, as in null_values=['NA'].")
        found[name] = FieldReading(**{**settings, "null_values": tuple(null_values)})
    return found


def without_nulls(text: pa.ChunkedArray, null_values: Sequence[str]) -> pa.ChunkedArray:
    """Return the texts with null in place of those that mean a missing value; blanks around them do not count."""
    if not null_values:
        return text
    is_missing = pc.is_in(pc.utf8_trim_whitespace(text), value_set=pa.array([*null_values], pa.string()))
    return pc.if_else(is_missing, None, text)


def grouped_pattern(thousands: str, decimal: str) -> str:
    """Return the pattern of a number whose thousands are set apart, in part or not at all."""
    mark = f"[{_BLANKS}]" if thousands in _BLANKS else re.escape(thousands)
    return rf"^[-+]?([1-9][0-9]{{0,2}}({mark}[0-9]{{3}})+|[0-9]+)({re.escape(decimal)}[0-9]+)?$"


def ungrouped(text: pa.ChunkedArray, thousands: str, decimal: str) -> pa.ChunkedArray:
    """Return numbers as they are written without a mark between thousands, and with a decimal point."""
    for mark in _BLANKS if thousands in _BLANKS else thousands:
        text = pc.replace_substring(text, mark, "")
    return text if decimal == "." else pc.replace_substring(text, decimal, ".")


def pattern_of(date_format: str) -> str:
    """Return the pattern of the texts that a format of dates describes.

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
                f"date_format={date_format!r} cannot be used: {piece!r} is unknown or stands twice. Known: "
                f"{', '.join(f'%{letter}' for letter in known)}."
            )
    if not {"Y", "y"} & set(re.findall(r"P<(\w)>", pattern)):
        raise ParameterError(f"date_format={date_format!r} cannot be used: it names no year. Write %Y or %y.")
    return f"^{pattern}$"


def as_dates(text: pa.ChunkedArray, date_format: str) -> pa.ChunkedArray:
    """Return texts as dates, or times if the format has one; null where a text is none."""
    pattern = pattern_of(date_format)
    parts = pc.extract_regex(text, pattern)
    found = pc.strptime(pc.if_else(pc.is_valid(parts), text, None), format=date_format, unit="s", error_is_null=True)
    if "(?P<d>" in pattern:
        # Arrow takes 30 February for 1 March.
        same_day = pc.equal(pc.struct_field(parts, "d").cast(pa.int64()), pc.day(found))
        found = pc.if_else(same_day, found, None)
    has_time = any(f"(?P<{letter}>" in pattern for letter in _TIMES)
    return found if has_time else found.cast(pa.date32())
