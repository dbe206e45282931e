"""Type inference for CSV columns, based on all values of a column.

A column gets a type only if every value has that type and the conversion is lossless: codes with a leading zero or
plus and integers of more than 64 bits stay text.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal import kernels
from shoal.errors import FileError
from shoal.table.csv_fields import FieldReading, as_dates, grouped_pattern, ungrouped, without_nulls

_WHOLE = r"^-?[0-9]+$"
_BOOLEAN = r"^(true|false|True|False|TRUE|FALSE)$"
_AFTER_ZERO = np.frombuffer(b"0123456789xX", dtype=np.uint8)
_N_FIRST = 100


class Typed(NamedTuple):
    """A typed column, and the decimal mark that its values use ("" if none does)."""

    column: pa.ChunkedArray
    mark: str


Attempt = Callable[[pa.ChunkedArray], Typed | None]


def infer(
    table: pa.Table, whole_file: FieldReading, fields: Mapping[str, FieldReading], path: str, *, has_quotes: bool
) -> tuple[pa.Table, str]:
    """Return the table with a type for each column, and the decimal mark, given or detected.

    Without quotes in the file no text is empty: an empty field is a missing value.
    """

    def typed_column(name: str) -> Typed:
        own = fields.get(name, FieldReading())
        text = without_nulls(table[name], own.null_values)
        found = _typed(text, own.over(whole_file), may_be_empty=has_quotes)
        if own.is_typed:
            _refuse_unread(found.column, own, name)
            return Typed(found.column, "")
        return found

    # If several columns cannot be read, the first of them is named, whatever the threads.
    with ThreadPoolExecutor(kernels.n_threads()) as pool:
        typed = list(pool.map(typed_column, table.column_names))
    by_mark = {mark: [n for n, t in zip(table.column_names, typed, strict=True) if t.mark == mark] for mark in ".,"}
    if by_mark["."] and by_mark[","]:
        raise FileError(
            f"{path!r} has decimal commas in {_listed(by_mark[','])} and decimal points in {_listed(by_mark['.'])}. "
            'Choose one with decimal="," or decimal="."; the other columns then stay text.'
        )
    found = whole_file.decimal or ("," if by_mark[","] else ".")
    return pa.table([t.column for t in typed], names=table.column_names), found


def typed_field(name: str, text: pa.ChunkedArray, how: FieldReading) -> pa.ChunkedArray:
    """Return a column of texts as numbers or dates, as its options specify; raise if a value does not match."""
    found = _typed(text, how).column
    _refuse_unread(found, how, name)
    return found


def with_iso_dates(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of texts as dates or timestamps if all of them are ISO 8601; otherwise unchanged."""
    first = text.drop_null().slice(0, _N_FIRST)
    for attempt in (_dates, *_TIMESTAMPS) if len(first) else ():
        if attempt(first) is not None and (found := attempt(text)) is not None:
            return found.column
    return text


def _typed(text: pa.ChunkedArray, how: FieldReading, may_be_empty: bool = True) -> Typed:
    # A quoted empty field is an empty string; among numbers or dates it can only mean a missing value.
    is_empty = pc.equal(text, "") if may_be_empty else None
    present = text if is_empty is None or not _some(is_empty) else pc.if_else(is_empty, None, text)
    first = present.slice(0, _N_FIRST * _N_FIRST).drop_null().slice(0, _N_FIRST)
    if len(first) == 0:
        first = present.drop_null().slice(0, _N_FIRST)
    if len(first) == 0:
        return Typed(text, "")
    for attempt in _attempts(how):
        # The first few values rule out most types; only the remaining types are tried on all, where failing is slow.
        if attempt(first) is not None and (found := attempt(present)) is not None:
            return found
    return Typed(text, "")


def _attempts(how: FieldReading) -> list[Attempt]:
    """Return the types to try, those specified by the caller first."""
    asked = [_formatted_dates(how.date_format)] if how.date_format else []
    if how.thousands:
        asked.append(_grouped(how.thousands, how.decimal_mark or "."))
    marks = how.decimal_mark or ".,"
    return [*asked, _wholes, *(_reals(mark) for mark in marks), _booleans, _dates, *_TIMESTAMPS]


def _refuse_unread(values: pa.ChunkedArray, how: FieldReading, name: str) -> None:
    """Raise if the options given for a single column do not match all of its values."""
    if not pa.types.is_string(values.type) or values.null_count == len(values):
        return
    odd = pc.invert(_fits(values, how)).combine_chunks()
    what = "dates of this format" if how.date_format else "numbers with these marks"
    raise FileError(
        f"Column {name!r} is specified to hold {what}, but {pc.sum(odd).as_py():,} of its values do not match, the "
        f"first in record {np.asarray(odd.fill_null(False)).argmax()}. Give the right format or marks, or, if these "
        "values stand for missing ones, null_values=[...] for this column."
    )


def _fits(text: pa.ChunkedArray, how: FieldReading) -> pa.ChunkedArray:
    """Return which values match the options of the column."""
    if how.date_format:
        return pc.is_valid(as_dates(text, how.date_format))
    trimmed = pc.utf8_trim_whitespace(text)
    return pc.match_substring_regex(trimmed, grouped_pattern(how.thousands or " ", how.decimal_mark or "."))


