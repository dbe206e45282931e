"""Rewrite a Parquet file with some columns replaced and its records in another order, in bounded memory.

Unchanged columns are copied from file to file in batches. A new order takes two passes: records are first distributed
to temporary files by their target position, then each of these is sorted and appended. So a column that is published
unchanged never has to fit into memory. Its categories, if it has any, are listed first, since their list is that of the
whole column.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

from shoal.errors import FileError, ParameterError
from shoal.files import hidden_folder, replacing
from shoal.sources.arrow_buffers import has_categories
from shoal.sources.clean import (
    as_permutation,
    check_names,
    check_wanted,
    has_column,
    plain,
    publishable,
    without_records,
)
from shoal.sources.columnar_size import value_bytes
from shoal.sources.parquet_arrow import PARQUET_OPTIONS, UNREADABLE, opened

_BATCH = 1 << 16
_FIRST = 1000
_BUCKET_BYTES = 64 << 20
_MOST_BUCKETS = 256
_MOST_IN_GROUP = 1 << 20
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
    """Rewrite a Parquet file with other values in some columns and its records in another order.

    Parameters
    ----------
    source : path
        The input Parquet file, of n records.
    path : path
        The output file.
    replaced : pyarrow.Table of n records
        Columns that replace those of the same name, or are added; records in the order of `source`.
    columns : sequence of str
        The columns to publish, in this order: from `replaced` if it has them, otherwise unchanged from `source`.
    order : array_like of shape (n,), optional
        A permutation: record `order[i]` of `source` is written as row i. By default records keep their order.
    force : bool
        Overwrite an existing file.

    Raises
    ------
    FileError
        If `source` is not a complete Parquet file, or `path` cannot be written; nothing is left behind then.
    SchemaError
        If a column to publish is in neither.
    ParameterError
        If `replaced` and `source` differ in their number of records, or `order` is not a permutation.

    Notes
    -----
    Memory holds `replaced`, `order`, the categories and about 128 MB of records (more only if the file has more than
    16 GB, since there are at most 256 temporary files); at the start, one column with categories at a time. With an
    order, the unchanged columns are written to disk a second time, in a folder beside `path` that only its owner can
    access and that is removed at the end.

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
    """Write directly to `path`, overwriting it: for a path from `shoal.files.replacing_all`."""
    source = Path(source)
    if not source.is_file():
        raise FileError(f"{str(source)!r} does not exist or is not a regular file.")
    # Prefetched data would be kept until the file is closed, so in the end the whole file.
    with opened(source, pre_buffer=False) as file:
        n = file.metadata.num_rows
        if replaced.num_columns and replaced.num_rows != n:
            raise ParameterError(
                f"{source.name!r} has {n} records, but the columns to replace have {replaced.num_rows}."
            )
        check_names(file.schema_arrow.names)
        check_wanted(columns, [*dict.fromkeys([*file.schema_arrow.names, *replaced.column_names])])
        untouched = [name for name in columns if not has_column(replaced, name)]
        replaced = publishable(plain(replaced.select([name for name in columns if has_column(replaced, name)])))
        permutation = None if order is None else as_permutation(order, n)
        if not untouched:
            pieces = _without_file(replaced, permutation)
        elif permutation is None:
            pieces = _in_order(file, untouched, replaced)
        else:
            pieces = _in_new_order(file, untouched, replaced, permutation, path)
        _append(pieces, _with_categories(file, untouched, replaced, columns), path)


def _with_categories(
    file: pq.ParquetFile, untouched: list[str], replaced: pa.Table, columns: Sequence[str]
) -> pa.Table:
    """Return the published columns without records; those of the file with all their categories."""
    empty = _empty(file, untouched)
    for name in untouched:
        if has_categories(empty[name].type):
            whole = publishable(_read_whole(file, name)).column(0)
            empty = empty.set_column(empty.schema.get_field_index(name), name, whole.take(pa.array([], pa.int64())))
    return _joined(empty, replaced.slice(0, 0)).select(columns)


