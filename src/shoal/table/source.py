"""Source: what a table was read from, so that a release never mixes what stood there before and after a change."""

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from shoal.errors import FileError


class Stamp(NamedTuple):
    """What tells a file from the same path at another time."""

    size: int
    changed_ns: int
    inode: int
    device: int

    @staticmethod
    def of(path: Path) -> "Stamp":
        """Return the stamp of a file, through links."""
        found = os.stat(path)
        return Stamp(found.st_size, found.st_mtime_ns, found.st_ino, found.st_dev)


def check_stamp(path: Path, stamp: Stamp) -> None:
    """Refuse a file that is no longer the one that was opened."""
    try:
        if Stamp.of(path) == stamp:
            return
    except OSError:
        pass
    raise FileError(
        f"{path.name!r} has changed while it was used: it is not the file that was opened. Nothing was written. Start "
        "again when nobody writes to it, or on a copy."
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
