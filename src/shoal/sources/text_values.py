"""Text values: null values, grouped numbers and dates of a given format, as they are written in texts."""

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import ParameterError
from shoal.sources.clean import nulled

_BLANKS = " \u00a0\u202f"
_PARTS = {"d": r"\d{1,2}", "m": r"\d{1,2}", "Y": r"\d{4}", "y": r"\d{2}", "j": r"\d{1,3}"}
_TIMES = dict.fromkeys("HIMS", r"\d{1,2}")
_NAMES = dict.fromkeys("bBhaAp", r"[^\W\d_]+\.?")
_MONTHS = tuple(
    "january february march april may june july august september october november december".split()  # noqa: SIM905
)
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_HALVES = ("am", "pm")
_NUMBER = f"(?P<number>[-+]?[0-9]+(?:[.,'\u2019{_BLANKS}][0-9]+)*)"
_WITH_UNIT = {"after": f"^{_NUMBER}(?P<unit>[^0-9]*)$", "before": f"^(?P<unit>[^-+0-9]*){_NUMBER}$"}


FORM = "form:"
"""Before a form that stands for all texts of this form, in a list of texts."""


def forms_of(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the form of each string: a run of digits is 9, one of letters a, one of blanks a blank; marks stay.

    Examples
    --------
    >>> forms_of(pa.chunked_array([["ca. 40", "12,5 kg", "n = 400", " 18-25 "]])).to_pylist()
    ['a. 9', '9,9 a', 'a = 9', '9-9']
    """
    text = pc.utf8_trim_whitespace(text)
    for pattern, sign in ((r"[\pL\pM]+", "a"), (r"[0-9]+", "9"), (rf"[\s{_BLANKS}]+", " ")):
        text = pc.replace_substring_regex(text, pattern, sign)
    return text


def is_among(text: pa.ChunkedArray, entries: Sequence[str]) -> pa.ChunkedArray:
    """Return which strings are in a list of texts and ``form:`` forms; surrounding whitespace is ignored."""
    forms = [entry.removeprefix(FORM) for entry in entries if entry.startswith(FORM)]
    found = pc.is_in(pc.utf8_trim_whitespace(text), value_set=pa.array([*entries], pa.string()))
    return pc.or_(found, pc.is_in(forms_of(text), value_set=pa.array(forms, pa.string()))) if forms else found


def without_nulls(text: pa.ChunkedArray, null_values: Sequence[str] | None) -> pa.ChunkedArray:
    """Return the strings with null values replaced by null; surrounding whitespace is ignored."""
    return nulled(text, is_among(text, null_values)) if null_values else text


def split_unit(text: pa.ChunkedArray, side: str) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Return numbers without the unit on one side of them, and the units in lower case; null for other texts.

    Examples
    --------
    >>> numbers, units = split_unit(pa.chunked_array([["12 kg", "1.5KG", "8", "n/a"]]), "after")
    >>> numbers.to_pylist(), units.to_pylist()
    (['12', '1.5', '8', None], ['kg', 'kg', '', None])
    """
    parts = pc.extract_regex(pc.utf8_trim_whitespace(text), _WITH_UNIT[side])
    return pc.struct_field(parts, "number"), pc.utf8_lower(pc.utf8_trim_whitespace(pc.struct_field(parts, "unit")))


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
                f"{piece!r} in {date_format!r} is unknown or occurs twice. Known: "
                f"{', '.join(f'%{letter}' for letter in known)}."
            )
    if not {"Y", "y"} & set(re.findall(r"P<(\w)>", pattern)):
        raise ParameterError(f"{date_format!r} has no year. Add %Y or %y.")
    return f"^{pattern}$"


def as_dates(text: pa.ChunkedArray, date_format: str) -> pa.ChunkedArray:
    """Parse strings as dates, or as timestamps if the format has a time; null where a string does not match."""
    pattern = pattern_of(date_format)
    parts = pc.extract_regex(text, pattern)
    letters = re.findall(r"P<(\w)>", pattern)
    if set(letters) & set(_NAMES):
        plain, date_format = _in_numbers({letter: pc.struct_field(parts, letter) for letter in letters})
    else:
        plain = nulled(text, pc.is_null(parts))
    found = pc.strptime(plain, format=date_format, unit="s", error_is_null=True)
    if "(?P<d>" in pattern:
        # Arrow parses 30 February as 1 March.
        same_day = pc.equal(pc.struct_field(parts, "d").cast(pa.int64()), pc.day(found))
        found = nulled(found, pc.invert(same_day))
    has_time = any(f"(?P<{letter}>" in pattern for letter in _TIMES)
    return found if has_time else found.cast(pa.date32())


def _in_numbers(parts: dict[str, pa.ChunkedArray]) -> tuple[pa.ChunkedArray, str]:
    """Return dates without names, and their format: Arrow knows the names of months on some systems only."""
    numbers = {letter: values for letter, values in parts.items() if letter not in _NAMES}
    is_other = [
        _place(parts[letter], names).is_null()
        for names, letters in ((_MONTHS, "bBh"), (_DAYS, "aA"), (_HALVES, "p"))
        for letter in letters
        if letter in parts
    ]
    for letter in "bBh":
        if letter in parts:
            numbers["m"] = pc.add(_place(parts[letter], _MONTHS), 1).cast(pa.string())
    if "p" in parts and "I" in parts:
        hours = numbers.pop("I").cast(pa.int64())
        is_other += [pc.less(hours, 1), pc.greater(hours, 12)]
        hours = pc.subtract(hours, pc.multiply(pc.equal(hours, 12).cast(pa.int64()), 12))
        numbers["H"] = pc.add(hours, pc.multiply(_place(parts["p"], _HALVES), 12)).cast(pa.string())
    joined = pc.binary_join_element_wise(*numbers.values(), " ")
    for other in is_other:
        joined = nulled(joined, other)
    return joined, " ".join(f"%{letter}" for letter in numbers)


def _place(values: pa.ChunkedArray, names: Sequence[str]) -> pa.ChunkedArray:
    """Return the place of each value among names, which may be cut after three letters."""
    lower = pc.utf8_lower(values)
    places = pc.index_in(lower, value_set=pa.array([*names, *(name[:3] for name in names)], pa.string()))
    places = places.cast(pa.int64())
    return pc.subtract(places, pc.multiply(pc.greater_equal(places, len(names)).cast(pa.int64()), len(names)))
