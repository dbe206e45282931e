"""Totals: post-processing of noisy numbers. It uses published numbers only, so it costs no epsilon."""

import numpy as np
from numpy.typing import NDArray

from shoal.typing import Labels, Vector


def to_total(noisy: NDArray[np.int64], total: int) -> Labels:
    """Return non-negative whole numbers with the given sum, nearly proportional to the noisy ones.

    Examples
    --------
    >>> to_total(np.array([12, -3, 4]), 8)
    array([6, 0, 2])
    """
    shares = np.maximum(noisy, 0).astype(np.float64)
    shares = shares / shares.sum() if shares.any() else np.full(len(noisy), 1 / len(noisy))
    exact = shares * total
    counts = np.floor(exact).astype(np.int64)
    missing = total - int(counts.sum())
    counts[np.argsort(counts - exact, kind="stable")[:missing]] += 1
    return counts


def ascending(values: Vector, weights: Vector) -> Vector:
    """Return the nearest ascending sequence (isotonic regression): neighbours out of order get their weighted mean.

    Examples
    --------
    >>> ascending(np.array([1.0, 4.0, 2.0, 9.0]), np.ones(4))
    array([1., 3., 3., 9.])
    """
    runs: list[tuple[float, float, int]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        run = (value, weight, 1)
        while runs and runs[-1][0] >= run[0]:
            before = runs.pop()
            both = before[1] + run[1]
            run = ((before[0] * before[1] + run[0] * run[1]) / both, both, before[2] + run[2])
        runs.append(run)
    return np.repeat([run[0] for run in runs], [run[2] for run in runs])
