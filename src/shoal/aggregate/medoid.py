"""Medoid: the value of a record of the cell that has the least sum of squared distances to the others.

Distances are those of the column: of numbers, ranks and dates their differences; of categories with a hierarchy those
of their tree, whose squares are path lengths. Categories without a hierarchy are all equally far apart: their medoid is
the mode.
"""

import numpy as np
import pyarrow as pa

from shoal.aggregate.centred import Centred
from shoal.aggregate.members import Members, sums
from shoal.aggregate.mode import categories_of, modes
from shoal.columns.categories import category_codes
from shoal.columns.schema import Column, Kind
from shoal.space.tree_axis import tree_levels
from shoal.typing import Labels, Vector


def medoids(values: pa.ChunkedArray, column: Column, members: Members) -> pa.Array:
    """Return the medoid of each cell; of equally near values the first in the order of the column."""
    if column.kind is Kind.NOMINAL and column.hierarchy is None:
        return modes(values, column, members)
    categories = categories_of(values, column)
    codes = category_codes(values, categories)
    far = (
        _tree_distances(codes, categories, column, members)
        if column.kind is Kind.NOMINAL
        else _distances(codes, categories, column, members)
    )
    order = np.lexsort((codes, far, members.labels))
    starts = np.cumsum(members.sizes) - members.sizes
    # A cell without values has no medoid; the value found for it is not published.
    return categories.take(pa.array(codes[order[np.minimum(starts, len(order) - 1)]]))


def _distances(codes: Labels, categories: pa.Array, column: Column, members: Members) -> Vector:
    """Return how far each record lies from the mean of its cell, which orders records as the distances to all do."""
    ranks = np.arange(len(categories), dtype=np.float64)
    numbers = (ranks if column.kind is Kind.ORDINAL else Centred.of(categories).offsets)[codes]
    return np.abs(numbers - members.means(numbers)[members.labels])


def _tree_distances(codes: Labels, categories: pa.Array, column: Column, members: Members) -> Vector:
    """Return the sum of the squared distances of each record to the others of its cell."""
    shares = np.bincount(codes, minlength=len(categories)) / len(codes)
    own = np.ones(len(codes)) if members.weights is None else members.weights
    totals = members.totals(own)[members.labels]
    found = np.zeros(len(codes))
    for nodes, weights in tree_levels(categories, column, shares):
        node = nodes[codes]
        pairs = np.unique(members.labels * len(weights) + node, return_inverse=True)[1]
        alike = sums(own, pairs, int(pairs.max()) + 1)[pairs]
        # Of two records that differ, the weights of both nodes count; those of the others of the cell are the same
        # for each of its records, but for the records in its own node.
        weight = weights[node]
        found += weight * (totals - alike) + members.totals(own * weight)[members.labels] - weight * alike
    return found
