"""Bound: the loss that no partition into cells of at least k records can go below.

It shows how far a heuristic may be from the optimum. ``docs/bound.md`` has the theorems, proofs and results.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal import kernels
from shoal.arrays import as_cell_size, as_matrix, check_seed
from shoal.errors import ParameterError
from shoal.measures.bound.relaxation import relaxed_bound
from shoal.measures.loss import Loss
from shoal.typing import BoundEffort, Matrix, Progress, Seed

EFFORTS = get_args(BoundEffort)
"""The efforts of `lower_bound`."""

_EPS = float(np.finfo(np.float64).eps)
# Squared distances this small, where the widest column has width 1, may have lost digits; they count as 0.
_VANISHING = 1e-280
# Maximum number of pairs that the strong bound starts from.
_MOST_PAIRS = 4_000_000


@dataclass(frozen=True)
class Bound:
    """A lower bound on the loss of every partition into cells of at least k records.

    Attributes
    ----------
    sse : float
        No partition has a smaller sum of squared distances to the means of its cells.
    il : float
        The same as information loss, SSE / SST; 0 if all records are the same.
    method : str
        What proved it: ``nearest`` (the cheap bound), ``relaxation`` (the strong one) or ``one cell`` (fewer than 2k
        records have one partition only, and the bound is its loss).
    """

    sse: float
    il: float
    method: str

    def gap(self, loss: Loss) -> float:
        """Return how much of a partition's loss might be avoidable, at most, as a share of that loss.

        Parameters
        ----------
        loss : Loss
            The result of `shoal.measures.loss` on the same matrix, for a partition with cells of at least k.

        Returns
        -------
        float
            (loss - bound) / loss, and 0 for a loss of 0. At 0 the partition is optimal.

        Raises
        ------
        ParameterError
            If the loss is below the bound: another matrix, or cells of fewer than k records.

        Examples
        --------
        >>> from shoal.measures import loss
        >>> X = [[1.0], [2.0], [8.0], [9.0]]
        >>> round(lower_bound(X, k=2).gap(loss(X, [0, 0, 1, 1])), 6)
        0.0
        """
        if loss.il < self.il * (1 - 1e-9):
            raise ParameterError(
                f"The loss of {loss.il:.6g} is below the bound of {self.il:.6g}. Measure both on the same matrix, "
                "and the loss of a partition whose cells have at least the k of the bound."
            )
        return max(0.0, 1 - self.il / loss.il) if loss.il > 0 else 0.0


def lower_bound(
    X: ArrayLike,
    k: int,
    *,
    effort: BoundEffort = "cheap",
    seconds: float = 60.0,
    seed: Seed = None,
    progress: Progress | None = None,
) -> Bound:
    """Bound from below the loss of every partition into cells of at least `k` records.

    Parameters
    ----------
    X : array_like of shape (n_records, n_dims)
        Records in the space: finite numbers, already scaled and weighted, without steering columns.
    k : int
        Smallest cell size, at least 2 and at most n_records.
    effort : {"cheap", "strong"}
        ``cheap`` adds up the distances to the k-1 nearest records and is meant for any number of records. ``strong``
        solves a linear program with cuts, for some thousands of records and k of up to some tens; it is never below
        ``cheap``, and needs SciPy (the extra `bound`).
    seconds : float
        Time limit of ``strong``; the current round is finished. It ends earlier if the bound no longer improves.
    seed : int, optional
        Always accepted; there is nothing random in it.
    progress : callable, optional
        Called at intervals: as ``progress(records_done, n_records)`` by ``cheap``, and by ``strong`` then
        as ``progress(seconds_spent, seconds)``. An exception it raises ends the work.

    Returns
    -------
    Bound
        The bound as SSE and as IL, and what proved it.

    Raises
    ------
    ParameterError
        If the matrix, `k`, the effort, the time or the seed cannot be used, or SciPy is needed and missing.
    GuaranteeError
        If there are fewer than `k` records.

    Notes
    -----
    Valid for unweighted SSE with means as representatives, measured on `X` itself.

    ``cheap`` takes one exact nearest-k query for each record and no memory beyond a copy of the matrix. A round of
    ``strong`` takes O(n**2) time in records, for the distances, and memory for the near pairs and a block of distances.

    Rounding is on the safe side throughout: the number returned is a bound as it stands, not up to a tolerance. How
    far ``strong`` gets in the time given depends on the machine.

    Examples
    --------
    Three corners of a triangle of side 1, and three more far away: nothing beats two cells with an SSE of 1 each.

    >>> X = [[0, 0], [1, 0], [0.5, 0.75**0.5], [90, 0], [91, 0], [90.5, 0.75**0.5]]
    >>> bound = lower_bound(X, k=3)
    >>> round(bound.sse, 9), bound.method
    (2.0, 'nearest')
    """
    matrix = as_matrix(X)
    k = as_cell_size(k, len(matrix))
    _check(effort, seconds, seed, progress)
    scaled = _scaled(matrix)
    if scaled.X.shape[1] == 0:
        return Bound(0.0, 0.0, "one cell" if len(matrix) < 2 * k else "nearest")
    if len(matrix) < 2 * k:
        return _as_bound(_total(scaled.X) * (1 - _total_margin(len(matrix))), scaled, "one cell")
    cheap = _as_bound(_nearest_bound(scaled.X, k, progress), scaled, "nearest")
    if effort == "cheap":
        return cheap
    strong = _as_bound(_strong_bound(scaled.X, k, seconds, progress), scaled, "relaxation")
    return strong if strong.il > cheap.il else cheap


def _check(effort: str, seconds: float, seed: Seed, progress: Progress | None) -> None:
    """Refuse options that cannot be used."""
    if effort not in EFFORTS:
        raise ParameterError(f"Unknown effort {effort!r}. Efforts: {', '.join(EFFORTS)}.")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        raise ParameterError(f"seconds must be a number from 0 on; got {seconds!r}.")
    check_seed(seed)
    if progress is not None and not callable(progress):
        raise ParameterError(f"progress must be callable or None, not {type(progress).__name__}.")


class _Scaled(NamedTuple):
    """A matrix without constant columns, scaled to a widest column of about 1; times 2**exponent it is the original."""

    X: Matrix
    exponent: int


def _scaled(X: Matrix) -> _Scaled:
    """Scale by a power of two, which is exact, so that squares neither overflow nor underflow."""
    low, high = X.min(axis=0), X.max(axis=0)
    with np.errstate(over="ignore"):
        widest = np.minimum((high - low).max(), np.finfo(np.float64).max)
    exponent = int(np.frexp(widest)[1])
    return _Scaled(np.ldexp(np.ascontiguousarray(X[:, high > low]), -exponent), exponent)


def _as_bound(sse: float, scaled: _Scaled, method: str) -> Bound:
    """Return an SSE of the scaled matrix as an SSE of the original, rounded down."""
    if sse < _VANISHING:
        return Bound(0.0, 0.0, method)
    with np.errstate(over="ignore", under="ignore"):
        original = float(np.nextafter(np.ldexp(sse, 2 * scaled.exponent), 0.0))
    return Bound(original, sse / (_total(scaled.X) * (1 + _total_margin(len(scaled.X)))), method)


def _total(X: Matrix) -> float:
    """Return SST, up to a relative error below `_total_margin`."""
    # Relative to one record, as in `shoal.measures.loss`: leading digits that all records share cancel first.
    centered = X - X[0]
    centered -= centered.mean(axis=0)
    return math.fsum(np.square(centered).ravel())


def _total_margin(n_records: int) -> float:
    """Bound the relative error of `_total`: that of the differences from the first record, plus a margin."""
    return (16 + 4 * math.sqrt(n_records)) * _EPS


def _nearest_bound(X: Matrix, k: int, progress: Progress | None) -> float:
    """Add up, over the records, the sum of the k-1 smallest squared distances over 2k, rounded down."""
    # The record itself, or one equal to it, is the first of the k nearest, at distance 0.
    sums = [float(squared.sum()) for _, squared in _nearest(X, k, progress)]
    n_roundings: int = X.shape[1] + k + 8
    return math.fsum(sums) / (2 * k) * (1 - n_roundings * _EPS)


def _strong_bound(X: Matrix, k: int, seconds: float, progress: Progress | None) -> float:
    """Solve the relaxation, starting from the near pairs."""
    n_near = min(len(X), 2 * k + 4, max(k, _MOST_PAIRS // len(X)))
    records, squared = (np.array(column) for column in zip(*_nearest(X, n_near, None), strict=True))
    if not squared.any():
        return 0.0  # every record occurs k times

    def report(spent: float) -> None:
        if progress is not None:
            progress(min(int(spent), math.ceil(seconds)), math.ceil(seconds))

    return relaxed_bound(X, k, (records, squared), seconds, report)


def _nearest(
    X: Matrix, n_near: int, progress: Progress | None
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Yield for each record its nearest records and their squared distances, tiny ones as 0."""
    # One thread: a query is shorter than the start of a second thread.
    with kernels.using(threads=1):
        remaining = kernels.Remaining(X)
    for record, x in enumerate(X):
        if progress is not None and record % 4096 == 0:
            progress(record, len(X))
        records, squared = remaining.nearest(x, n_near)
        yield records, np.where(squared < _VANISHING, 0.0, squared)
    if progress is not None:
        progress(len(X), len(X))
