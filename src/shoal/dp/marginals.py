"""Marginals: every column for itself, by individual ranking.

A numeric column is sorted and cut into cells that n and k fix alone; replacing one record then moves the sums of the
cells by no more than the range of the column, all cells together. A nominal column is counted.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.dp.budget import Budget
from shoal.dp.declared import GRID, Nominal, Numeric, Public, declared
from shoal.dp.dp_release import DpRelease
from shoal.dp.totals import ascending, to_total
from shoal.errors import ParameterError
from shoal.typing import Labels, Vector

MECHANISM = "marginals: every column by itself, in an order of its own; no relation between columns is published"


def marginals(
    table: Any,
    epsilon: float,
    bounds: Mapping[str, Sequence[float]] | None = None,
    *,
    categories: Mapping[str, Sequence[Any]] | None = None,
    drop: Sequence[str] | str = (),
    shares: Mapping[str, float] | None = None,
    k: int | None = None,
    reading: Mapping[str, Any] | None = None,
) -> DpRelease:
    """Publish each column with epsilon-differential privacy, without any relation between columns.

    Parameters
    ----------
    table : path or frame
        Any table that `shoal.table.read` takes. Not changed. How many records it has is public.
    epsilon : float
        For the whole release: how much its probabilities may depend on one record.
    bounds : dict of str to (low, high)
        What a numeric column can hold, known without looking at it. Values outside count as the bound.
    categories : dict of str to list
        What a nominal column can hold, known without looking at it; published in this type and spelling. 1, 1.0 and
        "1" are the same value. Other values become missing.
    drop : sequence of str
        Columns that are not published. Every column is declared or dropped.
    shares : dict of str to float, optional
        How epsilon is shared: a column with 2 gets twice as much as one with 1, the default.
    k : int, optional
        Records in a cell of a numeric column, at least. By default `cell_size` of n and epsilon; never from the data.
    reading : dict, optional
        How to read a file; see `shoal.table.read`.

    Returns
    -------
    DpRelease
        As many records as came in; what each costs is in ``spent``.

    Raises
    ------
    SchemaError
        If a column is neither declared nor dropped, or its declaration does not fit.
    ParameterError
        If epsilon, bounds, shares or k cannot be used, or OpenDP is missing (it comes with the extra `dp`).

    Notes
    -----
    Takes O(n log n) time in records and one draw of noise for each cell. Noise has no seed: a second call gives another
    release and costs epsilon once more. ``docs/dp.md`` has the proof.

    Examples
    --------
    >>> people = pa.table({"age": [20, 30, 40, 50] * 50, "sex": ["f", "m"] * 100})
    >>> release = marginals(people, epsilon=1.0, bounds={"age": (0, 120)}, categories={"sex": ["f", "m"]})
    >>> release.table.num_rows, release.spent["columns"]
    (200, {'age': 0.5, 'sex': 0.5})
    """
    budget = Budget(epsilon)
    source, columns, codes = declared(table, bounds, categories, drop, reading)
    parts = _parts([column.name for column in columns], shares)
    n = source.n_records
    order = np.random.default_rng()  # from the machine's entropy; the order of rows has to tell nothing
    published, cells = {}, {}
    for column in columns:
        part = parts[column.name]
        if isinstance(column, Numeric):
            size = cell_size(n, budget.epsilon * float(part)) if k is None else _as_k(k, n)
            cells[column.name] = len(cell_sizes(n, size))
            steps = ranked(codes[column.name], size, budget, column.name, part)
            published[column.name] = column.values(order.permutation(steps))
        else:
            counts = counted(codes[column.name], column, budget, part)
            published[column.name] = column.values(order.permutation(np.repeat(np.arange(column.n_codes), counts)))
    return DpRelease(source, pa.table(published), MECHANISM, budget.epsilon, budget.spent, _settings(columns, cells))


def cell_size(n: int, epsilon: float) -> int:
    """Return the k at which noise and coarseness weigh the same, for a column of even spread.

    A mean of k numbers gets noise of variance 2 (range / (k epsilon))^2, and the numbers of a cell spread over about
    range k / n, with variance (range k / n)^2 / 12. Their sum is least at k^4 = 24 n^2 / epsilon^2, for any bounds.

    Examples
    --------
    >>> cell_size(1080, 1.0), cell_size(1_000_000, 1.0), cell_size(10, 0.1)
    (73, 2214, 10)
    """
    return ceil(min(float(24**0.25) * float((n / epsilon) ** 0.5), n))


def cell_sizes(n: int, k: int) -> Labels:
    """Return the sizes of the cells along the ranks, fixed by n and k: each at least k, none short."""
    n_cells = max(n // k, 1)
    sizes = np.full(n_cells, n // n_cells, dtype=np.int64)
    sizes[: n % n_cells] += 1
    return sizes


def cell_sums(codes: Labels, k: int) -> Labels:
    """Return the sum of each cell of the sorted numbers: what one record changes by `GRID` at most, in all."""
    sizes = cell_sizes(len(codes), k)
    return np.add.reduceat(np.sort(codes), np.cumsum(sizes) - sizes)


def ranked(codes: Labels, k: int, budget: Budget, name: str, part: Fraction) -> Vector:
    """Return the noisy mean of each cell, once for each of its records, in ascending order."""
    sizes = cell_sizes(len(codes), k)
    noisy = budget.laplace(("columns", name), cell_sums(codes, k), GRID, part)
    # The true means ascend with the ranks, so the nearest ascending ones are nearer to the truth.
    means = ascending(noisy / sizes, sizes.astype(np.float64))
    return np.repeat(np.clip(means, 0, GRID), sizes)


def counted(codes: Labels, column: Nominal, budget: Budget, part: Fraction) -> Labels:
    """Return noisy counts of the categories that add up to the number of records."""
    counts = np.bincount(codes, minlength=column.n_codes).astype(np.int64)
    # A record that is replaced leaves one count and enters another.
    return to_total(budget.laplace(("columns", column.name), counts, 2, part), len(codes))


def _parts(names: Sequence[str], shares: Mapping[str, float] | None) -> dict[str, Fraction]:
    """Return which part of epsilon each column gets; the parts add up to 1."""
    given = dict(shares or {})
    for name, share in given.items():
        if name not in names:
            raise ParameterError(f"A share of epsilon is given for {name!r}, which is not a published column.")
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < float("inf"):
            raise ParameterError(f"The share of epsilon of column {name!r} has to be a number above 0.")
    weights = {name: Fraction(given.get(name, 1)) for name in names}
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def _as_k(k: int, n: int) -> int:
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= n:
        raise ParameterError(f"k must be a whole number from 1 to {n:,}, the number of records.")
    return int(k)


def _settings(columns: Sequence[Public], cells: Mapping[str, int]) -> dict[str, Any]:
    return {
        "columns": {
            column.name: column.to_dict() | ({"cells": cells[column.name]} if column.name in cells else {})
            for column in columns
        }
    }
