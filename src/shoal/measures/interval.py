"""Interval disclosure: how often an original value lies within an interval around the released one, by column."""

from typing import NamedTuple

import numpy as np

from shoal import kernels
from shoal.errors import ParameterError
from shoal.measures.pairs import Columns, as_pairs, moments
from shoal.typing import Labels, Vector


class Interval(NamedTuple):
    """Interval disclosure of a column, as shares of its non-missing original values.

    Attributes
    ----------
    by_rank : float
        Share of values with at most `width` of all values strictly between them and the released one.
    by_sd : float
        Share of values at most `width` standard deviations from the released one.
    """

    by_rank: float
    by_sd: float


def interval_disclosure(before: Columns, after: Columns, width: float = 0.1) -> dict[str, Interval]:
    """Return, for each column, how often the original value lies in an interval around the released one.

    Parameters
    ----------
    before, after : mapping of str to array_like, or array_like of shape (n_records, n_columns)
        The original and the released values, in any unit; NaN is a missing value. Columns of a matrix are named by
        their numbers.
    width : float, default 0.1
        Half the width of the interval: as a share of all values on either side, and in standard deviations.

    Returns
    -------
    dict of str to Interval
        The two shares of each column. Missing original values are left out; missing released values count as not
        disclosed. A column without values has shares of 0.

    Raises
    ------
    ParameterError
        If the two have different columns or lengths, or `width` is not a positive number.

    Notes
    -----
    The rank interval holds the values whose ranks differ from that of the released value by at most `width` times the
    number of values. The standard deviation interval is ``y - width * sd`` to ``y + width * sd``, after Domingo-Ferrer,
    Mateo-Sanz and Torra. Ranks are counted among the original values. Ties count as disclosed: a value equal to the
    released one is always inside the interval.

    References
    ----------
    J. M. Mateo-Sanz, F. Sebé, J. Domingo-Ferrer, "Outlier protection in continuous microdata masking", Privacy in
    Statistical Databases, 2004.

    Examples
    --------
    >>> interval_disclosure({"age": [20.0, 30.0, 40.0, 90.0]}, {"age": [25.0, 25.0, 65.0, 65.0]}, width=0.3)
    {'age': Interval(by_rank=1.0, by_sd=0.5)}
    """
    if not (np.isfinite(width) and width > 0):
        raise ParameterError(
            "width must be a positive number: a share of the values, and a number of standard deviations."
        )
    return {
        name: interval_of(x, *np.unique(y, return_inverse=True), width=width) for name, x, y in as_pairs(before, after)
    }


def interval_of(x: Vector, values: Vector, own: Labels, width: float = 0.1) -> Interval:
    """Return the interval disclosure of one column, whose record i is released as ``values[own[i]]``."""
    known = ~np.isnan(x)
    if not known.all():
        x, own = x[known], own[known]
    if len(x) == 0:
        return Interval(0.0, 0.0)
    unit = moments(x)
    intervals = kernels.Intervals(
        *_rank_interval(np.sort(x), values, width), centre=unit.moved(values), reach=width * unit.sd
    )
    between, within_reach = kernels.inside_intervals(x, -unit.exponent, unit.origin, own, intervals)
    return Interval(by_rank=between / len(x), by_sd=within_reach / len(x))


def _rank_interval(ascending: Vector, values: Vector, width: float) -> tuple[Vector, Vector]:
    """Return the ends of the interval of each value: with few enough of the ascending numbers strictly in between."""
    n = len(ascending)
    n_between = int(min(width, 1.0) * n)
    padded = np.concatenate([[-np.inf], ascending, [np.inf]])
    order = np.argsort(values)  # so that successive searches hit the cache
    n_below, n_up_to = (np.searchsorted(ascending, values[order], side) for side in ("left", "right"))
    low, high = np.empty((2, len(values)))
    low[order] = padded[np.maximum(n_below - n_between, 0)]
    high[order] = padded[np.minimum(n_up_to + n_between, n) + 1]
    low[np.isnan(values)] = np.nan  # holds nothing
    return low, high
