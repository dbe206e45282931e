"""Conversion of batches: a matrix or any frame in, the same kind out."""

from typing import Any

import numpy as np
import pyarrow as pa
from narwhals import dependencies

from shoal.errors import ParameterError
from shoal.sources.clean import publishable
from shoal.sources.frames import Back, from_frame

__all__ = ["Back", "as_arrow"]


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
