"""Batches: a file, a folder of Parquet files or a frame, read a part at a time.

Files are read in the order of their names. A file that changes between two reads is refused. The types of a CSV file
follow from all values of a column, so that it is read once more, when it is opened.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq

from shoal.errors import FileError, ParameterError
from shoal.files import sha256
from shoal.sources import Reading, Table, format_of, inputs_of, read, refuse_unused, shown
from shoal.sources.clean import check_names, check_wanted, plain
from shoal.sources.csv import open_csv
from shoal.sources.csv_types import Types
from shoal.sources.databases import place_of
from shoal.sources.folder_columns import folder_columns
from shoal.sources.parquet_arrow import UNREADABLE, damaged, parquet_types
from shoal.sources.source_stamps import Stamp, check_stamp
from shoal.sources.standard_input import DASH

AT_ONCE = 1 << 16
"""Number of records of a batch, at most."""

_PLAIN = (".csv", ".tsv", ".txt")
_TEXT = (
    1 << 23
)  # bytes of a CSV file that are read at a time, about: with all that is made of them, a part of any budget
_LONGEST = 1 << 26  # bytes of a record of a CSV file, at most


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
        As in `shoal.sources.Table`.
    paths : tuple of Path
        The files, in the order in which they are read; empty for a frame.
    folder : Path or None
        The folder that holds them, if a folder was named.
    of_folders : pyarrow.Table or None
        The columns that the names of its folders hold, a row for each of the files.
    stamps : tuple of Stamp
        Their state when they were opened.
    table : Table or None
        A table that is held in memory: a frame.
    reading : Reading or None
        Options with which a CSV file was read.
    asked : dict
        The options that were given for reading it.
    """

    types: pa.Schema
    n_records: int
    kind: str
    paths: tuple[Path, ...] = ()
    stamps: tuple[Stamp, ...] = ()
    table: Table | None = None
    reading: Reading | None = None
    asked: dict[str, Any] = field(default_factory=dict)
    csv: "_TypedCsv | None" = None
    folder: Path | None = None
    of_folders: pa.Table | None = None

    @property
    def inputs(self) -> list[Path]:
        """The files that were read, which must not be overwritten, and their folder, which must not get others."""
        if self.table is not None:
            return inputs_of(self.table)
        return [*self.paths, *([] if self.folder is None else [self.folder])]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.types.names)

    def read(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the records, or some of their columns, without metadata and with the same types in every batch."""
        wanted = list(self.names) if columns is None else check_wanted(columns, self.names)
        if self.table is not None:
            yield from _slices(self.table.load(wanted))
        for number, (path, stamp) in enumerate(zip(self.paths, self.stamps, strict=True)):
            check_stamp(path, stamp)
            yield from self._read_file(number, path, wanted)
            check_stamp(path, stamp)

    def _read_file(self, number: int, path: Path, wanted: list[str]) -> Iterator[pa.Table]:
        if self.csv is not None:
            yield from self.csv.read(wanted)
        elif self.of_folders is None:
            yield from _BATCHES[self.kind](path, wanted)
        else:
            values = {name: self.of_folders[name][number] for name in self.of_folders.column_names}
            stored = [name for name in wanted if name not in values] or [
                next(name for name in self.names if name not in values)
            ]
            for batch in _BATCHES[self.kind](path, stored):
                yield pa.table({name: _column(name, batch, values) for name in wanted})

    def check_unchanged(self) -> None:
        """Raise if a file or folder has changed since it was opened, or the frame since its SHA-256 was computed."""
        if self.table is not None:
            self.table.check_unchanged()
        if self.folder is not None and tuple(_parquet_files(self.folder)) != self.paths:
            raise FileError(
                f"The folder {str(self.folder)!r} has changed while it was in use: it holds other Parquet files than "
                "when it was opened. Nothing was written. Start again when no other program writes to it, or use a "
                "copy."
            )
        for path, stamp in zip(self.paths, self.stamps, strict=True):
            check_stamp(path, stamp)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the file or frame; of several files, that of their SHA-256 in the order of their names."""
        if self.table is not None:
            return self.table.sha256
        found = [sha256(path) for path in self.paths]
        if self.folder is not None and self.of_folders is not None:  # the names are part of the table
            names = (path.relative_to(self.folder) for path in self.paths)
            found = [f"{digest} {name}" for digest, name in zip(found, names, strict=True)]
        self.check_unchanged()
        return (
            found[0]
            if len(found) == 1 and self.of_folders is None
            else hashlib.sha256("\n".join(found).encode()).hexdigest()
        )


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
    if os.fspath(source) == DASH or place_of(source) is not None:
        raise ParameterError(
            f'{shown(source)} cannot be read in batches. Copy it to a Parquet file first, or use engine="memory".'
        )
    reading = {name: value for name, value in reading.items() if value is not None}
    path = Path(source)
    paths = _parquet_files(path) if path.is_dir() else [path]
    if not path.is_dir():
        if not has_batches(path):
            raise ParameterError(
                f"{path.name!r} cannot be read in batches, only CSV (not packed), Parquet and Arrow. Unpack it, or "
                'convert it to Parquet, or use engine="memory".'
            )
        if not path.is_file():
            raise FileError(f"{str(path)!r} does not exist or is not a regular file.")
        ending, format_ = format_of(path)
        if format_.name == "csv":
            refuse_unused(reading, format_.options, f"a {ending} file")
            return _open_csv(path, reading)
    refuse_unused(reading, frozenset(), "Parquet or Arrow files that are read in batches")
    stamps = tuple(Stamp.of(file) for file in paths)
    found = [_types(file) for file in paths]
    types = found[0][0]
    for file, (others, _) in zip(paths, found, strict=True):
        if not others.equals(types):
            raise FileError(
                f"{file.name!r} does not have the columns and types of {paths[0].name!r}: {_difference(others, types)}"
                ". All files of a folder must have the same, in the same order. Convert them, or release them "
                "separately."
            )
    folder = path if path.is_dir() else None
    of_folders = None if folder is None else folder_columns(folder, paths)
    if of_folders is not None:
        types = _with_columns(types, of_folders.schema, path)
    n_records, kind = sum(n for _, n in found), format_of(paths[0])[1].name
    return Batches(types, n_records, kind, tuple(paths), stamps, folder=folder, of_folders=of_folders)


def _with_columns(types: pa.Schema, of_folders: pa.Schema, folder: Path) -> pa.Schema:
    both = [name for name in of_folders.names if name in types.names]
    if both:
        raise FileError(
            f"The folder {str(folder)!r} has column {both[0]!r} twice: in its files, and in the names of its folders. "
            "Rename the folders, or write the files without the column."
        )
    return pa.schema([*types, *of_folders])


def _column(name: str, batch: pa.Table, values: dict[str, pa.Scalar]) -> pa.ChunkedArray:
    """Return a column of a batch, of its file or of the folders that the file is in."""
    return pa.chunked_array([pa.repeat(values[name], batch.num_rows)]) if name in values else batch[name]


def _difference(others: pa.Schema, types: pa.Schema) -> str:
    """Return the first difference between the columns of two files, in words."""
    for one, two, where in ((types, others, "it has no"), (others, types, "only it has the")):
        odd = [name for name in one.names if name not in two.names]
        if odd:
            return f"{where} column {odd[0]!r}"
    for name in types.names:
        if others.field(name).type != types.field(name).type:
            return f"column {name!r} holds {others.field(name).type} instead of {types.field(name).type}"
    return "its columns are in another order"


def has_batches(path: Path) -> bool:
    """Return whether a file of this name can be read in batches."""
    kind = format_of(path)[1].name
    return kind in _BATCHES or (kind == "csv" and path.suffix.lower() in _PLAIN)


def _parquet_files(folder: Path) -> list[Path]:
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


def _types(path: Path) -> tuple[pa.Schema, int]:
    """Return names and types of a file, as its batches have them, and its number of records."""
    if format_of(path)[1].name == "parquet":
        types, n_records = parquet_types(path)
    else:
        with _arrow_reader(path) as reader:
            types = reader.schema
        # From what the file says of its batches, none of which is read.
        n_records = pa.dataset.dataset(path, format="ipc").count_rows()
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


class _TypedCsv:
    """A CSV file whose types are known, having been read once."""

    def __init__(self, path: Path, reading: dict[str, Any]) -> None:
        self._file = open_csv(path, **reading)
        names = list(self._file.names)
        self._types = Types(names, self._file.whole_file, self._file.fields)
        self.n_records = 0
        for texts in self._texts(names):
            self._types.see(texts)
            self.n_records += texts.num_rows
        self.types, mark = self._types.decide(path.name, self._texts)
        self.reading = self._file.reading(mark)

    def _texts(self, columns: list[str]) -> Iterator[pa.Table]:
        return self._file.texts(columns, _TEXT, _LONGEST)

    def read(self, columns: list[str]) -> Iterator[pa.Table]:
        """Yield some columns in batches."""
        for texts in self._texts(columns):
            yield from _slices(self._types.typed(texts))


def _open_csv(path: Path, reading: dict[str, Any]) -> Batches:
    stamp = Stamp.of(path)
    csv = _TypedCsv(path, reading)
    check_stamp(path, stamp)
    return Batches(csv.types, csv.n_records, "csv", (path,), (stamp,), reading=csv.reading, asked=reading, csv=csv)


_BATCHES = {"parquet": _parquet_batches, "arrow": _arrow_batches}
