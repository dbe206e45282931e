"""Merging: whole cells that violate a model are merged with others until none does.

For records that must stay together, such as those of a household. `shoal.constraints.enforce` moves single records, at
less loss.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from shoal import kernels
from shoal.methods.cell_building import members_of, renumbered
from shoal.models.model_on_column import ModelOnColumn, excess_of, vetoes_of
from shoal.typing import Labels, Matrix, Vector

NEAREST = 48
"""Number of nearest cells considered for a merge."""

FARTHER = 48
"""Number of other cells considered, evenly from near to far: what a cell lacks may not be nearby."""


Excess = Callable[[Labels, Labels], Vector]
"""Total violation of the models by each cell of some records: takes the records and their cells, from 0."""


def join_until_kept(X: Matrix, labels: Labels, strata: Labels, guarded: Sequence[ModelOnColumn]) -> Labels:
    """Merge cells that violate a model with the cheapest suitable cells of their stratum, until all models hold.

    Parameters
    ----------
    X : ndarray of shape (n_records, n_dims)
        Records in the space.
    labels, strata : ndarray of shape (n_records,)
        The cell and the stratum of each record, numbered from 0 and without gaps. Every whole stratum satisfies every
        model.
    guarded : sequence of ModelOnColumn
        The models to satisfy.

    Returns
    -------
    labels : ndarray of shape (n_records,)
        Unions of the cells given.
    """
    counts = [each.column.counts() for each in guarded]

    def excess(records: Labels, labels: Labels) -> Vector:
        return excess_of(vetoes_of([each.part(records) for each in guarded], counts), labels)

    return joined_until(X, labels, strata, excess)


def joined_until(X: Matrix, labels: Labels, strata: Labels, excess: Excess) -> Labels:
    """As `join_until_kept`, for any measure of what cells violate; X may hold any units that are grouped."""
    everyone = np.arange(len(labels))
    while True:
        off = excess(everyone, labels)
        if not off.any():
            return labels
        labels = _joined(_Cells.of(X, labels, strata), off, excess)[labels]


class _Cells(NamedTuple):
    """The cells of one round: records, sizes, means and strata."""

    members: list[Labels]
    sizes: Labels
    means: Matrix
    strata: Labels

    @staticmethod
    def of(X: Matrix, labels: Labels, strata: Labels) -> "_Cells":
        members = members_of(labels)
        sizes = np.bincount(labels)
        means = kernels.cell_sums(X, labels, len(sizes)) / sizes[:, None]
        return _Cells(members, sizes, means, np.array([strata[records[0]] for records in members]))


def _joined(cells: _Cells, off: Vector, excess: Excess) -> Labels:
    """Merge each cell that violates a model with another, the worst first; return the new number of each cell."""
    target, free = np.arange(len(off)), np.ones(len(off), dtype=bool)
    for cell in np.argsort(-off, kind="stable")[: np.count_nonzero(off)]:
        if not free[cell]:
            continue
        others = np.flatnonzero(free & (cells.strata == cells.strata[cell]))
        others = others[others != cell]
        if len(others):
            partner = _partner(cells, cell, others, off, excess)
            target[cell] = partner
            free[[cell, partner]] = False
    return renumbered(target)


def _partner(cells: _Cells, cell: int, others: Labels, off: Vector, excess: Excess) -> int:
    """Return the cell to merge with: the cheapest that removes the violation, or the one that reduces it most."""
    apart = np.square(cells.means[others] - cells.means[cell]).sum(axis=1)
    near = np.argsort(apart, kind="stable")
    near = np.unique(np.concatenate([near[:NEAREST], near[NEAREST :: max(1, (len(near) - NEAREST) // FARTHER)]]))
    others, apart = others[near], apart[near]
    # Increase of the SSE by the merge (Ward).
    loss = apart * cells.sizes[others] * cells.sizes[cell] / (cells.sizes[others] + cells.sizes[cell])
    unions = [np.concatenate([cells.members[cell], cells.members[other]]) for other in others]
    labels = np.repeat(np.arange(len(unions)), [len(union) for union in unions])
    left = excess(np.concatenate(unions), labels)
    helps = off[cell] + off[others] - left
    sound = left == 0
    if sound.any():
        worth = np.where(sound, helps / (loss + 1e-300), -np.inf)
    else:
        worth = np.where(helps > 0, helps / (loss + 1e-300), helps - off[cell] - off.max())
    return int(others[worth.argmax()])
