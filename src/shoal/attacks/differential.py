"""Differential attack: an intruder knows all records of a cell but one, and recovers the last one.

If the mean of the cell is published this is arithmetic: size times mean, minus the sum of the known records. Random
aggregation is meant to prevent it. The intruder here also knows rho, which is public, and the distribution of each
column, and weights every possible value of the last record by the likelihood of the release.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.arrays import times_power_of_two
from shoal.typing import Labels, Matrix, Seed, Vector

WITHIN = 0.05
"""A value counts as recovered if the error is at most this many standard deviations of its column."""

_N_GUESSES = 401


class Differential(NamedTuple):
    """What an intruder who knows all records of a cell but one learns.

    Attributes
    ----------
    recovered : float
        Share of the values of the last record that are recovered.
    rmse : float
        Root mean square error of the guesses, in standard deviations of the column.
    blind : float
        Share that the same intruder recovers without the release, guessing the possible value nearest to the mean of
        the known records.
    blind_rmse : float
        Root mean square error of these guesses.
    n_tried : int
        Number of records tried.
    """

    recovered: float
    rmse: float
    blind: float
    blind_rmse: float
    n_tried: int

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, for a report."""
        return self._asdict()


def differential(
    X: Matrix, Y: Matrix, labels: Labels, rho: float = 0.0, *, most: int = 1000, seed: Seed = None
) -> Differential:
    """Recover the last record of a cell from the others and from the published values.

    Parameters
    ----------
    X : ndarray of shape (n_records, n_columns)
        Original numbers.
    Y : ndarray of shape (n_records, n_columns)
        Published numbers.
    labels : ndarray of shape (n_records,)
        Cell number of each record.
    rho : float
        As in the job; 0 for microaggregation.
    most : int
        Maximum number of records tried, drawn at random if there are more.
    seed : int, optional
        Makes the draw reproducible.

    Returns
    -------
    Differential
        Shares and errors over the records tried and all columns that are not constant.

    Examples
    --------
    >>> X = np.array([[1.0], [2.0], [6.0], [7.0]])
    >>> differential(X, np.array([[3.0], [3.0], [3.0], [7.0]]), np.array([0, 0, 0, 1])).recovered
    1.0
    """
    X, Y = _in_deviations(X, Y)
    if X.shape[1] == 0:
        return Differential(1.0, 0.0, 1.0, 0.0, 0)  # constant columns are known
    tried = np.sort(np.random.default_rng(seed).permutation(len(X))[:most])
    by_cell, sizes = np.argsort(labels, kind="stable"), np.bincount(labels)
    ends = np.cumsum(sizes)
    # Quantiles follow the distribution of the column, so each has the same prior probability.
    places = np.quantile(np.arange(len(X)), np.linspace(0, 1, _N_GUESSES), method="nearest")
    values = np.sort(X, axis=0)[places]
    tried = tried[sizes[labels[tried]] > 1]
    errors, blind = np.zeros((2, len(tried), X.shape[1]))
    for size in np.unique(sizes[labels[tried]]):  # cells of one size at once
        those = np.flatnonzero(sizes[labels[tried]] == size)
        records = tried[those]
        cells = by_cell[ends[labels[records], None] - size + np.arange(size)]
        known = X[cells[cells != records[:, None]].reshape(len(records), size - 1)]
        errors[those] = _guesses(known, Y[cells], rho, values) - X[records]
        blind[those] = _nearest(values, known.mean(axis=1)) - X[records]
    found = [np.abs(side) if len(side) else np.zeros((1, 1)) for side in (errors, blind)]
    shares = [float((side <= WITHIN).mean()) for side in found]
    roots = [float(np.sqrt(np.square(side).mean())) for side in found]
    return Differential(shares[0], roots[0], shares[1], roots[1], len(tried))


def _in_deviations(X: Matrix, Y: Matrix) -> tuple[Matrix, Matrix]:
    """Return numbers in standard deviations of their columns, without the constant columns.

    A common offset is subtracted first, and scaling by powers of two prevents overflow and underflow of squares.
    """
    for _ in range(2):
        ends = [end for Z in (X, Y) for end in (Z.max(axis=0), Z.min(axis=0))]
        exponents = -np.frexp(np.abs(ends).max(axis=0))[1] - 1
        X, Y = times_power_of_two(X, exponents), times_power_of_two(Y, exponents)
        first = X[0].copy()
        X -= first
        Y -= first
    spread = X.std(axis=0)
    varied = spread > 0
    if not varied.all():
        X, Y, spread = X[:, varied], Y[:, varied], spread[varied]
    return X / spread, Y / spread


def _guesses(known: NDArray[np.float64], published: NDArray[np.float64], rho: float, values: Matrix) -> Matrix:
    """Return the guess for each column of the last record, for each cell; shape (n_cells, n_columns)."""
    if rho == 0:
        return np.asarray(published.shape[1] * published.mean(axis=1) - known.sum(axis=1))
    columns = range(known.shape[2])
    return np.array(
        [
            [_weighed(others[:, j], shown[:, j], rho, values[:, j]) for j in columns]
            for others, shown in zip(known, published, strict=True)
        ]
    )


def _weighed(known: Vector, published: Vector, rho: float, values: Vector) -> float:
    """Return the posterior median of the last record's value, given the release.

    A value determines the mean, minimum and maximum of the cell, and these the range of the noise; the published
    numbers must lie in that range, and each has a density of one over its width.
    """
    means = (known.sum() + values) / (len(known) + 1)
    lows, highs = np.minimum(known.min(), values), np.maximum(known.max(), values)
    below, above = means + rho * (lows - means), means + rho * (highs - means)
    # A quantile represents the values near it, so a small tolerance is added.
    room = (values[-1] - values[0]) / _N_GUESSES
    possible = (below - room <= published.min()) & (published.max() <= above + room)
    if not possible.any():
        guess = len(published) * published.mean(keepdims=True) - known.sum()
        return float(_nearest(values[:, None], guess[None, :])[0, 0])
    weights = np.where(possible, -len(published) * np.log(np.maximum(above - below, room)), -np.inf)
    running = np.cumsum(np.exp(weights - weights.max()))
    return float(values[np.searchsorted(running, running[-1] / 2)])


def _nearest(values: Matrix, guesses: Matrix) -> Matrix:
    """Return the value nearest to a guess, in each column; shape (n_guesses, n_columns)."""
    return np.array([values[np.abs(values - guess).argmin(axis=0), np.arange(values.shape[1])] for guess in guesses])
