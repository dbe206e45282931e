"""Inference: which type the texts of a CSV column have, decided on all of them.

A column gets a type only if every text in it has that type and nothing is lost by it: codes with a leading zero or
plus and whole numbers of more than 64 bits stay text.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import FileError

_CODE = r"^\s*([-+]?0[0-9xX]|\+)"
_WHOLE = r"^\s*-?[0-9]+\s*$"
_BOOLEAN = r"^(true|false|True|False|TRUE|FALSE)$"
_N_FIRST = 100


class Typed(NamedTuple):
    """A column with its type, and the decimal mark that some of its texts used ("" if none did)."""

    column: pa.ChunkedArray
    mark: str


def infer(table: pa.Table, decimal: str | None, path: str) -> tuple[pa.Table, str]:
    """Return the table of texts with a type for each column, and the decimal mark, found if it was not given."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        typed = list(pool.map(lambda column: _typed(column, decimal), table.columns))
    by_mark = {mark: [n for n, t in zip(table.column_names, typed, strict=True) if t.mark == mark] for mark in ".,"}
    if by_mark["."] and by_mark[","]:
        raise FileError(
            f"{path!r} has decimal commas in {_listed(by_mark[','])} and decimal points in {_listed(by_mark['.'])}. "
            'Say which one it is: decimal="," or decimal="."; the other columns then stay text.'
        )
    found = decimal or ("," if by_mark[","] else ".")
    return pa.table([t.column for t in typed], names=table.column_names), found


def _typed(text: pa.ChunkedArray, decimal: str | None) -> Typed:
    # A quoted empty field is an empty text; among numbers or dates it can only mean that there is none.
    present = pc.if_else(pc.equal(text, ""), None, text)
    first = present.slice(0, _N_FIRST * _N_FIRST).drop_null().slice(0, _N_FIRST)
    if len(first) == 0:
        first = present.drop_null().slice(0, _N_FIRST)
    if len(first) == 0:
        return Typed(text, "")
    marks = [decimal] if decimal else [".", ","]
    for attempt in (*(_numbers(mark) for mark in marks), _booleans, _dates, _timestamps):
        # The first few texts rule out most types; only what they leave open is tried on all.
        if attempt(first) is not None and (found := attempt(present)) is not None:
            return found
    return Typed(text, "")


def _numbers(mark: str) -> Callable[[pa.ChunkedArray], Typed | None]:
    """Return an attempt to read numbers with this decimal mark."""

    def attempt(text: pa.ChunkedArray) -> Typed | None:
        if _some(pc.match_substring_regex(text, _CODE)):
            return None
        trimmed = pc.ascii_trim_whitespace(text)
        whole = _cast(trimmed, pa.int64())
        if whole is not None:
            return Typed(whole, "")
        marked = _some(pc.match_substring(trimmed, mark))
        if mark == ",":
            if _some(pc.match_substring(trimmed, ".")):
                return None
            trimmed = pc.replace_substring(trimmed, ",", ".")
        real = _cast(trimmed, pa.float64())
        if real is None or not _some(pc.is_finite(real)) or _all(pc.match_substring_regex(trimmed, _WHOLE)):
            return None
        return Typed(real, mark if marked else "")

    return attempt


def _booleans(text: pa.ChunkedArray) -> Typed | None:
    return Typed(pc.cast(text, pa.bool_()), "") if _all(pc.match_substring_regex(text, _BOOLEAN)) else None


def _dates(text: pa.ChunkedArray) -> Typed | None:
    found = _cast(text, pa.date32())
    return None if found is None else Typed(found, "")


def _timestamps(text: pa.ChunkedArray) -> Typed | None:
    """Read ISO 8601 at the coarsest unit that loses nothing; with a zone offset, as instants in UTC."""
    for zone in (None, "UTC"):
        for unit in ("s", "ms", "us", "ns"):
            found = _cast(text, pa.timestamp(unit, zone))
            if found is not None:
                return Typed(found, "")
    return None


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
