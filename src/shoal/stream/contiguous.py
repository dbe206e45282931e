"""Arrow data in one piece: columns and tables without chunks, and numbers on the same memory as those of numpy.

The conversions of pyarrow would import pandas, where it is installed, in the first call.
"""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.typing import Vector

_TYPES = {np.dtype(np.float64): pa.float64(), np.dtype(np.int64): pa.int64()}


def as_array(numbers: NDArray[Any]) -> pa.Array:
    """Return float64 or int64 numbers as an Arrow array on the same memory."""
    return pa.Array.from_buffers(_TYPES[numbers.dtype], len(numbers), [None, pa.py_buffer(numbers)])


def is_plain(column: pa.Array) -> bool:
    """Return whether a column is of float64 without missing values, which `floats_of` takes."""
    return bool(pa.types.is_float64(column.type)) and not column.null_count


def floats_of(column: pa.Array) -> Vector:
    """Return float64 numbers on the same memory, read-only."""
    if not len(column):
        return np.empty(0)
    return np.frombuffer(column.buffers()[1], np.float64, len(column), 8 * column.offset)


def as_binary(texts: list[bytes]) -> pa.Array:
    """Return texts as an Arrow array."""
    bounds = np.zeros(len(texts) + 1, dtype=np.int32)
    np.cumsum([len(text) for text in texts], out=bounds[1:])
    return pa.Array.from_buffers(pa.binary(), len(texts), [None, pa.py_buffer(bounds), pa.py_buffer(b"".join(texts))])


def whole(column: pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece."""
    if column.num_chunks == 1:
        return column.chunk(0)
    combined = column.combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """Return a table as one batch."""
    batches = table.combine_chunks().to_batches()
    if len(batches) == 1:
        return batches[0]
    return pa.RecordBatch.from_arrays([whole(column) for column in table.columns], schema=table.schema)


def together(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Return batches of the same columns as one; there is at least one."""
    filled = [batch for batch in batches if batch.num_rows]
    if len(filled) > 1:
        return one_batch(pa.Table.from_batches(filled))
    return filled[0] if filled else batches[0]


def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch without rows."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
