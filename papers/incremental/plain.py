"""The thesis's algorithms as it timed them, in NumPy: plain MDAV, and late records assigned by matrix products.

Nearest centroids are found as numerical libraries do: ``|c|^2 / 2 - <x, c>`` for a block of records and all centroids
at once. A scan of the centroids for one record at a time would time the interpreter instead of the algorithm.
"""

from collections.abc import Callable

import numpy as np

from papers.fmdav.switches import numpy_mdav
from papers.plain import recut, sums_of
from shoal.methods.cell_building import members_of
from shoal.typing import Labels, Matrix, Vector

BLOCK = 512
"""Number of records assigned at once: their distances to some thousand centroids fit the cache."""


def two_step(X: Matrix, base: Labels, k: int) -> Labels:
    """Run MDAV on the late records; fewer than k join the nearest cells."""
    n = len(base)
    if len(X) - n < k:
        return nearest(X, base, k)
    return np.concatenate([base, numpy_mdav(X[n:], k) + base.max() + 1])


def nearest(X: Matrix, base: Labels, k: int) -> Labels:
    """Assign each late record to the cell with the nearest centroid."""
    centroids, late = _centroids(X, base), X[len(base) :]
    half_norms = _half_norms(centroids)
    found = [(half_norms - late[at : at + BLOCK] @ centroids.T).argmin(axis=1) for at in range(0, len(late), BLOCK)]
    return np.concatenate([base, *found])


def split_end(X: Matrix, base: Labels, k: int) -> Labels:
    """Assign the late records, then run MDAV on the cells of 2k and more."""
    return recut(X, members_of(nearest(X, base, k)), k, numpy_mdav)


def split_mid(X: Matrix, base: Labels, k: int) -> Labels:
    """Assign late records one after the other; run MDAV on a cell as it reaches 2k."""
    centroids, n_cells = _centroids(X, base), int(base.max()) + 1
    centroids = np.concatenate([centroids, np.zeros((len(X) - len(base), X.shape[1]))])  # space for new cells
    half_norms = _half_norms(centroids)
    cells = [cell.tolist() for cell in members_of(base)]
    labels = np.concatenate([base, np.empty(len(X) - len(base), dtype=np.int64)])
    for begin in range(len(base), len(X), BLOCK):
        block = X[begin : begin + BLOCK]
        # Space for a new cell for each record of the block.
        distances = np.full((len(block), n_cells + len(block)), np.inf)
        distances[:, :n_cells] = half_norms[:n_cells] - block @ centroids[:n_cells].T
        for i in range(len(block)):
            cell = int(distances[i, :n_cells].argmin())
            labels[begin + i] = cell
            cells[cell].append(begin + i)
            if len(cells[cell]) < 2 * k:
                continue
            members = np.array(cells[cell])
            parts = numpy_mdav(X[members], k)
            cells[cell] = members[parts == 0].tolist()
            cells.append(members[parts == 1].tolist())
            for number in (cell, n_cells):
                labels[cells[number]] = number
                centroids[number] = X[cells[number]].mean(axis=0)
                half_norms[number] = np.square(centroids[number]).sum() / 2
                distances[:, number] = half_norms[number] - block @ centroids[number]
            n_cells += 1
    return labels


PLAIN: dict[str, Callable[[Matrix, Labels, int], Labels]] = {
    "two-step": two_step,
    "nearest": nearest,
    "split-mid": split_mid,
    "split-end": split_end,
}
"""The variants of the thesis by their names in `shoal.incremental.join`."""


def _centroids(X: Matrix, base: Labels) -> Matrix:
    return np.ascontiguousarray(sums_of(X[: len(base)], base) / np.bincount(base)[:, None])


def _half_norms(centroids: Matrix) -> Vector:
    return np.asarray(np.square(centroids).sum(axis=1) / 2)
