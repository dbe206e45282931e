"""Unpacking: compressed text files, and the limit on what any file may expand to.

A few megabytes can decompress to thousands of times as much, so every reader of a format that can expand has a limit.
"""

import bz2
import gzip
import lzma
import os
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa

from shoal.errors import FileError, ParameterError

MAX_UNPACKED_GB = 2.0
"""Default limit, in GB of 10^9 bytes."""

_PIECE = 1 << 22


class _Packing(NamedTuple):
    """A compression: its name, and streams that decompress a path and compress into a file."""

    name: str
    reading: Callable[[Any], Any]
    writing: Callable[[Any], Any]


PACKINGS = {
    # Neither name nor timestamp, so that the same table gives the same bytes.
    ".gz": _Packing("gzip", gzip.GzipFile, lambda file: gzip.GzipFile("", "wb", 6, file, mtime=0)),
    ".zst": _Packing(
        "zstd",
        lambda path: pa.CompressedInputStream(pa.OSFile(str(path)), "zstd"),
        lambda file: pa.CompressedOutputStream(file, "zstd"),
    ),
    ".bz2": _Packing("bzip2", bz2.BZ2File, lambda file: bz2.BZ2File(file, "wb")),
    ".xz": _Packing("xz", lzma.LZMAFile, lambda file: lzma.LZMAFile(file, "wb")),  # noqa: SIM115 - the caller closes it
}
"""Compressions of text files by extension."""


def packed_endings(*endings: str) -> tuple[str, ...]:
    """Return extensions of text files, plain and with each compression."""
    return tuple(f"{ending}{packed}" for packed in ("", *PACKINGS) for ending in endings)


class Limit:
    """Largest size to which a file may expand.

    Examples
    --------
    >>> Limit(Path(__file__), 0.5).n_bytes
    500000000
    """

    def __init__(self, path: Path, max_unpacked_gb: float | None = None) -> None:
        given = MAX_UNPACKED_GB if max_unpacked_gb is None else max_unpacked_gb
        if isinstance(given, bool) or not isinstance(given, int | float) or not given > 0:
            raise ParameterError(f"max_unpacked_gb={given!r} must be a number above 0.")
        self.path, self.gb, self.n_bytes = path, given, int(min(given * 1e9, 2**62))

    def check(self, n_bytes: int) -> None:
        """Raise if the file expands to more than the limit."""
        if n_bytes > self.n_bytes:
            raise FileError(
                f"{self.path.name!r} has {os.path.getsize(self.path):,} bytes and unpacks to more than {self.gb:g} GB, "
                "which may exceed the available memory. If this size is expected, raise the limit with "
                "max_unpacked_gb= (--max-unpacked-gb)."
            )


def unpacked(path: Path, max_unpacked_gb: float | None = None) -> bytearray | None:
    """Return the decompressed content of a file, None if its extension is that of no compression."""
    packing = PACKINGS.get(path.suffix.lower())
    limit = Limit(path, max_unpacked_gb)
    if packing is None:
        return None
    content = bytearray()
    try:
        with packing.reading(path) as file:
            while piece := file.read(_PIECE):
                content += piece
                limit.check(len(content))
    except (PermissionError, FileError):
        raise
    except (OSError, EOFError, zlib.error, lzma.LZMAError, pa.ArrowException):
        raise FileError(f"{path.name!r} is not a complete {packing.name} file. Download or write it again.") from None
    return content


def packed(file: BinaryIO, ending: str) -> AbstractContextManager[Any]:
    """Return the stream to write to: one that compresses into the file, or the file itself."""
    packing = PACKINGS.get(f".{ending.rpartition('.')[2]}")
    return nullcontext(file) if packing is None else packing.writing(file)
