"""Members: the cell of each record, and the records of each cell that have a value.

Sums are correctly rounded, so that they do not depend on the order of the records: the last digit of a mean, and which
of two values has more weight, would otherwise reveal something of it.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal import kernels
from shoal.columns.distribution import Distribution
from shoal.columns.schema import Column
from shoal.typing import Labels, Vector

N = TypeVar("N", np.int64, np.float64)


@dataclass(frozen=True)
class Cells:
    """The cell of each record.

    Attributes
    ----------
    labels : ndarray of shape (n_records,)
        Cell number of each record, from 0 and without gaps.
    household_labels : ndarray of shape (n_records,), optional
        Coarser cells, for the columns that stay equal within a household.
    household_level : tuple of str
        Those columns.
    """

    labels: Labels
    household_labels: Labels | None = None
    household_level: tuple[str, ...] = ()

    def of(self, column: Column) -> Labels:
        """Return the cells that a column is aggregated in."""
        if self.household_labels is not None and column.name in self.household_level:
            return self.household_labels
        return self.labels

    def sizes_of(self, column: Column) -> Labels:
        """Return the number of records of each of these cells."""
        return self._sizes if self.of(column) is self.labels else self._household_sizes

    @cached_property
    def _sizes(self) -> Labels:
        return np.bincount(self.labels)

    @cached_property
    def _household_sizes(self) -> Labels:
        assert self.household_labels is not None
        return np.bincount(self.household_labels)


class Members:
    """The records of each cell that have a value; `all_sizes` counts those without one too.

    `whole` is the column in the whole table, if the cells are those of a part of it.
    """

    def __init__(
        self,
        labels: Labels,
        n_cells: int,
        weights: Vector | None,
        all_sizes: NDArray[np.int64],
        whole: Distribution | None = None,
    ) -> None:
        self.labels, self.n_cells, self.whole, self.all_sizes = labels, n_cells, whole, all_sizes
        self.sizes = all_sizes if len(labels) == all_sizes.sum() else np.bincount(labels, minlength=n_cells)
        self.some_missing = self.sizes < all_sizes
        self.weights = None if weights is None else _relative(weights, labels, n_cells)

    @staticmethod
    def of(
        values: pa.ChunkedArray,
        labels: Labels,
        sizes: Labels,
        weights: Vector | None,
        whole: Distribution | None = None,
    ) -> "Members":
        """Return the records that have a value in a column; `sizes` are those of the cells."""
        if not values.null_count:
            return Members(labels, len(sizes), weights, sizes, whole)
        where = np.asarray(values.is_valid())
        return Members(labels[where], len(sizes), None if weights is None else weights[where], sizes, whole)

    def totals(self, numbers: Vector | None = None) -> Vector:
        """Return the sum of `numbers` in each cell; without them, the sum of the weights."""
        numbers = self.weights if numbers is None else numbers
        return self.sizes.astype(np.float64) if numbers is None else sums(numbers, self.labels, self.n_cells)

    def extremes(self, numbers: NDArray[N]) -> tuple[NDArray[N], NDArray[N]]:
        """Return the lowest and the highest of `numbers`, int64 or float64, in each cell; 0 where a cell has none."""
        ends = (-np.inf, np.inf) if numbers.dtype.kind == "f" else (np.iinfo(np.int64).min, np.iinfo(np.int64).max)
        lowest = np.full(self.n_cells, ends[1], dtype=numbers.dtype)
        highest = np.full(self.n_cells, ends[0], dtype=numbers.dtype)
        np.minimum.at(lowest, self.labels, numbers)
        np.maximum.at(highest, self.labels, numbers)
        empty = self.sizes == 0
        lowest[empty] = highest[empty] = 0
        return lowest, highest

    def means(self, numbers: Vector) -> Vector:
        """Return the weighted mean of `numbers` in each cell; exact if all are equal."""
        unit = 0.25 if np.abs(numbers).max() > 1e307 else 1.0  # so that no difference overflows
        numbers = numbers * unit
        # Relative to the lowest of the cell: the digits that all its records share cancel before anything is summed.
        pivots = np.full(self.n_cells, np.inf)
        np.minimum.at(pivots, self.labels, numbers)
        pivots[self.sizes == 0] = 0.0
        shares = (1.0 if self.weights is None else self.weights) / self.totals()[self.labels]
        return np.asarray((pivots + self.totals((numbers - pivots[self.labels]) * shares)) / unit)


def sums(numbers: Vector, groups: Labels, n_groups: int) -> Vector:
    """Return the sum of the numbers of each group, correctly rounded."""
    return kernels.cell_sums(np.ascontiguousarray(numbers).reshape(-1, 1), groups, n_groups)[:, 0]


def _relative(weights: Vector, labels: Labels, n_cells: int) -> Vector:
    """Return weights relative to about the largest of their cell, so that they neither overflow nor underflow.

    The unit is a power of two, so that nothing is rounded. A cell whose weights are all 0 is aggregated without them.
    """
    largest = np.zeros(n_cells)
    np.maximum.at(largest, labels, weights)
    unit = np.where(largest > 0, np.ldexp(1.0, np.frexp(largest)[1] - 1), 0.0)[labels]
    return np.divide(weights, unit, out=np.ones_like(weights), where=unit > 0)
