"""CSV dialect, detected in the first megabyte of a file, and checks of the whole file.

Messages name lines, columns and byte offsets. They never show the content of a field, nor of a header that may be a
record.
"""

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.errors import FileError, ParameterError, listed
from shoal.sources.clean import check_names
from shoal.sources.csv_lines import without_blanks
from shoal.spelling import setting

DELIMITERS = (",", ";", "\t", "|")
_SAMPLE = 1 << 20
_N_RECORDS = 200
_LOOKED_AT, _NEARLY_ALL = 50, 0.8  # lines that may be the header; share of the lines below that have as many fields
_NUMBER_OR_DATE = re.compile(r"\s*([-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?|\d{4}-\d\d-\d\d.*)\s*", re.DOTALL)


def as_utf8(blocks: Iterable[bytes], encoding: str, path: str) -> Iterator[bytes]:
    """Yield the blocks of a text file as UTF-8 without a byte order mark; raise if they do not match the encoding."""
    try:
        b"".decode(encoding)
        is_utf8 = codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")
        decoder = codecs.getincrementaldecoder("utf-8" if is_utf8 else encoding)()
    except LookupError:
        raise ParameterError(
            f"{setting('encoding', encoding)} is not known to Python. Use a name such as utf-8 or cp1252."
        ) from None
    offset, line, start = 0, 1, b""
    for block in chain(blocks, [b""]):
        start = start or block[:2]
        waiting = len(decoder.getstate()[0])
        try:
            text = decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            at = error.start - waiting
            if is_utf8:
                raise _not_utf8(offset + at, line + block.count(b"\n", 0, max(at, 0)), start, path) from None
            raise FileError(
                f"{path!r} is not {encoding}: the byte at offset {offset + at} is invalid. Give the encoding of the "
                f"file with {setting('encoding')}."
            ) from None
        found = block if is_utf8 else text.encode()
        if b"\0" in found:
            at = found.index(b"\0")
            raise FileError(
                f"{path!r} holds a NUL character, in line {line + found[:at].count(10)}: it is damaged, or not a text "
                f"file. Remove it; or, if the file is UTF-16, give {setting('encoding', 'utf-16')}."
            )
        if found := found.removeprefix(codecs.BOM_UTF8) if offset == 0 else found:
            yield found
        offset, line = offset + len(block), line + block.count(b"\n")


def sample(raw: bytes, path: str) -> str:
    """Return the beginning of a text, up to the last complete line of the first megabyte."""
    start = raw[:_SAMPLE]
    if len(raw) > _SAMPLE and b"\n" in start:
        start = start[: start.rindex(b"\n") + 1]
    elif len(raw) > _SAMPLE and b"\r" not in start:
        raise FileError(
            f"The first line of {path!r} has more than 1 MB, which is too long for a header. Check that it is a CSV "
            "file with one record a line: JSON and XML are not."
        )
    return start.decode("utf-8", errors="ignore")


def find_delimiter(text: str, quote: str) -> str:
    """Return the delimiter that splits most records of a sample into the same, largest number of fields.

    If none splits the first one, the file has one column, and its delimiter is one that does not occur.
    """

    def score(delimiter: str) -> float:
        widths = [len(record) for record in records(text, delimiter, quote)]
        return (widths[0] - 1) * widths.count(widths[0]) / len(widths) if widths else 0.0

    best = max(DELIMITERS, key=score)
    return best if score(best) else next((each for each in DELIMITERS if each not in text), best)


def records(text: str, delimiter: str, quote: str) -> list[list[str]]:
    """Return the first records of a sample, without empty lines."""
    quoting: dict[str, Any] = {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE, "quotechar": None}
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, **quoting)
    found: list[list[str]] = []
    # A field longer than this reader accepts ends the sample.
    with suppress(csv.Error):
        found.extend(record for record in islice(reader, _N_RECORDS) if record)
    return found


def after_lines(blocks: Iterable[bytes], n_lines: int, path: str) -> Iterator[bytes]:
    """Yield the blocks of a text without its first lines: those above the header."""
    left, end = n_lines, b"\n"
    for number, block in enumerate(blocks):
        if number == 0 and b"\n" not in block:
            end = b"\r"
        at = 0
        while left and (found := block.find(end, at)) >= 0:
            at, left = found + 1, left - 1
        if not left and at < len(block):
            yield block[at:]
    if left:
        raise FileError(
            f"{setting('header_row', n_lines + 1)} is given, but {path!r} has {n_lines - left:,} lines. Give the "
            "number of the line that names the columns, counted from 1."
        )


