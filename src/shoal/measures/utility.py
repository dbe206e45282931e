"""Utility: how far the means, variances, correlations and values of the release differ from the original.

All measures are dimensionless, so that columns can be compared; 0 means no change.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.errors import ParameterError
from shoal.kernels.parallel_calls import column_by_column
from shoal.measures.pairs import (
    Columns,
    Pair,
    ScaledMoments,
    as_classes,
    as_pairs,
    as_weights,
    blocks,
    check_lengths,
    covariance,
    moments,
    present,
    total_weight,
    weighted_sum,
)
from shoal.typing import Labels, Matrix, Vector
from shoal.views import Frame, as_frame


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
    w = None if weights is None else as_weights(weights, n_records)
    columns = list(column_by_column(lambda pair: _Column(pair, _unit(pair, w)), pairs, n_records))
    first, second = _spreads([column for column in columns if column.varies and column.is_left], w)
    changed = np.abs(_correlations(second.covariance) - _correlations(first.covariance))
    off = changed[np.triu_indices(len(changed), 1)]
    totals = list(column_by_column(lambda column: _total_il1s(column, w), columns, n_records))
    compared = list(zip(columns, totals, strict=True))
    changes = column_by_column(lambda each: _change(each[0], w, _ratio(*each[1])), compared, n_records)
    return NumericUtility(
        columns={column.pair.name: change for column, change in zip(columns, changes, strict=True)},
        il1s=_ratio(*np.array(totals).sum(axis=0)),
        correlation_max=float(off.max(initial=0.0)),
        correlation_mean=float(off.mean()) if len(off) else 0.0,
        eigenvalues_before=first.eigenvalues,
        eigenvalues_after=second.eigenvalues,
    )


class _Column(NamedTuple):
    """A column, and the moments of its original values; None without any."""

    pair: Pair
    unit: ScaledMoments | None

    @property
    def varies(self) -> bool:
        """Whether the original values differ."""
        return self.unit is not None and self.unit.sd > 0

    @property
    def is_left(self) -> bool:
        """Whether any value is still there."""
        return not np.isnan(self.pair.after).all()


def _unit(pair: Pair, weights: Vector | None) -> ScaledMoments | None:
    (originals,), own = present([pair.before], weights)
    return moments(originals, own) if len(originals) else None


def _change(column: _Column, weights: Vector | None, il1s: float) -> ColumnChange:
    """Compare a column before and after."""
    (before, after), unit = column.pair[1:], column.unit
    there = ~np.isnan(before)
    removed = _ratio(weighted_sum(there & np.isnan(after), weights), weighted_sum(there, weights))
    if unit is None:
        return ColumnChange(0.0, 0.0, il1s, removed)
    (released,), own = present([after], weights)
    if not column.varies:
        # The change has no unit: it is infinite.
        changed = np.inf if unit.moved(released).any() else 0.0
        return ColumnChange(changed, changed, il1s, removed)
    if not len(released):
        return ColumnChange(0.0, -1.0, il1s, removed)
    with np.errstate(over="ignore"):
        now = moments(released, own, like=unit)
    return ColumnChange((now.mean - unit.mean) / unit.sd, (now.sd / unit.sd) ** 2 - 1, il1s, removed)


def _total_il1s(column: _Column, weights: Vector | None) -> tuple[float, float]:
    """Return the weighted sum of the absolute changes, and the sum of the weights of the values compared."""
    (before, after), own = present(column.pair[1:], weights)
    if column.unit is None or not len(before):
        return 0.0, 0.0
    distance = 0.0
    for block in blocks(len(before)):
        moved = np.abs(column.unit.moved(before[block]) - column.unit.moved(after[block]))
        distance += weighted_sum(moved, None if own is None else own[block])
    in_deviations = distance / column.unit.sd / np.sqrt(2) if column.varies else np.inf if distance else 0.0
    return in_deviations, total_weight(before, own)


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole > 0 else 0.0


class _Spread(NamedTuple):
    """The covariances of columns, and their eigenvalues, largest first."""

    covariance: Matrix
    eigenvalues: Vector

    @staticmethod
    def of(columns: Sequence[Vector], units: Sequence[ScaledMoments], weights: Vector | None) -> "_Spread":
        """Measure columns without NaN, in standard deviations of their units."""
        found, n_records = covariance(columns, units, weights), len(columns[0])
        if n_records >= len(columns):
            return _Spread(found, np.asarray(np.linalg.eigvalsh(found)[::-1], dtype=np.float64))
        # An eigenvalue takes cubic time. The products of the records have the same ones, but for zeros.
        shares = np.full(n_records, 1.0 / n_records) if weights is None else weights / weights.sum()
        Z = np.array([unit.deviations(column) for unit, column in zip(units, columns, strict=True)])
        Z -= (Z * shares).sum(axis=1, keepdims=True)
        Z *= np.sqrt(shares)
        values = np.linalg.eigvalsh(Z.T @ Z)[::-1]
        return _Spread(found, np.concatenate([values, np.zeros(len(columns) - n_records)]))


def _spreads(columns: list[_Column], weights: Vector | None) -> tuple[_Spread, _Spread]:
    """Return the spreads before and after of the records that are complete on both sides."""
    n_columns = len(columns)
    before, after = ([getattr(column.pair, side) for column in columns] for side in ("before", "after"))
    both, own = present([*before, *after], weights) if columns else ([np.empty(0)], None)
    if not len(both[0]):
        nothing = _Spread(np.zeros((n_columns, n_columns)), np.zeros(n_columns))
        return nothing, nothing
    units = [column.unit for column in columns if column.unit is not None]
    return _Spread.of(both[:n_columns], units, own), _Spread.of(both[n_columns:], units, own)


def _correlations(covariance: Matrix) -> Matrix:
    sd = np.sqrt(np.diag(covariance))
    sd = np.where(sd > 0, sd, 1.0)
    return np.asarray(covariance / np.outer(sd, sd))


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
    w = None if weights is None else as_weights(weights, n_records)
    changes = column_by_column(lambda pair: _nominal_change(*pair[1:], w), pairs, n_records)
    return {name: change for (name, *_), change in zip(pairs, changes, strict=True)}


def _nominal_change(x: NDArray[np.generic], y: NDArray[np.generic], weights: Vector | None) -> NominalChange:
    both = np.concatenate([x, y])
    codes = (as_classes(both) if both.dtype.kind in "iu" else np.unique(both, return_inverse=True)[1]).reshape(2, -1)
    return coded_change(codes[0], codes[1], weights)


def coded_change(before: Labels, after: Labels, weights: Vector | None) -> NominalChange:
    """Compare codes before and after, which together are numbered from 0 without gaps."""
    total, n_codes = total_weight(before, weights), int(max(before.max(), after.max())) + 1
    p, q = (np.bincount(code, weights, n_codes) / total for code in (before, after))
    return NominalChange(
        changed=weighted_sum(before != after, weights) / total,
        total_variation=float(np.abs(p - q).sum() / 2),
        hellinger=float(np.sqrt(np.square(np.sqrt(p) - np.sqrt(q)).sum() / 2)),
    )


@dataclass(frozen=True, eq=False)
class Utility:
    """Changes in all quasi-identifiers of a release.

    Attributes
    ----------
    numeric : NumericUtility or None
        Changes of numbers and dates; None if there are none.
    nominal : dict of str to NominalChange, or None
        Changes of categories; None if there are none.
    """

    numeric: NumericUtility | None
    nominal: Mapping[str, NominalChange] | None

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain dicts and lists, for a report."""
        return {
            "numeric": self.numeric and self.numeric.to_dict(),
            "nominal": self.nominal and {name: change._asdict() for name, change in self.nominal.items()},
        }

    def to_frame(self) -> Frame:
        """Return a row for each quasi-identifier; a measure that does not apply to it is missing."""
        found = self.to_dict()
        changes = {**(found["numeric"] or {}).get("columns", {}), **(found["nominal"] or {})}
        return as_frame({"column": name, **change} for name, change in changes.items())