def _formatted_dates(date_format: str) -> Attempt:
    """Return an attempt to parse dates of this format."""

    def attempt(text: pa.ChunkedArray) -> Typed | None:
        found = as_dates(text, date_format)
        return Typed(found, "") if found.null_count == text.null_count else None

    return attempt


def _grouped(thousands: str, decimal: str) -> Attempt:
    """Return an attempt to parse numbers with a thousands separator."""

    def attempt(text: pa.ChunkedArray) -> Typed | None:
        text = pc.utf8_trim_whitespace(text)
        if not _all(pc.match_substring_regex(text, grouped_pattern(thousands, decimal))):
            return None
        plain = ungrouped(text, thousands, decimal)
        marked = _some(pc.match_substring(plain, "."))
        found = _cast(plain, pa.float64() if marked else pa.int64())
        return None if found is None or _has_codes(plain) else Typed(found, decimal if marked else "")

    return attempt


def _wholes(text: pa.ChunkedArray) -> Typed | None:
    found = _cast(text, pa.int64())
    if found is None:
        text = pc.ascii_trim_whitespace(text)
        found = _cast(text, pa.int64())
    return None if found is None or _has_codes(text) else Typed(found, "")


def _reals(mark: str) -> Attempt:
    """Return an attempt to parse numbers with this decimal mark."""

    def attempt(text: pa.ChunkedArray) -> Typed | None:
        text = pc.ascii_trim_whitespace(text)
        marked = _some(pc.match_substring(text, mark))
        if mark == ",":
            if _some(pc.match_substring(text, ".")):
                return None
            text = pc.replace_substring(text, ",", ".")
        found = _cast(text, pa.float64())
        if found is None or not _some(pc.is_finite(found)) or _has_codes(text):
            return None
        # Integers that do not fit into 64 bits, which a float would round.
        if not marked and _all(pc.match_substring_regex(text, _WHOLE)) and _cast(text, pa.int64()) is None:
            return None
        return Typed(found, mark if marked else "")

    return attempt


def _has_codes(text: pa.ChunkedArray) -> bool:
    """Return whether any value has a leading plus, or a zero before another digit (or an x)."""
    return any(_has_code(chunk) for chunk in text.chunks)


def _has_code(text: pa.StringArray) -> bool:
    _, offsets, data = text.buffers()
    if data is None:
        return False
    letters = np.frombuffer(data, dtype=np.uint8)
    at = np.frombuffer(offsets, dtype=np.int32)[text.offset : text.offset + len(text) + 1]
    if at[0] == at[-1]:
        return False
    first = letters.take(at[:-1], mode="clip")  # an empty text at the end has no letter
    odd = np.flatnonzero((first == ord("+")) | (first == ord("-")) | (first == ord("0")))
    start, end = at[odd], at[odd + 1]
    start, end = start[end - start > 1], end[end - start > 1]
    if (letters[start] == ord("+")).any():
        return True
    start = start + (letters[start] == ord("-"))
    start = start[(end - start > 1) & (letters[start] == ord("0"))]
    return bool(np.isin(letters[start + 1], _AFTER_ZERO).any())


def _booleans(text: pa.ChunkedArray) -> Typed | None:
    return Typed(pc.cast(text, pa.bool_()), "") if _all(pc.match_substring_regex(text, _BOOLEAN)) else None


def _dates(text: pa.ChunkedArray) -> Typed | None:
    found = _cast(text, pa.date32())
    return None if found is None else Typed(found, "")


def _timestamps(unit: str, zoned: bool) -> Attempt:
    """Return an attempt to parse ISO 8601 timestamps at this unit, in the one zone that all of them have, if any."""

    def attempt(text: pa.ChunkedArray) -> Typed | None:
        found = _cast(text, pa.timestamp(unit, "UTC" if zoned else None))
        if found is None or not zoned:
            return None if found is None else Typed(found, "")
        zones = offsets(text)
        # The day and the month of a time are those of its own zone, which a column has only one of.
        return Typed(found.cast(pa.timestamp(unit, zones.pop())), "") if len(zones) == 1 else None

    return attempt


def offsets(text: pa.ChunkedArray) -> set[str]:
    """Return the different offsets from UTC at the end of texts, such as ``+13:00``; one of zero is ``UTC``."""
    found = pc.struct_field(pc.extract_regex(text, r"(?P<zone>Z|[-+][0-9]{2}(?::?[0-9]{2})?)\s*$"), "zone")
    plain = {zone.replace(":", "").ljust(5, "0") for zone in pc.unique(found).drop_null().to_pylist()}
    return {"UTC" if zone[1:] == "0000" else f"{zone[:3]}:{zone[3:]}" for zone in plain}


# The coarsest lossless unit is used.
_TIMESTAMPS = [_timestamps(unit, zoned) for zoned in (False, True) for unit in ("s", "ms", "us", "ns")]


def _cast(text: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    try:
        return pc.cast(text, kind)
    except pa.ArrowInvalid:
        return None


def _some(mask: pa.ChunkedArray) -> bool:
    return bool(pc.any(mask).as_py())


def _all(mask: pa.ChunkedArray) -> bool:
    return bool(pc.all(mask).as_py())


def _listed(names: list[str]) -> str:
    return ", ".join(repr(name) for name in names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
