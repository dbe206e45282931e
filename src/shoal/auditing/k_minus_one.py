"""Differential attack: an intruder knows all records of a cell but one, and recovers the last one.

If the mean of the cell is published this is arithmetic: size times mean, minus the sum of the known records. Random
aggregation is meant to prevent it. The intruder here also knows rho, which is public, and the distribution of each
column, and weights every possible value of the last record by the likelihood of the release.

Where an interval or a set is published, an end, or a member, that the known records do not explain is due to the last
one. If they explain all, it may be anywhere inside.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.columns.coarse import Coarse, Ranges, Sets
from shoal.kernels.parallel_calls import column_by_column
from shoal.measures.pairs import Columns, as_pairs, moments
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
    before: Columns,
    after: Columns,
    labels: Labels,
    rho: float = 0.0,
    *,
    coarse: Mapping[str, Coarse] = MappingProxyType({}),
    most: int = 1000,
    seed: Seed = None,
) -> Differential:
    """Recover the last record of a cell from the others and from the published values.

    Parameters
    ----------
    before, after : mapping of str to array_like, or array_like of shape (n_records, n_columns)
        The original and the published numbers, none missing.
    labels : ndarray of shape (n_records,)
        Cell number of each record.
    rho : float
        As in the job; 0 for microaggregation.
    coarse : mapping of str to Coarse
        The columns that are published as intervals, sets or ancestors: what each record shows. Their numbers in
        `after` are not used.
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
    pairs = as_pairs(before, after)
    columns = list(zip(pairs, column_by_column(lambda pair: moments(pair.before), pairs, len(labels)), strict=True))
    columns = [(pair, unit) for pair, unit in columns if unit.sd > 0]
    if not columns:
        return Differential(1.0, 0.0, 1.0, 0.0, 0)  # constant columns are known
    tried = np.sort(np.random.default_rng(seed).permutation(len(labels))[:most])
    sizes = np.bincount(labels)
    tried = tried[sizes[labels[tried]] > 1]
    by_cell, ends = _members(labels, labels[tried], sizes)
    # From a common origin and scaled by powers of two, so that means of whole numbers may tie exactly.
    X, Y = (
        np.column_stack([unit.moved(getattr(pair, side)[by_cell]) for pair, unit in columns])
        for side in ("before", "after")
    )
    # Quantiles follow the distribution of the column, so each has the same prior probability.
    places = np.quantile(np.arange(len(labels)), np.linspace(0, 1, _N_GUESSES), method="nearest")
    quantiles = column_by_column(lambda each: each[1].moved(np.sort(each[0].before)[places]), columns, len(labels))
    values = np.column_stack(list(quantiles))
    errors, blind = np.zeros((2, len(tried), len(columns)))
    guess = {pair.name: _guesser(pair.before, coarse[pair.name]) for pair, _ in columns if pair.name in coarse}
    for size in np.unique(sizes[labels[tried]]):  # cells of one size at once
        those = np.flatnonzero(sizes[labels[tried]] == size)
        cells = ends[labels[tried[those]], None] - size + np.arange(size)
        own = by_cell[cells] == tried[those, None]
        known = X[cells[~own].reshape(len(those), size - 1)]
        guesses = _guesses(known, Y[cells], rho, values)
        for j, (pair, unit) in enumerate(columns):
            if pair.name in coarse:
                others = pair.before[by_cell[cells[~own]]].reshape(len(those), size - 1)
                guessed = [guess[pair.name](*each) for each in zip(tried[those].tolist(), others, strict=True)]
                guesses[:, j] = unit.moved(np.array(guessed))
        errors[those] = guesses - X[cells[own]]
        blind[those] = _nearest(values, known.mean(axis=1)) - X[cells[own]]
    sds = [unit.sd for _, unit in columns]
    found = [np.abs(side) / sds if len(side) else np.zeros((1, 1)) for side in (errors, blind)]
    shares = [float((side <= WITHIN).mean()) for side in found]
    roots = [float(np.sqrt(np.square(side).mean())) for side in found]
    return Differential(shares[0], roots[0], shares[1], roots[1], len(tried))


Guess = Callable[[int, Vector], float]
"""Takes a record and the values of the others of its cell; returns a guess of its own."""


def _guesser(before: Vector, shown: Coarse) -> Guess:
    return _from_ranges(before, shown) if isinstance(shown, Ranges) else _from_sets(before, shown)


def _from_ranges(before: Vector, shown: Ranges) -> Guess:
    """Return how the last value is guessed from the ends of intervals, of which the release shows all."""
    values, lows, highs = np.sort(before), np.unique(shown.low), np.unique(shown.high)

    def guess(record: int, known: Vector) -> float:
        low, high = shown.low[record], shown.high[record]
        start, end = np.searchsorted(values, low), np.searchsorted(values, high, side="right")
        next_low = np.searchsorted(lows, low, side="right")
        if next_low < len(lows) and known.min() >= lows[next_low]:  # the known ones would have given a higher low end
            end = min(end, np.searchsorted(values, lows[next_low]))
        next_high = np.searchsorted(highs, high) - 1
        if next_high >= 0 and known.max() <= highs[next_high]:
            start = max(start, np.searchsorted(values, highs[next_high], side="right"))
        return float(values[min((start + end - 1) // 2, len(values) - 1)])

    return guess


def _from_sets(before: Vector, shown: Sets) -> Guess:
    """Return how the last value is guessed from the members of sets, or from the values below an ancestor."""
    values = np.sort(before)
    numbers = [np.array([float(text) for text in members]) for members in shown.members]

    def guess(record: int, known: Vector) -> float:
        members = numbers[shown.codes[record]]
        unexplained = np.setdiff1d(members, known)
        if len(unexplained) == 1:
            return float(unexplained[0])
        inside = values[np.isin(values, members)]
        return float(inside[(len(inside) - 1) // 2])

    return guess


def _members(labels: Labels, cells: Labels, sizes: Labels) -> tuple[Labels, Labels]:
    """Return the records of some cells, one cell after the other, and where each of these cells ends."""
    wanted = np.zeros(len(sizes), dtype=bool)
    wanted[cells] = True
    members = np.flatnonzero(wanted[labels])
    return members[np.argsort(labels[members], kind="stable")], np.cumsum(sizes * wanted)


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
    """Return the nearest of the ascending values of a column, the lower of two; shape (n_guesses, n_columns)."""
    found = np.empty_like(guesses)
    for j, column in enumerate(values.T):
        above = np.searchsorted(column, guesses[:, j]).clip(1, len(column) - 1)
        low, high = column[above - 1], column[above]
        found[:, j] = np.where(np.abs(low - guesses[:, j]) <= np.abs(high - guesses[:, j]), low, high)
    return found
