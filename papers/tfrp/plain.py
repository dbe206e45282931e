"""Diameter, Centroid and TFRP as the paper describes them, in NumPy: no index, no bound, no cached results.

The kernels of shoal use other algorithms, so their times say nothing about the paper's. These
twins make the same cells as the kernels, and are timed beside them.
"""

import numpy as np

from papers.plain import Cut, recut, squared, sums_of
from shoal.methods.cell_building import members_of
from shoal.typing import Labels, Matrix

BLOCK = 256


def diameter(X: Matrix, k: int) -> Labels:
    """Grow cells from the two remaining records farthest apart, searched anew among all pairs: O(n^3 / k)."""
    cells = _Cells(X)
    while len(cells.rest) >= k:
        r, s = farthest_pair(X[cells.rest])
        first, second = int(cells.rest[r]), int(cells.rest[s])
        cells.grow(first, k)
        if len(cells.rest) >= k:
            if cells.labels[second] >= 0:
                second = int(cells.rest[squared(X[cells.rest], X[first]).argmax()])
            cells.grow(second, k)
    return cells.with_left_over(cells.rest)


def centroid(X: Matrix, k: int) -> Labels:
    """Grow cells from the remaining record farthest from the centroid of those that remain: O(n^2)."""
    cells = _Cells(X)
    while len(cells.rest) >= k:
        rest = X[cells.rest]
        cells.grow(int(cells.rest[squared(rest, rest.mean(axis=0)).argmax()]), k)
    return cells.with_left_over(cells.rest)


def tfrp(X: Matrix, k: int) -> Labels:
    """Group the record farthest from one of two fixed points, in turn, with its k - 1 nearest (phase I): O(n^2 / k)."""
    cells = _Cells(X)
    corners = [np.full(X.shape[1], X.max()), np.full(X.shape[1], X.min())]
    orders = [np.argsort(-squared(X, corner), kind="stable") for corner in corners]
    starts = [iter(order) for order in orders]
    n_rounds = len(X) // k
    for number in range(1, n_rounds + 1):
        start = next(record for record in starts[number % 2] if cells.labels[record] < 0)
        near = np.argpartition(squared(X[cells.rest], X[start]), k - 1)[:k]
        cells.close(cells.rest[near])
    left = orders[n_rounds % 2]
    return cells.with_left_over(left[cells.labels[left] < 0], moving=True)


def phase_two(X: Matrix, labels: Labels, k: int, cut: Cut) -> Labels:
    """Dissolve cells, in order of decreasing error, if that lowers the loss; split cells that have grown to 2k."""
    members = members_of(labels)
    centroids = np.stack([X[cell].mean(axis=0) for cell in members])
    errors = np.array([_error(X[cell]) for cell in members])
    for cell in np.argsort(-errors, kind="stable"):
        if len(members[cell]) < 2 * k:
            _scatter(X, members, centroids, errors, int(cell), k)
    return recut(X, [np.sort(cell) for cell in members if len(cell)], k, cut)


PLAIN: dict[str, Cut] = {"Diameter": diameter, "Centroid": centroid, "TFRP_I": tfrp}
"""The first phases by the paper's names."""


def farthest_pair(X: Matrix) -> tuple[int, int]:
    """Return the two records farthest apart, searching all pairs block by block."""
    norms = np.square(X).sum(axis=1)
    best, pair = -np.inf, (0, 0)
    for begin in range(0, len(X), BLOCK):
        block = slice(begin, begin + BLOCK)
        away = norms[block, None] + norms[begin:] - 2 * X[block] @ X[begin:].T
        at = int(away.argmax())
        if away.flat[at] > best:
            best = float(away.flat[at])
            pair = (begin + at // away.shape[1], begin + at % away.shape[1])
    return pair


def _error(X: Matrix) -> float:
    return float(np.square(X - X.mean(axis=0)).sum())


class _Cells:
    """Cells that are made one after the other, and the records that remain."""

    def __init__(self, X: Matrix) -> None:
        self.X = X
        self.labels = np.full(len(X), -1, dtype=np.int64)
        self.rest = np.arange(len(X))
        self.n_cells = 0

    def close(self, records: Labels) -> None:
        """Form a cell of some of the remaining records."""
        self.labels[records] = self.n_cells
        self.n_cells += 1
        self.rest = self.rest[self.labels[self.rest] < 0]

    def grow(self, start: int, k: int) -> None:
        """Form a cell by adding, one at a time, the remaining record nearest to its current centroid."""
        open_to_all = np.ones(len(self.rest), dtype=bool)
        near = int(np.searchsorted(self.rest, start))
        records, total = [], np.zeros(self.X.shape[1])
        points = self.X[self.rest]
        for size in range(1, k + 1):
            open_to_all[near] = False
            records.append(self.rest[near])
            total += points[near]
            if size < k:
                near = int(np.where(open_to_all, squared(points, total / size), np.inf).argmin())
        self.close(np.array(records))

    def with_left_over(self, left: Labels, moving: bool = False) -> Labels:
        """Let each record that is left join the cell with the nearest centroid, which moves at once if `moving`."""
        if not len(left):
            return self.labels
        placed = self.labels >= 0
        sizes = np.bincount(self.labels[placed]).astype(float)
        sums = sums_of(self.X[placed], self.labels[placed])
        for record in left:
            cell = int(squared(sums / sizes[:, None], self.X[record]).argmin())
            self.labels[record] = cell
            if moving:
                sizes[cell] += 1
                sums[cell] += self.X[record]
        return self.labels


def _scatter(X: Matrix, members: list[Labels], centroids: Matrix, errors: Matrix, cell: int, k: int) -> None:
    """Move the records of a cell to the nearest others, if that lowers the sum of errors."""
    sizes = np.array([len(records) for records in members])
    far = squared(X[members[cell]], centroids[cell])
    joined: dict[int, list[int]] = {}
    for record in members[cell][np.argsort(-far, kind="stable")]:
        away = squared(centroids, X[record])
        away[(sizes == 0) | (sizes >= 4 * k - 1)] = np.inf
        away[cell] = np.inf
        target = int(away.argmin())
        if not np.isfinite(away[target]):
            return
        sizes[target] += 1
        joined.setdefault(target, []).append(int(record))
    grown = {target: np.concatenate([members[target], records]) for target, records in joined.items()}
    after = {target: _error(X[records]) for target, records in grown.items()}
    if sum(after.values()) < errors[cell] + sum(errors[target] for target in grown):
        members[cell], errors[cell] = members[cell][:0], 0.0
        for target, records in grown.items():
            members[target], errors[target] = records, after[target]
            centroids[target] = X[records].mean(axis=0)
