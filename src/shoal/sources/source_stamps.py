"""Source stamps: detect a file or frame that changes while a release is made."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from shoal.errors import FileError
from shoal.files import sha256


class Stamp(NamedTuple):
    """State of a file, to detect that it was modified or replaced."""

    size: int
    changed_ns: int
    inode: int
    device: int

    @staticmethod
    def of(path: Path) -> "Stamp":
        """Return the stamp of a file; symbolic links are followed."""
        found = os.stat(path)
        return Stamp(found.st_size, found.st_mtime_ns, found.st_ino, found.st_dev)


def check_stamp(path: Path, stamp: Stamp) -> None:
    """Raise if a file is no longer the one that was opened."""
    try:
        if Stamp.of(path) == stamp:
            return
    except OSError:
        pass
    raise FileError(
        f"{path.name!r} has changed while it was in use: it is not the file that was opened. Nothing was written. "
        "Start again when no other program writes to it, or use a copy."
    )


@dataclass(frozen=True)
class Files:
    """The files of a table, in the order in which they are read, and their state when they were opened.

    Attributes
    ----------
    named_in : Path or None
        The folder below which their names are a part of the table.
    """

    paths: tuple[Path, ...] = ()
    stamps: tuple[Stamp, ...] = ()
    named_in: Path | None = None

    @staticmethod
    def of(*paths: Path) -> "Files":
        """Return files as they are now."""
        return Files(paths, tuple(map(Stamp.of, paths)))

    def check(self) -> None:
        """Raise if one of them has changed."""
        for path, stamp in zip(self.paths, self.stamps, strict=True):
            check_stamp(path, stamp)

    def sha256(self) -> str:
        """Return the SHA-256 of the only file; of several, or with their names, that of the list of their SHA-256."""
        found = [sha256(path) for path in self.paths]
        if self.named_in is not None:
            names = (path.relative_to(self.named_in) for path in self.paths)
            found = [f"{digest} {name}" for digest, name in zip(found, names, strict=True)]
        self.check()
        is_list = len(found) != 1 or self.named_in is not None
        return hashlib.sha256("\n".join(found).encode()).hexdigest() if is_list else found[0]


def sha256_of_records(table: pa.Table) -> str:
    """Return the SHA-256 of the records of a frame, with the names and types of its columns."""
    digest = hashlib.sha256()
    for name, column in zip(table.column_names, table.columns, strict=True):
        digest.update(f"{name}\0{column.type}\0".encode())
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, pa.schema({"": column.type})) as writer:
            writer.write_table(pa.table([column.unify_dictionaries().combine_chunks()], names=[""]))
        digest.update(sink.getvalue())
    return digest.hexdigest()
