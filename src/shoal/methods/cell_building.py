"""Building cells one after another and splitting large cells, shared by several algorithms."""

from collections.abc import Callable

import numpy as np

from shoal import kernels
from shoal.typing import Labels, Matrix

Cut = Callable[[Matrix, int], Labels]
"""Splits a matrix of 2k or more records into cells of at least k."""


def unit_scaled(X: Matrix) -> Matrix:
    """Scale by the power of two that brings the largest magnitude into [1/2, 1), so that no square overflows."""
    scaled: Matrix = np.ldexp(X, -np.frexp(np.abs(X).max())[1])
    return scaled


class GrowingCells:
    """A partition under construction: the remaining records, and the labels of the assigned ones.

    Parameters
    ----------
    X : ndarray of shape (n_records, n_dims)
        All records, scaled by `unit_scaled`.
    """

    def __init__(self, X: Matrix) -> None:
        self.X = X
        self.remaining = kernels.Remaining(X)
        self.labels: Labels = np.full(len(X), -1, dtype=np.int64)
        self.n_cells = 0
        self._progress = kernels.ProgressReporter(len(X))

    def gather(self, record: int, k: int) -> list[int]:
        """Put a record and its k - 1 nearest into the current cell; return them, the record first."""
        members = self.remaining.gather(record, k)
        self.labels[members] = self.n_cells
        return [int(member) for member in members]

    def grow(self, record: int, k: int) -> None:
        """Form a cell from a record by adding, k - 1 times, the remaining record nearest to its current centroid."""
        self.labels[self.remaining.grow(record, k)] = self.n_cells
        self.close()

    def take(self, record: int) -> None:
        """Put a record into the current cell."""
        self.remaining.remove(np.array([record]))
        self.labels[record] = self.n_cells

    def close(self) -> None:
        """Complete the current cell."""
        self.n_cells += 1
        self._progress.update(len(self.X) - len(self.remaining))

    def join_left_over(self) -> Labels:
        """Assign each remaining record to the cell with the nearest centroid, and return the labels.

        The centroids are not updated, so the order does not matter. Ties go to the lowest cell number.
        """
        left = np.flatnonzero(self.labels < 0)
        centroids = self.sums() / self.sizes()[:, None]
        self.labels[left] = [kernels.distances(centroids, self.X[record]).argmin() for record in left]
        self._progress.finish()
        return self.labels

    def join_left_over_in_turn(self, left: Labels) -> Labels:
        """Assign the remaining records in order to the cell with the nearest centroid, updating it each time."""
        sums, sizes = self.sums(), self.sizes()
        centroids = sums / sizes[:, None]
        for record in left:
            cell = kernels.distances(centroids, self.X[record]).argmin()
            self.labels[record] = cell
            sums[cell] += self.X[record]
            sizes[cell] += 1
            centroids[cell] = sums[cell] / sizes[cell]
        self._progress.finish()
        return self.labels

    def sums(self) -> Matrix:
        """Return the sums of the records of each complete cell, shape (n_cells, n_dims)."""
        placed = self.labels >= 0
        return kernels.cell_sums(self.X[placed], self.labels[placed], self.n_cells)

    def sizes(self) -> Labels:
        """Return the number of records of each complete cell, shape (n_cells,)."""
        return np.bincount(self.labels[self.labels >= 0], minlength=self.n_cells)


def renumbered(labels: Labels) -> Labels:
    """Return the same cells, renumbered from 0 without gaps, in the order of their numbers."""
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def members_of(labels: Labels) -> list[Labels]:
    """Return the records of each cell or stratum, in ascending order; labels are numbered from 0 without gaps."""
    return np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1])


def cut_large(X: Matrix, labels: Labels, k: int, recut: Cut) -> Labels:
    """Split the cells of 2k records or more, and number all cells without gaps."""
    sizes = np.bincount(labels)
    if sizes.max() < 2 * k and sizes.min() > 0:
        return labels
    members = members_of(labels)
    labels = labels.copy()
    n_cells = len(sizes)
    # These cells are small and their progress is not that of the whole: one thread, no progress reports.
    with kernels.using(threads=1):
        for cell in np.flatnonzero(sizes >= 2 * k):
            parts = recut(X[members[cell]], k)
            labels[members[cell]] = n_cells + parts
            n_cells += int(parts.max()) + 1
    return renumbered(labels)
