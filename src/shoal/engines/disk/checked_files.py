"""Checked files: what lies on disk between two steps, with checksums, so that damage never goes unnoticed.

A file has parts, each a batch of records, and at its end an index of them with a note. The checksums include the path,
so that a file in the place of another one counts as damaged too. A file gets its name when it is complete.
"""

import errno
import os
import pickle
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from shoal.errors import FileError
from shoal.files import sync_file
from shoal.system import system

_DIGEST = 16
_TRAILER = struct.Struct(f"<Q{_DIGEST}s")  # length and checksum of the index
_GONE = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EIO}


class DamagedError(FileError):
    """A checked file is not what was written."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{str(path)!r} is not what was written there: it is damaged or missing, or another file took its place. "
            "Nothing was written, and the temporary files are removed. Start again, which begins afresh; if this "
            "happens again, this disk or the memory of the machine is failing: write to another disk."
        )
        self.path = path


class _FilePart(NamedTuple):
    begin: int
    size: int
    digest: bytes


class CheckedFile(NamedTuple):
    """A file whose index is what was written; its parts are checked when they are read."""

    path: Path
    types: pa.Schema | None
    parts: list[_FilePart]
    note: Any

    def read(self, number: int) -> pa.Table:
        """Return the records of a part; raise `DamagedError` if they are not what was written."""
        part = self.parts[number]
        with _noticing(self.path), open(self.path, "rb") as file:
            file.seek(part.begin)
            content = file.read(part.size)
        if _digest(self.path, number, content) != part.digest:
            raise DamagedError(self.path)
        return pa.Table.from_batches([pa.ipc.read_record_batch(pa.py_buffer(content), self.types)])


class CheckedWriter:
    """Writes a checked file; `note` is kept in its index, and may be set until the end of the block.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "ages.piece"
    >>> with CheckedWriter(path, note="two parts") as writer:
    ...     for batch in pa.table({"age": [30, 40]}).to_batches(max_chunksize=1):
    ...         writer.add(batch)
    >>> file = open_checked(path)
    >>> file.note, file.read(1)["age"].to_pylist()
    ('two parts', [40])
    """

    def __init__(self, path: Path, note: Any = None) -> None:
        self._path, self._growing, self.note = path, path.with_suffix(".growing"), note
        self._types: pa.Schema | None = None
        self._parts: list[_FilePart] = []

    def __enter__(self) -> "CheckedWriter":
        self._file = open(self._growing, "wb")
        return self

    def __exit__(self, failure: object, *rest: object) -> None:
        with self._file as file:
            if failure is not None:
                return
            index = pickle.dumps((self._types, self._parts, self.note))
            file.write(index + _TRAILER.pack(len(index), _digest(self._path, -1, index)))
        system.replace(self._growing, self._path)

    def add(self, batch: pa.RecordBatch) -> None:
        """Write a part; all have the same columns."""
        self._types = batch.schema
        content = batch.serialize()
        number, begin = len(self._parts), self._file.tell()
        self._file.write(content)
        self._parts.append(_FilePart(begin, content.size, _digest(self._path, number, content)))


def open_checked(path: Path) -> CheckedFile:
    """Open a checked file; raise `DamagedError` if its index is not what was written."""
    with _noticing(path), open(path, "rb") as file:
        end = file.seek(0, os.SEEK_END)
        if end < _TRAILER.size:
            raise DamagedError(path)
        file.seek(end - _TRAILER.size)
        size, digest = _TRAILER.unpack(file.read())
        if size > end - _TRAILER.size:
            raise DamagedError(path)
        file.seek(end - _TRAILER.size - size)
        index = file.read(size)
    if _digest(path, -1, index) != digest:
        raise DamagedError(path)
    return CheckedFile(path, *pickle.loads(index))


def keep(path: Path, note: Any) -> None:
    """Write a checked file that is nothing but a note, and flush it to disk."""
    with CheckedWriter(path, note):
        pass
    sync_file(path)


def _digest(path: Path, number: int, content: Any) -> bytes:
    found = blake2b(f"{path}\0{number}\0".encode(errors="surrogateescape"), digest_size=_DIGEST)
    found.update(content)
    return found.digest()


@contextmanager
def _noticing(path: Path) -> Iterator[None]:
    """Turn the errors of a file that is missing or cannot be read any more into a `DamagedError`."""
    try:
        yield
    except OSError as error:
        if error.errno not in _GONE and not path.is_dir():  # Windows does not permit to read a folder
            raise
        raise DamagedError(path) from None
