"""Joining: whole cells that break a promise join others until none does.

For what must stay together, such as the records of a household; single records are moved by `shoal.cells.enforce`,
which loses less.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from shoal import kernels
from shoal.models.model_on_column import ModelOnColumn, excess_of, vetoes_of
from shoal.partition.cell_building import members_of, renumbered
from shoal.typing import Labels, Matrix, Vector

NEAREST = 48
"""So many of the nearest cells are looked at by a cell that has to join one."""

FARTHER = 48
"""And so many of the others, from near to far: what a cell lacks may be nowhere near."""


def join_until_kept(X: Matrix, labels: Labels, strata: Labels, guarded: Sequence[ModelOnColumn]) -> Labels:
    """Join cells that break a model with others of their stratum, the cheapest that help, until all models are kept.

    Parameters
    ----------
    X : ndarray of shape (n_records, n_dims)
        Where the records lie.
    labels, strata : ndarray of shape (n_records,)
        The cell and the stratum of each record, numbered from 0 and without gaps. A whole stratum keeps every model.
    guarded : sequence of ModelOnColumn
        What to keep about which column.

    Returns
    -------
    labels : ndarray of shape (n_records,)
        Unions of the cells given.
    """
    counts = [each.column.counts() for each in guarded]
    everyone = np.arange(len(labels))
    while True:
        off = _excess(guarded, counts, everyone, labels)
        if not off.any():
            return labels
        labels = _joined(_Cells.of(X, labels, strata), off, guarded, counts)[labels]


class _Cells(NamedTuple):
    """The cells of one round: their records, how many, where, in which stratum."""

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


def _joined(cells: _Cells, off: Vector, guarded: Sequence[ModelOnColumn], counts: list[Labels]) -> Labels:
    """Return the new number of each cell, after each one that breaks a model, the worst first, has joined another."""
    target, free = np.arange(len(off)), np.ones(len(off), dtype=bool)
    for cell in np.argsort(-off, kind="stable")[: np.count_nonzero(off)]:
        if not free[cell]:
            continue
        others = np.flatnonzero(free & (cells.strata == cells.strata[cell]))
        others = others[others != cell]
        if len(others):
            partner = _partner(cells, cell, others, off, guarded, counts)
            target[cell] = partner
            free[[cell, partner]] = False
    return renumbered(target)


def _partner(
    cells: _Cells, cell: int, others: Labels, off: Vector, guarded: Sequence[ModelOnColumn], counts: list[Labels]
) -> int:
    """Return the cell to join: the cheapest that makes good what is off, or the one that helps most for its loss."""
    apart = np.square(cells.means[others] - cells.means[cell]).sum(axis=1)
    near = np.argsort(apart, kind="stable")
    near = np.unique(np.concatenate([near[:NEAREST], near[NEAREST :: max(1, (len(near) - NEAREST) // FARTHER)]]))
    others, apart = others[near], apart[near]
    # What the records of both lose by being released as one (Ward).
    loss = apart * cells.sizes[others] * cells.sizes[cell] / (cells.sizes[others] + cells.sizes[cell])
    unions = [np.concatenate([cells.members[cell], cells.members[other]]) for other in others]
    labels = np.repeat(np.arange(len(unions)), [len(union) for union in unions])
    left = _excess(guarded, counts, np.concatenate(unions), labels)
    helps = off[cell] + off[others] - left
    sound = left == 0
    if sound.any():
        worth = np.where(sound, helps / (loss + 1e-300), -np.inf)
    else:
        worth = np.where(helps > 0, helps / (loss + 1e-300), helps - off[cell] - off.max())
    return int(others[worth.argmax()])


def _excess(guarded: Sequence[ModelOnColumn], counts: list[Labels], records: Labels, labels: Labels) -> Vector:
    """Return what each cell of some records is off, summed over the models."""
    return excess_of(vetoes_of([each.part(records) for each in guarded], counts), labels)
