"""Diameter, or maximum distance: two cells at a time, grown from the two remaining records farthest apart.

While k or more records remain: R and S are the two farthest apart, R the one with the lower number. R's cell adds k-1
times the remaining record nearest to its centroid so far; so does S's cell with what is then left, if that is k or
more. (If R's cell has taken S, the remaining record farthest from R stands in.) Fewer than k left join, each, the cell
with the nearest centroid. Ties: lowest record number.
"""

import heapq

import numpy as np

from shoal import kernels
from shoal.partition.cell_building import Cells, unit_scaled
from shoal.typing import Labels, Matrix, Seed


def diameter(X: Matrix, k: int, seed: Seed = None) -> Labels:
    """Return the cells of the Diameter method.

    Takes O(n^3 / k) time in records at worst, which is what the literature's search for the farthest pair always takes,
    and O(n) memory; answers that stay valid from one pair to the next make it about O(n^2). Nothing is random.

    References
    ----------
    Domingo-Ferrer, Mateo-Sanz (2002), "Practical data-oriented microaggregation for statistical disclosure control".
    Chang, Li, Huang (2007), "TFRP: an efficient microaggregation algorithm for statistical disclosure control",
    section 2.2.
    """
    X = unit_scaled(X)
    cells = Cells(X)
    pairs = _FarthestPairs(X, cells.remaining)
    while len(cells.remaining) >= k:
        r, s = pairs.find()
        cells.grow(r, k)
        if len(cells.remaining) >= k:
            cells.grow(s if s in cells.remaining else cells.remaining.farthest(X[r]), k)
    return cells.join_left_over()


class _FarthestPairs:
    """Finds the two remaining records that are farthest apart, again and again, while records leave.

    Two records are at most as far apart as both are from a centre, so one of the two is far out. Only such outer
    points, each once however many records are there, are asked for their farthest record. What each answered stays an
    upper bound when records leave, and holds as long as both remain.
    """

    def __init__(self, X: Matrix, remaining: kernels.Remaining) -> None:
        self._X = X
        self._remaining = remaining
        points, point_of = np.unique(X, axis=0, return_inverse=True)
        by_point = np.argsort(point_of.ravel(), kind="stable")
        self._records_at = [at.tolist()[::-1] for at in np.split(by_point, np.cumsum(np.bincount(point_of.ravel())))]
        # The median, unlike the mean, is where the records are, whatever a few outliers do.
        radius = np.sqrt(kernels.distances(points, np.median(X, axis=0)))
        order = np.argsort(radius, kind="stable")
        self._inner = order.tolist()  # the points not asked yet, outermost last
        # With this point and those inside, no squared distance reaches this, up to rounding.
        self._reach = (np.square(2 * radius[order] * (1 + 1e-9)) + 1e-290).tolist()
        # A heap: minus the squared distance, the two records, the point that was asked.
        self._answers: list[tuple[float, int, int, int]] = []

    def find(self) -> tuple[int, int]:
        """Return the two farthest apart, the lowest numbers of equally far ones."""
        while True:
            farthest = -self._answers[0][0] if self._answers else -1.0
            if self._inner and self._reach[len(self._inner) - 1] >= farthest:
                self._ask(self._inner.pop())
                continue
            _, first, second, point = self._answers[0]
            if first == second and first in self._remaining:  # all that remain are the same
                first, second = self._remaining.nearest(self._X[first], 2)[0].tolist()
            if first in self._remaining and second in self._remaining:
                return first, second
            heapq.heappop(self._answers)
            self._ask(point)

    def _ask(self, point: int) -> None:
        """Ask a point, if a record remains there, for the farthest record."""
        records = self._records_at[point]
        while records and records[-1] not in self._remaining:
            records.pop()
        if records:
            first, second = sorted((records[-1], self._remaining.farthest(self._X[records[-1]])))
            squared = kernels.distances(self._X[first : first + 1], self._X[second])
            heapq.heappush(self._answers, (-float(squared[0]), first, second, point))
