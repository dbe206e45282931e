"""The baselines of section VI-C: the three ways to t-closeness by microaggregation that the paper compares itself with.

Merge: microaggregate, then join the cell farthest from t with the nearest cell until t holds. k-anonymity first: make
cells as MDAV does, and swap members for others that bring the cell closer to the table; merge what is left. t-closeness
first: cut the records, sorted by the confidential column, into as many parts as a cell needs records, and take one of
each part, the nearest. In NumPy, one distance at a time, as described; shoal itself uses nothing of this.

References
----------
Soria-Comas, Domingo-Ferrer, Sanchez, Martinez (2015), "t-closeness through microaggregation: strict privacy with
enhanced utility preservation", algorithms 1 to 3.
"""

from collections.abc import Callable

import numpy as np

from papers.plain import numbered, squared
from shoal.constraints.bucket_steering import n_buckets
from shoal.methods import partition
from shoal.methods.cell_building import members_of
from shoal.models import Codes
from shoal.typing import Labels, Matrix

Start = Callable[[int, Labels], Labels]
"""Makes a cell around a record from those that remain."""


def merge(X: Matrix, column: Codes, k: int, t: float) -> Labels:
    """Run MDAV, then merge cells until every one is within t of the table."""
    labels = partition(X, k, "mdav", threads=1)
    return merged(X, members_of(labels), Table(column), t)


def k_first(X: Matrix, column: Codes, k: int, t: float) -> Labels:
    """Make cells of k, swap members until t holds where possible, then merge cells that still violate t."""
    table = Table(column)

    def cell_around(start: int, rest: Labels) -> Labels:
        if len(rest) < 2 * k:
            return rest
        order = rest[np.argsort(squared(X[rest], X[start]), kind="stable")]
        cell, distance = order[:k], table.emd(order[:k])
        for candidate in order[k:]:
            if distance <= t:
                break
            swapped = [np.append(np.delete(cell, i), candidate) for i in range(len(cell))]
            distances = [table.emd(other) for other in swapped]
            best = int(np.argmin(distances))
            if distances[best] < distance:
                cell, distance = swapped[best], distances[best]
        return cell

    return merged(X, _from_the_outside(X, cell_around), table, t)


def t_first(X: Matrix, column: Codes, k: int, t: float) -> Labels:
    """Make cells with one record of each part of the confidential column."""
    n = len(X)
    size = n_buckets(n, k, t)
    size += (n % size) // (n // size)
    parts = _parts(np.argsort(column.codes, kind="stable"), size)
    n_cells = n // size

    def cell_around(start: int, rest: Labels) -> Labels:
        taken = []
        for part in parts:
            # A part with more records than remaining cells gives a second record.
            left = n_cells - len(cells)
            for _ in range(2 if len(part) > left else 1):
                nearest = part[int(squared(X[part], X[start]).argmin())]
                part.remove(nearest)
                taken.append(nearest)
        cells.append(taken)
        return np.array(taken)

    cells: list[list[int]] = []
    return numbered(len(X), _from_the_outside(X, cell_around))


BASELINES = {"merge": merge, "k-anonymity first": k_first, "t-closeness first": t_first}


class Table:
    """The distribution of the confidential column, with which cells are compared."""

    def __init__(self, column: Codes) -> None:
        self._codes, self._n_values = column.codes, column.n_values
        self._up_to = np.cumsum(np.bincount(column.codes, minlength=column.n_values)) / len(column.codes)

    def emd(self, records: Labels) -> float:
        """Return the earth mover's distance over the ranks (equation 1)."""
        mine = np.cumsum(np.bincount(self._codes[records], minlength=self._n_values)) / len(records)
        return float(np.abs(mine - self._up_to).sum() / (self._n_values - 1))


def merged(X: Matrix, cells: list[Labels], table: Table, t: float) -> Labels:
    """Join the cell that is farthest from the table with the one that is nearest to it, until all are within t."""
    distances = [table.emd(cell) for cell in cells]
    while len(cells) > 1 and max(distances) > t:
        worst = int(np.argmax(distances))
        centroids = np.stack([X[cell].mean(axis=0) for cell in cells])
        far = squared(centroids, centroids[worst])
        far[worst] = np.inf
        other = int(far.argmin())
        joined = np.concatenate([cells[worst], cells[other]])
        for gone in sorted((worst, other), reverse=True):
            del cells[gone], distances[gone]
        cells.append(joined)
        distances.append(table.emd(joined))
    return numbered(len(X), cells)


def _from_the_outside(X: Matrix, cell_around: Start) -> list[Labels]:
    """Make cells in MDAV's order: around the record farthest from the mean, then around the one farthest from it."""
    rest, cells = np.arange(len(X)), []
    while len(rest):
        first = int(rest[squared(X[rest], X[rest].mean(axis=0)).argmax()])
        for turn in range(2):
            if len(rest):
                start = first if turn == 0 else int(rest[squared(X[rest], X[first]).argmax()])
                cells.append(cell_around(start, rest))
                rest = np.setdiff1d(rest, cells[-1])
    return cells


def _parts(order: Labels, size: int) -> list[list[int]]:
    """Cut sorted records into parts of n // size, the middle one or two of which take the remainder."""
    sizes = np.full(size, len(order) // size)
    for i in range(len(order) % size):
        sizes[size // 2 if size % 2 else size // 2 - i % 2] += 1
    return [part.tolist() for part in np.split(order, np.cumsum(sizes)[:-1])]
