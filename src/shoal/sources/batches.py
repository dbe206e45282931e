"""Batches: a file, a folder of Parquet files or a frame, read a part at a time.

Files are read in the order of their names. A file that changes between two reads is refused.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from shoal import sources
from shoal.errors import FileError, ParameterError
from shoal.sources import Reading, Source, Table, format_of, read, shown
from shoal.sources.clean import check_wanted
from shoal.sources.databases import place_of
from shoal.sources.folder_columns import folder_columns
from shoal.sources.format import Parts
from shoal.sources.left_out import Skipping
from shoal.sources.source_stamps import Files, check_stamp
from shoal.sources.standard_input import DASH
from shoal.spelling import setting

AT_ONCE = 1 << 16
"""Number of records of a batch, at most."""


@dataclass(frozen=True, eq=False, repr=False)
class Batches(Source):
    """An input that is read in batches.

    Attributes
    ----------
    table : Table or None
        A table that is held in memory: a frame.
    """

    table: Table | None = None
    _read: Callable[[Sequence[str]], Iterator[pa.Table]] = field(kw_only=True)

    def read(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the records, or some of their columns, without metadata and with the same types in every batch."""
        for part in self._read(check_wanted(columns, self.names)):
            for start in range(0, part.num_rows, AT_ONCE):
                yield part.slice(start, AT_ONCE)

    def _records(self) -> pa.Table:
        assert self.table is not None
        return self.table.arrow


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
        about = (table.types, table.n_records, table.kind, table.files, table.receipt, table.labels, table.origin)
        return Batches(*about, table=table, _read=lambda wanted: iter([table.load(wanted)]))
    if os.fspath(source) == DASH or place_of(source) is not None:
        raise ParameterError(
            f"{shown(source)} cannot be read in batches. Copy it to a Parquet file first, or use "
            f"{setting('engine', 'memory')}."
        )
    path = Path(source)
    if not path.is_dir() and not has_batches(path):
        raise ParameterError(
            f"{path.name!r} cannot be read in batches, only {_in_parts_in_words()}. Unpack it, or convert it to "
            f"Parquet, or use {setting('engine', 'memory')}."
        )
    if not (path.is_file() or path.is_dir()):
        raise FileError(f"{str(path)!r} does not exist or is not a regular file.")
    files = Files.of(path)
    ending, kind = format_of(files.paths[0])
    assert kind.in_parts is not None
    how = Reading.of(reading, kind.in_parts.options, f"a {ending} file that is read in batches")
    found = [kind.in_parts.open(file, how) for file in files.paths]
    files.check()
    _check_alike(files, found)
    in_names = None if files.folder is None else folder_columns(files.folder, files.paths, found[0].types)
    types = found[0].types if in_names is None else pa.schema([*found[0].types, *in_names.schema])

    def read_all(wanted: Sequence[str]) -> Iterator[pa.Table]:
        for number, (file, stamp) in enumerate(zip(files.paths, files.stamps, strict=True)):
            check_stamp(file, stamp)
            yield from found[number].read(wanted) if in_names is None else with_names(number, in_names, wanted)
            check_stamp(file, stamp)

    def with_names(number: int, in_names: pa.Table, wanted: Sequence[str]) -> Iterator[pa.Table]:
        values = {name: in_names[name][number] for name in in_names.column_names}
        stored = [name for name in wanted if name not in values] or found[0].types.names[:1]
        for part in found[number].read(stored):
            yield pa.table({name: _column(name, part, values) for name in wanted})

    files = replace(files, are_named=in_names is not None)
    n_records = sum(parts.n_records for parts in found)
    options = kind.in_parts.options
    if kind.skips or not how.skips:
        return Batches(types, n_records, kind.name, files, found[0].receipt, options=options, _read=read_all)
    first = Skipping(how, types.names)
    for _ in first.of_tables(read_all, first.columns or types.names[:1]):
        pass
    first.check()
    return Batches(
        *(types, n_records - first.n_left_out, kind.name, files, first.noted(found[0].receipt)),
        options=options,
        _read=lambda wanted: Skipping(how, types.names).of_tables(read_all, wanted),
    )


def _check_alike(files: Files, found: Sequence[Parts]) -> None:
    """Raise if the files of a folder do not have the same columns."""
    types = found[0].types
    for path, parts in zip(files.paths, found, strict=True):
        if not parts.types.equals(types):
            raise FileError(
                f"{path.name!r} does not have the columns and types of {files.paths[0].name!r}: "
                f"{_difference(parts.types, types)}. All files of a folder must have the same, in the same order. "
                "Convert them, or release them separately."
            )


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


def _in_parts_in_words() -> str:
    formats = [(kind, kind.in_parts) for kind in sources.KINDS if kind.in_parts is not None]
    *titles, last = (
        kind.title if set(kind.endings) == set(in_parts.endings) else f"{kind.title} (not packed)"
        for kind, in_parts in formats
    )
    return f"{', '.join(titles)} and {last}"


def has_batches(path: Path) -> bool:
    """Return whether a file of this name can be read in batches."""
    ending, kind = format_of(path)
    return kind.in_parts is not None and ending in kind.in_parts.endings
