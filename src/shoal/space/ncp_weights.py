"""NCP: what a column counts in the normalised certainty penalty (NCP), as numbers, categories or a hierarchy.

A column counts as it is published: an interval or a period by its width, a set by its categories, an ancestor by the
leaves below it. Columns that publish a mean, a mode or the like count as their kind does.

How missing values count: as one more category of a set. An interval, a period or an ancestor says nothing about records
of which some have a value and others have none, so that such a class has the penalty 1.
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal import kernels
from shoal.columns.numbers import as_numbers, halfway, less
from shoal.columns.prepare import categories_in_order, decoded
from shoal.columns.schema import Column, Kind, Schema
from shoal.space.axes import NominalAxis
from shoal.space.tree_axis import Level, points_of
from shoal.typing import Labels, Matrix, Vector

BETWEEN = 0.75
"""Distances between values, for the initial partition, are their penalty to this power: between the penalty, which is
right for two records, and its root, which is right for cells that have many categories (``docs/ncp.md``)."""
TREE_DIMS = 24
"""Coordinates of all hierarchies together, at least two each: more of them cost time and find no better start."""


@dataclass(frozen=True)
class Numbers:
    """Numbers, ranks and dates: the penalty is the range of a class over that of the column."""

    values: Vector  # not a number where it is missing
    width: float
    weight: float

    def add_to(self, table: kernels.NcpTable, records: Labels) -> None:
        """Add some of the records to a table of the search."""
        table.numbers(self.values[records], self.width, self.weight)

    def ncp_of(self, labels: Labels, n_cells: int) -> Vector:
        """Return the penalty of each class, not weighted; shape (n_cells,)."""
        known = ~np.isnan(self.values)
        low, high = np.full(n_cells, np.inf), np.full(n_cells, -np.inf)
        np.minimum.at(low, labels[known], self.values[known])
        np.maximum.at(high, labels[known], self.values[known])
        n_known = np.bincount(labels[known], minlength=n_cells)
        n_all = np.bincount(labels, minlength=n_cells)
        width = np.where(n_known > 0, high - low, 0.0) / (self.width or 1.0)
        return np.where((n_known > 0) & (n_known < n_all), 1.0, width)

    def encode(self) -> Matrix:
        """Return coordinates in which two records are about as far apart as their penalty says."""
        known = ~np.isnan(self.values)
        scaled = self.weight * (self.values - (self.values[known].min() if known.any() else 0.0)) / (self.width or 1.0)
        if known.all():
            return np.asarray(scaled.reshape(-1, 1))
        middle = scaled[known].mean() if known.any() else 0.0
        return np.column_stack([np.where(known, scaled, middle), np.where(known, 0.0, self.weight)])


@dataclass(frozen=True)
class Categories:
    """Categories: the penalty is the number of further categories of a class over that of the column."""

    codes: Labels
    points: Matrix  # of each category, 1 apart
    weight: float

    @property
    def n_values(self) -> int:
        """Number of categories."""
        return len(self.points)

    def add_to(self, table: kernels.NcpTable, records: Labels) -> None:
        """Add some of the records to a table of the search."""
        table.categories(self.codes[records], self.n_values, self.weight)

    def ncp_of(self, labels: Labels, n_cells: int) -> Vector:
        """Return the penalty of each class, not weighted; shape (n_cells,)."""
        pairs = np.unique(labels * self.n_values + self.codes)
        n_distinct = np.bincount(pairs // self.n_values, minlength=n_cells)
        return np.maximum(n_distinct - 1, 0) / max(self.n_values - 1, 1)

    def encode(self) -> Matrix:
        """Return coordinates in which two records are about as far apart as their penalty says."""
        apart = self.weight * (1 / max(self.n_values - 1, 1)) ** BETWEEN
        return np.asarray((self.points * apart)[self.codes])


@dataclass(frozen=True)
class Tree:
    """Leaves of a hierarchy: the penalty is the number of further leaves below the common ancestor over all others."""

    leaves: Labels
    nodes: NDArray[np.int32]  # of shape (n_leaves, n_levels)
    sizes: NDArray[np.int64]  # leaves below each node
    weight: float
    n_dims: int = TREE_DIMS  # of its coordinates

    def add_to(self, table: kernels.NcpTable, records: Labels) -> None:
        """Add some of the records to a table of the search."""
        table.tree(self.leaves[records], self.nodes, self.sizes, self.weight)

    @property
    def shares(self) -> Vector:
        """The penalty of each node; shape (n_nodes,)."""
        return np.asarray((self.sizes - 1) / max(len(self.nodes) - 1, 1), dtype=np.float64)

    def ncp_of(self, labels: Labels, n_cells: int) -> Vector:
        """Return the penalty of each class, not weighted; shape (n_cells,)."""
        found = np.zeros(n_cells)
        for level in reversed(range(self.nodes.shape[1])):
            node = self.nodes[self.leaves, level].astype(np.int64)
            one = np.full(n_cells, -1, dtype=np.int64)
            one[labels] = node
            mixed = np.zeros(n_cells, dtype=bool)
            mixed[labels[node != one[labels]]] = True
            found = np.where(mixed | (one < 0), found, self.shares[one])
        return found

    def encode(self) -> Matrix:
        """Return coordinates in which two records are about as far apart as their penalty says."""
        used, codes = np.unique(self.leaves, return_inverse=True)
        heights = self.shares ** (2 * BETWEEN) / 2
        levels = []
        for low, high in zip(self.nodes[used].T[:-1], self.nodes[used].T[1:], strict=True):
            names, numbers = np.unique(low, return_inverse=True)
            parents = np.zeros(len(names), dtype=np.int64)
            parents[numbers] = high
            levels.append(Level(numbers.astype(np.int64), np.maximum(heights[parents] - heights[names], 0.0)))
        shares = np.bincount(codes) / len(codes)
        return np.asarray(self.weight * _main_coordinates(points_of(tuple(levels), shares), shares, self.n_dims)[codes])


def _main_coordinates(points: Matrix, shares: Vector, n_dims: int) -> Matrix:
    """Return the points along their first `n_dims` principal axes."""
    centred = points - np.einsum("i,ij->j", shares, points)
    covariance = np.einsum("i,ij,ik->jk", shares, centred, centred)
    axes = np.linalg.eigh(covariance)[1][:, ::-1][:, :n_dims]
    return np.asarray(np.einsum("ij,jk->ik", centred, axes))


NcpColumn = Numbers | Categories | Tree


def ncp_columns(table: pa.Table, schema: Schema) -> dict[str, NcpColumn]:
    """Return what each quasi-identifier of a prepared table counts in the penalty."""
    found = {column.name: ncp_column(table[column.name], column) for column in schema.quasi}
    n_trees = sum(isinstance(column, Tree) for column in found.values())
    return {
        name: replace(column, n_dims=max(TREE_DIMS // n_trees, 2)) if isinstance(column, Tree) else column
        for name, column in found.items()
    }


def ncp_column(values: pa.ChunkedArray, column: Column) -> NcpColumn:
    """Return what one column counts."""
    weight = column.settings.weight
    if column.hierarchy is not None and column.form != "set":
        tree = column.hierarchy
        leaves = tree.leaf_codes(values)
        if (leaves < 0).any():  # missing: a leaf of its own under the root
            tree = tree.with_leaves([""])
            leaves = np.where(leaves < 0, tree.n_leaves - 1, leaves)
        lowest = column.settings.level or 0
        return Tree(leaves, np.ascontiguousarray(tree.nodes[:, lowest:]), tree.sizes, weight)
    if column.kind is Kind.NOMINAL or column.form == "set":
        axis = NominalAxis.fit(values, column, "minmax")
        return Categories(axis.codes(values), axis.points, weight)
    return _numbers(values, column, weight)


def _numbers(values: pa.ChunkedArray, column: Column, weight: float) -> Numbers:
    """Return numbers, or ranks, of at most 1 relative to their middle: a large offset costs no digits."""
    if column.kind is Kind.ORDINAL:
        values = pc.index_in(decoded(values), value_set=categories_in_order(values, column))
    known = np.asarray(values.is_valid())
    numbers = as_numbers(values.drop_null())
    moved = less(numbers, halfway(numbers))
    moved = np.ldexp(moved, -int(np.frexp(np.abs(moved).max(initial=0.0))[1]))
    found = np.full(len(values), np.nan)
    found[known] = moved
    return Numbers(found, float(moved.max() - moved.min()) if len(moved) else 0.0, weight)
