"""Sink: the output of lines, stdout or a file, plain, gzip or zstd; a file can be continued after an earlier run.

A write is complete or fails. A descriptor may take fewer bytes than it was given (a signal, a non-blocking pipe, an
unbuffered stdout), so the rest is written again until all bytes are out; stopping the pipe sets a time limit.
"""

import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from shoal.errors import FileError, OutageError, ParameterError
from shoal.sources.unpacking import PACKINGS
from shoal.system import system

_MOST = 1 << 30  # bytes of one write; some systems refuse 2 GB
_GLANCE = 0.2  # seconds between two questions whether to give up, while the reader takes nothing


class Sink:
    """An output. `n_bytes` counts the bytes written.

    Parameters
    ----------
    path : str or None
        None is stdout. A file is created, or emptied, at the first write; until then an old one is unchanged.
    resume_at : int, optional
        Position at which an earlier run stopped; the rest of the file is cut off.
    force : bool
        Replace an existing file. An empty one is written in any case: it holds nothing, and a run that is killed
        before it has written anything leaves one.
    private : bool
        Let only the owner read the file.
    gives_up : callable, optional
        Called now and then while the reader takes nothing; returns whether to stop waiting for it.
    """

    def __init__(
        self,
        path: str | None,
        resume_at: int | None = None,
        *,
        force: bool = False,
        private: bool = False,
        gives_up: Callable[[], bool] = lambda: False,
    ) -> None:
        self.path = path
        self.n_bytes = resume_at or 0
        self._private = private
        self._gives_up = gives_up
        self._is_new = self._is_finished = False
        self._replaces = False
        try:
            self._open(resume_at, force)
        except OSError as error:
            raise self._refusal(error) from error

    @cached_property
    def _packer(self) -> Any:
        plain = _Packed(self._put)
        return PACKINGS[Path(self.path).suffix].writing(plain) if self.path and is_packed(self.path) else plain

    @property
    def name(self) -> str:
        """The name for messages."""
        return "stdout" if self.path is None else Path(self.path).name

    def _open(self, resume_at: int | None, force: bool) -> None:
        if self.path is None:
            sys.stdout.flush()
            self._descriptor = _descriptor_of(sys.stdout.buffer)
        elif resume_at is not None:
            self._reopen(resume_at)
        elif os.path.lexists(self.path) and not _is_special(self.path):
            if not force and os.path.getsize(self.path):
                raise FileError(f"{self.name} exists already. Choose another name, or replace it with --force.")
            self._descriptor = system.open_bytes(self.path, os.O_WRONLY)
            self._replaces = True
        else:
            self._is_new = not os.path.lexists(self.path)
            made = os.O_CREAT | os.O_EXCL if self._is_new else 0
            self._descriptor = system.open_bytes(self.path, os.O_WRONLY | made, private=self._private)
        is_file = self._descriptor >= 0 and stat.S_ISREG(os.fstat(self._descriptor).st_mode)
        self._pipe = None if is_file or self._descriptor < 0 else system.PatientWriter(self._descriptor)

    def _reopen(self, resume_at: int) -> None:
        """Continue a file; what was written after the last checkpoint is written again."""
        assert self.path is not None
        self._descriptor = system.open_bytes(self.path, os.O_RDWR)
        if os.fstat(self._descriptor).st_size < resume_at:
            raise ParameterError(f"{self.name} is shorter than it was at the checkpoint; it is another file.")
        if not resume_at:
            self._replaces = True
            return
        os.ftruncate(self._descriptor, resume_at)
        os.lseek(self._descriptor, resume_at, os.SEEK_SET)

    def write(self, content: bytes) -> None:
        """Write all bytes, waiting until there is room."""
        if content:
            self._packer.write(content)

    def _put(self, content: bytes) -> None:
        """Write bytes until all of them are out."""
        self._begin()
        rest = memoryview(content)
        while rest:
            try:
                written = self._offer(rest)
            except BlockingIOError:
                continue
            except BrokenPipeError:
                raise
            except OSError as error:
                raise self._refusal(error) from error
            rest = rest[written:]
            self.n_bytes += written

    def _offer(self, rest: memoryview) -> int:
        """Write some bytes; give up if the reader of a pipe takes none."""
        if self._descriptor < 0:
            return int(sys.stdout.buffer.write(rest))
        if self._pipe is None:
            return os.write(self._descriptor, rest[:_MOST])
        while not (written := self._pipe.write(rest, _GLANCE)):
            if self._gives_up():
                n_lines = bytes(rest).count(b"\n")
                raise OutageError(
                    f"{self.name} no longer reads: {n_lines:,} released lines ({len(rest):,} bytes) were not "
                    "delivered. Look at the consumer."
                )
        return written

    def _begin(self) -> None:
        """Truncate a file that is to be replaced."""
        if self._replaces:
            self._replaces = False
            os.ftruncate(self._descriptor, 0)
            if self._private:
                system.make_private(self._descriptor)

    def flush(self, to_disk: bool = False) -> None:
        """Flush everything; `to_disk` waits until a file is on disk."""
        if "_packer" in vars(self):  # never written to, so not yet open
            self._packer.flush()
        if self._descriptor < 0:
            sys.stdout.buffer.flush()
        elif to_disk and self._pipe is None:
            try:
                os.fsync(self._descriptor)
            except OSError as error:
                raise self._refusal(error) from error

    def finish(self) -> None:
        """Write the trailer of a compressed file."""
        if isinstance(self._packer, _Packed):
            self._begin()
        else:
            self._packer.close()
        self._is_finished = True

    def let_go(self) -> None:
        """Close a file, finished or not; one that was created and never written to is removed."""
        if self.path is None:
            return
        with suppress(OSError):
            os.close(self._descriptor)
            if self._is_new and not self._is_finished and not self.n_bytes:
                os.unlink(self.path)

    def _refusal(self, error: OSError) -> FileError:
        reason = os.strerror(error.errno).lower() if error.errno else type(error).__name__
        return FileError(f"{self.name} cannot be written: {reason}.")


class _Packed:
    """The file object that a compressor writes to."""

    closed = False

    def __init__(self, put: Callable[[bytes], None]) -> None:
        self._put = put

    def write(self, content: bytes) -> int:
        self._put(content)
        return len(content)

    def flush(self) -> None:
        """Nothing is buffered here."""

    def close(self) -> None:
        self.closed = True


def is_packed(path: str | None) -> bool:
    """Return whether a file is compressed, by its name."""
    return path is not None and path.endswith((".gz", ".zst"))


def _is_special(path: str) -> bool:
    """Return whether a path is something other than a regular file: a device or a named pipe."""
    return os.path.exists(path) and not os.path.isfile(path)


def _descriptor_of(file: Any) -> int:
    """Return the descriptor of a file; -1 if it is in memory only."""
    try:
        return int(file.fileno())
    except OSError:
        return -1
