"""Source stamps: the files of a table, and how a file or frame is noticed that changes while a release is made."""

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
    folder : Path or None
        The folder that holds them, if a folder was named.
    are_named : bool
        Whether their names are a part of the table.
    """

    paths: tuple[Path, ...] = ()
    stamps: tuple[Stamp, ...] = ()
    folder: Path | None = None
    are_named: bool = False

    @staticmethod
    def of(path: Path) -> "Files":
        """Return one file, or the Parquet files of a folder in the order of their names, as they are now."""
        paths, folder = (tuple(parquet_files(path)), path) if path.is_dir() else ((path,), None)
        return Files(paths, tuple(map(Stamp.of, paths)), folder)

    def check(self) -> None:
        """Raise if one of them has changed, or the folder holds others."""
        if self.folder is not None and tuple(parquet_files(self.folder)) != self.paths:
            raise FileError(
                f"The folder {str(self.folder)!r} has changed while it was in use: it holds other Parquet files than "
                "when it was opened. Nothing was written. Start again when no other program writes to it, or use a "
                "copy."
            )
        for path, stamp in zip(self.paths, self.stamps, strict=True):
            check_stamp(path, stamp)

    def sha256(self) -> str:
        """Return the SHA-256 of the only file; of several, or with their names, that of the list of their SHA-256."""
        found = [sha256(path) for path in self.paths]
        if self.folder is not None and self.are_named:
            names = (path.relative_to(self.folder) for path in self.paths)
            found = [f"{digest} {name}" for digest, name in zip(found, names, strict=True)]
        self.check()
        is_list = len(found) != 1 or self.are_named
        return hashlib.sha256("\n".join(found).encode()).hexdigest() if is_list else found[0]


def parquet_files(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder in the order of their names; raise if it holds others that are not hidden.

    Files and folders whose names begin with a dot or an underscore are hidden, as Spark's ``_SUCCESS`` is.
    """
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    files = [path for path in files if not any(part[0] in "._" for part in path.relative_to(folder).parts)]
    found = [path for path in files if path.suffix.lower() == ".parquet"]
    others = [str(path.relative_to(folder)) for path in files if path.suffix.lower() != ".parquet"]
    if found and others:
        raise FileError(
            f"The folder {str(folder)!r} holds {len(others):,} file(s) that are not Parquet, such as {others[0]!r}: "
            "records in them would be left out. Move them elsewhere, or let their names begin with an underscore."
        )
    if not found:
        raise FileError(f"The folder {str(folder)!r} has no Parquet file. Name one file, or a folder of Parquet files.")
    return found


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
