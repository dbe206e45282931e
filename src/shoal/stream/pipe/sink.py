"""Sink: where lines go: stdout or a file, plain, gzip or zstd; a file can go on where an earlier run stopped."""

import gzip
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from shoal.errors import FileError, ParameterError
from shoal.files import open_private


class Sink:
    """A place to write to. `n_bytes` says how far it is; a private file is readable by its owner alone."""

    def __init__(self, path: str | None, resume_at: int | None = None, *, private: bool = False) -> None:
        self.path = path
        self._opened = open_private if private else open
        self.n_bytes = 0
        try:
            self._plain = self._open(resume_at)
        except OSError as error:
            raise FileError(f"{self.name} cannot be written: {error.strerror}.") from error
        self._file = _packed(self._plain, path)

    @property
    def name(self) -> str:
        """What to call it in a message."""
        return "stdout" if self.path is None else Path(self.path).name

    def _open(self, resume_at: int | None) -> Any:
        if self.path is None:
            return sys.stdout.buffer
        if resume_at is None:
            return self._opened(self.path, "wb")
        # What was written after the last checkpoint is written again.
        file = self._opened(self.path, "r+b")
        if os.fstat(file.fileno()).st_size < resume_at:
            raise ParameterError(f"{self.name} is shorter than it was at the checkpoint; it is another file.")
        file.truncate(resume_at)
        file.seek(resume_at)
        self.n_bytes = resume_at
        return file

    def write(self, content: bytes) -> None:
        """Write, and wait until there is room."""
        if not content:
            return
        try:
            self._file.write(content)
            self.n_bytes += len(content)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise FileError(f"{self.name} cannot be written: {error.strerror}.") from error

    def flush(self, to_disk: bool = False) -> None:
        """Hand everything over; `to_disk` waits until a file is on the disk."""
        try:
            self._file.flush()
            self._plain.flush()
            if to_disk and self.path is not None:
                os.fsync(self._plain.fileno())
        except BrokenPipeError:
            raise
        except OSError as error:
            raise FileError(f"{self.name} cannot be written: {error.strerror}.") from error

    def finish(self) -> None:
        """Write the end of it."""
        self.flush()
        if self._file is not self._plain:
            self._file.close()

    def let_go(self) -> None:
        """Close a file, finished or not."""
        if self.path is not None:
            with suppress(OSError):
                self._plain.close()


def is_packed(path: str | None) -> bool:
    """Tell whether a file is packed, by its name."""
    return path is not None and path.endswith((".gz", ".zst"))


def _packed(plain: Any, path: str | None) -> Any:
    if path is not None and path.endswith(".gz"):
        return gzip.GzipFile(filename="", mode="wb", fileobj=plain, compresslevel=6, mtime=0)
    if path is not None and path.endswith(".zst"):
        return pa.CompressedOutputStream(pa.PythonFile(plain, mode="w"), "zstd")
    return plain
