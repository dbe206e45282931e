"""Batches: a file, a folder of Parquet files or a frame, read a part at a time.

Files are read in the order of their names. A file that changes between two reads is refused.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from shoal.errors import FileError, ParameterError
from shoal.files import sha256
from shoal.table import Reading, Table, format_of, read
from shoal.table.clean import check_names, check_wanted, plain
from shoal.table.parquet_arrow import UNREADABLE, damaged, parquet_types
from shoal.table.source import Stamp, check_stamp

AT_ONCE = 1 << 16
"""Number of records of a batch, at most."""


@dataclass(frozen=True, eq=False)
class Batches:
    """A table that is read in batches.

    Attributes
    ----------
    types : pyarrow.Schema
        Names and types of the columns.
    n_records : int
        Number of records.
    kind : str
        As in `shoal.table.Table`.
    paths : tuple of Path
        The files, in the order in which they are read; empty for a frame.
    stamps : tuple of Stamp
        Their state when they were opened.
    table : Table or None
        A table that is held in memory: a frame.
    reading : Reading or None
        Options with which a CSV file was read.
    """

    types: pa.Schema
    n_records: int
    kind: str
    paths: tuple[Path, ...] = ()
    stamps: tuple[Stamp, ...] = ()
    table: Table | None = None
    reading: Reading | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.types.names)

    def read(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the records, or some of their columns, without metadata and with the same types in every batch."""
        wanted = list(self.names) if columns is None else check_wanted(columns, self.names)
        if self.table is not None:
            yield from _slices(self.table.load(wanted))
        for path, stamp in zip(self.paths, self.stamps, strict=True):
            check_stamp(path, stamp)
            yield from _BATCHES[format_of(path)[1].name](path, wanted)
            check_stamp(path, stamp)

    def check_unchanged(self) -> None:
        """Raise if a file has changed since it was opened, or the frame since its SHA-256 was computed."""
        if self.table is not None:
            self.table.check_unchanged()
        for path, stamp in zip(self.paths, self.stamps, strict=True):
            check_stamp(path, stamp)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the file or frame; of several files, that of their SHA-256 in the order of their names."""
        if self.table is not None:
            return self.table.sha256
        found = [sha256(path) for path in self.paths]
        self.check_unchanged()
        return found[0] if len(found) == 1 else hashlib.sha256("\n".join(found).encode()).hexdigest()


def open_batches(source: Any, **reading: Any) -> Batches:
    """Open a file, a folder of Parquet files or a frame to read it in batches.

    Raises
    ------
    FileError
        If the file is missing or damaged, a folder holds no Parquet file, or its files do not have the same columns.
    ParameterError
        If the format cannot be read in batches.
    """
    if not isinstance(source, str | os.PathLike):
        table = read(source, **reading)
        return Batches(table.types, table.n_records, table.kind, table=table)
    path = Path(source)
    paths = _parquet_files(path) if path.is_dir() else [path]
    if not path.is_dir():
        kind = format_of(path)[1].name
        if kind not in _BATCHES:
            raise ParameterError(
                f"{path.name!r} cannot be read in batches, only {', '.join(sorted(_BATCHES))}. Convert it to Parquet, "
                "or use the engine 'memory'."
            )
        if not path.is_file():
            raise FileError(f"{str(path)!r} does not exist or is not a regular file.")
    if reading:
        raise ParameterError(f"{', '.join(sorted(reading))} cannot be given here; these options apply to CSV files.")
    stamps = tuple(Stamp.of(file) for file in paths)
    found = [_types(file) for file in paths]
    types = found[0][0]
    for file, (others, _) in zip(paths, found, strict=True):
        if not others.equals(types):
            raise FileError(
                f"{file.name!r} does not have the columns and types of {paths[0].name!r}. All files of a folder must "
                "have the same. Convert them, or release them separately."
            )
    return Batches(types, sum(n for _, n in found), format_of(paths[0])[1].name, tuple(paths), stamps)


def _parquet_files(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder, without hidden ones, in the order of their names."""
    found = sorted(folder.rglob("*.parquet"))
    found = [path for path in found if not any(part[0] in "._" for part in path.relative_to(folder).parts)]
    if not found:
        raise FileError(f"The folder {str(folder)!r} has no Parquet file. Name one file, or a folder of Parquet files.")
    if any("=" in part for path in found for part in path.relative_to(folder).parts[:-1]):
        raise FileError(
            f"The folder {str(folder)!r} holds partitions (folders named COLUMN=VALUE), whose columns are not in the "
            "files. Write the files with all columns, or use the engine 'spark', which reads them."
        )
    return found


def _types(path: Path) -> tuple[pa.Schema, int]:
    """Return names and types of a file, as its batches have them, and its number of records."""
    if format_of(path)[1].name == "parquet":
        types, n_records = parquet_types(path)
    else:
        with _arrow_reader(path) as reader:
            types = reader.schema
            n_records = sum(reader.get_batch(i).num_rows for i in range(reader.num_record_batches))
    check_names(types.names)
    return plain(types.empty_table()).schema, n_records


def _parquet_batches(path: Path, columns: list[str]) -> Iterator[pa.Table]:
    try:
        # Prefetched data would be kept until the file is closed, so in the end the whole file.
        with pq.ParquetFile(path, pre_buffer=False, page_checksum_verification=True) as file:
            for batch in file.iter_batches(AT_ONCE, columns=columns):
                yield plain(pa.Table.from_batches([batch]).select(columns))
    except UNREADABLE:
        raise damaged(path, "Parquet") from None


def _arrow_reader(path: Path) -> Any:
    try:
        return pa.ipc.open_file(pa.OSFile(str(path)))
    except UNREADABLE:
        raise FileError(
            f"{path.name!r} is not an Arrow file that can be read in batches: it is a stream, or damaged. Write it "
            "again in the file format, or as Parquet."
        ) from None


def _arrow_batches(path: Path, columns: list[str]) -> Iterator[pa.Table]:
    with _arrow_reader(path) as reader:
        for number in range(reader.num_record_batches):
            try:
                table = pa.Table.from_batches([reader.get_batch(number)]).select(columns)
                table.validate(full=True)
            except UNREADABLE:
                raise damaged(path, "Arrow") from None
            yield from _slices(plain(table))


def _slices(table: pa.Table) -> Iterator[pa.Table]:
    for start in range(0, table.num_rows, AT_ONCE):
        yield table.slice(start, AT_ONCE)


_BATCHES = {"parquet": _parquet_batches, "arrow": _arrow_batches}
