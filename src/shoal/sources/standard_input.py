"""Standard input as a table: its bytes are copied to a private file, and its format is given or detected.

Readers need a file: they look at its end before its start, or read it twice. The copy is readable by its owner only and
is removed when the program ends; that of a program that was killed, when the next one starts to read.
"""

import atexit
import shutil
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from shoal.errors import FileError, ParameterError
from shoal.files import hidden_folder, second_name, temporary_path
from shoal.sources.unpacking import PACKINGS
from shoal.spelling import setting

DASH = "-"
"""Stands for standard input, and for standard output, in place of a path."""

_STARTS = {
    b"PAR1": ".parquet",
    b"ARROW1": ".arrow",
    b"\xff\xff\xff\xff": ".arrow",
    b"PK\x03\x04": ".xlsx",
    b"\xd0\xcf\x11\xe0": ".xlsx",  # an encrypted workbook, which its reader refuses with the reason
    b"$FL2": ".sav",
    b"$FL3": ".zsav",
    b"<stata_dta>": ".dta",
    b"HEADER RECORD*******LIB": ".xpt",
    b"\0" * 12 + b"\xc2\xea\x81\x60": ".sas7bdat",
}
_PACKED_STARTS = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst", b"BZh": ".bz2", b"\xfd7zXZ\0": ".xz"}


class _Copy(NamedTuple):
    """The copy of a standard input."""

    stream: Any
    path: Path


_copies: list[_Copy] = []


def standard_input(format: str | None, known: Mapping[str, Any]) -> tuple[Path, tuple[str, ...]]:
    """Return a file with the bytes of standard input, named by its format, and what there is to say about it.

    Parameters
    ----------
    format : str or None
        The extension that a file of this content would have, without its first dot; detected by default.
    known : mapping of str to Format
        The formats by extension.
    """
    if format is not None and f".{format}" not in known:
        endings = ", ".join(ending[1:] for ending in known)
        raise ParameterError(
            f"{setting('format', format)} is not the extension of a known format. Extensions: {endings}."
        )
    copy = _copied()
    ending = f".{format}" if format else _detected(copy.path)
    named = copy.path.with_name(f"standard_input{ending}")
    if not named.exists():
        second_name(copy.path, named)
    notes = () if format else (f"Standard input is read as {known[ending].title} ({ending}), by its first bytes.",)
    return named, notes


def _copied() -> _Copy:
    """Return the copy of standard input, made when it is first asked for."""
    if _copies and _copies[-1].stream is sys.stdin:
        return _copies[-1]
    if sys.stdin is None or sys.stdin.isatty():
        raise FileError("The table is to be read from standard input (-), which is a terminal. Pipe a file into it.")
    place, stack = temporary_path("stdin"), ExitStack()
    atexit.register(stack.close)
    try:
        folder = stack.enter_context(hidden_folder(place))
        copy = _Copy(sys.stdin, folder / "bytes")
        with open(copy.path, "xb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
    except OSError as error:
        raise FileError(f"Standard input cannot be copied to {str(place.parent)!r}: {error.strerror}.") from None
    _copies.append(copy)
    return copy


def _detected(path: Path) -> str:
    """Return the extension that the first bytes of a file indicate."""
    with open(path, "rb") as file:
        start = file.read(64)
    for begins, ending in _STARTS.items():
        if start.startswith(begins):
            return ending
    for begins, packed in _PACKED_STARTS.items():
        if start.startswith(begins):
            return f"{_detected_text(_unpacked_start(path, packed))}{packed}"
    return _detected_text(start)


def _detected_text(start: bytes) -> str:
    return ".ndjson" if start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{") else ".csv"


def _unpacked_start(path: Path, packed: str) -> bytes:
    try:
        with PACKINGS[packed].reading(path) as file:
            return bytes(file.read(64))
    except Exception:  # damage is reported by the reader, which knows the whole file
        return b""
