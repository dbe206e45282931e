"""Differential: an intruder knows all records of a cell but one, and works out the last one.

With the mean of the cell published this is plain arithmetic: size times mean, less the sum of the known ones. Random
aggregation is meant to prevent it. Here the intruder knows rho too, since it is public, and weighs every value that the
last record could have by how likely it makes what was published.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.typing import Labels, Matrix, Seed

Vector = NDArray[np.float64]

WITHIN = 0.05
"""A value counts as recovered if it is off by no more than this many standard deviations of its column."""

_N_GUESSES = 401


class Differential(NamedTuple):
    """What an intruder learns who knows all records of a cell but one.

    Attributes
    ----------
    recovered : float
        Share of the values of the last record that are recovered.
    rmse : float
        Root mean square error of the guesses, in standard deviations of the column.
    blind : float
        Share that the same intruder recovers without the release, by the mean of the known records.
    blind_rmse : float
        Root mean square error of that.
    n_tried : int
        Records that were tried.
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
    """Work out the last record of its cell from the others and from what is published.

    Parameters
    ----------
    X : ndarray of shape (n_records, n_columns)
        Original numbers.
    Y : ndarray of shape (n_records, n_columns)
        What is published for them.
    labels : ndarray of shape (n_records,)
        Cell number of each record.
    rho : float
        As in the job; 0 for microaggregation.
    most : int
        How many records are tried, drawn at random where there are more.
    seed : int, optional
        Repeats the draw.

    Returns
    -------
    Differential
        Shares and errors over the tried records and all columns that are not constant.

    Examples
    --------
    >>> X = np.array([[1.0], [2.0], [6.0], [7.0]])
    >>> differential(X, np.array([[3.0], [3.0], [3.0], [7.0]]), np.array([0, 0, 0, 1])).recovered
    1.0
    """
    spread = X.std(axis=0)
    varied = spread > 0
    X, Y = X[:, varied] / spread[varied], Y[:, varied] / spread[varied]
    tried = np.sort(np.random.default_rng(seed).permutation(len(X))[:most])
    members = np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1])
    ends = X.min(axis=0), X.max(axis=0)
    errors, blind = [], []
    for record in tried:
        cell = members[labels[record]]
        known = X[cell[cell != record]]
        if len(known):
            guess = _guess(known, Y[cell], rho, *ends)
            errors.append(guess - X[record])
            blind.append(known.mean(axis=0) - X[record])
    found = [np.abs(np.array(side)) if side else np.zeros((1, 1)) for side in (errors, blind)]
    shares = [float((side <= WITHIN).mean()) for side in found]
    roots = [float(np.sqrt(np.square(side).mean())) for side in found]
    return Differential(shares[0], roots[0], shares[1], roots[1], len(errors))


def _guess(known: Matrix, published: Matrix, rho: float, low: Vector, high: Vector) -> Vector:
    """Return the guess of each column of the last record."""
    size = len(published)
    if rho == 0:
        return np.asarray(size * published.mean(axis=0) - known.sum(axis=0))
    return np.array([_weighed(known[:, j], published[:, j], rho, low[j], high[j]) for j in range(known.shape[1])])


def _weighed(known: Vector, published: Vector, rho: float, low: float, high: float) -> float:
    """Return the mean of the values that the last record could have, each weighed by how likely it makes the release.

    A value gives the cell a mean and two ends, and these the range of the noise; what is published has to lie in it,
    and each number in it has the density of one over its width.
    """
    guesses = np.linspace(low, high, _N_GUESSES)
    means = (known.sum() + guesses) / (len(known) + 1)
    lows, highs = np.minimum(known.min(), guesses), np.maximum(known.max(), guesses)
    below, above = means + rho * (lows - means), means + rho * (highs - means)
    # The grid may miss a narrow range, so its step is allowed for.
    room = (high - low) / (_N_GUESSES - 1)
    possible = (below - room <= published.min()) & (published.max() <= above + room)
    if not possible.any():
        return float(len(published) * published.mean() - known.sum())
    weights = np.where(possible, -len(published) * np.log(np.maximum(above - below, room)), -np.inf)
    weights = np.exp(weights - weights.max())
    return float(weights @ guesses / weights.sum())
