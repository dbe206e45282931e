"""Diameter, or maximum distance: two cells at a time, grown from the two remaining records farthest apart.

While k or more records remain: R and S are the two farthest apart, R the one with the lower number. R's cell adds k-1
times the remaining record nearest to its current centroid. If k or more records are left, S's cell does the same. (If
R's cell contains S, the remaining record farthest from R replaces it.) Fewer than k left over are each assigned to the
cell with the nearest centroid. Ties go to the lowest record number.
"""

import heapq

import numpy as np

from shoal import kernels
from shoal.methods.cell_building import GrowingCells, unit_scaled
from shoal.typing import Labels, Matrix, Seed


def diameter(X: Matrix, k: int, seed: Seed = None) -> Labels:
    """Return the cells of the Diameter method.

    Takes O(n^3 / k) time in records at worst, the cost of an exhaustive search for each farthest pair, and O(n) memory;
    caching the search results that stay valid makes it about O(n^2). Deterministic.

    References
    ----------
    Domingo-Ferrer, Mateo-Sanz (2002), "Practical data-oriented microaggregation for statistical disclosure control".
    Chang, Li, Huang (2007), "TFRP: an efficient microaggregation algorithm for statistical disclosure control",
    section 2.2.
    """
    X = unit_scaled(X)
    cells = GrowingCells(X)
    pairs = _FarthestPairs(X, cells.remaining)
    while len(cells.remaining) >= k:
        r, s = pairs.find()
        cells.grow(r, k)
        if len(cells.remaining) >= k:
            cells.grow(s if s in cells.remaining else cells.remaining.farthest(X[r]), k)
    return cells.join_left_over()


class _FarthestPairs:
    """Finds the two remaining records that are farthest apart, while records are removed.

    The distance of two records is at most the sum of their distances from a centre, so at least one of the two is far
    from it. The farthest record is searched only for such outer points, once for each distinct point. A distance found
    stays an upper bound when records are removed, and is exact as long as both records remain.
    """

    def __init__(self, X: Matrix, remaining: kernels.Remaining) -> None:
        self._X = X
        self._remaining = remaining
        points, point_of = np.unique(X, axis=0, return_inverse=True)
        by_point = np.argsort(point_of.ravel(), kind="stable")
        self._records_at = [at.tolist()[::-1] for at in np.split(by_point, np.cumsum(np.bincount(point_of.ravel())))]
        # The median, unlike the mean, is not moved by a few outliers.
        radius = np.sqrt(kernels.distances(points, np.median(X, axis=0)))
        order = np.argsort(radius, kind="stable")
        self._inner = order.tolist()  # the points not searched yet, outermost last
        # Upper bound on the squared distances between this point and those inside it, with a margin for rounding.
        self._reach = (np.square(2 * radius[order] * (1 + 1e-9)) + 1e-290).tolist()
        # A heap of (minus the squared distance, the two records, the point that was searched from).
        self._found: list[tuple[float, int, int, int]] = []

    def find(self) -> tuple[int, int]:
        """Return the two farthest apart; ties go to the lowest numbers."""
        while True:
            farthest = -self._found[0][0] if self._found else -1.0
            if self._inner and self._reach[len(self._inner) - 1] >= farthest:
                self._search(self._inner.pop())
                continue
            _, first, second, point = self._found[0]
            if first == second and first in self._remaining:  # all remaining records are equal
                first, second = self._remaining.nearest(self._X[first], 2)[0].tolist()
            if first in self._remaining and second in self._remaining:
                return first, second
            heapq.heappop(self._found)
            self._search(point)

    def _search(self, point: int) -> None:
        """Find the record farthest from a point, if a record remains at that point."""
        records = self._records_at[point]
        while records and records[-1] not in self._remaining:
            records.pop()
        if records:
            first, second = sorted((records[-1], self._remaining.farthest(self._X[records[-1]])))
            squared = kernels.distances(self._X[first : first + 1], self._X[second])
            heapq.heappush(self._found, (-float(squared[0]), first, second, point))
