"""Unpacking: compressed text files, and the limit on what any file may expand to.

A few megabytes can decompress to thousands of times as much, so every reader of a format that can expand has a limit.
"""

import bz2
import gzip
import lzma
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa

from shoal.errors import FileError
from shoal.spelling import setting

MAX_UNPACKED_GB = 2.0
"""Default limit, in GB of 10^9 bytes."""

_PIECE = 1 << 22


class _Streams:
    """Decompresses the streams of a file, one after another.

    The readers of the standard library ignore what follows a stream and is not one, such as a second one with a damaged
    start. Here it is an error. Zero bytes between streams are padding.
    """

    def __init__(self, path: Any, make: Callable[[], Any]) -> None:
        self._file, self._make = open(path, "rb"), make  # noqa: SIM115 - closed at the end of the block
        self._stream: Any = None

    def __enter__(self) -> "_Streams":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self, size: int) -> bytes:
        """Return some bytes, at most `size`; none at the end of the last stream."""
        found = b""
        while not found:
            if self._stream is None or self._stream.eof:
                given = self._start()
                if not given:
                    return b""
                self._stream = self._make()
            elif self._stream.needs_input:
                given = self._file.read(_PIECE)
                if not given:
                    raise EOFError
            else:
                given = b""
            found = self._stream.decompress(given, size)
        return found

    def _start(self) -> bytes:
        """Return the first bytes of the next stream; none if there is no further one."""
        found = b"" if self._stream is None else self._stream.unused_data.lstrip(b"\0")
        while not found and (piece := self._file.read(_PIECE)):
            found = piece.lstrip(b"\0")
        return bytes(found)


@contextmanager
def _only_member(path: Path) -> Iterator[Any]:
    """Open the only file in a ZIP archive; what programs add beside it for their own use does not count."""
    with zipfile.ZipFile(path) as archive:
        members = [
            each for each in archive.infolist() if not each.is_dir() and not each.filename.startswith("__MACOSX/")
        ]
        if len(members) != 1:
            raise FileError(f"{path.name!r} is an archive of {len(members)} files, and one table is read. Unpack it.")
        if members[0].flag_bits & 1:
            raise FileError(f"{path.name!r} is encrypted: it opens with a password only. Unpack it.")
        with archive.open(members[0]) as member:
            yield member


class _Packing(NamedTuple):
    """A compression: its name, and streams that decompress a path and compress into a file."""

    name: str
    reading: Callable[[Any], Any]
    writing: Callable[[Any], Any] = nullcontext


_ARCHIVES = {".zip": _Packing("ZIP", _only_member)}
"""Archives by extension, which are read if they hold one file, and not written."""


PACKINGS = {
    # Neither name nor timestamp, so that the same table gives the same bytes.
    ".gz": _Packing("gzip", gzip.GzipFile, lambda file: gzip.GzipFile("", "wb", 6, file, mtime=0)),
    ".zst": _Packing(
        "zstd",
        lambda path: pa.CompressedInputStream(pa.OSFile(str(path)), "zstd"),
        lambda file: pa.CompressedOutputStream(file, "zstd"),
    ),
    ".bz2": _Packing("bzip2", lambda path: _Streams(path, bz2.BZ2Decompressor), lambda file: bz2.BZ2File(file, "wb")),
    ".xz": _Packing("xz", lambda path: _Streams(path, lzma.LZMADecompressor), lambda file: lzma.LZMAFile(file, "wb")),  # noqa: SIM115 - the caller closes it
}
"""Compressions of text files by extension."""


def packed_endings(*endings: str) -> tuple[str, ...]:
    """Return extensions of text files, plain and with each compression."""
    return tuple(f"{ending}{packed}" for packed in ("", *PACKINGS, *_ARCHIVES) for ending in endings)


def archived_endings(*endings: str) -> tuple[str, ...]:
    """Return extensions of text files in archives, which are not written."""
    return tuple(f"{ending}{archive}" for archive in _ARCHIVES for ending in endings)


class SizeLimit:
    """Largest size to which a file may expand.

    Examples
    --------
    >>> SizeLimit(Path(__file__), 0.5).n_bytes
    500000000
    """

    def __init__(self, path: Path, max_unpacked_gb: float | None = None) -> None:
        gb = MAX_UNPACKED_GB if max_unpacked_gb is None else max_unpacked_gb
        self.path, self.gb, self.n_bytes = path, gb, int(min(gb * 1e9, 2**62))

    def check(self, n_bytes: int) -> None:
        """Raise if the file expands to more than the limit."""
        if n_bytes > self.n_bytes:
            raise FileError(
                f"{self.path.name!r} has {os.path.getsize(self.path):,} bytes and unpacks to more than {self.gb:g} GB, "
                "which may exceed the available memory. If this size is expected, raise the limit with "
                f"{setting('max_unpacked_gb')}."
            )


def unpacked(path: Path, max_unpacked_gb: float | None = None, size: int = _PIECE) -> Iterator[bytes]:
    """Yield the content of a file in blocks of at most `size` bytes, decompressed if its extension asks for it."""
    packing = (PACKINGS | _ARCHIVES).get(path.suffix.lower())
    limit = SizeLimit(path, max_unpacked_gb)
    if packing is None:
        with open(path, "rb") as file:
            yield from iter(partial(file.read, size), b"")
        return
    n_bytes = 0
    try:
        with packing.reading(path) as file:
            while piece := file.read(size):
                n_bytes += len(piece)
                limit.check(n_bytes)
                yield piece
    except (PermissionError, FileError):
        raise
    except (OSError, EOFError, NotImplementedError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, pa.ArrowException):
        raise FileError(f"{path.name!r} is not a complete {packing.name} file. Download or write it again.") from None


def packed(file: BinaryIO, ending: str) -> AbstractContextManager[Any]:
    """Return the stream to write to: one that compresses into the file, or the file itself."""
    packing = PACKINGS.get(f".{ending.rpartition('.')[2]}")
    return nullcontext(file) if packing is None else packing.writing(file)
