"""Reopen: late records join the nearest cells, which are then split, supplemented by new cells, and refined locally.

Ours. The other variants lose more because the number of cells does not keep up with the records, and existing cells are
not revised. Here cells of 2k records are split, neighbourhoods with k surplus records form a new cell, and records move
and swap between the changed cells and their neighbours, as in `shoal.methods.refine`.
"""

import numpy as np
from numpy.typing import NDArray

from shoal import kernels
from shoal.errors import ParameterError
from shoal.typing import Labels, Matrix, Seed

NONE: Labels = np.empty(0, dtype=np.int64)


def reopen(
    X: Matrix, base: Labels, k: int, seed: Seed = None, *, rounds: int = 2, neighbours: Labels | None = None
) -> Labels:
    """Return a partition of all records whose loss is close to that of a refined partition from scratch.

    Parameters
    ----------
    X : ndarray of shape (n_records, n_dims)
        All records, those of the base first.
    base : ndarray of shape (n_base,)
        Cells of the base; preferably a refined partition, as from ``partition(..., method="auto")``.
    k : int
        Smallest cell size.
    seed : int, optional
        Accepted, but nothing is random.
    rounds : int
        Maximum number of rounds of moves and swaps; more rounds lose less and take longer.
    neighbours : ndarray of shape (n_cells, n_neighbours), optional
        Result of `neighbours_of` for the base, computed in advance; saves about a fifth of the work.

    Notes
    -----
    One exact nearest-centroid search per late record; the rest is near-linear in all records. With half of the records
    late or more, it takes about as long as a partition from scratch.

    Examples
    --------
    >>> X = np.array([[1.0], [2.0], [8.0], [9.0], [1.1], [2.1]])
    >>> reopen(X, np.array([0, 0, 1, 1]), 2)
    array([0, 2, 1, 1, 0, 2])
    """
    if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 1:
        raise ParameterError(f"rounds must be a whole number of at least 1; got {rounds!r}.")
    n_cells = int(base.max()) + 1
    lists = NONE if neighbours is None else _as_lists(neighbours, n_cells)
    with kernels.stage(0.0, 0.3):
        labels = kernels.arrive(X, base, k, inertial=False, split_mid=False)
    touched = np.zeros(len(X) // k, dtype=bool)
    touched[labels[len(base) :]] = True
    labels, origins = _cut(X, labels, k)
    touched[n_cells : labels.max() + 1] = True
    around = kernels.RefineHints(np.flatnonzero(touched), lists, origins)
    with kernels.stage(0.3, 1.0):
        return kernels.refine_around(X, labels, around, k, rounds, n_neighbours(k), 0.005)


def n_neighbours(k: int) -> int:
    """Return the number of neighbouring cells considered for each cell."""
    return 40 if k < 5 else 20


def neighbours_of(X: Matrix, base: Labels, k: int) -> Labels:
    """Return the neighbouring cells of each cell of the base, shape (n_cells, n_neighbours), for `reopen`.

    The result is empty if there is only one cell, or if a cell has 4k records or more.

    Examples
    --------
    >>> neighbours_of(np.array([[0.0], [1.0], [5.0], [6.0], [9.0], [9.5]]), np.array([0, 0, 1, 1, 2, 2]), 2)
    array([[1, 2],
           [2, 0],
           [1, 0]])
    """
    sizes = np.bincount(base)
    if len(sizes) < 2 or sizes.max() >= 4 * k:
        return NONE.reshape(0, 0)
    return kernels.cell_neighbours(X, base, k, n_neighbours(k)).reshape(len(sizes), -1)


def _as_lists(neighbours: Labels, n_cells: int) -> Labels:
    lists = np.asarray(neighbours)
    if lists.size == 0:
        return NONE
    if lists.ndim != 2 or len(lists) != n_cells or lists.dtype != np.int64 or lists.min() < 0:
        raise ParameterError(f"neighbours must have a row of cell numbers for each of the {n_cells} cells of the base.")
    if ((lists >= n_cells) & (lists != 2**32 - 1)).any():
        raise ParameterError(f"neighbours must number the {n_cells} cells of the base from 0.")
    return np.ascontiguousarray(lists).ravel()


def _cut(X: Matrix, labels: Labels, k: int) -> tuple[Labels, Labels]:
    """Split cells of 2k records or more by MDAV; the first part keeps the number, and no other cell is renumbered.

    Returns the labels, and the cell from which each new one was split.
    """
    sizes: NDArray[np.int64] = np.bincount(labels)
    large = np.flatnonzero(sizes >= 2 * k)
    if len(large) == 0:
        return labels, NONE
    labels = labels.copy()
    origins: list[int] = []
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(sizes)
    for cell in large:
        members = order[ends[cell] - sizes[cell] : ends[cell]]
        with kernels.using(threads=1):
            parts = kernels.mdav(X[members], k)
        labels[members] = np.where(parts == 0, cell, len(sizes) + len(origins) - 1 + parts)
        origins += [int(cell)] * int(parts.max())
    return labels, np.array(origins, dtype=np.int64)