def _empty(file: pq.ParquetFile, untouched: list[str]) -> pa.Table:
    return publishable(plain(without_records(file.schema_arrow).select(untouched)))


def _append(pieces: Iterator[pa.Table], empty: pa.Table, path: Path) -> None:
    with pq.ParquetWriter(path, empty.schema, **PARQUET_OPTIONS) as writer:
        for group in _row_groups(pieces, empty):
            writer.write_table(group.unify_dictionaries().combine_chunks())


def _row_groups(pieces: Iterator[pa.Table], empty: pa.Table) -> Iterator[pa.Table]:
    """Yield the records in row groups, whose size follows from the first published records and not from the source.

    The first chunk of each is `empty`, whose lists of categories are the ones to use.
    """
    size, rest = 0, empty
    for piece in pieces:
        rest = pa.concat_tables([rest, piece.select(empty.column_names)])
        if not size and rest.num_rows >= _FIRST:
            n_bytes = sum(map(value_bytes, rest.slice(0, _FIRST).columns))
            size = min(max(_BUCKET_BYTES * _FIRST // max(n_bytes, 1), 1), _MOST_IN_GROUP)
        while size and rest.num_rows >= size:
            yield pa.concat_tables([empty, rest.slice(0, size)])
            rest = rest.slice(size)
    if rest.num_rows:
        yield pa.concat_tables([empty, rest])


def _without_file(replaced: pa.Table, order: NDArray[np.int64] | None) -> Iterator[pa.Table]:
    yield replaced if order is None else replaced.take(order)


def _in_order(file: pq.ParquetFile, untouched: list[str], replaced: pa.Table) -> Iterator[pa.Table]:
    """Yield the records in the order of the file."""
    start = 0
    for batch in _batches(file, untouched, _bucket_size(file, untouched)):
        yield _joined(batch, replaced.slice(start, batch.num_rows))
        start += batch.num_rows


def _in_new_order(
    file: pq.ParquetFile, untouched: list[str], replaced: pa.Table, order: NDArray[np.int64], path: Path
) -> Iterator[pa.Table]:
    """Yield the records in a new order, using temporary files."""
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
    """Write each record, with its target position, to the temporary file that covers that position."""
    # Numbered names, so that none clashes with the position column.
    names = [*map(str, range(len(untouched))), _PLACE]
    kinds = [*_empty(file, untouched).schema.types, pa.int64()]
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
    """Yield the unchanged columns in batches."""
    batches = file.iter_batches(min(size, _BATCH), columns=untouched)
    while True:
        try:
            batch = next(batches, None)
        except UNREADABLE:
            raise _incomplete() from None
        if batch is None:
            return
        yield publishable(plain(pa.Table.from_batches([batch]).select(untouched)))


def _read_whole(file: pq.ParquetFile, name: str) -> pa.Table:
    try:
        return plain(file.read(columns=[name]).select([name]))
    except UNREADABLE:
        raise _incomplete() from None


def _incomplete() -> FileError:
    return FileError("The Parquet file is damaged: it cannot be read completely. Write it again.")


def _joined(one: pa.Table, other: pa.Table) -> pa.Table:
    return pa.table([*one.columns, *other.columns], names=[*one.column_names, *other.column_names])


def _bucket_size(file: pq.ParquetFile, untouched: list[str]) -> int:
    """Return the number of records per temporary file, so that one file fits into memory."""
    about = file.metadata
    encoded = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    # Repeated strings are small in the file and large in memory; the latter is estimated from the first records.
    first = next(_batches(file, untouched, _FIRST), None)
    n_bytes: int = max(encoded, 0 if first is None else first.nbytes * about.num_rows // first.num_rows)
    n_buckets = min(n_bytes // _BUCKET_BYTES + 1, _MOST_BUCKETS)
    n_records: int = about.num_rows
    return max(-(-n_records // n_buckets), 1)
