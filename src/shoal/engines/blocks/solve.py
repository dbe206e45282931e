"""Solve and refine: the cells of one block are made and improved, and sent to the blocks of the next stage.

Records are taken in any order and put into content order first, so that the result is a function of the set of records
alone. Whole cells are sent, by their means, to the blocks of a forest that is cut elsewhere: cells that were kept apart
by a border meet there and exchange records. Cells of equal points lose nothing; they stay as they are, so that many
equal records do not fill a block.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from shoal import kernels
from shoal.columns.equivalence import class_ids
from shoal.constraints.constrained_cells import group
from shoal.constraints.constraints import Constraints, constraints_of
from shoal.constraints.guarded_refine import guarded_refine
from shoal.engines.blocks.block_records import ALONE, by_content, in_cells, labels_of
from shoal.engines.blocks.blueprint import Blueprint
from shoal.errors import GuaranteeError
from shoal.methods.cell_building import members_of, renumbered
from shoal.methods.refine import refine
from shoal.typing import Labels, Matrix

SETTLED = -1
"""In place of a leaf: the cell needs no refinement."""


def solve(records: pa.Table, blueprint: Blueprint, block: int) -> pa.Table:
    """Make the cells of a block, as `shoal.anonymize` does of a table.

    Parameters
    ----------
    records : pyarrow.Table
        The records of the block, in any order.
    blueprint : Blueprint
        What is known of the whole table.
    block : int
        Number of the block.

    Returns
    -------
    pyarrow.Table
        The records in content order with two more columns: the cell, and whether no other record has the same
        quasi-identifiers (equal records always are in the same block).
    """
    job, schema = blueprint.job, blueprint.schema
    records = by_content(records)
    classes = class_ids(records.select(schema.quasi_names))
    alone = np.bincount(classes)[classes] == 1
    X = blueprint.points(records)
    settings: dict[str, Any] = {"models": job.models, "whole": blueprint.whole}
    try:
        cells = group(records, schema, blueprint.space, X, job.k, job.method, job.seed, **settings)
    except GuaranteeError as error:
        raise GuaranteeError(
            f"In one block, of {records.num_rows:,} of {blueprint.n_records:,} records: {error} A block holds similar "
            'records; engine="memory" may satisfy on the whole table what cannot be satisfied in a block.'
        ) from None
    return in_cells(records.append_column(ALONE, pa.array(alone)), cells.labels, block)


def refine_cells(records: pa.Table, blueprint: Blueprint, block: int) -> pa.Table:
    """Improve the cells of a block, all of whose records are there; every guarantee that holds still does.

    Parameters and result as those of `solve`; the records have cells already.
    """
    records = by_content(records)
    X, labels = blueprint.points(records), labels_of(records)
    job = blueprint.job
    bounds = constraints_of(records, blueprint.schema, job.k, job.models, blueprint.whole)
    refined = _guarded(X, labels, job.k, bounds) if bounds.kept else refine(X, labels, job.k, strata=bounds.strata)
    return in_cells(records, refined, block)


def _guarded(X: Matrix, labels: Labels, k: int, bounds: Constraints) -> Labels:
    """Refine the cells of each stratum by steps that no model forbids."""
    refined, n_cells = np.empty_like(labels), 0
    for members in members_of(bounds.strata):
        models = [each.part(members) for each in bounds.kept]
        refined[members] = guarded_refine(X[members], renumbered(labels[members]), k, models) + n_cells
        n_cells = int(refined[members].max()) + 1
    return refined


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
