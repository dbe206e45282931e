"""Border: whole cells are sent, by their means, to the blocks of a forest that is cut elsewhere.

Cells that were kept apart by a border of the first blocks meet there and exchange records. Cells of equal points lose
nothing; they stay as they are, so that many equal records do not fill a block.
"""

import numpy as np
import pyarrow as pa

from shoal import kernels
from shoal.engines.blocks.block_records import labels_of
from shoal.engines.blocks.blueprint import Blueprint
from shoal.typing import Labels

SETTLED = -1
"""In place of a leaf: the cell needs no refinement."""


def destinations(records: pa.Table, blueprint: Blueprint, border_round: int) -> Labels:
    """Return the leaf that each record is sent to with its cell, or `SETTLED`; shape (n_records,).

    Parameters
    ----------
    records : pyarrow.Table
        Whole cells, as `solve` or `refine_cells` returns them.
    blueprint : Blueprint
        What is known of the whole table.
    border_round : int
        From 1 to `shoal.engines.blocks.blueprint.BORDER_ROUNDS`; the leaves are those of
        ``blueprint.forests[border_round]``.
    """
    X, labels = blueprint.points(records), labels_of(records)
    sizes = np.bincount(labels)
    means = kernels.cell_sums(X, labels, len(sizes)) / sizes[:, None]
    first = np.unique(labels, return_index=True)[1]
    strata = blueprint.strata.codes(records.take(pa.array(first)), blueprint.schema)
    leaves = blueprint.forests[border_round].assign(means, strata)
    leaves[kernels.cell_spread(X, labels, len(sizes)) == 0] = SETTLED
    return leaves[labels]
