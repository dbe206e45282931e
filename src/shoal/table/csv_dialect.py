"""CSV dialect, detected in the first megabyte of a file, and checks of the whole file.

Messages name lines, columns and byte offsets. They never show the content of a field, nor of a header that may be a
record.
"""

import codecs
import csv
import io
import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.errors import FileError, ParameterError
from shoal.table.clean import check_names

DELIMITERS = (",", ";", "\t", "|")
_SAMPLE = 1 << 20
_N_RECORDS = 200
_NUMBER_OR_DATE = re.compile(r"\s*([-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?|\d{4}-\d\d-\d\d.*)\s*", re.DOTALL)


def as_utf8(raw: Any, encoding: str, path: str) -> Any:
    """Return the bytes of a text file as UTF-8 without a byte order mark; raise if they do not match the encoding."""
    try:
        name = codecs.lookup(encoding).name
    except LookupError:
        raise ParameterError(
            f"encoding={encoding!r} is not known to Python. Use a name such as utf-8 or cp1252."
        ) from None
    if name not in ("utf-8", "utf-8-sig"):
        return _transcoded(raw, encoding, path)
    _check_utf8(raw, path)
    return raw[3:] if bytes(raw[:3]) == codecs.BOM_UTF8 else raw


def sample(raw: Any) -> str:
    """Return the beginning of a text, up to the last complete line of the first megabyte."""
    start = bytes(raw[:_SAMPLE])
    if len(raw) > _SAMPLE and b"\n" in start:
        start = start[: start.rindex(b"\n") + 1]
    return start.decode("utf-8", errors="ignore")


def find_delimiter(text: str, quote: str) -> str:
    """Return the delimiter that splits most records of a sample into the same, largest number of fields."""

    def score(delimiter: str) -> float:
        widths = [len(record) for record in records(text, delimiter, quote)]
        return (widths[0] - 1) * widths.count(widths[0]) / len(widths) if widths else 0.0

    return max(DELIMITERS, key=score)


def records(text: str, delimiter: str, quote: str) -> list[list[str]]:
    """Return the first records of a sample, without empty lines."""
    quoting: dict[str, Any] = {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE, "quotechar": None}
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, **quoting)
    found: list[list[str]] = []
    # A field longer than this reader accepts ends the sample.
    with suppress(csv.Error):
        found.extend(record for record in islice(reader, _N_RECORDS) if record)
    return found


def check_header(names: Sequence[str], path: str, trusted: bool) -> None:
    """Raise if the first line is not a header, without showing its content."""
    empty = [i for i, name in enumerate(names, 1) if not name.strip()]
    if empty:
        raise FileError(
            f"The first line of {path!r} leaves column(s) {_listed(empty)} without a name. Write a header line with a "
            "name for each column, or give names=[...] (with header=True to replace the first line by them)."
        )
    if trusted:
        check_names(names)
    first = {name: i for i, name in reversed(list(enumerate(names, 1)))}
    alike = [i for i, name in enumerate(names, 1) if first[name] != i]
    if alike:
        raise FileError(
            f"The first line of {path!r} gives column(s) {_listed(alike)} the name of an earlier column. Write a "
            "header line with a different name for each column, or give names=[...] (with header=True to "
            "replace the first line by them)."
        )
    records_like = [i for i, name in enumerate(names, 1) if _NUMBER_OR_DATE.fullmatch(name)]
    if records_like and not trusted:
        raise FileError(
            f"The first line of {path!r} looks like a record, not like a header: column(s) {_listed(records_like)} "
            "hold a number or a date. If it is a header, give header=True; if the file has no header, give names=[...]."
        )


