"""Associations: correlations of columns, before and after."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.columns.schema import Kind, Role, Schema
from shoal.measures.pairs import ScaledMoments, blocks, covariance, moments
from shoal.measures.recount import Columns
from shoal.measures.table_risk import as_floats
from shoal.typing import Vector

Matrix = NDArray[np.float64]

MOST_COLUMNS = 12
"""Maximum number of columns in a map of correlations: those whose correlations changed most."""


def correlations(schema: Schema, before: pa.Table, after: Columns, k: int) -> dict[str, Any] | None:
    """Compare the correlations of published numbers and dates before and after.

    Parameters
    ----------
    schema : Schema
        Gives the kinds of the columns.
    before, after : pyarrow.Table
        The same records, original and released; `before` needs to have the quasi-identifiers only.
    k : int
        A correlation over fewer than 2 k records is left out.

    Returns
    -------
    dict or None
        ``columns`` and the matrices ``before`` and ``after``, lists of lists with None where there is no correlation,
        rounded to three digits; ``left_out`` counts the columns that changed least and are not shown. Constant columns
        are left out too. None if there are fewer than two columns.

    Notes
    -----
    Pearson's correlation over the records that have both values. Takes O(n m^2) time for m columns, and memory for one
    batch of records at a time.

    Examples
    --------
    >>> from shoal.columns.schema import Roles
    >>> people = pa.table({"age": [20, 30, 40, 50], "pay": [1, 2, 2, 4]})
    >>> schema = Schema.of(people.schema, Roles(quasi_identifiers=("age", "pay")))
    >>> correlations(schema, people, people, k=2)["after"]
    [[1.0, 0.923], [0.923, 1.0]]
    """
    columns = [column for column in schema.published if column.kind in (Kind.NUMERIC, Kind.DATE)]
    if len(columns) < 2:
        return None
    names = [column.name for column in columns]
    published = [_Numbers.of(after[name]) for name in names]
    original = [
        _Numbers.of(before[column.name]) if column.role is Role.QUASI else same
        for column, same in zip(columns, published, strict=True)
    ]
    sides = [_correlation(values, 2 * k) for values in (original, published)]
    change = np.nan_to_num(np.abs(sides[1] - sides[0]))
    some = np.flatnonzero(np.isfinite(sides[0]).sum(axis=0) > 1)  # constant columns correlate with nothing
    if len(some) < 2:
        return None
    most = np.sort(some[np.argsort(-change.max(axis=0)[some], kind="stable")[:MOST_COLUMNS]])
    picked = [side[np.ix_(most, most)] for side in sides]
    return {
        "columns": [names[place] for place in most],
        "left_out": len(some) - len(most),
        "before": _plain(picked[0]),
        "after": _plain(picked[1]),
        "largest_change": float(np.round(change.max(), 3)),
    }


def _plain(matrix: Matrix) -> list[list[float | None]]:
    return [[None if np.isnan(value) else round(float(value), 3) + 0.0 for value in row] for row in matrix]


class _Numbers(NamedTuple):
    """A column of numbers, NaN where a value is missing, with its moments; shape (n_records,)."""

    values: Vector
    unit: ScaledMoments | None  # None without any value
    complete: bool

    @staticmethod
    def of(column: pa.ChunkedArray) -> "_Numbers":
        values = as_floats(column)
        finite = np.isfinite(values)
        if finite.all():
            return _Numbers(values, moments(values) if len(values) else None, True)
        values = np.where(finite, values, np.nan)
        return _Numbers(values, moments(values[finite]) if finite.any() else None, False)


def _correlation(columns: list[_Numbers], least: int) -> Matrix:
    """Return Pearson's correlations, NaN where a column is constant or fewer than `least` records have both values."""
    covariance, variance, n = (_of_all if all(column.complete for column in columns) else _of_pairs)(columns)
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = np.where(variance > 1e-12, variance, np.nan)  # of columns with unit variance: below is rounding
        found = covariance / np.sqrt(variance * variance.T)
    found[n < least] = np.nan
    return np.asarray(np.clip(found, -1, 1))


class _Sums(NamedTuple):
    """For each pair of columns, over the records that have both: covariance, variance of the first, and number."""

    covariance: Matrix
    variance: Matrix
    n: Matrix


def _of_all(columns: list[_Numbers]) -> _Sums:
    """Return the sums over all records."""
    shape = (len(columns), len(columns))
    found = covariance([column.values for column in columns], [column.unit for column in columns if column.unit])
    return _Sums(found, np.broadcast_to(np.diag(found)[:, None], shape), np.full(shape, len(columns[0].values)))


def _of_pairs(columns: list[_Numbers]) -> _Sums:
    """Return the sums over the records that have the values of both columns."""
    sums = np.zeros((4, len(columns), len(columns)))
    for block in blocks(len(columns[0].values)):
        # In standard deviations from the mean, so that squares neither overflow nor lose digits to an offset.
        Z = np.array([values[block] if unit is None else unit.deviations(values[block]) for values, unit, _ in columns])
        there = (~np.isnan(Z)).astype(np.float64)
        Z = np.nan_to_num(Z)
        sums += np.array([Z @ Z.T, Z @ there.T, np.square(Z) @ there.T, there @ there.T])
    products, totals, squares, n = sums
    with np.errstate(invalid="ignore", divide="ignore"):
        return _Sums(products / n - totals * totals.T / n**2, squares / n - totals**2 / n**2, n)
