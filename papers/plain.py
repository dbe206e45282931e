"""What the papers' algorithms share in plain NumPy: distances, and cells that are made one after the other."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from shoal.typing import Labels, Matrix, Vector

Cut = Callable[[Matrix, int], Labels]
"""Splits records into cells of at least k."""


def squared(X: Matrix, point: Vector) -> Vector:
    """Return the squared distance of each record from a point."""
    return np.asarray(np.square(X - point).sum(axis=1))


def numbered(n_records: int, cells: Iterable[Labels]) -> Labels:
    """Return labels that number the cells in the order of the list; -1 for a record in none."""
    labels = np.full(n_records, -1, dtype=np.int64)
    for number, cell in enumerate(cells):
        labels[cell] = number
    return labels


def sums_of(X: Matrix, labels: Labels) -> Matrix:
    """Return the sum of the records of each cell."""
    return np.stack([np.bincount(labels, weights=column) for column in X.T], axis=1)


def recut(X: Matrix, cells: Sequence[Labels], k: int, cut: Cut) -> Labels:
    """Return labels of the cells, those of 2k records and more split."""
    labels, n_cells = numbered(len(X), cells), len(cells)
    for number, cell in enumerate(cells):
        if len(cell) >= 2 * k:
            parts = cut(X[cell], k)
            labels[cell] = np.where(parts == 0, number, n_cells + parts - 1)
            n_cells += int(parts.max())
    return labels
