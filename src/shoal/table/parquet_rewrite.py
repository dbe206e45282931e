"""Rewrite: a Parquet file with some columns replaced and its records in another order, in bounded memory.

The untouched columns go from file to file, some records at a time. A new order takes two passes: records are first
scattered into temporary files by where they will be, then each of these is put in order and appended. So a column that
is published as it came never has to fit into memory.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

from shoal.errors import FileError, ParameterError
from shoal.files import hidden_folder, replacing
from shoal.table.clean import as_permutation, check_names, check_wanted, plain, publishable
from shoal.table.parquet_arrow import PARQUET_OPTIONS, UNREADABLE, damaged

_BATCH = 1 << 16
_FIRST = 1000
_BUCKET_BYTES = 64 << 20
_MOST_BUCKETS = 256
_PLACE = "place"


def rewrite_parquet(
    source: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    replaced: pa.Table,
    columns: Sequence[str],
    order: ArrayLike | None = None,
    force: bool = False,
) -> None:
    """Write a Parquet file again, with other values in some columns and its records in another order.

    Parameters
    ----------
    source : path
        The Parquet file that came in, of n records.
    path : path
        Where the new one shall be.
    replaced : pyarrow.Table of n records
        Columns to publish in place of those of the same name, or in addition; records in the order of `source`.
    columns : sequence of str
        The columns to publish, in this order: from `replaced` if it has them, otherwise from `source` as they are.
    order : array_like of shape (n,), optional
        A permutation: record `order[i]` of `source` is written in place i. Without it, records keep their order.
    force : bool
        Replace a file that is there already.

    Raises
    ------
    FileError
        If `source` is not a whole Parquet file, or `path` cannot be written; nothing is left behind then.
    SchemaError
        If a column to publish is in neither.
    ParameterError
        If `replaced` has another number of records than `source`, or `order` is no permutation.

    Notes
    -----
    Holds `replaced`, `order` and about 64 MB of records at a time (more only if the file has more than 16 GB, since
    there are at most 256 temporary files). With an order, the untouched columns are written to the disk a second time,
    in a folder beside `path` that only its owner can enter and that is removed at the end.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> pq.write_table(pa.table({"age": [31, 35, 58, 60], "illness": list("abcd")}), folder / "in.parquet")
    >>> means = pa.table({"age": [33.0, 33.0, 59.0, 59.0]})
    >>> order = [3, 0, 2, 1]
    >>> rewrite_parquet(
    ...     folder / "in.parquet", folder / "out.parquet", replaced=means, columns=["age", "illness"], order=order
    ... )
    >>> pq.read_table(folder / "out.parquet").to_pydict()
    {'age': [59.0, 33.0, 59.0, 33.0], 'illness': ['d', 'a', 'c', 'b']}
    """
    with replacing(path, force, inputs=[source]) as temporary:
        rewrite_parquet_into(source, temporary, replaced=replaced, columns=columns, order=order)


def rewrite_parquet_into(
    source: str | os.PathLike[str],
    path: Path,
    *,
    replaced: pa.Table,
    columns: Sequence[str],
    order: ArrayLike | None = None,
) -> None:
    """Write straight to `path`, replacing what is there: for a path from `shoal.files.replacing_all`."""
    source = Path(source)
    with _opened(source) as file:
        n = file.metadata.num_rows
        if replaced.num_columns and replaced.num_rows != n:
            raise ParameterError(
                f"{source.name!r} has {n} records, but the columns to replace have {replaced.num_rows}."
            )
        check_names(file.schema_arrow.names)
        check_wanted(columns, [*dict.fromkeys([*file.schema_arrow.names, *replaced.column_names])])
        untouched = [name for name in columns if name not in replaced.column_names]
        replaced = plain(replaced.select([name for name in columns if name in replaced.column_names]))
        permutation = None if order is None else as_permutation(order, n)
        if not untouched:
            pieces = _without_file(replaced, permutation)
        elif permutation is None:
            pieces = _in_order(file, untouched, replaced)
        else:
            pieces = _in_new_order(file, untouched, replaced, permutation, path)
        _append(pieces, _schema(file, replaced, columns), path)


@contextmanager
def _opened(source: Path) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file; whatever its content makes the reader say is told without a value."""
    if not source.is_file():
        raise FileError(f"{str(source)!r} does not exist or is not a regular file.")
    try:
        # What is read ahead would be kept until the file is closed: all of it, in the end.
        file = pq.ParquetFile(source, pre_buffer=False, page_checksum_verification=True)
    except UNREADABLE:
        raise damaged(source, "Parquet") from None
    with file:
        yield file


