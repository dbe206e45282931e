"""Batches: a file, a folder of Parquet files or a frame, read a part at a time.

Files are read in the order of their names. A file that changes between two reads is refused.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from shoal.errors import FileError, ParameterError
from shoal.sources import Reading, Source, Table, format_of, read, shown
from shoal.sources.clean import check_wanted
from shoal.sources.databases import place_of
from shoal.sources.folder_columns import folder_columns
from shoal.sources.format import Parts
from shoal.sources.source_stamps import Files, check_stamp
from shoal.sources.standard_input import DASH

AT_ONCE = 1 << 16
"""Number of records of a batch, at most."""


@dataclass(frozen=True, eq=False, repr=False)
class Batches(Source):
    """An input that is read in batches.

    Attributes
    ----------
    folder : Path or None
        The folder that holds its files, if a folder was named.
    table : Table or None
        A table that is held in memory: a frame.
    """

    folder: Path | None = None
    table: Table | None = None
    _read: Callable[[list[str]], Iterator[pa.Table]] = field(kw_only=True)

    @property
    def inputs(self) -> list[Path]:
        """The files that were read, which must not be overwritten, and their folder, which must not get others."""
        if self.table is not None:
            return self.table.inputs
        return [*self.files.paths, *([] if self.folder is None else [self.folder])]

    def read(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the records, or some of their columns, without metadata and with the same types in every batch."""
        wanted = check_wanted(columns, self.names)
        for part in self._read(wanted):
            for start in range(0, part.num_rows, AT_ONCE):
                yield part.slice(start, AT_ONCE)

    def check_unchanged(self) -> None:
        """Raise if a file or folder has changed since it was opened, or the frame since its SHA-256 was computed."""
        if self.table is not None:
            self.table.check_unchanged()
        if self.folder is not None and tuple(_parquet_files(self.folder)) != self.files.paths:
            raise FileError(
                f"The folder {str(self.folder)!r} has changed while it was in use: it holds other Parquet files than "
                "when it was opened. Nothing was written. Start again when no other program writes to it, or use a "
                "copy."
            )
        self.files.check()

    def _sha256_of_records(self) -> str:
        assert self.table is not None
        return self.table.sha256


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
        return Batches(
            table.types, table.n_records, table.kind, table=table, _read=lambda wanted: iter([table.load(wanted)])
        )
    if os.fspath(source) == DASH or place_of(source) is not None:
        raise ParameterError(
            f'{shown(source)} cannot be read in batches. Copy it to a Parquet file first, or use engine="memory".'
        )
    path = Path(source)
    if path.is_dir():
        return _open_folder(path, reading)
    if not has_batches(path):
        raise ParameterError(
            f"{path.name!r} cannot be read in batches, only CSV (not packed), Parquet and Arrow. Unpack it, or convert "
            'it to Parquet, or use engine="memory".'
        )
    if not path.is_file():
        raise FileError(f"{str(path)!r} does not exist or is not a regular file.")
    files = Files.of(path)
    found = _opened(files, reading)
    files.check()
    return _batches(files, found, found[0].types, lambda number, wanted: found[number].read(wanted))


def _batches(
    files: Files,
    found: list[Parts],
    types: pa.Schema,
    read: Callable[[int, list[str]], Iterator[pa.Table]],
    folder: Path | None = None,
) -> Batches:
    """Return the batches of files, of which `read` returns those of one; each is checked before and after."""

    def read_all(wanted: list[str]) -> Iterator[pa.Table]:
        for number, (path, stamp) in enumerate(zip(files.paths, files.stamps, strict=True)):
            check_stamp(path, stamp)
            yield from read(number, wanted)
            check_stamp(path, stamp)

    n_records, kind = sum(parts.n_records for parts in found), format_of(files.paths[0])[1].name
    return Batches(types, n_records, kind, files, found[0].receipt, folder=folder, _read=read_all)


def _opened(files: Files, reading: Mapping[str, Any]) -> list[Parts]:
    """Open files of one format that has batches."""
    ending, kind = format_of(files.paths[0])
    assert kind.in_parts is not None
    how = Reading.of(reading, kind.in_parts.options, f"a {ending} file that is read in batches")
    return [kind.in_parts.open(path, how) for path in files.paths]


def _open_folder(folder: Path, reading: Mapping[str, Any]) -> Batches:
    """Open the Parquet files of a folder, which have the same columns."""
    files = Files.of(*_parquet_files(folder))
    found = _opened(files, reading)
    types = found[0].types
    for path, parts in zip(files.paths, found, strict=True):
        if not parts.types.equals(types):
            raise FileError(
                f"{path.name!r} does not have the columns and types of {files.paths[0].name!r}: "
                f"{_difference(parts.types, types)}. All files of a folder must have the same, in the same order. "
                "Convert them, or release them separately."
            )
    of_folders = folder_columns(folder, files.paths)
    if of_folders is None:
        return _batches(files, found, types, lambda number, wanted: found[number].read(wanted), folder=folder)
    both = [name for name in of_folders.column_names if name in types.names]
    if both:
        raise FileError(
            f"The folder {str(folder)!r} has column {both[0]!r} twice: in its files, and in the names of its folders. "
            "Rename the folders, or write the files without the column."
        )

    def read_file(number: int, wanted: list[str]) -> Iterator[pa.Table]:
        values = {name: of_folders[name][number] for name in of_folders.column_names}
        stored = [name for name in wanted if name not in values] or [types.names[0]]
        for part in found[number].read(stored):
            yield pa.table({name: _column(name, part, values) for name in wanted})

    named = replace(files, named_in=folder)
    return _batches(named, found, pa.schema([*types, *of_folders.schema]), read_file, folder=folder)


def _column(name: str, part: pa.Table, values: Mapping[str, pa.Scalar]) -> pa.ChunkedArray:
    """Return a column of a part, of its file or of the folders that the file is in."""
    return pa.chunked_array([pa.repeat(values[name], part.num_rows)]) if name in values else part[name]


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
    ending, kind = format_of(path)
    return kind.in_parts is not None and ending in kind.in_parts.endings


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
