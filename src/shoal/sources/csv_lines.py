"""What stands in a CSV file and is no part of its records: comments, and blanks beside the delimiters."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np


def without_comments(blocks: Iterable[bytes], mark: str | None, quote: str, in_lines: bool = True) -> Iterator[bytes]:
    """Yield a text without the lines that begin with a mark, but not within quotes.

    Such a line becomes an empty one with `in_lines`. In a file of one column, where it would be a missing value, it
    does not.
    """
    if mark is None:
        yield from blocks
        return
    # The text begins at the beginning of a line.
    line = re.compile(
        rb"(?:\A|(?<=[\r\n]))" + re.escape(mark.encode()) + rb"[^\r\n]*" + rb"(?:\r\n?|\n)?" * (not in_lines)
    )
    rest, n_quotes = b"", 0
    for block in chain(blocks, [b""]):
        raw = rest + block
        end = max(raw.rfind(b"\n"), raw.rfind(b"\r", 0, len(raw) - 1)) + 1 if block else len(raw)
        raw, rest = raw[:end], raw[end:]
        kept, at = [], 0
        for found in line.finditer(raw):
            kept.append(raw[at : found.start()])
            n_quotes += kept[-1].count(quote.encode()) if quote else 0
            at = found.start() if n_quotes % 2 else found.end()
        kept.append(raw[at:])
        n_quotes += kept[-1].count(quote.encode()) if quote else 0
        if lines := b"".join(kept):  # an empty block would be taken for the end
            yield lines


def without_blanks(raw: bytes, delimiter: str, quote: str) -> bytes:
    r"""Return whole records without the blanks at the beginning and the end of fields, but within quotes.

    Examples
    --------
    >>> without_blanks(b'a, b ,"c "\n1, 2 3,  " x, " ', ",", '"')
    b'a,b,"c "\n1,2 3," x, "'
    """
    data = np.frombuffer(raw, dtype=np.uint8)
    is_blank = np.isin(data, [ord(letter) for letter in " \t" if letter != delimiter])
    if quote:
        is_blank &= ~np.logical_xor.accumulate(data == ord(quote))
    edges = np.flatnonzero(np.diff(is_blank, prepend=False, append=False))
    starts, ends = edges[0::2], edges[1::2]
    around = np.frombuffer(b"\n" + raw + b"\n", dtype=np.uint8)
    borders = np.frombuffer(f"{delimiter}\r\n".encode(), dtype=np.uint8)
    is_outer = np.isin(around[starts], borders) | np.isin(around[ends + 1], borders)
    if not is_outer.any():
        return raw
    change = np.zeros(len(data) + 1, dtype=np.int8)
    change[starts[is_outer]], change[ends[is_outer]] = 1, -1
    return bytes(data[np.cumsum(change[:-1], dtype=np.int8) == 0])


def have_blanks(text: str, delimiter: str, quote: str) -> bool:
    """Return whether fields of the first line have blanks around them, or all of those below begin with one."""
    head, _, below = text.lstrip("\r\n").partition("\n")
    if without_blanks(head.encode(), delimiter, quote) != head.encode():
        return True
    n_delimiters = below.count(delimiter)
    return 0 < n_delimiters == below.count(f"{delimiter} ")
