"""Interval: from the lowest to the highest value of a cell, rounded outwards to the steps of the column's grid."""

import pyarrow as pa

from shoal.aggregate.members import Members
from shoal.columns.coarse.missing import or_missing
from shoal.columns.schema import Column


def intervals(values: pa.ChunkedArray, column: Column, members: Members) -> pa.Array:
    """Return the interval of each cell as text, open where values were top or bottom coded."""
    grid = column.grid
    assert grid is not None
    units = grid.units(values)
    lowest, highest = members.extremes(units)
    return pa.array(or_missing(grid.intervals(lowest, highest), members.some_missing), pa.string())
