"""Columnar files: Parquet, of which only the requested columns are read, and Arrow (Feather)."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from shoal.errors import FileError
from shoal.sources.clean import check_names, check_wanted
from shoal.sources.columnar_size import as_texts, check_arrow_size, check_parquet_size, check_runs, declared_sizes
from shoal.sources.format import Format
from shoal.sources.unpacking import Limit

# Exceptions that the readers raise on damaged files. Their messages can contain values, so they are not shown.
UNREADABLE = (pa.ArrowException, OSError, ValueError, EOFError, UnicodeDecodeError, OverflowError)

# The checksums allow readers, including this one, to detect damage.
PARQUET_OPTIONS: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}


def read_parquet(
    path: Path, columns: Sequence[str] | None = None, max_unpacked_gb: float | None = None
) -> tuple[pa.Table, None]:
    """Read a Parquet file, or some of its columns."""
    return _read(path, columns, max_unpacked_gb), None


def read_back_parquet(path: Path, columns: Sequence[str], coded: Sequence[str]) -> pa.Table:
    """Read some columns; the texts of those that are `coded` as dictionary columns, as the file stores them."""
    return _read(path, columns, None, coded)


def _read(
    path: Path, columns: Sequence[str] | None, max_unpacked_gb: float | None, coded: Sequence[str] = ()
) -> pa.Table:
    limit = Limit(path, max_unpacked_gb)
    with _opened(path) as file:
        types = file.schema_arrow
        check_names(types.names)
        wanted = types.names if columns is None else check_wanted(columns, types.names)
        by_reference = check_parquet_size(declared_sizes(file.metadata), wanted, limit)
    kept = [name for name in coded if pa.types.is_string(types.field(name).type)]
    with _opened(path, read_dictionary=[*by_reference, *kept]) as file:
        try:
            return as_texts(file.read(columns=wanted).select(wanted), types, limit, kept)
        except UNREADABLE:
            raise damaged(path, "Parquet") from None


class ParquetColumns:
    """The columns of a Parquet file, read one at a time, as `read_parquet` does.

    The file is opened once, since this takes longer than reading a column where there are thousands of them. Several
    threads may read, one after another: Arrow does not promise that a reader serves two at a time.
    """

    def __init__(self, path: Path, max_unpacked_gb: float | None = None) -> None:
        self._path, self._max_unpacked_gb = path, max_unpacked_gb
        self._limit = Limit(path, max_unpacked_gb)
        # Prefetched data would be kept until the file is closed.
        self._file = _opened(path, pre_buffer=False)
        check_names(self._file.schema_arrow.names)
        self._sizes = declared_sizes(self._file.metadata)
        self._reading = Lock()

    def read(self, name: str) -> pa.Table:
        """Return a table of one column."""
        if name not in self._sizes or check_parquet_size(self._sizes, [name], self._limit):
            return read_parquet(self._path, [name], self._max_unpacked_gb)[0]
        try:
            with self._reading:
                return self._file.read(columns=[name]).select([name])
        except UNREADABLE:
            raise damaged(self._path, "Parquet") from None


def parquet_types(path: Path) -> tuple[pa.Schema, int]:
    """Return the schema of a Parquet file and its number of records."""
    with _opened(path) as file:
        check_names(file.schema_arrow.names)
        return file.schema_arrow, int(file.metadata.num_rows)


def _opened(path: Path, **options: Any) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path, page_checksum_verification=True, **options)
    except UNREADABLE:
        raise damaged(path, "Parquet") from None


def write_parquet(table: pa.Table, path: Path, ending: str = ".parquet", notes: object = None) -> None:
    """Write a table to a Parquet file."""
    pq.write_table(table, path, **PARQUET_OPTIONS)


def write_parquet_parts(tables: Iterable[pa.Table], path: Path, ending: str = ".parquet", notes: object = None) -> None:
    """Write tables of the same columns one after another."""
    with ExitStack() as stack:
        writer = None
        for table in tables:
            if writer is None:
                writer = stack.enter_context(pq.ParquetWriter(path, table.schema, **PARQUET_OPTIONS))
            writer.write_table(table)


def read_arrow(
    path: Path, columns: Sequence[str] | None = None, max_unpacked_gb: float | None = None
) -> tuple[pa.Table, None]:
    """Read an Arrow file, in the file format (Feather) or as a stream."""
    limit = Limit(path, max_unpacked_gb)
    try:
        check_arrow_size(path, limit)
        with pa.OSFile(str(path)) as file:
            is_file = file.read(6) == b"ARROW1"
            file.seek(0)
            with (pa.ipc.open_file if is_file else pa.ipc.open_stream)(file) as reader:
                table = reader.read_all()
        # The reader trusts offsets and codes in the file; damage would be detected later, or never.
        table.validate(full=True)
    except UNREADABLE:
        raise damaged(path, "Arrow") from None
    check_runs(table, limit)
    check_names(table.column_names)
    return table if columns is None else table.select(check_wanted(columns, table.column_names)), None


def write_arrow(table: pa.Table, path: Path, ending: str = ".arrow", notes: object = None) -> None:
    """Write a table to an Arrow file (Feather, version 2)."""
    # The file format allows one dictionary per column.
    table = table.unify_dictionaries()
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def write_arrow_parts(tables: Iterable[pa.Table], path: Path, ending: str = ".arrow", notes: object = None) -> None:
    """Write tables of the same columns, none of which holds categories, one after another."""
    with ExitStack() as stack:
        file, writer = stack.enter_context(pa.OSFile(str(path), "wb")), None
        for table in tables:
            if writer is None:
                writer = stack.enter_context(pa.ipc.new_file(file, table.schema))
            writer.write_table(table)


def damaged(path: Path, kind: str) -> FileError:
    """Return the error for a file that is not of the format its name claims."""
    return FileError(
        f"{path.name!r} is not a complete {kind} file: it is truncated, damaged or of another format. Write it again."
    )


PARQUET = Format(
    "parquet",
    "Parquet",
    (".parquet",),
    read_parquet,
    write_parquet,
    "Parquet, zstd, with checksums",
    write_parts=write_parquet_parts,
    loses="nothing",
)
ARROW = Format(
    "arrow",
    "Arrow",
    (".arrow", ".feather", ".ipc"),
    read_arrow,
    write_arrow,
    "Arrow",
    write_parts=write_arrow_parts,
    loses="nothing",
)
