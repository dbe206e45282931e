"""Utility: how far the means, variances, correlations and values of the release differ from the original.

All measures are dimensionless, so that columns can be compared; 0 means no change.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.arrays import times_power_of_two
from shoal.errors import ParameterError
from shoal.metrics.pairs import Columns, Pair, as_classes, as_pairs, as_weights, check_lengths, moments, those
from shoal.typing import Matrix, Vector


class ColumnChange(NamedTuple):
    """Changes in a numeric column.

    Attributes
    ----------
    mean : float
        Mean after minus mean before, in standard deviations of the original.
    variance : float
        Variance after over variance before, minus 1.
    il1s : float
        Mean of ``|x - y| / (sqrt(2) * sd)`` over the values that are present before and after.
    removed : float
        Share of the original values that are missing in the release.
    """

    mean: float
    variance: float
    il1s: float
    removed: float


@dataclass(frozen=True, eq=False)
class NumericUtility:
    """Changes in numeric columns and in the correlations between them.

    Attributes
    ----------
    columns : dict of str to ColumnChange
        For each column.
    il1s : float
        IL1s over all columns: the sum over records and columns, divided by the number of values compared.
    correlation_max, correlation_mean : float
        Largest and mean absolute change of a correlation, over the pairs of columns; 0 if there is one column.
    eigenvalues_before, eigenvalues_after : ndarrays of shape (n_varying,)
        Eigenvalues of the covariance matrices, in standard deviations of the original columns, largest first.
    """

    columns: Mapping[str, ColumnChange]
    il1s: float
    correlation_max: float
    correlation_mean: float
    eigenvalues_before: Vector = field(repr=False)
    eigenvalues_after: Vector = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain dicts and lists, for a report."""
        return {
            "columns": {name: change._asdict() for name, change in self.columns.items()},
            "il1s": self.il1s,
            "correlation_max": self.correlation_max,
            "correlation_mean": self.correlation_mean,
            "eigenvalues_before": self.eigenvalues_before.tolist(),
            "eigenvalues_after": self.eigenvalues_after.tolist(),
        }


def numeric_utility(before: Columns, after: Columns, weights: ArrayLike | None = None) -> NumericUtility:
    """Compare numeric columns before and after.

    Parameters
    ----------
    before, after : mapping of str to array_like, or array_like of shape (n_records, n_columns)
        The original and the released values, in any unit; NaN is a missing value.
    weights : array_like of shape (n_records,), optional
        Weight of each record.

    Returns
    -------
    NumericUtility
        Changes of single columns and between columns.

    Raises
    ------
    ParameterError
        If columns or lengths differ, or the weights are invalid.

    Notes
    -----
    Means and variances are taken over all values present, before and after separately; variances divide by n.
    Correlations and covariances are taken over the records that are complete before and after, without the columns that
    were constant or have no values left; a column that has become constant has correlation 0 with all others. If a
    column was constant, its changes have no unit: they are 0 if nothing has changed, and infinite otherwise. Timestamps
    and numbers of any magnitude lose no accuracy: offsets are subtracted before anything is squared.

    References
    ----------
    W. Yancey, W. Winkler, R. Creecy, "Disclosure risk assessment in perturbative microdata protection", Inference
    Control in Statistical Databases, 2002 (IL1s).

    Examples
    --------
    >>> result = numeric_utility({"age": [20.0, 30.0, 40.0, 90.0]}, {"age": [25.0, 25.0, 65.0, 65.0]})
    >>> result.columns["age"].mean, round(result.columns["age"].variance, 3), round(result.il1s, 3)
    (0.0, -0.448, 0.394)
    """
    pairs = as_pairs(before, after)
    n_records = len(pairs[0].before) if pairs else 0
    if n_records == 0:
        raise ParameterError("There are no values to compare. Pass at least one column and one record.")
    w = np.ones(n_records) if weights is None else as_weights(weights, n_records)
    columns = [_in_deviations(pair, w) for pair in pairs]
    first, second = _covariances([column for column in columns if column.varies and column.is_left], w)
    off = np.abs(_correlations(second) - _correlations(first))[np.triu_indices(len(first), 1)]
    totals = [_total_il1s(column, w) for column in columns]
    return NumericUtility(
        columns={
            pair.name: _change(column, w, _ratio(*total))
            for pair, column, total in zip(pairs, columns, totals, strict=True)
        },
        il1s=_ratio(*np.array(totals).sum(axis=0)),
        correlation_max=float(off.max(initial=0.0)),
        correlation_mean=float(off.mean()) if len(off) else 0.0,
        eigenvalues_before=_eigenvalues(first),
        eigenvalues_after=_eigenvalues(second),
    )


class _Column(NamedTuple):
    """A column in standard deviations of the original from its mean; 0 or infinite if the original was constant."""

    before: Vector
    after: Vector
    varies: bool

    @property
    def is_left(self) -> bool:
        """Whether any value is still there."""
        return not np.isnan(self.after).all()


def _in_deviations(pair: Pair, weights: Vector) -> _Column:
    there = ~np.isnan(pair.before) & (weights > 0)
    if not there.any():
        return _Column(pair.before, pair.after, varies=False)
    exponent, origin, mean, sd = moments(*those(there, pair.before, weights))
    before, after = (times_power_of_two(values, -exponent) - origin - mean for values in (pair.before, pair.after))
    if sd > 0:
        return _Column(before / sd, after / sd, varies=True)
    # The change has no unit: it is infinite.
    with np.errstate(divide="ignore", invalid="ignore"):
        return _Column(before, np.where(after == 0, after, after / 0.0), varies=False)


