"""Forest: trees of cuts across principal directions, found on a sample, that send points to leaves.

A tree depends on the sample alone. Where a point goes depends on the point and the tree alone, not on the points beside
it: projections are summed coordinate by coordinate, and directions are rounded, so that a last digit of the linear
algebra does not matter.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from shoal.methods.cell_building import members_of
from shoal.typing import Labels, Matrix, Vector

_STEPS = 2.0**20
"""Directions are rounded to multiples of its reciprocal."""


class CutTree(NamedTuple):
    """A binary tree; a point with a projection below the threshold goes one way, all others the other way."""

    directions: Matrix
    """Shape (n_nodes, n_dims)."""

    thresholds: Vector
    below: Labels
    above: Labels
    """The next node, or ``~leaf``."""

    n_leaves: int

    def assign(self, points: Matrix) -> Labels:
        """Return the leaf of each point, from 0, shape (n_points,)."""
        leaves = np.zeros(len(points), dtype=np.int64)
        waiting = [(0, np.arange(len(points)))] if len(self.thresholds) else []
        while waiting:
            node, members = waiting.pop()
            is_above = projections(points[members], self.directions[node]) >= self.thresholds[node]
            for child, part in ((self.below[node], members[~is_above]), (self.above[node], members[is_above])):
                if child < 0:
                    leaves[part] = ~child
                elif len(part):
                    waiting.append((int(child), part))
        return leaves


def projections(points: Matrix, direction: Vector) -> Vector:
    """Return the projection of each point, summed coordinate by coordinate whatever the number of points."""
    total = np.zeros(len(points))
    for coordinate, factor in enumerate(direction):
        if factor:
            total += points[:, coordinate] * factor
    return total


def grow(points: Matrix, weights: Vector, size: float, first: int = 0, share: float = 0.5) -> CutTree:
    """Cut sampled points in two until no leaf has more than `size` of their weight.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_dims)
        The sample.
    weights : ndarray of shape (n_points,)
        How many records of the table each stands for.
    size : float
        Largest weight of a leaf. A leaf of equal points may have more.
    first : int
        The first cut is across the direction with the largest variance but `first`.
    share : float
        Share of the weight below each cut.
    """
    growing = _Growing(points, weights, size, share)
    growing.cut(np.arange(len(points)), first)
    n_dims = points.shape[1]
    return CutTree(
        np.array(growing.directions).reshape(-1, n_dims),
        np.array(growing.thresholds, dtype=np.float64),
        np.array(growing.below, dtype=np.int64),
        np.array(growing.above, dtype=np.int64),
        growing.n_leaves,
    )


class _Growing:
    """A tree under construction; leaves are numbered from left to right."""

    def __init__(self, points: Matrix, weights: Vector, size: float, share: float) -> None:
        self.points, self.weights, self.size, self.share = points, weights, size, share
        self.directions: list[Vector] = []
        self.thresholds: list[float] = []
        self.below: list[int] = []
        self.above: list[int] = []
        self.n_leaves = 0

    def cut(self, members: Labels, first: int = 0) -> int:
        """Return the node that cuts these points, or the leaf that holds them."""
        points, weights = self.points[members], self.weights[members]
        direction = main_direction(points, weights, first) if weights.sum() > self.size else None
        if direction is None:
            self.n_leaves += 1
            return ~(self.n_leaves - 1)
        line = projections(points, direction)
        threshold = _threshold(line, weights, self.share)
        node = len(self.thresholds)
        self.directions.append(direction)
        self.thresholds.append(threshold)
        self.below.append(0)
        self.above.append(0)
        self.below[node] = self.cut(members[line < threshold])
        self.above[node] = self.cut(members[line >= threshold])
        return node


def main_direction(points: Matrix, weights: Vector, but: int = 0) -> Vector | None:
    """Return the direction with the largest variance but `but`, rounded; None if all points are equal.

    If the points do not vary in that direction, the one with the largest variance is taken.
    """
    if len(points) == 0 or (points == points[0]).all():
        return None
    centred = points - points[0]
    centred /= np.abs(centred).max()
    shares = weights / weights.sum()
    centred -= (shares[:, None] * centred).sum(axis=0)
    # Not a product of matrices, whose rounding depends on the number of threads.
    covariance = np.einsum("i,ij,ik->jk", shares, centred, centred, optimize=False)
    directions = np.linalg.eigh(covariance)[1].T[::-1]
    for place in (min(but, len(directions) - 1), *range(len(directions))):
        direction = directions[place]
        direction = direction * np.sign(direction[np.argmax(np.abs(direction))])
        direction = np.round(direction * _STEPS) / _STEPS
        line = projections(points, direction)
        if line.min() < line.max():
            return np.asarray(direction)
    return None


def _threshold(line: Vector, weights: Vector, share: float) -> float:
    """Return the number, above the lowest, that has most nearly a share of the weight below it."""
    order = np.argsort(line, kind="stable")
    ordered, below = line[order], np.cumsum(weights[order]) - weights[order]
    first = np.flatnonzero(ordered[1:] > ordered[:-1]) + 1
    return float(ordered[first[np.argmin(np.abs(below[first] - share * weights.sum()))]])


@dataclass(frozen=True)
class Forest:
    """A tree for each large stratum, and one leaf for several small ones together.

    Attributes
    ----------
    trees : tuple of CutTree
    begins : ndarray of shape (n_trees,)
        Number of the first leaf of each tree.
    tree_of : ndarray of shape (n_strata,)
        The tree of each stratum.
    deeper : dict of int to int
        Leaves that were too large, and the tree that cuts each further.
    """

    trees: tuple[CutTree, ...]
    begins: Labels
    tree_of: Labels
    deeper: dict[int, int]

    @staticmethod
    def grown(
        points: Matrix, weights: Vector, strata: Labels, sizes: Labels, size: int, first: int = 0, share: float = 0.5
    ) -> "Forest":
        """Grow the trees of all strata.

        Parameters
        ----------
        points : ndarray of shape (n_sampled, n_dims)
            The sample in the space.
        weights : ndarray of shape (n_sampled,)
            How often each sampled record occurs in the table.
        strata : ndarray of shape (n_sampled,)
            Their strata.
        sizes : ndarray of shape (n_strata,)
            Number of records of each stratum in the table.
        size : int
            Number of records that a leaf should have at most.
        first, share
            As in `grow`.
        """
        trees: list[CutTree] = []
        tree_of = np.zeros(len(sizes), dtype=np.int64)
        together, n_dims = 0, points.shape[1]
        for stratum, n_records in enumerate(sizes):
            members = np.flatnonzero(strata == stratum) if n_records > size else np.empty(0, dtype=np.int64)
            if len(members):
                scale = n_records / weights[members].sum()
                trees.append(grow(points[members], weights[members] * scale, size, first, share))
                together = 0
            elif together and together + n_records <= size:
                together += n_records
            else:
                trees.append(_single_leaf(n_dims))
                together = n_records
            tree_of[stratum] = len(trees) - 1
        return Forest(tuple(trees), _begins(trees), tree_of, {})

    @property
    def n_leaves(self) -> int:
        """Number of leaves, those that are cut further included."""
        return int(self.begins[-1]) + self.trees[-1].n_leaves

    def assign(self, points: Matrix, strata: Labels) -> Labels:
        """Return the leaf of each point, shape (n_points,)."""
        leaves = np.zeros(len(points), dtype=np.int64)
        of_points = self.tree_of[strata]
        for number in np.unique(of_points):
            members = np.flatnonzero(of_points == number)
            leaves[members] = self.trees[number].assign(points[members]) + self.begins[number]
        for leaf, number in self.deeper.items():  # in the order in which they were cut
            members = np.flatnonzero(leaves == leaf)
            leaves[members] = self.trees[number].assign(points[members]) + self.begins[number]
        return leaves

    def deepened(self, leaf: int, points: Matrix, weights: Vector, size: int) -> "Forest":
        """Return the forest with one leaf cut further, by a sample of its records; the same one if all are equal."""
        tree = grow(points, weights, size)
        if tree.n_leaves < 2:
            return self
        trees = [*self.trees, tree]
        return replace(self, trees=tuple(trees), begins=_begins(trees), deeper={**self.deeper, leaf: len(self.trees)})

    def blocks(self, counts: Labels, least: int) -> Labels:
        """Return the block of each leaf: neighbouring leaves are joined until they have `least` records.

        Parameters
        ----------
        counts : ndarray of shape (n_leaves,)
            Number of records of each leaf.
        least : int
            Smallest block, unless a whole tree has fewer records.

        Returns
        -------
        blocks : ndarray of shape (n_leaves,)
            Block of each leaf, from 0 and without gaps; -1 for leaves without records.
        """
        found = np.full(len(counts), -1, dtype=np.int64)
        n_blocks = 0
        for begin, tree in zip(self.begins, self.trees, strict=True):
            leaves = np.arange(begin, begin + tree.n_leaves)
            leaves = leaves[counts[leaves] > 0]
            if len(leaves):
                found[leaves] = join_neighbours(counts[leaves], least) + n_blocks
                n_blocks = int(found[leaves].max()) + 1
        return found


def join_neighbours(counts: Labels, least: int) -> Labels:
    """Return groups of neighbours, from 0, of at least a given number of records; the last ones join those before."""
    groups, group, total = np.zeros(len(counts), dtype=np.int64), 0, 0
    for place, count in enumerate(counts):
        if total >= least:
            group, total = group + 1, 0
        groups[place] = group
        total += count
    if total < least:
        groups[groups == group] = max(group - 1, 0)
    return groups


def _single_leaf(n_dims: int) -> CutTree:
    nothing = np.empty(0, dtype=np.int64)
    return CutTree(np.empty((0, n_dims)), np.empty(0), nothing, nothing, 1)


def _begins(trees: Sequence[CutTree]) -> Labels:
    sizes = np.array([tree.n_leaves for tree in trees], dtype=np.int64)
    return np.cumsum(sizes) - sizes


def leaves_of_blocks(blocks: Labels) -> list[Labels]:
    """Return the leaves of each block."""
    used = np.flatnonzero(blocks >= 0)
    return [used[members] for members in members_of(blocks[used])] if len(used) else []