def likely_header(
    text: str, quote: str, delimiters: Sequence[str] = DELIMITERS, *, of_numbers: bool = False
) -> int | None:
    """Return the first line that could name the columns of nearly all lines below it, counted from 1.

    With `of_numbers` names may be numbers, such as years.
    """
    lines = text.splitlines()[: _LOOKED_AT + _N_RECORDS]
    best, found = 0.0, None
    for delimiter in delimiters:
        split = [next(iter(records(line, delimiter, quote)), []) for line in lines]
        for number, names in enumerate(split[:_LOOKED_AT], 1):
            below = [len(record) for record in split[number:] if record]
            if len(names) < 2 or not below or not (of_numbers or could_name(names)):
                continue
            share = below.count(len(names)) / len(below)
            if share >= _NEARLY_ALL and (len(names) - 1) * share > best:
                best, found = (len(names) - 1) * share, number
                break
    return found


def could_name(names: Sequence[str]) -> bool:
    """Return whether texts could be the names of columns: none is empty, a number or a date."""
    return all(name.strip() and not _NUMBER_OR_DATE.fullmatch(name) for name in names)


def check_header(names: Sequence[str], path: str, trusted: bool, line: int = 1, likely: int | None = None) -> None:
    """Raise if a line is not a header, without showing its content; `likely` is one that could be."""
    which = f"{'The first line' if line == 1 else f'Line {line}'} of {path!r}"
    below = f"If line {likely} is the header, give {setting('header_row', likely)}. " if (likely or 0) > line else ""
    replacing = f"{setting('names', [...])} (with {setting('header', True)} to replace the line by them)"
    empty = [i for i, name in enumerate(names, 1) if not name.strip()]
    if empty:
        raise FileError(
            f"{which} leaves column(s) {listed(empty, 5)} without a name. {below}Write a header line with a name for "
            f"each column, or give {replacing}."
        )
    if names and names[0].startswith("#") and not trusted:
        raise FileError(
            f"{which} begins with '#', as comments do. If lines that begin with it are comments, give "
            f"{setting('comment', '#')}; if it is the header, give {setting('header', True)}."
        )
    if len(names) == 1 and below and not trusted:
        raise FileError(
            f"{which} has one field, and most lines below have several, as below a title. {below}If the file has one "
            f"column, give {setting('header', True)}."
        )
    if trusted:
        check_names(names)
    first = {name: i for i, name in reversed(list(enumerate(names, 1)))}
    alike = [i for i, name in enumerate(names, 1) if first[name] != i]
    if alike:
        raise FileError(
            f"{which} gives column(s) {listed(alike, 5)} the name of an earlier column. Write a header line with a "
            f"different name for each column, or give {replacing}."
        )
    records_like = [i for i, name in enumerate(names, 1) if _NUMBER_OR_DATE.fullmatch(name)]
    if records_like and not trusted:
        raise FileError(
            f"{which} looks like a record, not like a header: column(s) {listed(records_like, 5)} hold a number or a "
            f"date. {below}If it is a header, give {setting('header', True)}; if the file has no header, give "
            f"{setting('names', [...])}."
        )


class Piece(NamedTuple):
    """Whole records of a file, as UTF-8."""

    raw: bytes
    line: int
    """Number of lines before it."""

    has_quotes: bool

    def without_empty_lines(self) -> "Piece":
        """Return the piece without line ends at its beginning: before a header they do not stand for missing values."""
        raw = self.raw.lstrip(b"\r\n")
        return Piece(raw, self.line + self.raw.count(b"\n", 0, len(self.raw) - len(raw)), self.has_quotes)


