"""Source: a file or stdin, plain, gzip or zstd, read by a thread that waits when nobody takes what it has read.

Waiting on a queue, not on the file, lets the pipe look at the clock and at signals while nothing comes.
"""

import os
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Any

import pyarrow as pa

from shoal.errors import FileError

CHUNK = 1 << 20
AHEAD = 4
"""How many pieces may wait: what bounds the memory of a pipe whose consumer is slow."""


class Source:
    """Pieces of a text, as they come."""

    def __init__(self, path: str | None, skip: int = 0) -> None:
        self.name = "stdin" if path is None else Path(path).name
        self._queue: Queue[bytes | BaseException | None] = Queue(AHEAD)
        self._closed = Event()
        try:
            self._file = sys.stdin.buffer if path is None else open(path, "rb")  # noqa: SIM115 - closed by the thread
        except OSError as error:
            raise FileError(f"{self.name} cannot be read: {error.strerror}.") from error
        self._thread = Thread(target=self._fill, args=(skip,), daemon=True, name="shoal-source")
        self._thread.start()

    def take(self, seconds: float) -> bytes | None:
        """Return the next piece, nothing (``b""``) if none comes within so many seconds, None at the end."""
        try:
            piece = self._queue.get(timeout=seconds)
        except Empty:
            return b""
        if isinstance(piece, BaseException):
            raise FileError(f"{self.name} cannot be read on: it is damaged or cut off.") from piece
        return piece

    def close(self) -> None:
        """Stop reading; a read from stdin that is under way cannot be stopped and ends with the process."""
        self._closed.set()
        if self._file is not sys.stdin.buffer:
            self._thread.join()

    def _fill(self, skip: int) -> None:
        """Read until the end; whatever goes wrong is told to the one who takes."""
        try:
            for piece in _skipping(_pieces(self._file), skip):
                if not self._put(piece):
                    return
            self._put(None)
        except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
            self._put(error)
        finally:
            if self._file is not sys.stdin.buffer:
                self._file.close()

    def _put(self, piece: bytes | BaseException | None) -> bool:
        while not self._closed.is_set():
            try:
                self._queue.put(piece, timeout=0.2)
                return True
            except Full:
                continue
        return False


def _pieces(file: Any) -> Iterator[bytes]:
    """Yield the text of a file as it comes, unpacked if its first bytes say that it is packed."""
    descriptor = file.fileno()
    first = os.read(descriptor, CHUNK)
    while first and len(first) < 4:
        more = os.read(descriptor, CHUNK)
        if not more:
            break
        first += more
    if first[:2] == b"\x1f\x8b":
        yield from _gunzip(first, descriptor)
    elif first[:4] == b"\x28\xb5\x2f\xfd":
        yield from _unzstd(first, descriptor)
    else:
        while first:
            yield first
            first = os.read(descriptor, CHUNK)


def _gunzip(piece: bytes, descriptor: int) -> Iterator[bytes]:
    """Unpack gzip, several members after one another included."""
    unpacker = zlib.decompressobj(wbits=31)
    while piece:
        out = unpacker.decompress(piece, CHUNK)
        if out:
            yield out
        piece = unpacker.unconsumed_tail
        if unpacker.eof:
            piece = unpacker.unused_data or os.read(descriptor, CHUNK)
            unpacker = zlib.decompressobj(wbits=31)
            if not piece:
                return
        elif not piece:
            piece = os.read(descriptor, CHUNK)
    raise EOFError("gzip data end too early")


def _unzstd(first: bytes, descriptor: int) -> Iterator[bytes]:
    unpacked = pa.CompressedInputStream(pa.PythonFile(_Rest(first, descriptor), mode="r"), "zstd")
    while piece := unpacked.read(CHUNK):
        yield piece


class _Rest:
    """A file that begins with bytes that were already read."""

    closed = False

    def __init__(self, first: bytes, descriptor: int) -> None:
        self._first = first
        self._descriptor = descriptor

    def read(self, size: int = -1) -> bytes:
        if self._first:
            piece, self._first = self._first[:size], self._first[size:]
            return piece
        return os.read(self._descriptor, CHUNK if size < 0 else size)

    def close(self) -> None:
        self.closed = True


def _skipping(pieces: Iterator[bytes], skip: int) -> Iterator[bytes]:
    """Leave out so many bytes at the beginning, which were read before a stop."""
    for piece in pieces:
        if skip >= len(piece):
            skip -= len(piece)
            continue
        yield piece[skip:]
        skip = 0
