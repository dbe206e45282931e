"""MDAV, maximum distance to average vector: the field's standard, exact.

While 2k or more records remain: C is their centroid, P the record farthest from C; P and its k-1 nearest become a
cell; Q is the farthest from P of those then left, and Q and its k-1 nearest become a cell. k to 2k-1 left at the end
are a cell of their own; fewer join, each, the cell with the nearest centroid. Ties go to the lowest record number.
"""

from shoal import kernels
from shoal.typing import Labels, Matrix, Seed


def mdav(X: Matrix, k: int, seed: Seed = None) -> Labels:
    """Return the cells of plain float64 MDAV, found by screening on a lattice and block boxes.

    Takes O(n^2 / k) time in records at worst and much less where the data have structure; nothing is random.

    References
    ----------
    Domingo-Ferrer, Torra (2005), "Ordinal, continuous and heterogeneous k-anonymity through microaggregation".
    Rodriguez-Hoyos et al. (2020), "The fast maximum distance to average vector algorithm (F-MDAV)".
    """
    return kernels.mdav(X, k)
