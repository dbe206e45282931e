"""Columnar files: Parquet, of which only the requested columns are read, and Arrow (Feather)."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from shoal.errors import FileError
from shoal.sources.clean import check_names, check_wanted, plain, without_records
from shoal.sources.columnar_size import as_texts, check_arrow_size, check_parquet_size, check_runs, declared_sizes
from shoal.sources.format import About, Content, Format, InParts, Parts, one_part
from shoal.sources.reading import Reading, Receipt
from shoal.sources.unpacking import SizeLimit

_AT_ONCE = 1 << 16  # records of a part
_ARROW_ENDINGS = (".arrow", ".feather", ".ipc")

# Exceptions that the readers raise on damaged files. Their messages can contain values, so they are not shown.
UNREADABLE = (pa.ArrowException, OSError, ValueError, EOFError, UnicodeDecodeError, OverflowError)

# The checksums allow readers, including this one, to detect damage.
PARQUET_OPTIONS: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}


def read_parquet(path: Path, columns: Sequence[str] | None, reading: Reading) -> Content:
    """Return what a Parquet file declares; its columns are read on demand, and not kept."""
    types, n_records = parquet_types(path)
    wanted = check_wanted(columns, types.names)
    types = plain(without_records(pa.schema([types.field(name) for name in wanted]))).schema
    one_by_one = cache(lambda: ParquetColumns(path, reading.max_unpacked_gb))

    def load(names: Sequence[str]) -> pa.Table:
        if len(names) == 1:
            return plain(one_by_one().read(names[0]))
        return plain(read_columns(path, names, reading.max_unpacked_gb))

    return Content(types, n_records, load, Receipt(reading, reading))


def read_parquet_parts(path: Path, reading: Reading) -> Parts:
    """Read a Parquet file in parts."""
    types, n_records = parquet_types(path)

    def read(wanted: Sequence[str]) -> Iterator[pa.Table]:
        try:
            # Prefetched data would be kept until the file is closed, so in the end the whole file.
            with opened(path, pre_buffer=False) as file:
                for batch in file.iter_batches(_AT_ONCE, columns=list(wanted)):
                    yield plain(_valid(pa.Table.from_batches([batch]).select(wanted), path))
        except UNREADABLE:
            raise damaged(path, "Parquet") from None

    return Parts(plain(without_records(types)).schema, n_records, read, Receipt(reading, reading))


def read_columns(
    path: Path, columns: Sequence[str], max_unpacked_gb: float | None = None, coded: Sequence[str] = ()
) -> pa.Table:
    """Read some columns; the texts of those that are `coded` as dictionary columns, as the file stores them."""
    limit = SizeLimit(path, max_unpacked_gb)
    with opened(path) as file:
        types = file.schema_arrow
        check_names(types.names)
        wanted = check_wanted(columns, types.names)
        by_reference = check_parquet_size(declared_sizes(file.metadata), wanted, limit)
    kept = [name for name in coded if pa.types.is_string(types.field(name).type)]
    with opened(path, read_dictionary=[*by_reference, *kept]) as file:
        try:
            return _valid(as_texts(file.read(columns=wanted).select(wanted), types, limit, kept), path)
        except UNREADABLE:
            raise damaged(path, "Parquet") from None


class ParquetColumns:
    """The columns of a Parquet file, read one at a time.

    The file is opened once, since this takes longer than reading a column where there are thousands of them. Several
    threads may read, one after another: Arrow does not promise that a reader serves two at a time.
    """

    def __init__(self, path: Path, max_unpacked_gb: float | None = None) -> None:
        self._path, self._max_unpacked_gb = path, max_unpacked_gb
        self._limit = SizeLimit(path, max_unpacked_gb)
        # Prefetched data would be kept until the file is closed.
        self._file = opened(path, pre_buffer=False)
        check_names(self._file.schema_arrow.names)
        self._sizes = declared_sizes(self._file.metadata)
        self._reading = Lock()

    def read(self, name: str) -> pa.Table:
        """Return a table of one column."""
        if name not in self._sizes or check_parquet_size(self._sizes, [name], self._limit):
            return read_columns(self._path, [name], self._max_unpacked_gb)
        try:
            with self._reading:
                return _valid(self._file.read(columns=[name]).select([name]), self._path)
        except UNREADABLE:
            raise damaged(self._path, "Parquet") from None


def parquet_types(path: Path) -> tuple[pa.Schema, int]:
    """Return the schema of a Parquet file and its number of records."""
    with opened(path) as file:
        check_names(file.schema_arrow.names)
        return file.schema_arrow, int(file.metadata.num_rows)


def opened(path: Path, **options: Any) -> pq.ParquetFile:
    """Open a Parquet file; errors of the reader are reported without values."""
    try:
        file = pq.ParquetFile(path, page_checksum_verification=True, **options)
        is_encrypted = _footer_length(path) == file.metadata.serialized_size + _SIGNATURE
    except UNREADABLE:
        if not _is_encrypted(path):
            raise damaged(path, "Parquet") from None
        is_encrypted = True
    if is_encrypted:  # the reader ends the process where it comes to such a column
        raise FileError(f"{path.name!r} is an encrypted Parquet file, or has encrypted columns. Decrypt it first.")
    return file


_SIGNATURE = 28
"""Bytes after a footer that is not encrypted itself, where columns are."""


def _footer_length(path: Path) -> int:
    with open(path, "rb") as file:
        file.seek(-8, os.SEEK_END)
        return int.from_bytes(file.read(4), "little")


def _is_encrypted(path: Path) -> bool:
    with suppress(OSError), open(path, "rb") as file:
        return file.read(4) == b"PARE"
    return False


def _valid(table: pa.Table, path: Path) -> pa.Table:
    """Return a table; raise if a column is not what its type says: the reader does not look into texts."""
    for name in table.column_names:
        try:
            table[name].validate(full=True)
        except pa.ArrowInvalid:
            raise FileError(
                f"Column {name!r} of {path.name!r} holds values that its type does not permit, such as text that is "
                "not UTF-8. Write the file again, with the text converted to UTF-8."
            ) from None
    return table


def write_parquet_parts(tables: Iterable[pa.Table], path: Path, ending: str, like: About | None = None) -> None:
    """Write tables of the same columns one after another."""
    with ExitStack() as stack:
        writer = None
        for table in tables:
            if writer is None:
                writer = stack.enter_context(pq.ParquetWriter(path, table.schema, **PARQUET_OPTIONS))
            writer.write_table(table)


def read_arrow(path: Path, columns: Sequence[str] | None, reading: Reading) -> Content:
    """Read an Arrow file, in the file format (Feather) or as a stream."""
    limit = SizeLimit(path, reading.max_unpacked_gb)
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
    wanted = check_wanted(columns, table.column_names)
    return Content.of(table.select(wanted), Receipt(reading, reading))


def read_arrow_parts(path: Path, reading: Reading) -> Parts:
    """Read an Arrow file in parts: the batches that it holds."""
    from pyarrow.dataset import dataset  # which takes a while to import, and few files are read in parts

    with _arrow_reader(path) as reader:
        types = reader.schema
    check_names(types.names)

    def read(wanted: Sequence[str]) -> Iterator[pa.Table]:
        with _arrow_reader(path) as reader:
            for number in range(reader.num_record_batches):
                try:
                    table = pa.Table.from_batches([reader.get_batch(number)]).select(wanted)
                    table.validate(full=True)
                except UNREADABLE:
                    raise damaged(path, "Arrow") from None
                yield plain(table)

    # From what the file says of its batches, none of which is read.
    n_records = dataset(path, format="ipc").count_rows()
    return Parts(plain(without_records(types)).schema, n_records, read, Receipt(reading, reading))


def _arrow_reader(path: Path) -> Any:
    try:
        return pa.ipc.open_file(pa.OSFile(str(path)))
    except UNREADABLE:
        raise FileError(
            f"{path.name!r} is not an Arrow file that can be read in batches: it is a stream, or damaged. Write it "
            "again in the file format, or as Parquet."
        ) from None


def write_arrow_parts(tables: Iterable[pa.Table], path: Path, ending: str, like: About | None = None) -> None:
    """Write tables of the same columns one after another (Feather, version 2); several must not hold categories."""
    with ExitStack() as stack:
        file, writer = stack.enter_context(pa.OSFile(str(path), "wb")), None
        for each in tables:
            table = each.unify_dictionaries()  # the file format allows one dictionary per column
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
    one_part(write_parquet_parts),
    "Parquet, zstd, with checksums",
    options=frozenset({"max_unpacked_gb"}),
    in_parts=InParts(read_parquet_parts, (".parquet",)),
    write_parts=write_parquet_parts,
    loses="nothing",
)
ARROW = Format(
    "arrow",
    "Arrow",
    _ARROW_ENDINGS,
    read_arrow,
    one_part(write_arrow_parts),
    "Arrow",
    options=frozenset({"max_unpacked_gb"}),
    in_parts=InParts(read_arrow_parts, _ARROW_ENDINGS),
    write_parts=write_arrow_parts,
    loses="nothing",
)