def _change(column: _Column, weights: Vector, il1s: float) -> ColumnChange:
    """Compare a column before and after."""
    originals = weights[~np.isnan(column.before)].sum()
    removed = weights[~np.isnan(column.before) & np.isnan(column.after)].sum()
    if not column.varies:
        changed = np.inf if np.isinf(column.after[weights > 0]).any() else 0.0
        return ColumnChange(changed, changed, il1s, _ratio(removed, originals))
    there = ~np.isnan(column.after) & (weights > 0)
    if not there.any():
        return ColumnChange(0.0, -1.0, il1s, _ratio(removed, originals))
    exponent, origin, mean, sd = moments(*those(there, column.after, weights))
    mean, sd = float(np.ldexp(origin + mean, exponent)), float(np.ldexp(sd, exponent))
    return ColumnChange(mean, sd * sd - 1, il1s, _ratio(removed, originals))


def _total_il1s(column: _Column, weights: Vector) -> tuple[float, float]:
    """Return the weighted sum of the absolute changes, and the sum of the weights of the values compared."""
    both = ~np.isnan(column.before) & ~np.isnan(column.after) & (weights > 0)
    before, after, weight = those(both, column.before, column.after, weights)
    moved = np.abs(before - after) / np.sqrt(2)
    return float(weight @ moved), float(weight.sum())


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole > 0 else 0.0


def _covariances(columns: list[_Column], weights: Vector) -> tuple[Matrix, Matrix]:
    """Return the covariances before and after of the records that are complete on both sides."""
    if not columns:
        return np.zeros((0, 0)), np.zeros((0, 0))
    sides = (np.array([column.before for column in columns]), np.array([column.after for column in columns]))
    complete = ~np.isnan(sides[0] + sides[1]).any(axis=0) & (weights > 0)
    if not complete.any():
        return np.zeros((len(columns), len(columns))), np.zeros((len(columns), len(columns)))
    if not complete.all():
        sides, weights = (sides[0][:, complete], sides[1][:, complete]), weights[complete]
    first, second = (_covariance(side, weights) for side in sides)
    return first, second


def _covariance(Z: Matrix, weights: Vector) -> Matrix:
    # Relative to a record: equal values then have a variance of exactly 0.
    away = Z - Z[:, :1]
    away -= np.average(away, axis=1, weights=weights)[:, None]
    return np.asarray((away * (weights / weights.sum())) @ away.T)


def _correlations(covariance: Matrix) -> Matrix:
    sd = np.sqrt(np.diag(covariance))
    sd = np.where(sd > 0, sd, 1.0)
    return np.asarray(covariance / np.outer(sd, sd))


def _eigenvalues(covariance: Matrix) -> Vector:
    return np.asarray(np.linalg.eigvalsh(covariance)[::-1], dtype=np.float64)


class NominalChange(NamedTuple):
    """Changes in a nominal column.

    Attributes
    ----------
    changed : float
        Share of records whose value has changed; missing counts as a value.
    total_variation : float
        Half the sum of the differences between the shares of the values, before and after: 0 to 1.
    hellinger : float
        Hellinger distance of the two distributions: 0 to 1.
    """

    changed: float
    total_variation: float
    hellinger: float


def nominal_utility(
    before: Mapping[str, ArrayLike], after: Mapping[str, ArrayLike], weights: ArrayLike | None = None
) -> dict[str, NominalChange]:
    """Compare nominal columns before and after; codes or text, of the same type on both sides.

    Parameters
    ----------
    before, after : mapping of str to array_like of shape (n_records,)
        The values. Give missing ones a code of their own; NaN equals NaN here.
    weights : array_like of shape (n_records,), optional
        Weight of each record.

    Returns
    -------
    dict of str to NominalChange
        For each column.

    Raises
    ------
    ParameterError
        If columns or lengths differ, or the weights are invalid.

    Examples
    --------
    >>> nominal_utility({"sex": ["f", "f", "m", "m"]}, {"sex": ["f", "f", "f", "m"]})
    {'sex': NominalChange(changed=0.25, total_variation=0.25, hellinger=0.18459...)}
    """
    if list(before) != list(after):
        raise ParameterError(
            f"The columns before and after must be the same; found {', '.join(map(repr, before))} before and "
            f"{', '.join(map(repr, after))} after."
        )
    pairs = [(name, np.asarray(before[name]), np.asarray(after[name])) for name in before]
    check_lengths(pairs)
    for name, x, y in pairs:
        if "O" in x.dtype.kind + y.dtype.kind:
            raise ParameterError(
                f"Column {name!r} holds Python objects. Pass codes or text, for missing values as well."
            )
    n_records = len(pairs[0][1]) if pairs else 0
    if n_records == 0:
        raise ParameterError("There are no values to compare. Pass at least one column and one record.")
    w = np.ones(n_records) if weights is None else as_weights(weights, n_records)
    return {name: _nominal_change(x, y, w / w.sum()) for name, x, y in pairs}


def _nominal_change(x: NDArray[np.generic], y: NDArray[np.generic], shares: Vector) -> NominalChange:
    both = np.concatenate([x, y])
    codes = (as_classes(both) if both.dtype.kind in "iu" else np.unique(both, return_inverse=True)[1]).reshape(2, -1)
    p, q = (np.bincount(code, shares, codes.max() + 1) for code in codes)
    return NominalChange(
        changed=float(shares[codes[0] != codes[1]].sum()),
        total_variation=float(np.abs(p - q).sum() / 2),
        hellinger=float(np.sqrt(np.square(np.sqrt(p) - np.sqrt(q)).sum() / 2)),
    )
