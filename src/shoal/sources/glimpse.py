"""Glimpse: the first and last lines of a text file, or rows of a sheet, as they are, also where reading is refused.

It is for the screen of somebody who decides how the file is to be read.
"""

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shoal.errors import ParameterError
from shoal.sources.csv_dialect import find_delimiter, records
from shoal.sources.reading import Reading
from shoal.sources.unpacking import unpacked
from shoal.spelling import setting

FIRST, LAST = 12, 6
"""Lines or rows that are shown of the beginning and of the end."""

_LONGEST, _START = 400, 1 << 16
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

Lines = list[tuple[int, list[str]]]
"""Numbers, from 1, and cells; a line of a text is one cell."""


@dataclass(frozen=True)
class Glimpse:
    """What a file looks like.

    Attributes
    ----------
    first, last : list of (number, cells)
        The lines or rows at the beginning and at the end; none is in both.
    header : list of str
        The cells of the line or row that names the columns, or would by default.
    """

    first: Lines
    last: Lines
    header: list[str]


def text_glimpse(path: Path, reading: Reading) -> Glimpse:
    """Return the lines of a text file; bytes that do not match its encoding become replacement marks."""
    first: Lines = []
    last: Lines = []
    start, number, rest = "", 0, ""
    for text in _texts(path, reading):
        start += text[: max(_START - len(start), 0)]
        lines = (rest + text).split("\n")
        rest = lines.pop()[: _LONGEST + 1]
        if len(lines) > FIRST + LAST and number >= FIRST:  # only the last ones count
            number, lines = number + len(lines) - LAST, lines[-LAST:]
        for line in lines:
            number += 1
            _add(first, last, number, line)
    if rest:
        _add(first, last, number + 1, rest)
    return Glimpse(first, last, _header(start, reading))


def _texts(path: Path, reading: Reading) -> Iterator[str]:
    """Yield a file as text."""
    blocks = unpacked(path, reading.max_unpacked_gb)
    block = next(blocks, b"")
    encoding = reading.encoding or ("utf-16" if block[:2] in _MARKS else "utf-8-sig")
    try:
        decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    except LookupError:
        raise ParameterError(f"{setting('encoding', encoding)} is not known.") from None
    yield decoder.decode(block)
    yield from map(decoder.decode, blocks)


def _add(first: Lines, last: Lines, number: int, line: str) -> None:
    shown = (number, [line.rstrip("\r")[:_LONGEST]])
    if len(first) < FIRST:
        first.append(shown)
    else:
        last.append(shown)
        del last[:-LAST]


def _header(start: str, reading: Reading) -> list[str]:
    """Return the fields of the line that names the columns."""
    above, quote = (reading.header_row or 1) - 1, '"' if reading.quote is None else reading.quote
    text = "\n".join(start.splitlines()[above:])
    return next(iter(records(text, reading.delimiter or find_delimiter(text, quote), quote)), [])
