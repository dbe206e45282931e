"""Type inference for CSV columns, based on all values of a column.

A column gets a type only if every value has that type and the conversion is lossless: codes with a leading zero or
plus and integers of more than 64 bits stay text.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal import kernels
from shoal.errors import FileError
from shoal.table.clean import nulled
from shoal.table.csv_fields import FieldReading, as_dates, grouped_pattern, ungrouped, without_nulls

_WHOLE = r"^-?[0-9]+$"
_BOOLEAN = r"^(true|false|True|False|TRUE|FALSE)$"
_AFTER_ZERO = np.frombuffer(b"0123456789xX", dtype=np.uint8)
_N_FIRST = 100


class Typed(NamedTuple):
    """A typed column, the decimal mark that its values use ("" if none does), and whether it took the date format."""

    column: pa.ChunkedArray
    mark: str
    took_format: bool = False


Attempt = Callable[[pa.ChunkedArray], Typed | None]


def infer(
    table: pa.Table,
    whole_file: FieldReading,
    fields: Mapping[str, FieldReading],
    path: str,
    *,
    has_quotes: bool,
    is_whole: bool = True,
) -> tuple[pa.Table, str]:
    """Return the table with a type for each column, and the decimal mark, given or detected.

    Without quotes in the file no text is empty: an empty field is a missing value. Whether a format for all columns has
    an effect is only known if the table is the whole file, and not some of its columns.
    """

    def typed_column(name: str) -> Typed:
        own = fields.get(name, FieldReading())
        text = without_nulls(table[name], own.null_values)
        if own.is_typed:
            return Typed(typed_field(name, text, own, own.over(whole_file)), "")
        return _typed(text, _attempts(own.over(whole_file)), may_be_empty=has_quotes)

    # If several columns cannot be read, the first of them is named, whatever the threads.
    with ThreadPoolExecutor(kernels.n_threads()) as pool:
        typed = list(pool.map(typed_column, table.column_names))
    by_mark = {mark: [n for n, t in zip(table.column_names, typed, strict=True) if t.mark == mark] for mark in ".,"}
    if by_mark["."] and by_mark[","]:
        raise FileError(
            f"{path!r} has decimal commas in {_listed(by_mark[','])} and decimal points in {_listed(by_mark['.'])}. "
            'Choose one with decimal="," or decimal="."; the other columns then stay text.'
        )
    if whole_file.date_format and is_whole and table.num_rows and not any(t.took_format for t in typed):
        raise FileError(
            f"date_format={whole_file.date_format!r} has no effect: no column of {path!r} without a format of its own "
            "has only values that match it. Correct it, or leave it out: dates in ISO 8601 need none. If some values "
            "stand for missing ones, give null_values=[...]."
        )
    found = whole_file.decimal or ("," if by_mark[","] else ".")
    return pa.table([t.column for t in typed], names=table.column_names), found


def typed_field(
    name: str, text: pa.ChunkedArray, how: FieldReading, completed: FieldReading | None = None
) -> pa.ChunkedArray:
    """Return a column of texts as numbers or dates, as its options specify; raise if a value does not match.

    The options may be `completed` by those of the whole file.
    """
    wanted = completed or how
    numbers = _numbers(wanted) if how.thousands or how.decimal else []
    found = _typed(text, [*([_formatted_dates(how.date_format)] if how.date_format else []), *numbers]).column
    _refuse_unread(found, how, name)
    return found


def with_iso_dates(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of texts as dates or timestamps if all of them are ISO 8601; otherwise unchanged."""
    first = text.drop_null().slice(0, _N_FIRST)
    for attempt in (_dates, *_TIMESTAMPS) if len(first) else ():
        if attempt(first) is not None and (found := attempt(text)) is not None:
            return found.column
    return text


def _typed(text: pa.ChunkedArray, attempts: Sequence[Attempt], may_be_empty: bool = True) -> Typed:
    # A quoted empty field is an empty string; among numbers or dates it can only mean a missing value.
    is_empty = pc.equal(text, "") if may_be_empty else None
    present = text if is_empty is None or not _some(is_empty) else nulled(text, is_empty)
    first = present.slice(0, _N_FIRST * _N_FIRST).drop_null().slice(0, _N_FIRST)
    if len(first) == 0:
        first = present.drop_null().slice(0, _N_FIRST)
    if len(first) == 0:
        return Typed(text, "")
    for attempt in attempts:
        # The first few values rule out most types; only the remaining types are tried on all, where failing is slow.
        if attempt(first) is not None and (found := attempt(present)) is not None:
            return found
    return Typed(text, "")


def _attempts(how: FieldReading) -> list[Attempt]:
    """Return the types to try, those specified by the caller first."""
    dates = [_formatted_dates(how.date_format)] if how.date_format else []
    return [*dates, *_numbers(how), _booleans, _dates, *_TIMESTAMPS]


def _numbers(how: FieldReading) -> list[Attempt]:
    """Return the types of numbers to try."""
    grouped = [_grouped(how.thousands, how.decimal_mark or ".")] if how.thousands else []
    return [*grouped, _wholes, *(_reals(mark) for mark in how.decimal_mark or ".,")]


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
        return Typed(found, "", True) if found.null_count == text.null_count else None

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


def _timestamps(unit: str, zone: str | None) -> Attempt:
    """Return an attempt to parse ISO 8601 timestamps at this unit, converted to UTC if there is a zone."""

    def attempt(text: pa.ChunkedArray) -> Typed | None:
        found = _cast(text, pa.timestamp(unit, zone))
        return None if found is None else Typed(found, "")

    return attempt


# The coarsest lossless unit is used.
_TIMESTAMPS = [_timestamps(unit, zone) for zone in (None, "UTC") for unit in ("s", "ms", "us", "ns")]


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
