"""Batches at the border: any frame in, the same kind of frame out."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.errors import ParameterError

Back = Callable[[pa.Table], Any]


def as_arrow(batch: Any) -> tuple[pa.Table, Back]:
    """Return a batch as an Arrow table, and how to give one back as what came in.

    A matrix has columns named by their numbers; a matrix comes back for one.
    """
    if isinstance(batch, pa.RecordBatch):
        return pa.Table.from_batches([batch]), lambda table: table.combine_chunks().to_batches()[0]
    if isinstance(batch, pa.Table):
        return batch, lambda table: table
    if isinstance(batch, np.ndarray):
        return _of_matrix(batch), _as_matrix
    return _of_frame(batch)


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


def _of_frame(batch: Any) -> tuple[pa.Table, Back]:
    """Let narwhals read pandas, polars and whatever else it knows."""
    import narwhals as nw

    try:
        frame = nw.from_native(batch, eager_only=True)
    except TypeError:
        raise ParameterError(
            f"A batch is a matrix, an Arrow table or a pandas or polars frame, not {type(batch).__name__}."
        ) from None
    return frame.to_arrow(), lambda table: nw.from_arrow(table, backend=frame.implementation).to_native()
