"""Interval disclosure: how often an original value lies within an interval around the released one, by column."""

from typing import NamedTuple

import numpy as np

from shoal.arrays import times_power_of_two
from shoal.errors import ParameterError
from shoal.metrics.pairs import Columns, as_pairs, moments, those
from shoal.typing import Vector

_IN_CACHE = 1 << 15
"""Number of values that searches in any order find in the cache."""


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
    return {name: _interval(x, y, width) for name, x, y in as_pairs(before, after)}


def _interval(x: Vector, y: Vector, width: float) -> Interval:
    x, y = those(~np.isnan(x), x, y)
    if len(x) == 0:
        return Interval(0.0, 0.0)
    spread = moments(x)
    # A search among the distinct values, which are often few and fit the cache.
    distinct, counts = np.unique(x, return_counts=True)
    if len(distinct) > _IN_CACHE:
        # In ascending order, so that successive searches hit the cache.
        order = np.argsort(x)
        x, y = x[order], y[order]
    n_below = np.concatenate([[0], np.cumsum(counts)])
    low, high = np.fmin(x, y), np.fmax(x, y)
    between = n_below[np.searchsorted(distinct, high, "left")] - n_below[np.searchsorted(distinct, low, "right")]
    released = ~np.isnan(y)
    apart = np.abs(times_power_of_two(x, -spread.exponent) - times_power_of_two(y, -spread.exponent))
    return Interval(
        by_rank=float(np.mean(released & (between <= width * len(x)))),
        by_sd=float(np.mean(released & (apart <= width * spread.sd))),
    )
