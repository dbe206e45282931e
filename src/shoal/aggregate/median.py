"""Median: the middle value of a cell."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.aggregate.centred import Centred, rounded
from shoal.aggregate.members import Members
from shoal.aggregate.mode import categories_of
from shoal.columns.categories import category_codes
from shoal.columns.schema import Column, Kind
from shoal.typing import Labels

_UNITS = 2.0**24
"""Units of a weight, which is at most 2: sums of 2^37 records fit into 64 bits."""


def medians(values: pa.ChunkedArray, column: Column, members: Members) -> pa.Array:
    """Return the median of each cell; of ordinal columns and dates the lower of two middle ones."""
    categories = categories_of(values, column)
    ranks = category_codes(values, categories)
    lower, upper = middle_ranks(ranks, members)
    if column.kind is not Kind.NUMERIC:
        return categories.take(pa.array(lower))
    centred = Centred.of(categories)
    low, high = centred.offsets[lower], centred.offsets[upper]
    with np.errstate(over="ignore"):
        halfway_up = np.where((low < 0) & (high > 0), (low + high) / 2, low + (high - low) / 2)
    return rounded(halfway_up, centred, column)


def middle_ranks(ranks: Labels, members: Members) -> tuple[Labels, Labels]:
    """Return the lower and the upper of the middle ranks of each cell; of one without values, any."""
    if len(ranks) == 0:
        return np.zeros(members.n_cells, dtype=np.int64), np.zeros(members.n_cells, dtype=np.int64)
    order = np.lexsort((ranks, members.labels))
    lower, upper = (ranks[order[np.minimum(place, len(order) - 1)]] for place in _middles(members, order))
    return lower, upper


def _middles(members: Members, order: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the positions, sorted by cell and value, where each cell reaches half of its weight and exceeds it."""
    starts = np.cumsum(members.sizes) - members.sizes
    if members.weights is None:
        return starts + np.maximum(members.sizes - 1, 0) // 2, starts + members.sizes // 2
    # In whole units, whose sums are exact: halves are equal or not whatever was summed before.
    running = np.cumsum(np.rint(members.weights[order] * _UNITS).astype(np.int64))
    ends = np.concatenate([[0], running])
    twice = ends[starts] + ends[starts + members.sizes]
    # A cell without values is searched past its end.
    last = starts + np.maximum(members.sizes - 1, 0)
    reached, passed = (np.searchsorted(2 * running, twice, side) for side in ("left", "right"))
    return np.clip(reached, starts, last), np.clip(passed, starts, last)
