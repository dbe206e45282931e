"""Reopen: late records join the nearest cells; those are cut, relieved by new cells, and refined with their neighbours.

Ours. What makes the others lose is that the number of cells does not keep up with the records, and that nobody looks
at a cell again. Here cells of 2k records are cut, neighbourhoods with k records to spare give a new cell, and records
move and swap between the touched cells and those around them, as in `shoal.partition.refine`.
"""

import numpy as np
from numpy.typing import NDArray

from shoal import kernels
from shoal.errors import ParameterError
from shoal.typing import Labels, Matrix, Seed


def reopen(X: Matrix, base: Labels, k: int, seed: Seed = None, *, rounds: int = 2) -> Labels:
    """Return a partition of all records whose loss is about that of one made from scratch and refined.

    Parameters
    ----------
    X : ndarray of shape (n_records, n_dims)
        All records, those of the base first.
    base : ndarray of shape (n_base,)
        Cells of the base; best a refined partition, such as ``partition(..., method="auto")`` returns.
    k : int
        Smallest cell size.
    seed : int, optional
        Accepted, but nothing is random.
    rounds : int
        At most so many rounds of moves and swaps; more lose less and take longer.

    Notes
    -----
    One exact search among the centroids a late record; near-linear in all records for the rest. From half of the
    records on it takes about as long as starting anew.

    Examples
    --------
    >>> X = np.array([[1.0], [2.0], [8.0], [9.0], [1.1], [2.1]])
    >>> reopen(X, np.array([0, 0, 1, 1]), 2)
    array([0, 2, 1, 1, 0, 2])
    """
    if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 1:
        raise ParameterError(f"rounds must be a whole number of at least 1; got {rounds!r}.")
    with kernels.stage(0.0, 0.3):
        labels = kernels.arrive(X, base, k, inertial=False, split_mid=False)
    touched = np.zeros(len(X) // k, dtype=bool)
    touched[labels[len(base) :]] = True
    n_cells = int(base.max()) + 1
    labels = _cut(X, labels, k)
    touched[n_cells : labels.max() + 1] = True
    with kernels.stage(0.3, 1.0):
        neighbours = 40 if k < 5 else 20
        return kernels.refine_around(X, labels, np.flatnonzero(touched), k, rounds, neighbours, 0.005)


def _cut(X: Matrix, labels: Labels, k: int) -> Labels:
    """Cut the cells of 2k records or more by MDAV; the first part keeps the number, so that all others keep theirs."""
    sizes: NDArray[np.int64] = np.bincount(labels)
    large = np.flatnonzero(sizes >= 2 * k)
    if len(large) == 0:
        return labels
    labels = labels.copy()
    n_cells = len(sizes)
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(sizes)
    for cell in large:
        members = order[ends[cell] - sizes[cell] : ends[cell]]
        parts = kernels.mdav_alone(X[members], k)
        labels[members] = np.where(parts == 0, cell, n_cells - 1 + parts)
        n_cells += int(parts.max())
    return labels
