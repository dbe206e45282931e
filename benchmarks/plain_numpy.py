"""Traditional MDAV in NumPy as it is commonly written: the baseline that speed-ups are quoted against.

A matrix of rows, whole-matrix expressions, a full stable sort for the k nearest, the remaining records copied after
every cell. `papers.fmdav.numpy_mdav` is the same algorithm laid out for speed.
"""

import numpy as np

from shoal.typing import Labels, Matrix


def plain_mdav(X: Matrix, k: int) -> Labels:
    """Split records into cells by MDAV; O(n^2 / k) distances, each computed when it is needed."""
    labels = np.empty(len(X), dtype=np.int64)
    rest, records, n_cells = X, np.arange(len(X)), 0

    def form_cell(point: Matrix) -> None:
        """Make the k nearest to the point the next cell; ties go to the lowest record numbers."""
        nonlocal rest, records, n_cells
        cell = np.argsort(distances(rest, point), kind="stable")[:k]
        labels[records[cell]] = n_cells
        rest, records, n_cells = np.delete(rest, cell, axis=0), np.delete(records, cell), n_cells + 1

    while len(rest) >= 2 * k:
        p = rest[distances(rest, rest.mean(axis=0)).argmax()]
        form_cell(p)
        q = rest[distances(rest, p).argmax()]
        form_cell(q)
    if len(rest) >= k:
        labels[records] = n_cells
    elif len(rest) > 0:
        labels[records] = -1
        centroids = np.array([X[labels == cell].mean(axis=0) for cell in range(n_cells)])
        labels[records] = [distances(centroids, record).argmin() for record in rest]
    return labels


def distances(X: Matrix, point: Matrix) -> Matrix:
    """Return the squared distance of each record from the point."""
    squares: Matrix = ((X - point) ** 2).sum(axis=1)
    return squares
