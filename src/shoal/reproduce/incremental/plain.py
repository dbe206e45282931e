"""The thesis's algorithms as it timed them: plain MDAV, every centroid scanned for every late record; in NumPy."""

import numpy as np

from shoal.reproduce.fmdav.switches import numpy_mdav
from shoal.typing import Labels, Matrix


def two_step(X: Matrix, base: Labels, k: int) -> None:
    """Run MDAV on the late records."""
    if len(X) - len(base) >= k:
        numpy_mdav(X[len(base) :], k)


def split_mid(X: Matrix, base: Labels, k: int) -> None:
    """Assign each late record by a scan; run MDAV on a cell as it reaches 2k."""
    cells, centroids = _cells(X, base)
    for record in range(len(base), len(X)):
        cell = _nearest(centroids, X[record])
        cells[cell].append(record)
        if len(cells[cell]) >= 2 * k:
            _split(X, cells, centroids, cell, k)


def split_end(X: Matrix, base: Labels, k: int) -> None:
    """Assign each late record by a scan; run MDAV on the cells of 2k and more in the end."""
    cells, centroids = _cells(X, base)
    for record in range(len(base), len(X)):
        cells[_nearest(centroids, X[record])].append(record)
    for cell in range(len(cells)):
        if len(cells[cell]) >= 2 * k:
            numpy_mdav(X[cells[cell]], k)


PLAIN = {"two-step": two_step, "split-mid": split_mid, "split-end": split_end}


class _Centroids:
    """Centroids in an array with room to grow."""

    def __init__(self, at: Matrix) -> None:
        self.n = len(at)
        self.at = np.concatenate([at, np.empty_like(at)])

    def append(self, point: Matrix) -> None:
        if self.n == len(self.at):
            self.at = np.concatenate([self.at, np.empty_like(self.at)])
        self.at[self.n] = point
        self.n += 1


def _cells(X: Matrix, base: Labels) -> tuple[list[list[int]], _Centroids]:
    sizes = np.bincount(base)
    cells = [part.tolist() for part in np.split(np.argsort(base, kind="stable"), np.cumsum(sizes)[:-1])]
    return cells, _Centroids(np.array([X[cell].mean(axis=0) for cell in cells]))


def _nearest(centroids: _Centroids, point: Matrix) -> int:
    return int(np.square(centroids.at[: centroids.n] - point).sum(axis=1).argmin())


def _split(X: Matrix, cells: list[list[int]], centroids: _Centroids, cell: int, k: int) -> None:
    members = np.array(cells[cell])
    parts = numpy_mdav(X[members], k)
    new = [members[parts == part].tolist() for part in range(int(parts.max()) + 1)]
    cells[cell] = new[0]
    centroids.at[cell] = X[new[0]].mean(axis=0)
    for part in new[1:]:
        cells.append(part)
        centroids.append(X[part].mean(axis=0))
