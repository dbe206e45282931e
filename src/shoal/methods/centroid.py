"""Centroid: cells grown one after another from the record farthest from the centroid of the remaining records.

While k or more records remain: start a cell with the record farthest from their centroid, then k-1 times add the
remaining record nearest to the current centroid of the cell. Fewer than k left over are each assigned to the cell with
the nearest centroid. Ties go to the lowest record number.
"""

from shoal.methods.cell_building import GrowingCells, unit_scaled
from shoal.typing import Labels, Matrix, Seed


def centroid(X: Matrix, k: int, seed: Seed = None) -> Labels:
    """Return the cells of the Centroid method.

    Takes O(n^2) time in records at worst, one search per record, for any k; deterministic.

    References
    ----------
    Laszlo, Mukherjee (2005), "Minimum spanning tree partitioning algorithm for microaggregation".
    Chang, Li, Huang (2007), "TFRP: an efficient microaggregation algorithm for statistical disclosure control",
    section 2.2.
    """
    cells = GrowingCells(unit_scaled(X))
    while len(cells.remaining) >= k:
        cells.grow(cells.remaining.farthest_from_centroid(), k)
    return cells.join_left_over()
