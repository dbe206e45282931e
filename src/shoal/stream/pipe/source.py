"""Source: a file or stdin, plain, gzip or zstd, read by a thread that waits while its queue is full.

Waiting on a queue, not on the file, lets the pipe check the clock and signals while no input comes. Once stopped, the
source reads nothing more and hands over all that it has read: a byte taken from a pipe exists nowhere else.
"""

import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Event, Thread

import pyarrow as pa

from shoal.errors import FileError, InputError
from shoal.system import system

CHUNK = 1 << 20
AHEAD = 4
"""Maximum number of pieces in the queue; it bounds the memory of a pipe whose consumer is slow."""


class TextSource:
    """Pieces of a text, as they come.

    Attributes
    ----------
    was_cut : bool
        Whether the text ended because reading was stopped, perhaps in the middle of a line.
    """

    def __init__(self, path: str | None, skip: int = 0) -> None:
        self.name = "stdin" if path is None else Path(path).name
        self.was_cut = False
        self._queue: Queue[bytes | BaseException | None] = Queue(AHEAD)
        self._stopped, self._closed = Event(), Event()
        try:
            self._file = sys.stdin.buffer if path is None else open(path, "rb")  # noqa: SIM115 - closed by the thread
        except OSError as error:
            raise FileError(f"{self.name} cannot be read: {error.strerror}.") from error
        self._reader = system.StoppableReader(self._file.fileno())
        self._thread = Thread(target=self._fill, args=(skip,), daemon=True, name="shoal-source")
        self._thread.start()

    def take(self, seconds: float) -> bytes | None:
        """Return the next piece, ``b""`` if none comes within this number of seconds, None at the end."""
        try:
            piece = self._queue.get(timeout=seconds)
        except Empty:
            return b""
        if isinstance(piece, BaseException):
            raise InputError(f"{self.name} cannot be read on: it is damaged or cut off.") from piece
        return piece

    def stop(self) -> None:
        """Read nothing more; what has been read can still be taken."""
        if not self._stopped.is_set():
            self._stopped.set()
            self._reader.stop()

    def close(self) -> None:
        """Stop, and discard what was not taken."""
        self._closed.set()
        self.stop()
        self._thread.join()
        self._reader.close()

    def _fill(self, skip: int) -> None:
        """Read until the end; errors are raised in the thread that takes the pieces."""
        try:
            for piece in _skipping(_pieces(self._read), skip):
                if not self._put(piece):
                    return
            self._put(None)
        except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
            # Compressed data cut by a stop end in the middle; that is no error.
            self._put(None if self.was_cut else error)
        finally:
            if self._file is not sys.stdin.buffer:
                self._file.close()

    def _read(self) -> bytes:
        """Return the next bytes, none at the end or once stopped."""
        found = self._reader.read(CHUNK)
        self.was_cut = self.was_cut or found is None
        return found or b""

    def _put(self, piece: bytes | BaseException | None) -> bool:
        while not self._closed.is_set():
            try:
                self._queue.put(piece, timeout=0.2)
                return True
            except Full:
                continue
        return False


Read = Callable[[], bytes]


def _pieces(read: Read) -> Iterator[bytes]:
    """Yield the text of a file as it comes, decompressed if its first bytes show that it is compressed."""
    first = read()
    while first and len(first) < 4:
        more = read()
        if not more:
            break
        first += more
    if first[:2] == b"\x1f\x8b":
        yield from _gunzip(first, read)
    elif first[:4] == b"\x28\xb5\x2f\xfd":
        yield from _unzstd(first, read)
    else:
        while first:
            yield first
            first = read()


def _gunzip(piece: bytes, read: Read) -> Iterator[bytes]:
    """Decompress gzip, including several concatenated members."""
    unpacker = zlib.decompressobj(wbits=31)
    while piece:
        out = unpacker.decompress(piece, CHUNK)
        if out:
            yield out
        piece = unpacker.unconsumed_tail
        if unpacker.eof:
            piece = unpacker.unused_data or read()
            unpacker = zlib.decompressobj(wbits=31)
            if not piece:
                return
        elif not piece:
            piece = read()
    raise EOFError("gzip data end too early")


def _unzstd(first: bytes, read: Read) -> Iterator[bytes]:
    unpacked = pa.CompressedInputStream(pa.PythonFile(_Rest(first, read), mode="r"), "zstd")
    while piece := unpacked.read(CHUNK):
        yield piece


class _Rest:
    """A file object that first returns bytes already read from the file."""

    closed = False

    def __init__(self, first: bytes, read: Read) -> None:
        self._held = first
        self._read = read

    def read(self, size: int = -1) -> bytes:
        self._held = self._held or self._read()
        piece, self._held = (self._held[:size], self._held[size:]) if size >= 0 else (self._held, b"")
        return piece

    def close(self) -> None:
        self.closed = True


def _skipping(pieces: Iterator[bytes], skip: int) -> Iterator[bytes]:
    """Skip this number of bytes at the beginning, which were read before a stop."""
    for piece in pieces:
        if skip >= len(piece):
            skip -= len(piece)
            continue
        yield piece[skip:]
        skip = 0
