"""Relaxation: the linear program behind the strong lower bound, solved in rounds, and the Lagrangian that is reported.

Minimise sum(d_ij**2 * x_ij) / k over links x_ij in [0, 1] and shares s_i in [k / (2k - 1), 1] with
``s_i + sum_j x_ij = k`` and the inequalities of `shoal.measures.bound.inequalities`. A partition into cells of k to
2k - 1 records satisfies all of them with an objective equal to its SSE, so the minimum is a lower bound.

Only near pairs and violated cuts are held. That, and stopping early, weakens the bound but keeps it valid: the result
is the Lagrangian over all pairs, a lower bound for any multipliers. ``docs/bound.md`` has the proofs.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from shoal.distribution import optional
from shoal.measures.bound.inequalities import Cuts, Indices, count, separate
from shoal.typing import Matrix, Vector

_STEPS = 80
"""Steps of the solver between two searches for violated cuts in the first rounds."""
_RAMP = 12
"""Number of rounds after which that many steps are added: late rounds find few cuts and need more solving."""
_CUTS_PER_RECORD = 3
"""Maximum number of new cuts in a round, as a multiple of the records."""
_PATIENCE = 8
"""Rounds in a row without a gain of `_GAIN` before the search ends."""
_GAIN = 1e-5
_BLOCK = 1 << 22
"""Distances held at a time when all pairs are summed over."""
_EPS = float(np.finfo(np.float64).eps)


def relaxed_bound(
    X: Matrix, k: int, near: tuple[Indices, Matrix], seconds: float, report: Callable[[float], None]
) -> float:
    """Return a lower bound on the SSE of every partition of `X` into cells of at least `k` records.

    Parameters
    ----------
    X : ndarray of shape (n_records, n_dims)
        At least 2k records, scaled so that distances can be squared, not all the same.
    k : int
        Smallest cell size.
    near : (ndarray, ndarray), both of shape (n_records, n_near)
        The nearest records of each record, at least k, and their squared distances in increasing order. The record
        itself counts; it is missing only where others are equal to it.
    seconds : float
        Time limit; the current round is finished.
    report : callable
        Called after each round with the seconds spent.
    """
    start = perf_counter()
    state, scale = _first(X, k, near)
    best, _ = lagrangian(X, k, state)
    n_rounds = stale = 0
    while stale < _PATIENCE:
        state = _solve(X, k, state, scale, _STEPS * (1 + n_rounds // _RAMP))
        value, missing = lagrangian(X, k, state)
        stale = stale + 1 if value <= best * (1 + _GAIN) else 0
        best = max(best, value)
        n_rounds += 1
        spent = perf_counter() - start
        report(spent)
        if spent >= seconds:
            break
        state = _extended(state, missing, k, scale)
    return best


@dataclass(frozen=True, eq=False)
class State:
    """Links, shares and multipliers: the state of the solver.

    Attributes
    ----------
    pairs, links : ndarrays of shape (n_pairs,)
        The pairs held, by number and in increasing order, and their x.
    shares, alpha : ndarrays of shape (n_records,)
        The s of the records, and the multipliers of ``s_i + sum_j x_ij = k``.
    cuts : Cuts
        The cuts held.
    beta : ndarray of shape (n_cuts,)
        Their multipliers, none negative.
    """

    pairs: Indices
    links: Vector
    shares: Vector
    alpha: Vector
    cuts: Cuts
    beta: Vector


def _first(X: Matrix, k: int, near: tuple[Indices, Matrix]) -> tuple[State, Vector]:
    """Start from the near pairs, without cuts; also return the distances to the neighbours of each record."""
    n_records = len(X)
    neighbours, squared = near
    here = np.repeat(np.arange(n_records), neighbours.shape[1])
    there = neighbours.ravel()
    pairs = np.unique((np.minimum(here, there) * n_records + np.maximum(here, there))[here != there])
    # At these multipliers the Lagrangian is at least the cheap bound.
    alpha = squared[:, k - 1] / (2 * k)
    cuts = count(n_records, k)
    state = State(pairs, np.zeros(len(pairs)), np.ones(n_records), alpha, cuts, np.zeros(len(cuts)))
    scale = np.maximum(2 * squared[:, :k].mean(axis=1), 1e-3 * squared.mean(axis=1))
    return state, np.maximum(scale, 1e-9 * scale.mean())


class _Program(NamedTuple):
    """Minimise cost.z subject to A z = b (records) and A z <= b (cuts), low <= z <= 1; `across` is A transposed."""

    cost: Vector
    low: Vector
    A: Any
    across: Any
    b: Vector
    n_records: int

    def value(self, y: Vector, reduced: Vector) -> float:
        """Return the Lagrangian over the pairs held, given the reduced costs at the multipliers `y`."""
        return float(self.b @ y + np.minimum(reduced * self.low, reduced).sum())


def _program(X: Matrix, k: int, state: State) -> _Program:
    """Build the linear program of the pairs and cuts held."""
    sparse = _scipy("sparse")
    n_records, n_pairs = len(X), len(state.pairs)
    first, second = np.divmod(state.pairs, n_records)
    cuts, records, columns = state.cuts, np.arange(n_records), np.arange(n_pairs)
    row = [first, second, records, n_records + cuts.pair_row, n_records + cuts.record_row]
    column = [columns, columns, n_pairs + records, np.searchsorted(state.pairs, cuts.pair), n_pairs + cuts.record]
    entry = [np.ones(2 * n_pairs + n_records), cuts.coefficient, cuts.weight]
    A = sparse.csr_array(
        (np.concatenate(entry), (np.concatenate(row), np.concatenate(column))),
        shape=(n_records + len(cuts), n_pairs + n_records),
    )
    return _Program(
        cost=np.concatenate([np.square(X[first] - X[second]).sum(axis=1) / k, np.zeros(n_records)]),
        low=np.concatenate([np.zeros(n_pairs), np.full(n_records, k / (2 * k - 1))]),
        A=A,
        across=A.T.tocsr(),
        b=np.concatenate([np.full(n_records, float(k)), cuts.limit]),
        n_records=n_records,
    )


def _solve(X: Matrix, k: int, state: State, scale: Vector, n_steps: int) -> State:
    """Improve links and multipliers by primal-dual hybrid gradient steps.

    The step sizes are Pock and Chambolle's (2011, lemma 2) with a weight for each row, the distances around it:
    the multipliers of an outlier are as large as its distances, and must get there in as many steps as the others.
    """
    program = _program(X, k, state)
    A, across, n_records, cuts = program.A, program.across, program.n_records, state.cuts
    n_shares = np.bincount(cuts.record_row, minlength=len(cuts))
    weight = np.concatenate([scale, np.bincount(cuts.record_row, scale[cuts.record], len(cuts)) / n_shares])
    sizes = abs(A)
    sigma = weight / sizes.sum(axis=1)
    tau = 1 / (sizes.T @ weight)
    z, y = np.concatenate([state.links, state.shares]), np.concatenate([state.alpha, -state.beta])
    mean_z, mean_y = np.zeros_like(z), np.zeros_like(y)
    pull, reach = across @ y, A @ z
    for _ in range(n_steps):
        z = np.clip(z - tau * (program.cost - pull), program.low, 1.0)
        before, reach = reach, A @ z
        y += sigma * (program.b - 2 * reach + before)
        np.minimum(y[n_records:], 0.0, out=y[n_records:])
        pull = across @ y
        mean_z += z
        mean_y += y
    mean_z /= n_steps
    mean_y /= n_steps
    # The mean converges where the last iterate oscillates; early on, the last iterate is often better.
    if program.value(mean_y, program.cost - across @ mean_y) >= program.value(y, program.cost - pull):
        y = mean_y
    n_pairs = len(state.pairs)
    return replace(
        state, links=mean_z[:n_pairs], shares=mean_z[n_pairs:], alpha=y[:n_records], beta=-y[n_records:].clip(max=0.0)
    )


def _extended(state: State, missing: Indices, k: int, scale: Vector) -> State:
    """Drop inactive cuts and pairs, add missing pairs and violated cuts."""
    cuts, beta = state.cuts, state.beta
    active = beta > 1e-6 * scale.min()
    active[0] = True  # the number of cells
    cuts, beta = cuts.keep(active), beta[active]
    new = separate(state.pairs, state.links, state.shares, k)
    new = new.keep(~np.isin(new.key, cuts.key))
    new = new.keep(np.arange(len(new)) < _CUTS_PER_RECORD * len(state.shares))
    cuts, beta = cuts.join(new), np.concatenate([beta, np.zeros(len(new))])
    used = np.unique(cuts.pair)
    held = (state.links > 0) | np.isin(state.pairs, used)
    pairs = np.union1d(np.union1d(state.pairs[held], used), missing)
    links = np.zeros(len(pairs))
    links[np.searchsorted(pairs, state.pairs[held])] = state.links[held]
    return replace(state, pairs=pairs, links=links, cuts=cuts, beta=beta)


def lagrangian(X: Matrix, k: int, state: State) -> tuple[float, Indices]:
    """Return the Lagrangian over all pairs at the multipliers of `state`, rounded down, and pairs that lower it.

    Every rounding error is on the safe side: distances are scaled down, and what is subtracted is scaled up, by
    more than the errors of the operations behind them. `missing` holds the pairs below 0 that `state` does not hold.
    """
    n_records, n_dims = X.shape
    alpha, beta, cuts = state.alpha, np.maximum(state.beta, 0.0), state.cuts
    touched, at = np.unique(cuts.pair, return_inverse=True)
    change = _sums_rounded_down(at, cuts.coefficient * beta[cuts.pair_row], len(touched))
    weighed = _sums_rounded_down(cuts.record, cuts.weight * beta[cuts.record_row], n_records)
    cover = alpha + 8 * _EPS * np.abs(alpha)
    # The distances: one rounding for the difference, one for the square, and those of the sum, all relative.
    per_square = (1 - (n_dims + 8) * _EPS) / k
    below, missing = _below_zero(X, per_square, cover, touched, change)
    shares = weighed - cover - 8 * _EPS * (np.abs(weighed) + np.abs(cover))
    low = k / (2 * k - 1) * (1 - 2 * _EPS)
    terms = [k * alpha, -cuts.limit * beta, np.minimum(low * shares, shares), below]
    margin = 64 * _EPS * math.fsum(np.abs(np.concatenate(terms)))
    return math.fsum(np.concatenate(terms)) - margin, np.setdiff1d(missing, state.pairs, assume_unique=True)


def _below_zero(
    X: Matrix, per_square: float, cover: Vector, touched: Indices, change: Vector
) -> tuple[Vector, Indices]:
    """Sum, for each record i, the negative ones of d_ij**2 * per_square - cover_i - cover_j + change_ij over j > i."""
    distance = _scipy("spatial.distance").cdist
    n_records = len(X)
    below, negative = np.zeros(n_records), [np.empty(0, dtype=np.int64)]
    start = 0
    while start < n_records:
        stop = min(n_records, start + max(1, _BLOCK // (n_records - start)))
        left = distance(X[start:stop], X[start:], "sqeuclidean") * per_square
        both = cover[start:stop, None] + cover[None, start:]
        left -= both + 4 * _EPS * np.abs(both)
        here = slice(*np.searchsorted(touched, [start * n_records, stop * n_records]))
        i, j = np.divmod(touched[here], n_records)
        left[i - start, j - start] += change[here]
        left -= 4 * _EPS * np.abs(left)
        left[np.tril_indices(stop - start, m=n_records - start)] = 0.0
        np.minimum(left, 0.0, out=left)
        below[start:stop] = left.sum(axis=1)
        i, j = np.nonzero(left)
        negative.append((i + start) * n_records + j + start)
        start = stop
    return below, np.concatenate(negative)


def _sums_rounded_down(groups: Indices, terms: Vector, n_groups: int) -> Vector:
    """Sum the terms of each group, minus a margin above the error of the sum."""
    sums = np.bincount(groups, terms, n_groups)
    sizes = np.bincount(groups, np.abs(terms), n_groups)
    return np.asarray(sums - (np.bincount(groups, minlength=n_groups) + 8) * _EPS * sizes)


def _scipy(module: str) -> Any:
    """Import a module of SciPy, which only the strong bound needs."""
    return optional(f"scipy.{module}", "The strong bound (not effort='cheap') needs SciPy", "bound")
