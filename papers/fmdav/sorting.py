"""Sorting against selecting: the time to find the k smallest of n numbers (figures 9 and 10 of the F-MDAV paper).

The paper times Matlab's ``sort``, ``mink`` and ``min``; here they are NumPy's ``argsort``, ``argpartition`` with a sort
of the k it finds, and ``argmin``. Like MDAV, all of them return positions.
"""

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from papers.tables import crossed

Reals = NDArray[np.float64]
Positions = NDArray[np.intp]

CELL_SIZES = (5, 10, 20, 50)


class Timing(NamedTuple):
    """Mean time of one way to find the smallest of `n` numbers."""

    method: str
    n: int
    seconds: float
    variation: float
    """Standard deviation of the repetitions divided by their mean."""


def ways_to_find_smallest() -> dict[str, tuple[int, Callable[[Reals], Any]]]:
    """Return each way with the minimum length of list: full sorts, selections of k in order, the minimum."""
    return {
        "sort": (1, lambda values: np.argsort(values)[:50]),
        "stable sort": (1, lambda values: np.argsort(values, kind="stable")[:50]),
        **{f"select k={k}": (k, partial(_select_in_order, k=k)) for k in CELL_SIZES},
        "min": (1, np.argmin),
    }


def _select_in_order(values: Reals, k: int) -> Positions:
    smallest = np.argpartition(values, k - 1)[:k]
    return smallest[np.argsort(values[smallest])]


def compare_sorting(n: int, seed: int = 0, seconds: float = 0.03) -> list[Timing]:
    """Time each way on lists of `n` random numbers, a new list in every repetition.

    Parameters
    ----------
    n : int
        Length of the lists.
    seed : int
        Repeats the lists.
    seconds : float
        Time for which a measurement is repeated, at least five times.

    Returns
    -------
    timings : list of Timing
        One for each of `ways_to_find_smallest` that `n` is long enough for.
    """
    rng = np.random.default_rng([seed, n])
    return [
        _time_finding(method, find, n, rng, seconds)
        for method, (shortest, find) in ways_to_find_smallest().items()
        if n >= shortest
    ]


def list_lengths(longest: int) -> list[int]:
    """Return 10, 30, 100, 300 and so on up to `longest`."""
    steps = (digit * 10**power for power in range(1, 12) for digit in (1, 3))
    return [n for n in steps if n <= longest]


def _time_finding(
    method: str, find: Callable[[Reals], Any], n: int, rng: np.random.Generator, seconds: float
) -> Timing:
    find(rng.random(n))  # the first call includes loading code and memory
    times: list[float] = []
    while len(times) < 5 or (sum(times) < seconds and len(times) < 1000):
        values = rng.random(n)
        start = perf_counter()
        find(values)
        times.append(perf_counter() - start)
    return Timing(method, n, float(np.mean(times)), float(np.std(times) / np.mean(times)))


def sorting_table(timings: Sequence[Timing]) -> str:
    """Format the sorting test as text: one line per length of list."""
    points = [(f"{timing.n:,}", timing.method, timing.seconds / timing.n * 1e9) for timing in timings]
    return crossed("n", points, ">12.1f", "ns per number")
