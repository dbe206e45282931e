"""Ancestor: the lowest node of the column's hierarchy above all values of a cell."""

import numpy as np
import pyarrow as pa

from shoal.aggregate.members import Members
from shoal.columns.coarse.missing import or_missing
from shoal.columns.schema import Column


def ancestors(values: pa.ChunkedArray, column: Column, members: Members) -> pa.Array:
    """Return the label of the common ancestor of each cell that k persons share, at the column's level or above."""
    tree = column.hierarchy
    assert tree is not None
    lowest = column.settings.level or 0
    nodes = tree.common(tree.leaf_codes(values), members.labels, members.n_cells, lowest, column.shared_nodes)
    labels = np.array(tree.labels, dtype=object)[nodes].tolist()
    return pa.array(or_missing(labels, members.some_missing), pa.string())
