"""The paper's claims about figure 3 and proposition 2, checked here."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from papers.claims import Claim, untested

K = 10
PRINTED = {0.0: (80, 25.0), 0.02: (12, 0.7)}
"""Reordering in the paper's text, largest and mean, by weight."""

Points = Mapping[float, Any]


def claims(content: Mapping[str, Any]) -> list[Claim]:
    """Check the claims of sections V and VI about streams on a result file."""
    points = {point.weight: point for point in content["figure_3"]}
    return [
        *(_reordering(points, weight, *said) for weight, said in PRINTED.items()),
        _most_effect(points),
        _steep(points),
        *_threshold(content["proposition_2"]),
    ]


def least_mean_difference(k: int) -> float:
    """Return the least mean difference between the positions of two tuples of a cell: that of k in a row."""
    return (k + 1) / 3


def _reordering(points: Points, weight: float, largest: int, mean: float) -> Claim:
    says = f"weight {weight:g}: reordering of at most {largest} and {mean:g} on average"
    point = points.get(weight)
    if point is None:
        return untested("figure 3", says)
    text = (
        f"within cells, as section VI-B defines it: at most {point.spread_max}, {point.difference_mean:.1f} on "
        f"average between two tuples, {point.spread_mean:.1f} between first and last; ranks moved: at most "
        f"{point.displacement_max}, {point.displacement_mean:.1f} on average"
    )
    within = _near(point.spread_max, largest) and _near(point.difference_mean, mean)
    moved = _near(point.displacement_max, largest) and _near(point.displacement_mean, mean)
    why = ""
    if mean < least_mean_difference(K):
        why = (
            f"{mean:g} cannot be a mean of position differences within cells of {K}: tuples in a row already differ by "
            f"{least_mean_difference(K):.2f} on average, and first and last by {K - 1}"
        )
    elif moved and not within:
        why = "these are ranks moved; section VI-B defines differences within a cell, which are larger"
    return Claim("figure 3", says, text, within or moved, why)


def _near(ours: float, printed: float) -> bool:
    return abs(ours - printed) <= max(0.1 * printed, 0.05)


def _most_effect(points: Points) -> Claim:
    says = "the most significant effect of the weight is in [0, 0.02]"
    if not {0.0, 0.02} <= set(points):
        return untested("figure 3", says)
    start, end = points[0.0].displacement_mean, min(p.displacement_mean for p in points.values())
    share = (start - points[0.02].displacement_mean) / (start - end)
    return Claim("figure 3", says, f"{share:.0%} of the fall of the mean displacement is in that range", share > 0.5)


def _steep(points: Points) -> Claim:
    says = "from weight 0 to 0.02 MSE and MAE rise steeply"
    if not {0.0, 0.02} <= set(points):
        return untested("figure 3", says)
    ratios = {what: getattr(points[0.02], what) / getattr(points[0.0], what) for what in ("mse", "mae")}
    text = ", ".join(f"{what.upper()} {ratio:.1f} times" for what, ratio in ratios.items())
    return Claim("figure 3", says, text, min(ratios.values()) > 1.5)


def _threshold(lines: Sequence[Any]) -> list[Claim]:
    apart = max(abs(line.found - line.proved) for line in lines)
    cases = ", ".join(f"k={line.k} m={line.m}" for line in lines)
    return [
        Claim(
            "proposition 2",
            "no reordering above (k - 1) sqrt(m / (2k - 1)), positions scaled to [0, weight]",
            f"adversarial streams move tuples at every weight below and at none above, to {apart:.0e} ({cases})",
            bool(apart < 1e-6),
        )
    ]


def mean_difference(cells: np.ndarray[Any, Any]) -> float:
    """Return the mean difference between the positions of two tuples of the same cell.

    Examples
    --------
    >>> mean_difference(np.array([0, 0, 0, 1, 1]))
    1.25
    """
    total = n_pairs = 0
    for cell in np.unique(cells):
        positions = np.flatnonzero(cells == cell)
        size = len(positions)
        # The i-th of them is the later one in i pairs and the earlier one in size - 1 - i.
        total += int((positions * (2 * np.arange(size) - size + 1)).sum())
        n_pairs += size * (size - 1) // 2
    return total / n_pairs
