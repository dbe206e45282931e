"""Interval: from the lowest to the highest value of a cell, rounded outwards to the step of the column's grid."""

import numpy as np
import pyarrow as pa

from shoal.cells.aggregate.members import Members
from shoal.columns.axes import as_numbers
from shoal.columns.coarse.missing import or_missing
from shoal.columns.schema import Column


def intervals(values: pa.ChunkedArray, column: Column, members: Members) -> pa.Array:
    """Return the interval of each cell as text, open where values were top or bottom coded."""
    grid = column.grid
    assert grid is not None
    numbers = as_numbers(values).astype(np.float64)
    lowest, highest = np.full(members.n_cells, np.inf), np.full(members.n_cells, -np.inf)
    np.minimum.at(lowest, members.labels, numbers)
    np.maximum.at(highest, members.labels, numbers)
    empty = members.sizes == 0  # published as missing, whatever stands here
    lowest, highest = np.where(empty, 0.0, lowest), np.where(empty, 0.0, highest)
    low, high = grid.lows(lowest), grid.highs(highest)
    bottom, top = (_stored(code, values) for code in (column.settings.bottom, column.settings.top))
    lower = ["(-inf" if is_open else f"[{grid.written(end)}" for end, is_open in _ends(low, lowest, bottom)]
    upper = ["inf)" if is_open else f"{grid.written(end)}]" for end, is_open in _ends(high, highest, top)]
    texts = [f"{start}, {end}" for start, end in zip(lower, upper, strict=True)]
    return pa.array(or_missing(texts, members.some_missing), pa.string())


def _stored(code: float | None, values: pa.ChunkedArray) -> float | None:
    """Return a top or bottom code as the column stores it: in single precision 0.7 is another number."""
    return None if code is None else float(as_numbers(pa.array([code]).cast(values.type))[0])


def _ends(units: np.ndarray, extremes: np.ndarray, code: float | None) -> list[tuple[int, bool]]:
    """Return each end, and whether values beyond it were coded, so that nothing is known about how far they go."""
    is_open = np.zeros(len(units), dtype=bool) if code is None else extremes == code
    return list(zip(units.tolist(), is_open.tolist(), strict=True))
