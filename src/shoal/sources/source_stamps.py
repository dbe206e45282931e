"""Source stamps: detect a file or frame that changes while a release is made."""

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from shoal.errors import FileError


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
