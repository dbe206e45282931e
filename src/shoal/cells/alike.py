"""Alike: cells that are published alike are one class to a reader, and have to keep every model as one.

Where every record counts, what two cells keep their union keeps. Where a person counts once, it need not: somebody with
records in both cells counted twice before, and counts once now.
"""

from collections.abc import Callable, Sequence

import pyarrow as pa

from shoal.cells.merging import join_until_kept
from shoal.columns.equivalence import class_ids
from shoal.models.model_on_column import ModelOnColumn, excess_of, vetoes_of
from shoal.partition.cell_building import renumbered
from shoal.typing import Labels, Matrix


def joined_where_alike(
    X: Matrix,
    labels: Labels,
    strata: Labels,
    kept: Sequence[ModelOnColumn],
    published: Callable[[Labels], pa.Table],
) -> Labels:
    """Join cells until the classes that a reader sees keep every model.

    Parameters
    ----------
    X : ndarray of shape (n_records, n_dims)
        Where the records lie.
    labels, strata : ndarray of shape (n_records,)
        The cell and the stratum of each record, numbered from 0 and without gaps. Every cell keeps every model.
    kept : sequence of ModelOnColumn
        What to keep about which column.
    published : callable
        Returns the quasi-identifiers as they are published with these cells.

    Returns
    -------
    labels : ndarray of shape (n_records,)
        The cells given, or unions of them. Classes that cross strata are left to the recount.
    """
    vetoes = vetoes_of(kept)
    while True:
        classes = class_ids(published(labels))
        if not excess_of(vetoes, classes).any():
            return labels
        united = renumbered(classes * (int(strata.max()) + 1) + strata)
        joined = join_until_kept(X, united, strata, kept)
        if joined.max() == labels.max():
            return labels
        labels = joined
