"""Joint: whole records of a few kinds, from cells along one public order of all numeric columns.

Each record has a score, the sum of its numbers as shares of their public ranges. Noisy medians cut the scores into
cells; each cell is published as its noisy size, the noisy means of its columns and its noisy category counts. A record
is in one cell, so replacing it affects at most two cells, whatever their number.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.dp.budget import Budget
from shoal.dp.declared import GRID, Nominal, Numeric, Public, declared
from shoal.dp.dp_release import DpRelease
from shoal.dp.totals import to_total
from shoal.errors import ParameterError, SchemaError
from shoal.typing import Labels

MECHANISM = (
    "joint: cells between noisy medians of the sum of the scaled numeric columns; each cell is published as its noisy "
    "size, noisy means and noisy counts"
)
N_CUTS = 256
"""A cell may be cut at N_CUTS - 1 places, evenly between its ends."""

DEEPEST = 12

CUTS, SIZES = Fraction(2, 10), Fraction(1, 10)
"""Shares of epsilon for finding the cells and for counting their records; the rest is for their values."""


def joint(
    table: Any,
    epsilon: float,
    bounds: Mapping[str, Sequence[float]] | None = None,
    *,
    categories: Mapping[str, Sequence[Any]] | None = None,
    identifiers: Sequence[str] | str = (),
    depth: int | None = None,
    reading: Mapping[str, Any] | None = None,
) -> DpRelease:
    """Publish whole records with epsilon-differential privacy: one kind of record for each of a few cells.

    Parameters
    ----------
    table, epsilon, bounds, categories, identifiers, reading
        As for `marginals`. At least one column must be numeric.
    depth : int, optional
        Number of times the cells are halved, which gives 2**depth cells. By default `best_depth` of n, epsilon and the
        number of columns; never computed from the data.

    Returns
    -------
    DpRelease
        As many records as the input. The numbers of a record are those of its cell; its categories are drawn from the
        noisy counts of the cell, independently for each column.

    Raises
    ------
    SchemaError
        If a column is neither declared nor dropped, its declaration does not match its type, or no column is numeric.
    ParameterError
        If epsilon, bounds or depth are invalid, or OpenDP is not installed (extra `dp`).

    Notes
    -----
    Takes O(n (log n + m)) time for n records of m columns. Noise has no seed. ``docs/dp.md`` has the proof.

    Examples
    --------
    >>> people = pa.table({"age": [20, 30, 40, 50] * 50, "pay": [1, 2, 3, 4] * 50})
    >>> release = joint(people, epsilon=1.0, bounds={"age": (0, 120), "pay": (0, 10)})
    >>> release.table.num_rows, release.total_spent <= 1.0
    (200, True)
    """
    budget = Budget(epsilon)
    source, columns, codes = declared(table, bounds, categories, identifiers, reading)
    numeric = [column.name for column in columns if isinstance(column, Numeric)]
    if not numeric:
        raise SchemaError(
            "A joint release orders the records by their numeric columns, but no column has bounds. Use marginals."
        )
    n = source.n_records
    depth = best_depth(n, budget.epsilon, len(columns)) if depth is None else _as_depth(depth)
    score = np.sum([codes[name] for name in numeric], axis=0)
    labels = cut(score, len(numeric) * GRID, depth, budget)
    sizes = _sizes(labels, 2**depth, budget)
    part = (1 - CUTS - SIZES if depth else Fraction(1)) / len(columns)
    records = {column.name: _filled(column, codes[column.name], labels, sizes, budget, part) for column in columns}
    shuffle = pa.array(np.random.default_rng().permutation(n))
    settings = {"cells": 2**depth, "columns": {column.name: column.to_dict() for column in columns}}
    return DpRelease(source, pa.table(records).take(shuffle), MECHANISM, budget.epsilon, budget.spent, settings)


def best_depth(n: int, epsilon: float, n_columns: int) -> int:
    """Return the depth at which noise and coarseness are about equal for uniformly distributed columns.

    With g cells and the rest of epsilon for their means, a mean has noise of variance 2 (m g / (n epsilon))^2 in units
    of the range, and a cell spans about 1 / g of the range. The sum is minimal at g^4 = (n epsilon / m)^2 / 24.

    Examples
    --------
    >>> best_depth(1080, 1.0, 13), best_depth(100_000, 1.0, 5), best_depth(50, 0.1, 13)
    (2, 6, 0)
    """
    cells = (n * epsilon * float(1 - CUTS - SIZES) / (24**0.5 * n_columns)) ** 0.5
    return int(np.clip(np.rint(np.log2(max(cells, 1.0))), 0, DEEPEST))


def cut(score: Labels, highest: int, depth: int, budget: Budget) -> Labels:
    """Return the cell of each record: the range from 0 to `highest` is halved `depth` times at noisy medians."""
    labels = np.zeros(len(score), dtype=np.int64)
    ends = [(0, highest + 1)]
    for level in range(depth):
        places = [low + (high - low) * np.arange(1, N_CUTS, dtype=np.int64) // N_CUTS for low, high in ends]
        scores = [balance(score[labels == cell], candidates) for cell, candidates in enumerate(places)]
        chosen = budget.choose(("cells", f"cuts of level {level + 1}"), scores, CUTS / depth)
        at = np.array([candidates[place] for candidates, place in zip(places, chosen, strict=True)])
        labels = 2 * labels + (score >= at[labels])
        ends = [
            side
            for (low, high), middle in zip(ends, at.tolist(), strict=True)
            for side in ((low, middle), (middle, high))
        ]
    return labels


def balance(score: Labels, candidates: Labels) -> Labels:
    """Return, for each candidate, minus the absolute difference between the numbers of records on its two sides.

    Adding or removing a record changes it by at most 1, replacing one by at most 2.
    """
    below = np.searchsorted(np.sort(score), candidates, side="left")
    return -np.abs(2 * below - len(score)).astype(np.int64)


def _sizes(labels: Labels, n_cells: int, budget: Budget) -> Labels:
    """Return noisy cell sizes that add up to the number of records, which is public."""
    if n_cells == 1:
        return np.array([len(labels)])
    counts = np.bincount(labels, minlength=n_cells).astype(np.int64)
    return to_total(budget.laplace(("cells", "sizes"), counts, 2, SIZES), len(labels))


def _filled(column: Public, codes: Labels, labels: Labels, sizes: Labels, budget: Budget, part: Fraction) -> pa.Array:
    """Return one column, cell by cell."""
    if isinstance(column, Numeric):
        noisy = budget.laplace(("columns", column.name), centred_sums(codes, labels, len(sizes)), GRID, part)
        means = np.clip(noisy / np.maximum(sizes, 1) + GRID // 2, 0, GRID)
        return column.values(np.repeat(means, sizes))
    noisy = budget.laplace(("columns", column.name), cell_counts(codes, labels, len(sizes), column), 2, part)
    generator = np.random.default_rng()
    drawn = [
        generator.permutation(np.repeat(np.arange(column.n_codes), to_total(row, size)))
        for row, size in zip(noisy.reshape(len(sizes), -1), sizes, strict=True)
    ]
    return column.values(np.concatenate(drawn))


def centred_sums(codes: Labels, labels: Labels, n_cells: int) -> Labels:
    """Return the sum of each cell, relative to the midpoint of the range: their L1 sensitivity is `GRID`."""
    sums = np.zeros(n_cells, dtype=np.int64)
    np.add.at(sums, labels, codes - GRID // 2)
    return sums


def cell_counts(codes: Labels, labels: Labels, n_cells: int, column: Nominal) -> Labels:
    """Return the category counts of each cell, cell by cell: one record changes two of them by 1."""
    return np.bincount(labels * column.n_codes + codes, minlength=n_cells * column.n_codes).astype(np.int64)


def _as_depth(depth: int) -> int:
    if isinstance(depth, bool) or not isinstance(depth, int | np.integer) or not 0 <= depth <= DEEPEST:
        raise ParameterError(f"depth must be a whole number from 0 to {DEEPEST}.")
    return int(depth)
