"""Cells with the same published values: they form one equivalence class, which must satisfy every model as a whole.

If every record counts, the union of two cells that satisfy a model satisfies it. If every person counts once, it need
not: a person with records in both cells was counted twice before, and is counted once in the union.
"""

from collections.abc import Callable, Sequence

import pyarrow as pa

from shoal.columns.equivalence import class_ids
from shoal.constraints.merging import join_until_kept
from shoal.methods.cell_building import renumbered
from shoal.models.model_on_column import ModelOnColumn, excess_of, vetoes_of
from shoal.typing import Labels, Matrix


def joined_where_alike(
    X: Matrix,
    labels: Labels,
    strata: Labels,
    kept: Sequence[ModelOnColumn],
    published: Callable[[Labels], pa.Table],
) -> Labels:
    """Join cells until the published equivalence classes satisfy every model.

    Parameters
    ----------
    X : ndarray of shape (n_records, n_dims)
        Records in the space.
    labels, strata : ndarray of shape (n_records,)
        The cell and the stratum of each record, numbered from 0 and without gaps. Every cell satisfies every model.
    kept : sequence of ModelOnColumn
        The models to satisfy.
    published : callable
        Returns the quasi-identifiers as published with these cells.

    Returns
    -------
    labels : ndarray of shape (n_records,)
        The cells given, or unions of them. Classes that span strata are left to the recount.
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
