"""Marginals: every column separately, by individual ranking.

A numeric column is sorted and cut into cells whose sizes depend on n and k alone; replacing one record then changes the
sums of all cells together by at most the range of the column. A nominal column is counted.
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
    identifiers: Sequence[str] | str = (),
    shares: Mapping[str, float] | None = None,
    k: int | None = None,
    reading: Mapping[str, Any] | None = None,
) -> DpRelease:
    """Publish each column with epsilon-differential privacy, without any relation between columns.

    Parameters
    ----------
    table : path or frame
        Any table that `shoal.sources.read` accepts. Not changed. Its number of records is public.
    epsilon : float
        Budget of the whole release: how much its probabilities may depend on one record.
    bounds : dict of str to (low, high)
        Range of each numeric column, known without looking at the data. Values outside count as the bound.
    categories : dict of str to list
        Possible values of each nominal column, known without looking at the data; published in this type and spelling.
        1, 1.0 and "1" are the same value. Other values become missing.
    identifiers : sequence of str
        Columns that are not published. Every column must be declared or dropped.
    shares : dict of str to float, optional
        Relative shares of epsilon: a column with 2 gets twice as much as one with 1, the default.
    k : int, optional
        Minimum number of records in a cell of a numeric column. By default `cell_size` of n and epsilon; never computed
        from the data.
    reading : dict, optional
        How to read a file; see `shoal.sources.read`.

    Returns
    -------
    DpRelease
        As many records as the input; the cost of each column is in ``spent``.

    Raises
    ------
    SchemaError
        If a column is neither declared nor dropped, or its declaration does not match its type.
    ParameterError
        If epsilon, bounds, shares or k are invalid, or OpenDP is not installed (extra `dp`).

    Notes
    -----
    Takes O(n log n) time in records and one draw of noise for each cell. Noise has no seed: a second call gives another
    release and spends epsilon again. ``docs/dp.md`` has the proof.

    Examples
    --------
    >>> people = pa.table({"age": [20, 30, 40, 50] * 50, "sex": ["f", "m"] * 100})
    >>> release = marginals(people, epsilon=1.0, bounds={"age": (0, 120)}, categories={"sex": ["f", "m"]})
    >>> release.table.num_rows, release.spent["columns"]
    (200, {'age': 0.5, 'sex': 0.5})
    """
    budget = Budget(epsilon)
    source, columns, codes = declared(table, bounds, categories, identifiers, reading)
    parts = _parts([column.name for column in columns], shares)
    n = source.n_records
    order = np.random.default_rng()  # seeded by the operating system: the order of rows must reveal nothing
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
    """Return the k at which noise and coarseness are equal for a uniformly distributed column.

    A mean of k numbers gets noise of variance 2 (range / (k epsilon))^2, and the numbers of a cell span about
    range k / n, with variance (range k / n)^2 / 12. Their sum is minimal at k^4 = 24 n^2 / epsilon^2, for any bounds.

    Examples
    --------
    >>> cell_size(1080, 1.0), cell_size(1_000_000, 1.0), cell_size(10, 0.1)
    (73, 2214, 10)
    """
    return ceil(min(float(24**0.25) * float((n / epsilon) ** 0.5), n))


def cell_sizes(n: int, k: int) -> Labels:
    """Return the sizes of the cells along the ranks, fixed by n and k: each at least k, if n is."""
    n_cells = max(n // k, 1)
    sizes = np.full(n_cells, n // n_cells, dtype=np.int64)
    sizes[: n % n_cells] += 1
    return sizes


def cell_sums(codes: Labels, k: int) -> Labels:
    """Return the sum of each cell of the sorted numbers: their L1 sensitivity is `GRID`."""
    sizes = cell_sizes(len(codes), k)
    return np.add.reduceat(np.sort(codes), np.cumsum(sizes) - sizes)


def ranked(codes: Labels, k: int, budget: Budget, name: str, part: Fraction) -> Vector:
    """Return the noisy mean of each cell, repeated for each of its records, in ascending order."""
    sizes = cell_sizes(len(codes), k)
    noisy = budget.laplace(("columns", name), cell_sums(codes, k), GRID, part)
    # The true means are ascending, so projecting the noisy ones on ascending sequences reduces their error.
    means = ascending(noisy / sizes, sizes.astype(np.float64))
    return np.repeat(np.clip(means, 0, GRID), sizes)


def counted(codes: Labels, column: Nominal, budget: Budget, part: Fraction) -> Labels:
    """Return noisy counts of the categories that add up to the number of records."""
    counts = np.bincount(codes, minlength=column.n_codes).astype(np.int64)
    # Replacing a record lowers one count and raises another.
    return to_total(budget.laplace(("columns", column.name), counts, 2, part), len(codes))


def _parts(names: Sequence[str], shares: Mapping[str, float] | None) -> dict[str, Fraction]:
    """Return the share of epsilon of each column; the shares add up to 1."""
    given = dict(shares or {})
    for name, share in given.items():
        if name not in names:
            raise ParameterError(f"A share of epsilon is given for {name!r}, which is not a published column.")
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < float("inf"):
            raise ParameterError(f"The share of epsilon of column {name!r} must be a finite number above 0.")
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
