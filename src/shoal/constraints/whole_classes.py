"""Whole classes: cells that are unions of classes which were published before, for a coarser version of a release."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from shoal import kernels
from shoal.aggregate import Cells
from shoal.columns.distribution import Distributions
from shoal.columns.schema import Schema
from shoal.constraints.constraints import constraints_of
from shoal.constraints.merging import join_until_kept
from shoal.methods import partition
from shoal.methods.within_strata import within
from shoal.models import Model
from shoal.typing import Labels, Matrix, Progress, Seed


def group_classes(
    table: pa.Table,
    schema: Schema,
    X: Matrix,
    k: int,
    classes: Labels,
    method: str = "auto",
    seed: Seed = None,
    *,
    models: Sequence[Model] = (),
    whole: Distributions | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Cells:
    """Split records into cells of at least `k` that are unions of their classes, and satisfy every model.

    Parameters
    ----------
    classes : ndarray of shape (n_records,)
        The class of each record, from 0 and without gaps.
    table, schema, X, k, method, seed, models, whole, threads, progress, **options
        As in `shoal.constraints.constrained_cells.group`.
    """
    constraints = constraints_of(table, schema, k, models, whole)
    sizes, first = np.bincount(classes), np.unique(classes, return_index=True)[1]
    centroids = kernels.cell_sums(X, classes, len(sizes)) / sizes[:, None]
    n_together = -(-k // int(sizes.min()))  # so many of the smallest classes have k records

    def cut(X: Matrix, threads: int, progress: Progress | None) -> Labels:
        if n_together == 1:
            return np.arange(len(X))
        if len(X) < 2 * n_together:
            return np.zeros(len(X), dtype=np.int64)
        return partition(X, n_together, method, seed, threads=threads, progress=progress, **options)

    with kernels.using(threads=threads):
        cells = within(centroids, constraints.strata[first], cut, progress)[classes]
        return Cells(join_until_kept(X, cells, constraints.strata, constraints.models))
