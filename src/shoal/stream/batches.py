"""Batches: a matrix or any frame as Arrow, and back; and Arrow data in one piece, on the same memory as that of numpy.

The conversions of pyarrow would import pandas, where it is installed, in the first call.
"""

from typing import Any

import numpy as np
import pyarrow as pa
from narwhals import dependencies
from numpy.typing import NDArray

from shoal.errors import ParameterError
from shoal.sources.clean import publishable
from shoal.sources.frames import Back, from_frame
from shoal.typing import Vector

__all__ = [
    "Back",
    "as_array",
    "as_arrow",
    "as_binary",
    "floats_of",
    "is_plain",
    "no_rows",
    "one_batch",
    "together",
    "whole",
]


def as_arrow(batch: Any) -> tuple[pa.Table, Back]:
    """Return a batch as an Arrow table, and a function that converts a table back to the kind of the batch.

    The columns of a matrix are named by their numbers.
    """
    if isinstance(batch, np.ndarray):
        return _of_matrix(batch), _as_matrix
    if dependencies.is_pandas_dataframe(batch) and type(batch.index).__name__ == "RangeIndex" and not batch.index.name:
        # A batch is often a slice of a frame; its index must not become a column.
        batch = batch.reset_index(drop=True)
    frame = from_frame(batch)
    # The dictionaries of released columns may still hold categories of tuples that wait.
    return frame.arrow, lambda released: frame.back(publishable(released))


def _of_matrix(matrix: np.ndarray[Any, Any]) -> pa.Table:
    if matrix.ndim != 2 or matrix.dtype.kind not in "buif":
        raise ParameterError(
            f"A batch as an array has two dimensions, tuples by columns, and real numbers; this one has {matrix.ndim} "
            f"and dtype {matrix.dtype}."
        )
    return pa.table({str(j): np.ascontiguousarray(column) for j, column in enumerate(matrix.T)})


def _as_matrix(table: pa.Table) -> np.ndarray[Any, Any]:
    out = np.empty((table.num_rows, table.num_columns))
    for j, column in enumerate(table.columns):
        out[:, j] = column.to_numpy()
    return out


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
