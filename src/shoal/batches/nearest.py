"""Nearest: each late record joins the cell with the nearest centroid; large cells are cut at once, at the end, or not.

The centroids of the base stay where they are while records arrive, in their order; their sizes are counted on. With
the inertial coefficient the squared distance of a cell of n records counts n / (n + 1) times, which is what the
newcomer adds to the sum of squared distances once the centroid has moved. Ties go to the lowest cell number.
"""

from shoal import kernels
from shoal.partition.cell_building import cut_large
from shoal.partition.mdav import mdav
from shoal.typing import Labels, Matrix, Seed


def nearest(X: Matrix, base: Labels, k: int, seed: Seed = None, *, inertial: bool = False) -> Labels:
    """Return the cells of the base, grown by the late records.

    One exact search among the centroids a record, most of which are ruled out by boxes and a lattice. Cells grow
    without a limit: not a practical method, as the thesis says, but the others build on it.
    """
    return kernels.arrive(X, base, k, inertial=inertial, split_mid=False)


def split_mid(X: Matrix, base: Labels, k: int, seed: Seed = None, *, inertial: bool = False) -> Labels:
    """Return the same, but a cell is cut by MDAV as soon as it has 2k records, and its parts have their own centroids.

    MDAV's first cell keeps the number, the second gets a new one.
    """
    return kernels.arrive(X, base, k, inertial=inertial, split_mid=True)


def split_end(X: Matrix, base: Labels, k: int, seed: Seed = None, *, inertial: bool = False) -> Labels:
    """Return the same, but in the end the cells of 2k records and more are cut by MDAV."""
    return cut_large(X, kernels.arrive(X, base, k, inertial=inertial, split_mid=False), k, mdav)
