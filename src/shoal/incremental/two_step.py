"""Two-step: the late records are partitioned separately; with MDAV this is the thesis's 2MDAV."""

import numpy as np

from shoal import kernels
from shoal.methods import partition
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