def check_quotes(raw: Any, quote: str, delimiter: str, path: str) -> bool:
    """Return whether any field is quoted; raise if a quote opens or closes in the middle of a field.

    Otherwise a stray quote would silently merge the records that follow into one field.
    """
    if not quote:
        return False
    data = np.frombuffer(raw, dtype=np.uint8)
    at = _positions(data, quote)
    if len(at) == 0:
        return False
    ends = np.frombuffer(f"{delimiter}\n\r{quote}".encode(), dtype=np.uint8)
    opening, closing = at[0::2], at[1::2]
    opens_badly = (opening > 0) & ~np.isin(data[opening - 1], ends)
    closes_badly = (closing < len(data) - 1) & ~np.isin(data[np.minimum(closing + 1, len(data) - 1)], ends)
    bad = np.sort(np.concatenate([opening[opens_badly], closing[closes_badly], at[-1:] if len(at) % 2 else at[:0]]))
    if len(bad):
        raise FileError(
            f"{path!r} has a quote that neither begins nor ends a field, first in line {_line_of(data, int(bad[0]))}. "
            'Double it and quote the field, or give quote="" if the file does not use quoting.'
        )
    return True


def lines_of_records(raw: Any, quote: str, numbers: Sequence[int]) -> list[int]:
    """Return the line where each given record begins; records are numbered from 1, ignoring empty lines."""
    data = np.frombuffer(raw, dtype=np.uint8)
    ends = _positions(data, "\n")
    if quote:
        ends = ends[np.searchsorted(_positions(data, quote), ends) % 2 == 0]
    starts = np.concatenate([[0], ends + 1])
    ends = np.concatenate([ends, [len(data)]])
    returns = (ends > starts) & (data[np.maximum(ends - 1, 0)] == ord("\r"))
    starts = starts[ends - returns > starts]
    return [_line_of(data, int(starts[number - 1])) for number in numbers if number <= len(starts)]


def _positions(data: NDArray[np.uint8], character: str) -> NDArray[np.int64]:
    """Return the positions of a character, in chunks, to avoid a mask as long as the file."""
    step = 1 << 24
    pieces = [np.flatnonzero(data[i : i + step] == ord(character)) + i for i in range(0, len(data), step)]
    return np.concatenate(pieces) if pieces else np.empty(0, dtype=np.int64)


def _line_of(data: NDArray[np.uint8], offset: int) -> int:
    return 1 + int(np.count_nonzero(data[:offset] == ord("\n")))


def _transcoded(raw: Any, encoding: str, path: str) -> bytes:
    try:
        found = bytes(raw).decode(encoding).removeprefix("\ufeff").encode()
    except UnicodeDecodeError as error:
        raise FileError(
            f"{path!r} is not {encoding}: the byte at offset {error.start} is invalid. Give the encoding of the file "
            "with encoding=."
        ) from None
    _check_nul(found, path)
    return found


def _check_utf8(raw: Any, path: str) -> None:
    """Raise at the first byte that is not UTF-8, checked in chunks, or at a NUL character."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(raw), _SAMPLE):
        piece = bytes(raw[start : start + _SAMPLE])
        waiting = len(decoder.getstate()[0])
        try:
            decoder.decode(piece, final=start + _SAMPLE >= len(raw))
        except UnicodeDecodeError as error:
            raise _not_utf8(raw, start - waiting + error.start, path) from None
    _check_nul(raw, path)


def _check_nul(raw: Any, path: str) -> None:
    """Raise if a text has a NUL character, which ends a text for some programs."""
    data = np.frombuffer(raw, dtype=np.uint8)
    at = _positions(data, "\0")
    if len(at):
        raise FileError(
            f"{path!r} holds {len(at):,} NUL character(s), the first at offset {at[0]}, in line "
            f"{_line_of(data, int(at[0]))}: it is damaged, or not a text file. Remove them; or, if it is UTF-16, give "
            'encoding="utf-16".'
        )


def _not_utf8(raw: Any, offset: int, path: str) -> FileError:
    line = _line_of(np.frombuffer(raw, dtype=np.uint8), offset)
    guess = "utf-16" if bytes(raw[:2]) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "cp1252"
    return FileError(
        f"{path!r} is not UTF-8: the byte at offset {offset}, in line {line}, is invalid. Give the encoding of the "
        f'file, for instance encoding="{guess}".'
    )


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:5])) + (f" and {len(numbers) - 5} more" if len(numbers) > 5 else "")
