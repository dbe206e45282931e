"""Associations: correlations of columns, before and after."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.auditing import Columns
from shoal.columns.prepare import date_units
from shoal.columns.schema import Kind, Role, Schema
from shoal.typing import Vector

Matrix = NDArray[np.float64]

MOST_COLUMNS = 12
"""Maximum number of columns in a map of correlations: those whose correlations changed most."""

_BATCH = 1 << 15


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
    published = [_centred(after[name]) for name in names]
    original = [
        _centred(before[column.name]) if column.role is Role.QUASI else same
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


def _correlation(columns: list[Vector], least: int) -> Matrix:
    """Return Pearson's correlations, NaN where a column is constant or fewer than `least` records have both values."""
    complete = not any(np.isnan(column.sum()) for column in columns)
    m = len(columns)
    sums = np.zeros((4, m, m))
    for start in range(0, len(columns[0]), _BATCH):
        sums += _sums(np.array([column[start : start + _BATCH] for column in columns]), complete)
    products, totals, squares, n = sums
    with np.errstate(invalid="ignore", divide="ignore"):
        covariance = products / n - totals * totals.T / n**2
        variance = squares / n - totals**2 / n**2
        variance = np.where(variance > 1e-12, variance, np.nan)  # of columns with unit variance: below is rounding
        found = covariance / np.sqrt(variance * variance.T)
    found[n < least] = np.nan
    return np.asarray(np.clip(found, -1, 1))


def _sums(Z: Matrix, complete: bool) -> NDArray[np.float64]:
    """Return for each pair of columns, over the records that have both, the sums of x y, of x, of x x, and of 1.

    `Z` has a row for each column, and NaN where a value is missing.
    """
    m = len(Z)
    if complete:
        own = np.broadcast_to
        totals, squares = own(Z.sum(axis=1)[:, None], (m, m)), own(np.einsum("ij,ij->i", Z, Z)[:, None], (m, m))
        return np.array([Z @ Z.T, totals, squares, np.full((m, m), Z.shape[1])])
    there = (~np.isnan(Z)).astype(np.float64)
    Z = np.nan_to_num(Z)
    return np.array([Z @ Z.T, Z @ there.T, np.square(Z) @ there.T, there @ there.T])


def _centred(values: pa.ChunkedArray) -> Vector:
    """Return a column in standard deviations from its mean, missing values as NaN; shape (n_records,)."""
    if pa.types.is_temporal(values.type):
        present = date_units(values.drop_null())
        numbers = np.full(len(values), np.nan)
        # Relative to the first value, so that large times since 1970 lose no digits.
        numbers[np.asarray(values.is_valid())] = present - (present[0] if len(present) else 0)
    else:
        numbers = np.asarray(values.cast(pa.float64(), safe=False).fill_null(np.nan))
    numbers = np.where(np.isinf(numbers), np.nan, numbers)
    # Scaled by a power of two first, so that squares do not overflow.
    size = max(np.fmax.reduce(numbers), -np.fmin.reduce(numbers))
    if np.isnan(size):
        return numbers
    numbers = np.ldexp(numbers, -int(np.frexp(size)[1]))
    is_there = ~np.isnan(numbers)
    n = np.count_nonzero(is_there)
    numbers -= np.sum(numbers, where=is_there) / n
    spread = float(np.sqrt(np.sum(np.square(numbers), where=is_there) / n))
    return np.asarray(numbers / spread if spread > 0 else numbers)
