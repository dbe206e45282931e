"""Size of columns in memory: of files, from what they declare, before a reader allocates it; and of values.

A Parquet or Arrow file of a few kilobytes can stand for terabytes: by compression, and by values that are stored once
and repeated by reference. The size of values is the same however their records are split into batches, unlike the one
that Arrow reports, which includes bitmaps that a batch without missing values does not have.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from shoal.sources.unpacking import SizeLimit

_DICTIONARY = {"RLE_DICTIONARY", "PLAIN_DICTIONARY"}
_WIDTHS = {"BOOLEAN": 1 / 8, "INT32": 4, "INT64": 8, "INT96": 8, "FLOAT": 4, "DOUBLE": 8}


_PLACE = 4
"""Bytes that say where a text or a list begins."""

_NUMBER = 8
"""Bytes of a number, at least: engines read the same column with other widths."""


class Declared(NamedTuple):
    """What a Parquet file declares about one of its columns, in bytes."""

    size: float
    """At least this much in memory."""
    repeated: float
    """At most this much if it is a column of texts stored by reference, otherwise 0."""


def declared_sizes(metadata: pq.FileMetaData) -> dict[str, dict[str, Declared]]:
    """Return for each column what is declared: by the path of the part, of which nested columns have several."""
    found: dict[str, dict[str, Declared]] = defaultdict(lambda: defaultdict(lambda: Declared(0.0, 0.0)))
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for place in range(row_group.num_columns):
            chunk = row_group.column(place)
            size = max(chunk.total_uncompressed_size, chunk.num_values * _WIDTHS.get(chunk.physical_type, 0))
            by_reference = chunk.physical_type == "BYTE_ARRAY" and set(chunk.encodings) & _DICTIONARY
            repeated = float(chunk.num_values) * chunk.total_uncompressed_size if by_reference else 0.0
            path = chunk.path_in_schema
            for name in {path, path.split(".")[0]}:
                before = found[name][path]
                found[name][path] = Declared(before.size + size, before.repeated + repeated)
    return found


def check_parquet_size(
    sizes: Mapping[str, Mapping[str, Declared]], names: Iterable[str], limit: SizeLimit
) -> list[str]:
    """Raise if the columns declare more than the limit; return those of texts that may still exceed it.

    These store texts by reference, and are to be read as categories, whose size can be computed before they are texts.
    """
    wanted = {path: declared for name in names for path, declared in sizes.get(name, {}).items()}
    limit.check(int(sum(declared.size for declared in wanted.values())))
    return [path for path, declared in wanted.items() if declared.repeated > limit.n_bytes]


def as_texts(table: pa.Table, types: pa.Schema, limit: SizeLimit, kept: Collection[str] = ()) -> pa.Table:
    """Return the table with the types of the file, where its texts were read as categories; raise beyond the limit.

    Columns that are `kept` stay categories.
    """
    size = table.nbytes
    for place, field in enumerate(table.schema):
        if field.name in kept:
            continue
        if pa.types.is_dictionary(field.type) and field.type != types.field(field.name).type:
            size += sum(map(_text_size, table.column(place).chunks))
            limit.check(size)
            texts = table.column(place).cast(types.field(field.name).type)
            table = table.set_column(place, types.field(field.name), texts)
    return table


def _text_size(array: pa.DictionaryArray) -> int:
    lengths = pc.binary_length(array.dictionary).cast(pa.int64())
    return pc.sum(lengths.take(array.indices)).as_py() or 0


def check_arrow_size(path: Path, limit: SizeLimit) -> None:
    """Raise if the compressed buffers of an Arrow file declare more than the limit."""
    size = 0
    with pa.memory_map(str(path)) as file:
        is_file = file.read(6) == b"ARROW1"
        file.seek(0)
        for message in _messages_of_file(file) if is_file else pa.ipc.MessageReader.open_stream(file):
            size += _declared(message)
            limit.check(size)


def _messages_of_file(file: Any) -> Iterator[Any]:
    """Yield the messages that the footer of a file lists."""
    file.seek(file.size() - 10)
    length = int.from_bytes(file.read(4), "little")
    file.seek(file.size() - 10 - length)
    footer = _Flat(file.read(length))
    for place in (2, 3):  # dictionaries and record batches
        for (offset,) in footer.structures(footer.root, place, (0,), 24):
            file.seek(offset)
            yield pa.ipc.read_message(file)


def check_runs(table: pa.Table, limit: SizeLimit) -> None:
    """Raise if columns that store runs of equal values would exceed the limit without them."""
    runs = [field.type for field in table.schema if pa.types.is_run_end_encoded(field.type)]
    limit.check(sum(table.num_rows * (_bits(kind.value_type) // 8) for kind in runs))


def _bits(kind: pa.DataType) -> int:
    try:
        return int(kind.bit_width)
    except ValueError:
        return 64


def _declared(message: Any) -> int:
    """Return the size of the buffers of a message after decompression."""
    if message.type not in ("record batch", "dictionary"):
        return 0
    table = _Flat(message.metadata.to_pybytes())
    header = table.child(table.root, 2)
    batch = table.child(header, 1) if message.type == "dictionary" else header
    if batch is None or not table.field(batch, 3):
        return 0  # what is not compressed does not expand
    body = memoryview(message.body)
    return sum(_buffer_size(body, offset, length) for offset, length in table.structures(batch, 2, (0, 8), 16))


def _buffer_size(body: memoryview, offset: int, length: int) -> int:
    """Return the size of one buffer: its first 8 bytes declare it, -1 if it is not compressed."""
    if length < 8:
        return length
    declared = int.from_bytes(body[offset : offset + 8], "little", signed=True)
    return length if declared < 0 else declared


def value_bytes(values: pa.ChunkedArray) -> int:
    """Return the size of values in bytes; a missing value counts as a place for one.

    Examples
    --------
    >>> value_bytes(pa.chunked_array([[1, None], [3]])), value_bytes(pa.chunked_array([["a", "bcd"]]))
    (24, 12)
    """
    return sum(map(_size_of, values.chunks))


def _size_of(values: pa.Array) -> int:
    kind, n = values.type, len(values)
    if isinstance(kind, pa.BaseExtensionType):
        return _size_of(values.storage)
    if pa.types.is_dictionary(kind):
        return _size_of(values.dictionary_decode())
    if pa.types.is_map(kind):
        entries = pa.struct({"key": kind.key_type, "value": kind.item_type})
        return _size_of(values.cast(pa.list_(entries)))
    if pa.types.is_struct(kind):
        return sum(map(_size_of, values.flatten()))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _PLACE * n + _size_of(values.flatten())
    if pa.types.is_null(kind):
        return 0
    try:
        width: int = kind.bit_width // 8
    except ValueError:  # texts and bytes have no fixed width
        return _PLACE * n + int(pc.sum(pc.binary_length(values)).as_py() or 0)
    return max(width, _NUMBER) * n


class _Flat:
    """The few accesses to the metadata of a message (a FlatBuffers table) that are needed here."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.root = self._number(0, 4)

    def _number(self, at: int, width: int, signed: bool = False) -> int:
        return int.from_bytes(self.content[at : at + width], "little", signed=signed)

    def field(self, table: int, place: int) -> int:
        """Return the position of a field of a table, 0 if it is not set."""
        entries = table - self._number(table, 4, signed=True)
        if 4 + 2 * place >= self._number(entries, 2):
            return 0
        offset = self._number(entries + 4 + 2 * place, 2)
        return table + offset if offset else 0

    def child(self, table: int | None, place: int) -> int | None:
        """Return the position of a table that a field refers to."""
        at = 0 if table is None else self.field(table, place)
        return at + self._number(at, 4) if at else None

    def structures(self, table: int, place: int, members: tuple[int, ...], width: int) -> list[tuple[int, ...]]:
        """Return a vector of structures of a width in bytes: the 64-bit integers at the given positions in each."""
        start = self.child(table, place)
        if start is None:
            return []
        # In a damaged file the number of structures can be anything.
        n_structures = min(self._number(start, 4), len(self.content) // width)
        at = [start + 4 + width * i for i in range(n_structures)]
        return [tuple(self._number(one + member, 8) for member in members) for one in at]
