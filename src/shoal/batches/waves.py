"""Waves: what somebody who holds two releases of overlapping people can do, counted from the cells of both.

Two attacks. *Intersection*: who is in the same cell in both waves hides only among those who are in both of these
cells. *Differencing*: where a cell of one wave lies within a cell of the other, their sums differ by those who came or
left; if these are fewer than k, their sum is published, and one alone is published as she is.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.errors import ParameterError
from shoal.typing import Labels

OUT = -1
"""The label of a person who is not in a wave."""


@dataclass(frozen=True)
class Overlap:
    """What two releases tell together.

    Attributes
    ----------
    n_both : int
        People who are in both waves.
    smallest : int
        The fewest people that somebody in both hides among.
    below_k : float
        Share of the people in both who hide among fewer than k.
    alone : float
        Share of them who are the only ones in both of their cells: whatever is published is theirs.
    mean : float
        How many somebody in both hides among, on average.
    n_differenced : int
        People who came or left and whose values, or whose sum with fewer than k others, can be computed.
    n_exposed : int
        Those of them who came or left alone: their very values can be computed.
    """

    n_both: int
    smallest: int
    below_k: float
    alone: float
    mean: float
    n_differenced: int
    n_exposed: int


def intersect(before: ArrayLike, after: ArrayLike, k: int) -> Overlap:
    """Run both attacks on two partitions of the same list of people.

    Parameters
    ----------
    before, after : array_like of shape (n_people,)
        Cell of each person in either wave, -1 for who is not in it.
    k : int
        What both releases promise.

    Returns
    -------
    Overlap

    Notes
    -----
    This is the worst case: an intruder who knows in which cell a person is, and that her values have not changed. Takes
    O(n log n) time in people.

    Examples
    --------
    >>> intersect([0, 0, 1, 1], [0, 1, 0, 1], k=2)
    Overlap(n_both=4, smallest=1, below_k=1.0, alone=1.0, mean=1.0, n_differenced=0, n_exposed=0)
    >>> intersect([0, 0, -1], [0, 0, 0], k=2).n_exposed
    1
    """
    first, second = (np.asarray(labels, dtype=np.int64) for labels in (before, after))
    if first.shape != second.shape or first.ndim != 1:
        raise ParameterError(
            f"before and after must be of the same people; their shapes are {first.shape} and {second.shape}."
        )
    both = (first != OUT) & (second != OUT)
    common = _among(first[both], second[both])
    differenced = np.concatenate([_leftover(first, second), _leftover(second, first)])
    few = differenced[differenced < k]
    return Overlap(
        n_both=int(both.sum()),
        smallest=int(common.min(initial=len(common))),
        below_k=float(np.mean(common < k)) if len(common) else 0.0,
        alone=float(np.mean(common == 1)) if len(common) else 0.0,
        mean=float(common.mean()) if len(common) else 0.0,
        n_differenced=int(few.sum()),
        n_exposed=int((few == 1).sum()),
    )


def _among(first: Labels, second: Labels) -> NDArray[np.int64]:
    """Return with how many people each shares both cells, herself included."""
    if len(first) == 0:
        return np.empty(0, dtype=np.int64)
    pairs = first * (second.max() + 1) + second
    _, which, counts = np.unique(pairs, return_inverse=True, return_counts=True)
    return np.asarray(counts[which])


def _leftover(first: Labels, second: Labels) -> NDArray[np.int64]:
    """Return how many are left of each cell of `second` once the cells of `first` that lie within it are taken out."""
    # A cell of the first wave lies within one of the second if all of its people are there.
    there = first != OUT
    n_cells = int(first.max(initial=-1)) + 1
    low = np.full(n_cells, np.iinfo(np.int64).max)
    high = np.full(n_cells, np.iinfo(np.int64).min)
    np.minimum.at(low, first[there], second[there])
    np.maximum.at(high, first[there], second[there])
    whole = (low == high) & (high != OUT)
    inside = np.zeros(len(first), dtype=bool)
    inside[there] = whole[first[there]]
    sizes = np.bincount(second[second != OUT], minlength=1)
    covered = np.bincount(second[inside & (second != OUT)], minlength=len(sizes))
    touched = (covered > 0) & (covered < sizes)
    return np.asarray((sizes - covered)[touched])
