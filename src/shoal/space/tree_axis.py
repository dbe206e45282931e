"""Tree axis: categories with a hierarchy, as points whose squared distances are those of their tree.

Two categories differ at every level below their common ancestor. Each node has a weight, and the squared distance is
the sum of the weights of both branches up to that ancestor:

- ``path``: every level counts the same, so the distance is the length of the path between two leaves (Rada et al.,
  "Development and application of a metric on semantic nets", 1989).
- ``information``: a node counts by how much its information content, -log of its share of the records, exceeds that of
  its parent (Resnik 1995; the distance is that of Jiang and Conrath 1997).

A tree metric is a sum of such indicators, so it has exact coordinates: one for each node. Microaggregation with
semantic distances is from Domingo-Ferrer, Sanchez and Rufian-Torrell, "Anonymization of nominal data based on semantic
marginality" (2013).
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from shoal.columns.categories import category_codes, sorted_categories
from shoal.columns.schema import Column
from shoal.space.axes import MOST_DIMS, NominalAxis, Scaling, unlike, with_shown
from shoal.typing import Labels, Matrix, Vector


class Level(NamedTuple):
    """The nodes of the categories at one level of a hierarchy."""

    nodes: Labels  # of shape (n_categories,), from 0 and without gaps
    weights: Vector  # of shape (n_nodes,): the squared distance between two nodes is the sum of their weights


@dataclass(frozen=True)
class TreeAxis(NominalAxis):
    """Categories as points whose squared distances are those of their hierarchy.

    Missing is a branch of its own. Distances are exact where the nodes fit into the coordinates. Otherwise those of the
    upper levels and of frequent nodes are, and the others are right on average, as in `NominalAxis`.
    """

    levels: tuple[Level, ...]

    @staticmethod
    def fit(
        values: pa.ChunkedArray, column: Column, scaling: Scaling, shown: pa.ChunkedArray | None = None
    ) -> "TreeAxis":
        """Find the categories, also those that are only `shown`, their nodes and the weights of these; place them."""
        categories = with_shown(sorted_categories(values), shown)
        shares = np.bincount(category_codes(values, categories), minlength=len(categories)) / max(len(values), 1)
        levels = tree_levels(categories, column, shares)
        if scaling == "zscore":
            spread = sum(float((w * _spread(nodes, shares)).sum()) for nodes, w in levels)
            levels = tuple(Level(nodes, w / (spread or 1.0)) for nodes, w in levels)
        heights = np.sum([weights[nodes] for nodes, weights in levels], axis=0)
        apart = float(np.sqrt(2 * heights.max(initial=0.0)))
        return TreeAxis(column, categories, points_of(levels, shares), apart, levels)

    def squared_apart(self, one: Labels, other: Labels) -> Vector:
        """Return the exact squared distance between pairs of categories, given by their numbers."""
        found = np.zeros(len(one))
        for nodes, weights in self.levels:
            found += (weights[nodes[one]] + weights[nodes[other]]) * (nodes[one] != nodes[other])
        return np.asarray(found * self.column.settings.weight**2)

    def spread_within(self, codes: Labels, labels: Labels | None) -> float:
        """Return the exact sum of squares within cells."""
        found = sum(unlike(nodes[codes], labels, weights) for nodes, weights in self.levels)
        return float(found) * self.column.settings.weight**2


def tree_levels(categories: pa.Array, column: Column, shares: Vector) -> tuple[Level, ...]:
    """Return the levels of a hierarchy below its root, so weighted that no two categories are more than 1 apart.

    Parameters
    ----------
    categories : pyarrow.Array
        The categories, each a leaf of the hierarchy or missing.
    column : Column
        Its hierarchy and its distance.
    shares : ndarray of shape (n_categories,)
        Share of the records that each category has.
    """
    tree = column.hierarchy
    assert tree is not None
    leaf = tree.leaf_codes(categories)
    nodes = np.where((leaf < 0)[:, None], len(tree.labels), tree.nodes[leaf]).astype(np.int64)
    nodes[:, -1] = tree.root  # also above missing values
    numbered = [np.unique(nodes[:, level], return_inverse=True)[1] for level in range(tree.n_levels)]
    if column.settings.distance == "path":
        weights = [np.full(len(categories), 0.5 / (tree.n_levels - 1))] * (tree.n_levels - 1)
    else:
        content = [-np.log(np.bincount(level, shares))[level] for level in numbered]
        largest = max(float(content[0].max()), np.finfo(np.float64).tiny)
        gains = [(low - high) / (2 * largest) for low, high in pairwise(content)]
        weights = [np.maximum(gain, 0.0) for gain in gains]
    return tuple(Level(level, _of_nodes(level, w)) for level, w in zip(numbered[:-1], weights, strict=True))


def _of_nodes(nodes: Labels, of_categories: Vector) -> Vector:
    """Return what each node has, given what its categories have, which is the same."""
    found = np.zeros(int(nodes.max(initial=-1)) + 1)
    found[nodes] = of_categories
    return found


def _spread(nodes: Labels, shares: Vector) -> Vector:
    """Return the variance of the indicator of each node."""
    found = np.bincount(nodes, shares)
    return np.asarray(found * (1 - found))


def points_of(levels: tuple[Level, ...], shares: Vector) -> Matrix:
    """Return a point for each category, in at most `MOST_DIMS` dimensions: a block of them for each level.

    Without levels, where only the root is published, all categories are at the same point.
    """
    blocks = [] if levels else [np.zeros((len(shares), 1))]
    left = MOST_DIMS
    least = max(1, MOST_DIMS // max(len(levels), 1))
    for n_below, (nodes, weights) in reversed(list(enumerate(levels))):
        n_dims = min(len(weights), max(left - least * n_below, 1))
        left -= n_dims
        places = _directions(np.bincount(nodes, shares).astype(np.float64), n_dims) * np.sqrt(weights)[:, None]
        blocks.append(places[nodes])
    return np.concatenate(blocks, axis=1)


def _directions(shares: Vector, n_dims: int) -> Matrix:
    """Return a unit vector for each node: orthogonal for the frequent ones, random, but always the same, for others."""
    found = np.random.default_rng(1).standard_normal((len(shares), n_dims))
    found /= np.sqrt(np.square(found).sum(axis=1, keepdims=True))
    found[np.argsort(-shares, kind="stable")[:n_dims]] = np.eye(n_dims)[: len(shares)]
    return np.asarray(found)
