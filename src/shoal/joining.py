"""Joining: whole cells that break a promise join their neighbours until none does.

For what must stay together, such as the records of a household; single records are moved by `shoal.models.enforce`,
which loses less.
"""

from collections.abc import Sequence

import numpy as np

from shoal import kernels
from shoal.models import Guarded
from shoal.models.columns import breaking
from shoal.partition import partition
from shoal.typing import Labels, Matrix


def join_until_kept(X: Matrix, labels: Labels, strata: Labels, guarded: Sequence[Guarded]) -> Labels:
    """Join cells that break a model, in pairs of neighbours in a stratum, until all models are kept.

    Parameters
    ----------
    X : ndarray of shape (n_records, n_dims)
        Where the records lie.
    labels, strata : ndarray of shape (n_records,)
        The cell and the stratum of each record, numbered from 0 and without gaps. A whole stratum keeps every model.
    guarded : sequence of Guarded
        What to keep about which column.

    Returns
    -------
    labels : ndarray of shape (n_records,)
        Unions of the cells given.
    """
    while True:
        poor = np.flatnonzero(breaking(guarded, labels))
        if not len(poor):
            return labels
        labels = _joined(X, labels, strata, poor)


def _joined(X: Matrix, labels: Labels, strata: Labels, poor: Labels) -> Labels:
    """Join each of some cells with another one of its stratum that is near."""
    sizes = np.bincount(labels)
    means = kernels.cell_sums(X, labels, len(sizes)) / sizes[:, None]
    stratum = np.empty(len(sizes), dtype=np.int64)
    stratum[labels] = strata
    is_poor = np.zeros(len(sizes), dtype=bool)
    is_poor[poor] = True
    target = np.arange(len(sizes))
    for cells in members_of(stratum):
        rich, few = cells[~is_poor[cells]], cells[is_poor[cells]]
        if len(few):
            target[few] = _partners(means, few, rich)
    return np.unique(target[labels], return_inverse=True)[1].astype(np.int64)


def _partners(means: Matrix, poor: Labels, rich: Labels) -> Labels:
    """Name for each poor cell the one to join: the nearest rich one, or the first of two or three poor ones nearby."""
    to_rich = np.full(len(poor), np.inf)
    partners = poor.copy()
    if len(rich):
        partners = rich[kernels.assign(means[poor], means[rich])]
        to_rich = np.square(means[poor] - means[partners]).sum(axis=1)
    if len(poor) > 1:
        pairs = partition(means[poor], 2, seed=0)
        first, size = np.unique(pairs, return_index=True)[1], np.bincount(pairs)
        middles = kernels.cell_sums(means[poor], pairs, len(size)) / size[:, None]
        # Two that form a pair are twice as far from one another as from their middle.
        to_poor = 4 * np.square(means[poor] - middles[pairs]).sum(axis=1)
        partners = np.where(to_rich < to_poor, partners, poor[first][pairs])
    return partners


def members_of(labels: Labels) -> list[Labels]:
    """Return the records of each cell or stratum, in their order."""
    return np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1])
