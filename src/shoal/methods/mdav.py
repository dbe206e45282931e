"""MDAV, maximum distance to average vector: the standard method of the field, exact.

While 2k or more records remain: C is their centroid and P the record farthest from C; P and its k-1 nearest form a
cell. Q is the farthest from P of the records left; Q and its k-1 nearest form a cell. k to 2k-1 records left at the end
form a cell; fewer are each assigned to the cell with the nearest centroid. Ties go to the lowest record number.
"""

from shoal import kernels
from shoal.typing import Labels, Matrix, Seed


def mdav(X: Matrix, k: int, seed: Seed = None) -> Labels:
    """Return the cells of exact float64 MDAV, accelerated by a lattice screen and bounding boxes.

    Takes O(n^2 / k) time in records at worst, and much less if the data have structure; deterministic.

    References
    ----------
    Domingo-Ferrer, Torra (2005), "Ordinal, continuous and heterogeneous k-anonymity through microaggregation".
    Rodriguez-Hoyos et al. (2020), "The fast maximum distance to average vector algorithm (F-MDAV)".
    """
    return kernels.mdav(X, k)
