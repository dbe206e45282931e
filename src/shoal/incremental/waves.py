"""Waves: attacks by an intruder who holds two releases of overlapping people, evaluated on the cells of both.

Two attacks. *Intersection*: a person in both waves is protected only by the people who share both of her cells.
*Differencing*: where a cell of one wave is contained in a cell of the other, their sums differ by the people who joined
or left; if these are fewer than k, their sum is disclosed, and a single person's values are disclosed exactly.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.errors import ParameterError
from shoal.typing import Labels

OUT = -1
"""Label of a person who is not in a wave."""


@dataclass(frozen=True)
class Overlap:
    """Disclosure from two releases combined.

    Attributes
    ----------
    n_both : int
        Number of people in both waves.
    smallest : int
        Size of the smallest intersection of two cells, for people in both waves.
    below_k : float
        Share of the people in both waves whose intersection has fewer than k people.
    alone : float
        Share of the people in both waves who are alone in their intersection.
    mean : float
        Mean intersection size over the people in both waves.
    n_differenced : int
        Number of people who joined or left in groups of fewer than k, whose values or sum can be computed.
    n_exposed : int
        Number of those who joined or left alone, so that their exact values can be computed.
    """

    n_both: int
    smallest: int
    below_k: float
    alone: float
    mean: float
    n_differenced: int
    n_exposed: int


def intersect(before: ArrayLike, after: ArrayLike, k: int) -> Overlap:
    """Evaluate both attacks on two partitions of the same list of people.

    Parameters
    ----------
    before, after : array_like of shape (n_people,)
        Cell of each person in each wave, -1 if the person is not in it.
    k : int
        The k of both releases.

    Returns
    -------
    Overlap

    Notes
    -----
    This is the worst case: the intruder knows each person's cell, and that her values have not changed. Takes
    O(n log n) time for n people.

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
            f"before and after must cover the same people; their shapes are {first.shape} and {second.shape}."
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
    """Return the number of people with whom each shares both cells, herself included."""
    if len(first) == 0:
        return np.empty(0, dtype=np.int64)
    pairs = first * (second.max() + 1) + second
    _, which, counts = np.unique(pairs, return_inverse=True, return_counts=True)
    return np.asarray(counts[which])


def _leftover(first: Labels, second: Labels) -> NDArray[np.int64]:
    """Return how many people remain of each cell of `second` after removing the cells of `first` contained in it."""
    # A cell of the first wave is contained in a cell of the second if all of its people are in that cell.
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
