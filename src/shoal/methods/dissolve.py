"""Dissolve: the second phase of TFRP, which lowers the loss of any partition.

Cells are tried in order of decreasing GSE, an order fixed at the start. The records of a cell of fewer than 2k records
are each moved to the cell with the nearest centroid, as long as that cell stays below 4k; if this lowers the SSE of the
cells involved, the cell is dissolved. Finally, cells of 2k records or more are split.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from shoal import kernels
from shoal.methods.cell_building import Cut, cut_large, unit_scaled
from shoal.typing import Labels, Matrix, Seed


def dissolve(X: Matrix, labels: Labels, k: int, recut: Cut) -> Labels:
    """Dissolve cells where moving their records to neighbouring cells lowers the SSE.

    Parameters
    ----------
    X : ndarray of shape (n_records, n_dims)
        Records in the space.
    labels : ndarray of shape (n_records,)
        A partition: cell numbers from 0 without gaps, each at least `k` times.
    k : int
        Smallest cell size.
    recut : callable
        ``(X, k) -> labels``, which splits a cell that has grown to 2k records or more.

    Returns
    -------
    labels : ndarray of shape (n_records,), int64
        A partition. Dissolving never raises the SSE; the effect of the final splits depends on `recut`.

    Notes
    -----
    Takes O(n^2 / k) time in records at worst, for one search among the n / k centroids for each record; an index of
    the unchanged centroids makes it much faster. Deterministic: of cells with equal GSE the lower number comes first,
    and the records of a cell are moved in order of decreasing distance from its centroid.

    References
    ----------
    Chang, Li, Huang (2007), "TFRP: an efficient microaggregation algorithm for statistical disclosure control",
    section 3.2 and appendix C.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [17.0], [18.0], [19.0], [20.0]])
    >>> dissolve(X, np.array([0, 0, 0, 1, 1, 2, 2, 2]), 2, recut=lambda X, k: np.zeros(len(X), dtype=int))
    array([0, 0, 0, 0, 1, 1, 1, 1])
    """
    X = unit_scaled(X)
    return cut_large(X, kernels.dissolve_cells(X, labels, k), k, recut)


def with_dissolving(algorithm: Callable[..., Labels]) -> Callable[..., Labels]:
    """Return the ``+`` form of an algorithm: followed by `dissolve`, with the algorithm itself for the final splits."""

    @wraps(algorithm)
    def plus(X: Matrix, k: int, seed: Seed = None, **options: Any) -> Labels:
        labels = algorithm(X, k, seed, **options)
        return dissolve(X, labels, k, lambda part, k: algorithm(part, k, seed, **options))

    plus.__doc__ = f"Partition by `{algorithm.__name__}`, then `dissolve`; large cells are split by the same method."
    return plus
