"""Binning: the bins of a histogram, none of them with fewer than k records.

The grid comes from the released values alone: round numbers between the k-th smallest and the k-th largest of them, so
that no extreme value is shown. Where the original has fewer than k records in a bin, the bin joins its neighbour.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.output.report.formatting import tick
from shoal.typing import Vector

Counts = NDArray[np.int64]

MOST_BINS = 24
"""Approximate number of bins before some of them are joined."""

_MOST_DECADES = 7
_CALENDAR = (("s", (1, 5, 15, 30)), ("m", (1, 5, 15, 30)), ("h", (1, 3, 6, 12)), ("D", (1, 7)), ("M", (1, 3, 6)))
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "D": 86400, "M": 2629746, "Y": 31556952}


@dataclass(frozen=True)
class BinGrid:
    """Edges of bins that are drawn equally wide, and their labels.

    Attributes
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Ascending; values beyond the ends belong to the first or the last bin.
    labels : tuple of str
        The label of each edge.
    scale : {"linear", "whole", "log", "date"}
        Whether bins are equally wide in the values too; whole numbers begin half a step before their labels.
    """

    edges: Vector
    labels: tuple[str, ...]
    scale: str

    def counts(self, values: Vector) -> Counts:
        """Count ascending values in each bin, those beyond the ends in the end bins; shape (n_bins,)."""
        below = np.searchsorted(values, self.edges[1:-1], side="left")
        return np.diff(below, prepend=0, append=len(values))


def number_grid(values: Vector, k: int, whole: bool) -> BinGrid | None:
    """Return a grid of round numbers for released values, or None if there is nothing to draw.

    Parameters
    ----------
    values : ndarray of shape (n_values,)
        Released values, ascending, none missing.
    k : int
        The ends lie around the k-th smallest and the k-th largest value.
    whole : bool
        Whether the original holds whole numbers: then edges lie half-way between them.

    Examples
    --------
    >>> number_grid(np.arange(100.0), k=5, whole=False).labels[:3]
    ('0', '5', '10')
    """
    ends = _ends(values, k)
    if ends is None:
        return None
    grid = _linear(*ends, whole)
    if grid is None:
        return None
    counts = grid.counts(values)
    # Nearly everything in two neighbouring bins of many: a linear histogram would show nothing else.
    if len(counts) > 8 and (counts[1:] + counts[:-1]).max() > 0.85 * counts.sum():
        return _logarithmic(values, *ends, whole) or grid
    return grid


def _ends(values: Vector, k: int) -> tuple[float, float] | None:
    """Return the k-th smallest and the k-th largest value, unless there are too few or they are the same."""
    if len(values) < 2 * k:
        return None
    low, high = float(values[k - 1]), float(values[len(values) - k])
    return (low, high) if low < high and np.isfinite(high - low) else None


def _linear(low: float, high: float, whole: bool) -> BinGrid | None:
    step = round_step((high - low) / MOST_BINS, whole)
    first, last = np.floor(low / step), np.floor(high / step) + 1
    if not last - first <= 4 * MOST_BINS or last <= first:  # steps too fine for the magnitude of the numbers
        return None
    marks = np.arange(first, last + 1) * step
    edges = marks - 0.5 if whole else marks
    if not (np.diff(edges) > 0).all():
        return None
    return BinGrid(edges, tuple(map(tick, marks)), "whole" if whole else "linear")


def round_step(least: float, whole: bool = False) -> float:
    """Return the smallest of 1, 2, 2.5 and 5 times a power of ten that is at least this.

    Examples
    --------
    >>> round_step(3.2), round_step(0.021), round_step(0.3, whole=True), round_step(2.2, whole=True)
    (5.0, 0.025, 1.0, 5.0)
    """
    if whole and least <= 1:
        return 1.0
    power = 10.0 ** np.floor(np.log10(least))
    factors = (1, 2, 5, 10) if whole and power < 10 else (1, 2, 2.5, 5, 10)
    # Near the smallest float64 numbers, powers of ten are 0 or far apart.
    return float(next((factor * power for factor in factors if factor * power >= least * (1 - 1e-12)), least))


def _logarithmic(values: Vector, low: float, high: float, whole: bool) -> BinGrid | None:
    """Return edges at 1, 2, 5, 10, 20, ... on either side of zero as far as the values go."""
    sizes = np.abs(values[values != 0])
    top = max(abs(low), abs(high))
    # A tenth of the values may lie below the first edge, so that very small ones take no bins.
    start = 10.0 ** np.floor(np.log10(max(float(np.quantile(sizes, 0.1)), top / 10**_MOST_DECADES)))
    n_decades = int(np.ceil(np.log10(top / start))) + 1
    mantissas = (1, 2, 5) if n_decades > 3 else (1, 1.5, 2, 3, 4, 5, 7)
    marks = np.array([m * start * 10.0**j for j in range(n_decades) for m in mantissas])
    marks = np.unique(np.round(marks)) if whole else marks
    right = marks[: np.searchsorted(marks, high, side="right") + 1] if high > 0 else marks[:0]
    left = -marks[: np.searchsorted(marks, -low, side="right") + 1][::-1] if low < 0 else marks[:0]
    both = np.concatenate([left, [0.0], right])
    if len(both) < 4:
        return None
    return BinGrid(both - 0.5 if whole else both, tuple(map(tick, both)), "log")


def date_grid(seconds: Vector, k: int) -> BinGrid | None:
    """Return a grid of calendar steps for released moments, in ascending seconds since 1970, or None.

    Examples
    --------
    >>> date_grid(np.arange(0, 3e8, 86400.0), k=5).labels[:3]
    ('1970-01', '1970-07', '1971-01')
    """
    ends = _ends(seconds, k)
    if ends is None:
        return None
    unit, step = _calendar_step((ends[1] - ends[0]) / MOST_BINS)
    try:
        low, high = (np.datetime64(int(np.floor(end)), "s").astype(f"datetime64[{unit}]").astype(int) for end in ends)
        marks = np.arange(low // step * step, high // step * step + 2 * step, step).astype(f"datetime64[{unit}]")
        edges = marks.astype("datetime64[s]").astype(np.float64)
    except (OverflowError, ValueError):
        return None
    if not (np.diff(edges) > 0).all():
        return None
    return BinGrid(edges, tuple(str(mark).replace("T", " ") for mark in marks), "date")


def _calendar_step(least: float) -> tuple[str, int]:
    """Return the shortest step of a clock or calendar of at least this number of seconds."""
    for unit, steps in _CALENDAR:
        for step in steps:
            if step * _UNIT_SECONDS[unit] >= least:
                return unit, step
    return "Y", int(round_step(least / _UNIT_SECONDS["Y"], whole=True))


@dataclass(frozen=True)
class Histogram:
    """Counts in bins of a grid that hold at least k records each, on every side.

    Attributes
    ----------
    grid : BinGrid
        Where the edges may be.
    starts : ndarray of shape (n_bins + 1,)
        Indices of the grid edges at which bins begin; the last one is where they end.
    sides : dict of str to ndarray of shape (n_bins,)
        Records in each bin, before and after or after alone.
    """

    grid: BinGrid
    starts: Counts
    sides: dict[str, Counts]

    def to_dict(self) -> dict[str, Any]:
        """Return the histogram as plain values, for JSON."""
        labels = [self.grid.labels[place] for place in self.starts]
        return {
            "figure": "histogram",
            "scale": self.grid.scale,
            "bins": [
                {
                    "from": low,
                    "to": high,
                    "units": int(width),
                    **{side: int(counts[i]) for side, counts in self.sides.items()},
                }
                for i, (low, high, width) in enumerate(zip(labels[:-1], labels[1:], np.diff(self.starts), strict=True))
            ],
        }


def joined(grid: BinGrid, sides: dict[str, Vector], k: int) -> Histogram | None:
    """Count values in the bins of a grid, and join neighbours until each bin holds k records on every side.

    Parameters
    ----------
    grid : BinGrid
        From released values.
    sides : dict of str to ndarray of shape (n_values,)
        Values before and after, or after alone; ascending.
    k : int
        Minimum number of records in each bin.

    Returns
    -------
    Histogram or None
        None if fewer than two bins are left: one bin shows nothing.

    Examples
    --------
    >>> grid = BinGrid(np.arange(5.0), ("0", "1", "2", "3", "4"), "linear")
    >>> result = joined(grid, {"after": np.array([0, 0, 1, 2, 3, 9.0])}, k=2)
    >>> result.starts, result.sides["after"]
    (array([0, 1, 3, 4]), array([2, 2, 2]))
    """
    counts = np.array([grid.counts(values) for values in sides.values()])
    starts, held = [0], np.zeros(len(counts), dtype=np.int64)
    for place in range(counts.shape[1]):
        held = held + counts[:, place]
        if (held >= k).all():
            starts.append(place + 1)
            held = np.zeros_like(held)
    # The rest joins the last bin with k records.
    starts[-1] = counts.shape[1]
    if len(starts) < 3:
        return None
    sums = np.add.reduceat(counts, starts[:-1], axis=1)
    return Histogram(grid, np.array(starts), dict(zip(sides, sums, strict=True)))
