"""Median: the middle value of a cell."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.cells.aggregate.centred import Centred, rounded
from shoal.cells.aggregate.members import Members
from shoal.cells.aggregate.mode import categories_of
from shoal.columns.axes import category_codes
from shoal.columns.schema import Column, Kind


def medians(values: pa.ChunkedArray, column: Column, members: Members) -> pa.Array:
    """Return the median of each cell; of ordinal columns and dates the lower of two middle ones."""
    categories = categories_of(values, column)
    ranks = category_codes(values, categories)
    order = np.lexsort((ranks, members.labels))
    # A cell without values has no median; the value found for it is not published.
    lower, upper = (ranks[order[np.minimum(place, len(order) - 1)]] for place in _middles(members, order))
    if column.kind is not Kind.NUMERIC:
        return categories.take(pa.array(lower))
    centred = Centred.of(categories)
    low, high = centred.offsets[lower], centred.offsets[upper]
    with np.errstate(over="ignore"):
        halfway_up = np.where((low < 0) & (high > 0), (low + high) / 2, low + (high - low) / 2)
    return rounded(halfway_up, centred, column)


def _middles(members: Members, order: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the positions, sorted by cell and value, where each cell reaches half of its weight and exceeds it."""
    starts = np.cumsum(members.sizes) - members.sizes
    if members.weights is None:
        return starts + np.maximum(members.sizes - 1, 0) // 2, starts + members.sizes // 2
    running = np.cumsum(members.weights[order])
    before = np.concatenate([[0.0], running])[starts]
    half = before + members.totals() / 2
    # Rounding may move the search past the cell; its last record is then taken.
    last = starts + np.maximum(members.sizes - 1, 0)
    reached, passed = (np.searchsorted(running, half, side) for side in ("left", "right"))
    return np.clip(reached, starts, last), np.clip(passed, starts, last)
