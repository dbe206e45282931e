"""Nearest: each late record joins the cell with the nearest centroid; large cells are split at once, at the end or not.

Records join in order of arrival. The centroids of the base stay fixed; the sizes are updated. With the inertial
coefficient the squared distance to a cell of n records is multiplied by n / (n + 1), which gives the increase in the
sum of squared errors once the centroid has moved. Ties go to the lowest cell number.
"""

from shoal import kernels
from shoal.methods.cell_building import cut_large
from shoal.methods.mdav import mdav
from shoal.typing import Labels, Matrix, Seed


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
