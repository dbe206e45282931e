"""Outliers: a few numbers or dates far from all others, such as a year among ages or thousands among amounts."""

import numpy as np
from numpy.typing import NDArray

from shoal.arrays import times_power_of_two
from shoal.columns.schema import Kind
from shoal.findings.column_view import ColumnView
from shoal.findings.finding import HIDDEN, Finding, Remedy

_LEAST_RECORDS = 20
_LEAST_REST = 10  # different values that say what is usual
_FEW, _SHARE = 3, 0.002  # records that may be far from the others
_MANY = 0.5  # of the records: a frequent value that is no code
_GAP = 0.5  # of the range of the others
_TAIL = 2.0  # length of a long tail, in that of the other one: amounts have no usual range

Values = NDArray[np.float64]
Counts = NDArray[np.int64]


def outliers(view: ColumnView) -> Finding | None:
    """Find a few values that a wide gap separates from all others.

    Where the others are spread evenly, the gap is half of their range. Where they have a long tail, as incomes do, it
    is as wide as their range, and half of it on a logarithmic scale; there, numbers far too small are found as well.
    The only few negative numbers count, too.
    """
    if len(view.numbers) < _LEAST_RECORDS:
        return None
    values, counts = view.different
    # Below 1/2, so that no difference overflows.
    scaled = times_power_of_two(values, -1 - np.frexp(np.abs(values).max())[1])
    above = values[len(values) - _n_beyond(scaled, counts) :]
    below = values[: _n_beyond(-scaled[::-1], counts[::-1]) or _n_vanishing(scaled, counts)]
    negative = values[: _n_negative(scaled, counts)]
    sides = {"far above all others": above, "far below all others": below}
    if len(negative) > len(below):
        sides["far below all others"], sides["below 0, which no other is"] = values[:0], negative
        below = negative
    told = {side: int(counts[np.isin(values, those)].sum()) for side, those in sides.items()}
    n_apart = sum(told.values())
    if not n_apart:
        return None
    codes = [*below, *above] if view.show_values and view.kind is Kind.NUMERIC else [HIDDEN] * (len(below) + len(above))
    return Finding(
        "outliers",
        view.name,
        f"{n_apart:,} of {view.n_records:,} records lie apart: "
        + " and ".join(f"{n:,} {side}" for side, n in told.items() if n),
        "It may be a mistake or another unit, and moves the mean of its cell. A record far from all others is also the "
        "hardest to protect",
        (
            Remedy("column", view.name, {"missing_codes": [int(v) if v == int(v) else float(v) for v in codes]})
            if HIDDEN not in codes
            else Remedy("column", view.name, {"missing_codes": codes}),
            Remedy("accept", view.name, {"accept": [f"{view.name}=outliers"]}),
        ),
    )


def _n_beyond(values: Values, counts: Counts) -> int:
    """Return how many of the largest values are far above the others."""
    most = max(_FEW, _SHARE * counts.sum())
    n_records = 0
    for n_values in range(1, len(values) - _LEAST_REST + 1):
        n_records += int(counts[-n_values])
        # One value may be frequent, as a code is.
        if n_records > (most if n_values > 1 else _MANY * counts.sum()):
            return 0
        rest, first = values[:-n_values], values[-n_values]
        gap, spread = first - rest[-1], np.ptp(rest)
        if gap <= _GAP * spread:
            continue
        if not _has_tail(rest, counts[:-n_values]) or (gap > spread and _is_far_in_decades(rest, first)):
            return n_values
    return 0


def _n_vanishing(values: Values, counts: Counts) -> int:
    """Return how many of the smallest positive numbers are decades below the others."""
    if values[0] <= 0 or len(values) <= _LEAST_REST:
        return 0
    logs = np.log(values)
    is_far = logs[1] - logs[0] > np.ptp(logs[1:]) and logs[1] - logs[0] > np.log(10)
    return int(is_far and counts[0] <= max(_FEW, _SHARE * counts.sum()))


def _n_negative(values: Values, counts: Counts) -> int:
    """Return how many of the smallest values are negative, if these are few, and the others are no amounts."""
    n_negative = int(np.count_nonzero(values < 0))
    rest, often = values[n_negative:], counts[n_negative:]
    is_few = counts[:n_negative].sum() <= max(_FEW, _SHARE * counts.sum()) and len(rest) >= _LEAST_REST
    return n_negative if is_few and not _has_tail(rest, often) else 0


def _has_tail(values: Values, counts: Counts) -> bool:
    """Return whether the upper half of the records is spread much more widely than the lower one."""
    below = np.cumsum(counts)
    low, middle, high = (values[np.searchsorted(below, share * below[-1])] for share in (0.05, 0.5, 0.95))
    return bool(high - middle > _TAIL * (middle - low))


def _is_far_in_decades(rest: Values, first: float) -> bool:
    """Return whether a value is far above the positive ones of the others on a logarithmic scale."""
    positive = rest[rest > 0]
    if not len(positive):
        return True
    return bool(np.log(first / positive[-1]) > _GAP * np.log(positive[-1] / positive[0]))