def pieces(
    blocks: Iterable[bytes],
    quote: str,
    delimiter: str,
    path: str,
    longest: int | None = None,
    line: int = 0,
    *,
    strips: bool = False,
) -> Iterator[Piece]:
    """Yield the records of a file, as many at a time as end in a block; `line` lines are above them.

    With `strips` they have no blanks around their fields.

    Raises
    ------
    FileError
        If a quote opens or closes in the middle of a field: it would silently merge the records that follow into one
        field. Or if a record has more than `longest` bytes.
    """
    rest = b""
    for block in chain(blocks, [b""]):
        raw = rest + block
        quotes = _positions(raw, quote)
        end = _end_of_records(raw, quotes) if block else len(raw)
        # Also of a record that goes on: reading on until it ends could take the whole file.
        whole, n_whole = (raw[:end], int(np.searchsorted(quotes, end))) if end else (raw, len(quotes) // 2 * 2)
        quotes = quotes[:n_whole]
        if strips:
            whole = without_blanks(whole, delimiter, quote)
            quotes = _positions(whole, quote)[:n_whole]
        bad = _misplaced(whole, quotes, delimiter, quote)
        if bad is not None:
            raise _misplaced_quote(whole, bad, line, delimiter, quote, path)
        if end:
            yield Piece(whole, line, n_whole > 0)
            line += whole.count(b"\n")
        rest = raw[end:]
        if longest is not None and len(rest) > longest:
            raise FileError(
                f"The record in line {line + 1} of {path!r} has more than {longest:,} bytes, which is too many to read "
                f"the file in batches. If the file has no quotes, give {setting('quote', '')}; otherwise shorten the "
                "field."
            )


def _misplaced_quote(raw: bytes, bad: int, line: int, delimiter: str, quote: str, path: str) -> FileError:
    """Return the error that names its line; blanks beside the delimiter may be all that is wrong."""
    plain = without_blanks(raw, delimiter, quote)
    only_blanks = plain != raw and _misplaced(plain, _positions(plain, quote), delimiter, quote) is None
    what = (
        f"If blanks beside the delimiter are no part of the fields, give {setting('blanks', 'strip')}; otherwise double"
        if only_blanks
        else "Double"
    )
    return FileError(
        f"{path!r} has a quote that neither begins nor ends a field, first in line {line + _line_of(raw, bad)}. {what} "
        f"it and quote the field, or give {setting('quote', '')} if the file does not use quoting."
    )


def _end_of_records(raw: bytes, quotes: NDArray[np.int64]) -> int:
    """Return where the last line ends that does not end within quotes, 0 if there is none."""
    # A line end in two blocks is none yet.
    mark, stop = (b"\n", len(raw)) if b"\n" in raw else (b"\r", len(raw) - 1)
    end = raw.rfind(mark, 0, stop)
    while end >= 0 and (n_before := int(np.searchsorted(quotes, end))) % 2:
        end = raw.rfind(mark, 0, int(quotes[n_before - 1]))
    return end + 1


def _misplaced(raw: bytes, at: NDArray[np.int64], delimiter: str, quote: str) -> int | None:
    """Return the position of the first quote that opens or closes in the middle of a field, None if there is none."""
    if len(at) == 0:
        return None
    data = np.frombuffer(raw, dtype=np.uint8)
    ends = np.frombuffer(f"{delimiter}\n\r{quote}".encode(), dtype=np.uint8)
    opening, closing = at[0::2], at[1::2]
    opens_badly = (opening > 0) & ~np.isin(data[opening - 1], ends)
    closes_badly = (closing < len(data) - 1) & ~np.isin(data[np.minimum(closing + 1, len(data) - 1)], ends)
    bad = np.concatenate([opening[opens_badly], closing[closes_badly], at[-1:] if len(at) % 2 else at[:0]])
    return int(bad.min()) if len(bad) else None


def lines_of_records(raw: bytes, quote: str, numbers: Sequence[int]) -> list[int]:
    """Return the line where each given record begins; records are numbered from 1, ignoring empty lines."""
    data = np.frombuffer(raw, dtype=np.uint8)
    ends = _positions(raw, "\n")
    ends = ends[np.searchsorted(_positions(raw, quote), ends) % 2 == 0]
    starts = np.concatenate([[0], ends + 1])
    ends = np.concatenate([ends, [len(data)]])
    returns = (ends > starts) & (data[np.maximum(ends - 1, 0)] == ord("\r"))
    starts = starts[ends - returns > starts]
    return [_line_of(raw, int(starts[number - 1])) for number in numbers if number <= len(starts)]


def _positions(raw: bytes, character: str) -> NDArray[np.int64]:
    """Return the positions of a character."""
    if not character or character.encode() not in raw:
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(np.frombuffer(raw, dtype=np.uint8) == ord(character))


def _line_of(raw: bytes, offset: int) -> int:
    return 1 + raw.count(b"\n", 0, offset)


def _not_utf8(offset: int, line: int, start: bytes, path: str) -> FileError:
    guess = "utf-16" if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "cp1252"
    return FileError(
        f"{path!r} is not UTF-8: the byte at offset {offset}, in line {line}, is invalid. Give the encoding of the "
        f"file, for instance {setting('encoding', guess)}."
    )
