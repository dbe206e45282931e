"""The variants of the thesis: late records form cells of their own, or join the cell with the nearest centroid.

Two-step partitions the late records separately; with MDAV this is the thesis's 2MDAV. In the others records join in
order of arrival; large cells are split at once, at the end or not. The centroids of the base stay fixed; the sizes are
updated. With the inertial coefficient the squared distance to a cell of n records is multiplied by n / (n + 1), which
gives the increase in the sum of squared errors once the centroid has moved. Ties go to the lowest cell number.
"""

import numpy as np

from shoal import kernels
from shoal.methods import partition
from shoal.methods.cell_building import cut_large
from shoal.methods.mdav import mdav
from shoal.typing import Labels, Matrix, Seed


def two_step(X: Matrix, base: Labels, k: int, seed: Seed = None, *, method: str = "mdav") -> Labels:
    """Return the cells of the base and separate cells of the late records.

    Fewer than `k` late records cannot form a cell: each joins the cell with the nearest centroid, as leftover records
    do in MDAV. The cost is that of the method on the late records.

    Examples
    --------
    >>> two_step(np.array([[1.0], [2.0], [1.0], [2.0]]), np.array([0, 0]), 2)
    array([0, 0, 1, 1])
    """
    late = X[len(base) :]
    if len(late) < k:
        return kernels.arrive(X, base, k, inertial=False, split_mid=False)
    cells = partition(np.ascontiguousarray(late), k, method, seed, threads=kernels.n_threads())
    return np.concatenate([base, base.max() + 1 + cells])


def nearest(X: Matrix, base: Labels, k: int, seed: Seed = None, *, inertial: bool = False) -> Labels:
    """Return the cells of the base, extended by the late records.

    One exact nearest-centroid search per late record; bounding boxes and a lattice rule out most centroids. Cells grow
    without limit: not a practical method, as the thesis notes, but the others build on it.
    """
    return kernels.arrive(X, base, k, inertial=inertial, split_mid=False)


def split_mid(X: Matrix, base: Labels, k: int, seed: Seed = None, *, inertial: bool = False) -> Labels:
    """As `nearest`, but a cell is split by MDAV as soon as it has 2k records, and its parts get new centroids.

    MDAV's first cell keeps the number, the second gets a new one.
    """
    return kernels.arrive(X, base, k, inertial=inertial, split_mid=True)


def split_end(X: Matrix, base: Labels, k: int, seed: Seed = None, *, inertial: bool = False) -> Labels:
    """As `nearest`, but at the end cells of 2k records or more are split by MDAV."""
    return cut_large(X, kernels.arrive(X, base, k, inertial=inertial, split_mid=False), k, mdav)
