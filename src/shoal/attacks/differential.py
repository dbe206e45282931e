"""Differential attack: an intruder knows all records of a cell but one, and recovers the last one.

If the mean of the cell is published this is arithmetic: size times mean, minus the sum of the known records. Random
aggregation is meant to prevent it. The intruder here also knows rho, which is public, and the distribution of each
column, and weights every possible value of the last record by the likelihood of the release.
"""

from typing import Any, NamedTuple

import numpy as np

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
    errors, blind = [], []
    for record in tried:
        number = labels[record]
        cell = by_cell[ends[number] - sizes[number] : ends[number]]
        known = X[cell[cell != record]]
        if len(known):
            errors.append(_guess(known, Y[cell], rho, values) - X[record])
            blind.append(_nearest(values, known.mean(axis=0)) - X[record])
    found = [np.abs(np.array(side)) if side else np.zeros((1, 1)) for side in (errors, blind)]
    shares = [float((side <= WITHIN).mean()) for side in found]
    roots = [float(np.sqrt(np.square(side).mean())) for side in found]
    return Differential(shares[0], roots[0], shares[1], roots[1], len(errors))


def _in_deviations(X: Matrix, Y: Matrix) -> tuple[Matrix, Matrix]:
    """Return numbers in standard deviations of their columns, without the constant columns.

    A common offset is subtracted first, and scaling by powers of two prevents overflow and underflow of squares.
    """
    for _ in range(2):
        exponents = -np.frexp(np.maximum(np.abs(X).max(axis=0), np.abs(Y).max(axis=0)))[1] - 1
        X, Y = times_power_of_two(X, exponents), times_power_of_two(Y, exponents)
        Y = Y - X[0]
        X = X - X[0]
    spread = X.std(axis=0)
    varied = spread > 0
    if not varied.all():
        X, Y, spread = X[:, varied], Y[:, varied], spread[varied]
    return X / spread, Y / spread


def _guess(known: Matrix, published: Matrix, rho: float, values: Matrix) -> Vector:
    """Return the guess for each column of the last record."""
    if rho == 0:
        return np.asarray(len(published) * published.mean(axis=0) - known.sum(axis=0))
    return np.array([_weighed(known[:, j], published[:, j], rho, values[:, j]) for j in range(known.shape[1])])


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
        return float(_nearest(values[:, None], len(published) * published.mean(keepdims=True) - known.sum())[0])
    weights = np.where(possible, -len(published) * np.log(np.maximum(above - below, room)), -np.inf)
    running = np.cumsum(np.exp(weights - weights.max()))
    return float(values[np.searchsorted(running, running[-1] / 2)])


def _nearest(values: Matrix, guess: Vector) -> Vector:
    """Return the value nearest to a guess, in each column."""
    return np.asarray(values[np.abs(values - guess).argmin(axis=0), np.arange(values.shape[1])])
