"""TFRP, two fixed reference points: cells formed from two opposite corners in turn, then dissolved where that helps.

Phase I: R1 has the smallest number of the whole matrix in every coordinate, R2 the largest. Odd rounds start from the
remaining record farthest from R1, even rounds from R2; it and its k-1 nearest form a cell, floor(n / k) times. The
records left over are assigned to the nearest centroid, in order of decreasing distance from the reference point of the
last round, and the centroid is updated each time. Phase II is `shoal.methods.dissolve`, with phase I for the final
splits. Ties go to the lowest record number.
"""

import numpy as np

from shoal import kernels
from shoal.errors import ParameterError
from shoal.methods.cell_building import GrowingCells, unit_scaled
from shoal.methods.dissolve import dissolve
from shoal.typing import Labels, Matrix, Seed


def tfrp(X: Matrix, k: int, seed: Seed = None, *, phases: int = 2) -> Labels:
    """Return the cells of TFRP, or with ``phases=1`` those of its first phase, which the paper calls TFRP_I.

    Takes O(n^2 / k) time in records at worst, for one search per cell and, in phase II, one search among the centroids
    per record. The paper's partial distance search stops summing a distance once it is too large; the searches here
    exclude whole blocks, and on a lattice most records of the others, without computing distances. Deterministic.

    References
    ----------
    Chang, Li, Huang (2007), "TFRP: an efficient microaggregation algorithm for statistical disclosure control".
    """
    if phases not in (1, 2):
        raise ParameterError(f"TFRP has phases=1 (the first alone) or phases=2 (both), not {phases!r}.")
    labels = _phase_one(X, k)
    return labels if phases == 1 else dissolve(X, labels, k, _phase_one)


def _phase_one(X: Matrix, k: int) -> Labels:
    X = unit_scaled(X)
    cells = GrowingCells(X)
    orders = [_farthest_first(X, corner) for corner in (X.min(), X.max())]
    starts = [iter(order.tolist()) for order in orders]
    n_cells = len(X) // k
    for number in range(n_cells):
        cells.gather(next(record for record in starts[number % 2] if cells.labels[record] < 0), k)
        cells.close()
    last = orders[(n_cells - 1) % 2]
    return cells.join_left_over_in_turn(last[cells.labels[last] < 0])


def _farthest_first(X: Matrix, coordinate: float) -> Labels:
    """Return the records in order of decreasing distance from the point whose coordinates all equal `coordinate`."""
    return np.argsort(-kernels.distances(X, np.full(X.shape[1], coordinate)), kind="stable")
