"""Associations: how columns move together, before and after."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.prepare import date_units
from shoal.schema import Kind, Schema

Matrix = NDArray[np.float64]

MOST_COLUMNS = 12
"""A map of correlations shows at most so many columns: those whose correlations changed most."""

_BATCH = 1 << 15


def correlations(schema: Schema, before: pa.Table, after: pa.Table, k: int) -> dict[str, Any] | None:
    """Compare the correlations of published numbers and dates before and after.

    Parameters
    ----------
    schema : Schema
        Says which columns are numbers or dates.
    before, after : pyarrow.Table
        The same records, original and released.
    k : int
        A correlation that fewer than 2 k records tell of is left out.

    Returns
    -------
    dict or None
        ``columns`` and the matrices ``before`` and ``after``, lists of lists with None where there is no correlation,
        rounded to three digits; ``left_out`` counts the columns that changed least and are not shown. None if there are
        fewer than two columns.

    Notes
    -----
    Pearson's correlation over the records that have both values. Takes O(n m^2) time for m columns, and memory for one
    batch of records at a time.

    Examples
    --------
    >>> from shoal.schema import Roles
    >>> people = pa.table({"age": [20, 30, 40, 50], "pay": [1, 2, 2, 4]})
    >>> schema = Schema.of(people.schema, Roles(quasi_identifiers=("age", "pay")))
    >>> correlations(schema, people, people, k=2)["after"]
    [[1.0, 0.923], [0.923, 1.0]]
    """
    names = [column.name for column in schema.published if column.kind in (Kind.NUMERIC, Kind.DATE)]
    if len(names) < 2:
        return None
    sides = [_correlation(table.select(names), 2 * k) for table in (before, after)]
    change = np.nan_to_num(np.abs(sides[1] - sides[0]))
    most = np.sort(np.argsort(-change.max(axis=0), kind="stable")[:MOST_COLUMNS])
    picked = [side[np.ix_(most, most)] for side in sides]
    return {
        "columns": [names[place] for place in most],
        "left_out": len(names) - len(most),
        "before": _plain(picked[0]),
        "after": _plain(picked[1]),
        "largest_change": float(np.round(change.max(), 3)),
    }


def _plain(matrix: Matrix) -> list[list[float | None]]:
    return [[None if np.isnan(value) else round(float(value), 3) + 0.0 for value in row] for row in matrix]


def _correlation(table: pa.Table, least: int) -> Matrix:
    """Return Pearson's correlations, NaN where a column is constant or fewer than `least` records have both values."""
    columns = [_centred(values) for values in table.columns]
    m = len(columns)
    sums = np.zeros((4, m, m))  # of products, of values where the other is there, of squares likewise, of records
    for start in range(0, table.num_rows, _BATCH):
        Z = np.stack([column[start : start + _BATCH] for column in columns], axis=1)
        there = (~np.isnan(Z)).astype(np.float64)
        Z = np.nan_to_num(Z, copy=False)
        sums[0] += Z.T @ Z
        if there.all():
            total, squares = Z.sum(axis=0), np.square(Z).sum(axis=0)
            sums[1:] += [np.tile(total, (m, 1)).T, np.tile(squares, (m, 1)).T, np.full((m, m), len(Z))]
        else:
            sums[1:] += [Z.T @ there, np.square(Z).T @ there, there.T @ there]
    products, totals, squares, n = sums
    with np.errstate(invalid="ignore", divide="ignore"):
        covariance = products / n - totals * totals.T / n**2
        variance = squares / n - totals**2 / n**2
        variance = np.where(variance > 1e-12, variance, np.nan)  # of columns with unit variance: rounding, not spread
        found = covariance / np.sqrt(variance * variance.T)
    found[n < least] = np.nan
    return np.clip(found, -1, 1)


def _centred(values: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return a column in standard deviations from its mean, missing values as NaN; shape (n_records,)."""
    there = np.asarray(values.is_valid())
    present = values.drop_null()
    if pa.types.is_temporal(present.type):
        units = date_units(present)
        numbers = (units - units[0]).astype(np.float64) if len(units) else units.astype(np.float64)
    else:
        numbers = np.array(present.cast(pa.float64(), safe=False))
    result = np.full(len(values), np.nan)
    finite = numbers[np.isfinite(numbers)]
    if len(finite) == 0:
        return result
    # Scaled by a power of two first, so that squares do not overflow.
    exponent = int(np.frexp(np.abs(finite).max())[1])
    numbers, finite = np.ldexp(numbers, -exponent), np.ldexp(finite, -exponent)
    spread = finite.std() or 1.0
    result[there] = np.where(np.isfinite(numbers), (numbers - finite.mean()) / spread, np.nan)
    return result