def _schema(file: pq.ParquetFile, replaced: pa.Table, columns: Sequence[str]) -> pa.Schema:
    published = publishable(file.schema_arrow.empty_table()).schema, publishable(replaced.slice(0, 0)).schema
    return pa.schema([published[name in replaced.column_names].field(name) for name in columns])


def _append(pieces: Iterator[pa.Table], schema: pa.Schema, path: Path) -> None:
    with pq.ParquetWriter(path, schema, **PARQUET_OPTIONS) as writer:
        for piece in pieces:
            writer.write_table(publishable(piece.select(schema.names)))


def _without_file(replaced: pa.Table, order: NDArray[np.int64] | None) -> Iterator[pa.Table]:
    yield replaced if order is None else replaced.take(order)


def _in_order(file: pq.ParquetFile, untouched: list[str], replaced: pa.Table) -> Iterator[pa.Table]:
    """Yield the records as they come."""
    start = 0
    for batch in _batches(file, untouched, _bucket_size(file, untouched)):
        yield _joined(batch, replaced.slice(start, batch.num_rows))
        start += batch.num_rows


def _in_new_order(
    file: pq.ParquetFile, untouched: list[str], replaced: pa.Table, order: NDArray[np.int64], path: Path
) -> Iterator[pa.Table]:
    """Yield the records in a new order, by way of temporary files."""
    size = _bucket_size(file, untouched)
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    with hidden_folder(path) as folder:
        _scatter(file, untouched, places, size, folder)
        for bucket, start in enumerate(range(0, len(order), size)):
            with pa.OSFile(str(folder / str(bucket))) as stream, pa.ipc.open_stream(stream) as reader:
                records = reader.read_all()
            (folder / str(bucket)).unlink()
            records = records.take(np.argsort(records[_PLACE].to_numpy())).drop_columns([_PLACE])
            yield _joined(records.rename_columns(untouched), replaced.take(order[start : start + size]))


def _scatter(file: pq.ParquetFile, untouched: list[str], places: NDArray[np.int64], size: int, folder: Path) -> None:
    """Write each record to the temporary file of the places where it belongs, with its place."""
    # Numbered names, so that none is in the way of the place.
    names = [*map(str, range(len(untouched))), _PLACE]
    kinds = [*plain(file.schema_arrow.empty_table()).select(untouched).schema.types, pa.int64()]
    schema = pa.schema(list(zip(names, kinds, strict=True)))
    with ExitStack() as stack:
        writers = []
        for number in range(-(-len(places) // size)):
            stream = stack.enter_context(pa.OSFile(str(folder / str(number)), "wb"))
            writers.append(stack.enter_context(pa.ipc.new_stream(stream, schema)))
        start = 0
        for batch in _batches(file, untouched, size):
            place = places[start : start + batch.num_rows]
            start += batch.num_rows
            placed = pa.table([*batch.columns, pa.array(place)], schema=schema)
            by_bucket = np.argsort(place // size, kind="stable")
            cuts = np.searchsorted((place // size)[by_bucket], np.arange(len(writers) + 1))
            for bucket in np.flatnonzero(np.diff(cuts)).tolist():
                writers[bucket].write_table(placed.take(by_bucket[cuts[bucket] : cuts[bucket + 1]]))


def _batches(file: pq.ParquetFile, untouched: list[str], size: int) -> Iterator[pa.Table]:
    """Yield the untouched columns, some records at a time."""
    batches = file.iter_batches(min(size, _BATCH), columns=untouched)
    while True:
        try:
            batch = next(batches, None)
        except UNREADABLE:
            raise FileError("The Parquet file is damaged: it cannot be read to its end. Write it again.") from None
        if batch is None:
            return
        yield plain(pa.Table.from_batches([batch]).select(untouched))


def _joined(untouched: pa.Table, replaced: pa.Table) -> pa.Table:
    return pa.table([*untouched.columns, *replaced.columns], names=[*untouched.column_names, *replaced.column_names])


def _bucket_size(file: pq.ParquetFile, untouched: list[str]) -> int:
    """Return how many records go into a temporary file, so that one of them fits well into memory."""
    about = file.metadata
    encoded = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    # Repeated texts take little room in the file and much in memory, where the first records give an idea of it.
    first = next(_batches(file, untouched, _FIRST), None)
    n_bytes: int = max(encoded, 0 if first is None else first.nbytes * about.num_rows // first.num_rows)
    n_buckets = min(n_bytes // _BUCKET_BYTES + 1, _MOST_BUCKETS)
    n_records: int = about.num_rows
    return max(-(-n_records // n_buckets), 1)
