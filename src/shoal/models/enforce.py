"""Enforce: from any partition to one that keeps every model, at a low loss.

Two ways lead there, and the better end is kept. Either the cells that break a model are mended: swaps and moves of
records, the cheapest first. Or the start is new: cells that each hold the same share of every part of the confidential
column. From both, records swap and move on as long as the loss falls and no model says no.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from shoal import kernels
from shoal.errors import GuaranteeError, ParameterError
from shoal.models.buckets import steered
from shoal.models.codes import Codes
from shoal.models.model import Model
from shoal.models.t_closeness import TCloseness
from shoal.partition import partition
from shoal.space import as_cell_size, as_matrix
from shoal.typing import Labels, Matrix, Seed

# Up to so many records several starts are tried to the end, and each search goes on until nothing is left to gain.
SMALL = 5_000
THOROUGH = kernels.Effort(rounds=60, neighbours=40, least_gain=1e-5, at_any_cost=True)
# Beyond, there is one start and one search, longer up to some tens of thousands.
MEDIUM = 60_000
LONG = kernels.Effort(rounds=20, neighbours=60, least_gain=0.002, at_any_cost=True)
QUICK = kernels.Effort(rounds=5, neighbours=20, least_gain=0.01, at_any_cost=True)
# Which size is best is found out on so many of the records.
SAMPLE = 4_000
# Up to this share of the cells they are mended one by one; where more fail, they are made anew.
FEW = 0.05
MANAGEABLE = 50
SPREAD_FEW = 0.01
# Cells of evenly spread values are tried with so many times the records that the model needs at least: with more of
# them there is more to choose from, with fewer they are smaller.
SIZES = (1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)


class Guarded(NamedTuple):
    """A model and the column it is about, as `shoal.models.encode` gives it."""

    model: Model
    codes: Labels
    n_values: int
    ordered: bool

    @property
    def column(self) -> Codes:
        """The column alone."""
        return Codes(self.codes, self.n_values, self.ordered)

    def part(self, records: Labels) -> "Guarded":
        """Return the same for some of the records."""
        return self._replace(codes=np.ascontiguousarray(self.codes[records]))


class Problem(NamedTuple):
    """Records, and what is promised about them; `counts` is of the whole table, also where the records are a part."""

    X: Matrix
    k: int
    guarded: Sequence[Guarded]
    counts: Sequence[Labels]

    def guarantees(self, n_first: int | None = None) -> kernels.Guarantees:
        """Return the vetoes, of all models or of the first ones."""
        vetoes = kernels.Guarantees()
        for each, counts in zip(self.guarded[:n_first], self.counts[:n_first], strict=True):
            each.model.guard(vetoes, each.column, counts)
        return vetoes

    def part(self, records: Labels) -> "Problem":
        """Return the same for some of the records."""
        X = np.ascontiguousarray(self.X[records])
        return self._replace(X=X, guarded=[each.part(records) for each in self.guarded])


def enforce(
    X: Matrix,
    labels: Labels | None,
    k: int,
    models: Sequence[Guarded | tuple[Model, Labels, int, bool]],
    method: str = "auto",
    seed: Seed = None,
    *,
    strata: Labels | None = None,
) -> Labels:
    """Return a partition that keeps k and every model.

    Parameters
    ----------
    X : ndarray of shape (n_records, n_dims)
        Quasi-identifiers in the space.
    labels : ndarray of shape (n_records,), optional
        A partition to start from; by default that of `method`. Returned as it is where it keeps everything.
    k : int
        Smallest cell size.
    models : sequence of (model, codes, n_values, ordered)
        What to keep about which column; see `shoal.models.encode`.
    method, seed
        As in `shoal.partition`.
    strata : ndarray of shape (n_records,), optional
        No cell crosses the border between two of these groups. Models still speak of the whole table.

    Returns
    -------
    labels : ndarray of shape (n_records,), int64
        Cell number of each record, from 0 and without gaps.

    Raises
    ------
    GuaranteeError
        If no partition keeps every model.

    Notes
    -----
    Near-linear in the records, unless thousands of cells have to be mended with far ones. A model with a weight of its
    own (`TCloseness`) steers the start and is not enforced.

    Examples
    --------
    >>> import numpy as np
    >>> from shoal.models import LDiversity
    >>> X, diagnosis = np.array([[1.0], [2.0], [8.0], [9.0]]), np.array([0, 0, 1, 1])
    >>> enforce(X, np.array([0, 0, 1, 1]), 2, [(LDiversity("diagnosis", l=2), diagnosis, 2, False)])
    array([0, 1, 0, 1])
    """
    matrix = as_matrix(X)
    k = as_cell_size(k, len(matrix))
    guarded = [_checked(Guarded(*each), len(matrix)) for each in models]
    groups = np.zeros(len(matrix), dtype=np.int64) if strata is None else np.unique(strata, return_inverse=True)[1]
    strict = [each for each in guarded if each.model.promised]
    counts = [np.bincount(each.codes, minlength=each.n_values) for each in strict]
    result = np.empty(len(matrix), dtype=np.int64)
    n_cells = 0
    whole = Problem(matrix, k, strict, counts)
    sound = _sound(whole, labels, groups) if labels is not None and len(strict) == len(guarded) else None
    for group, records in enumerate(np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])):
        start = None if labels is None else np.unique(labels[records], return_inverse=True)[1].astype(np.int64)
        if sound is not None and sound[group]:
            assert start is not None
            result[records] = start + n_cells
        else:
            steering = [each.part(records) for each in guarded if not each.model.promised]
            problem = whole.part(records)
            result[records] = _enforced(problem, _start(problem, start, steering, method, seed)) + n_cells
        n_cells = int(result[records].max()) + 1
    _recount(strict, result)
    return result


def _sound(whole: Problem, labels: Labels, groups: Labels) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Say in which strata no cell breaks a model; there may be thousands, and most have nothing to mend."""
    first, cells = np.unique(groups * (int(labels.max()) + 1) + labels, return_index=True, return_inverse=True)[1:]
    failing = _failing(whole.guarantees(), cells.astype(np.int64))
    return np.asarray(np.bincount(groups[first], failing, minlength=int(groups.max()) + 1) == 0)


def _recount(strict: Sequence[Guarded], labels: Labels) -> None:
    """Count again, in another way than the search does, before anything is returned."""
    for each in strict:
        found = each.model.measure(labels, each.column)
        if not found.holds:
            raise GuaranteeError(
                f"{each.model} is broken by {found.n_failing} of {found.n_classes} cells in the recount. Nothing is "
                "returned; please report this."
            )


def _checked(guarded: Guarded, n_records: int) -> Guarded:
    """Refuse codes that do not fit the records."""
    codes = np.ascontiguousarray(guarded.codes, dtype=np.int64)
    if codes.shape != (n_records,):
        raise ParameterError(
            f"The codes of column {guarded.model.column!r} have shape {codes.shape}; {n_records} records need one each."
        )
    if len(codes) and not 0 <= codes.min() <= codes.max() < guarded.n_values:
        raise ParameterError(
            f"The codes of column {guarded.model.column!r} must run from 0 to {guarded.n_values - 1}. "
            "Make them with shoal.models.encode."
        )
    return guarded._replace(codes=codes)


def _start(problem: Problem, labels: Labels | None, steering: Sequence[Guarded], method: str, seed: Seed) -> Labels:
    """Return the partition to begin with: the one given, or the method's, steered where a weight says so."""
    if len(steering) > 1:
        raise ParameterError(
            f"{len(steering)} models have a weight, but only one can steer: two would contradict each other. Leave the "
            "weight of the others out; they are then enforced."
        )
    if steering:
        model = steering[0].model
        assert isinstance(model, TCloseness)
        assert model.weight is not None
        return steered(problem.X, steering[0].codes, problem.k, model.t, model.weight, method, seed)
    return partition(problem.X, problem.k, method, seed) if labels is None else labels


def _enforced(problem: Problem, labels: Labels) -> Labels:
    """Return a partition of these records that keeps every model, beginning with `labels`."""
    if not problem.guarded:
        return labels
    vetoes = problem.guarantees()
    if not _failing(vetoes, labels).any():
        return labels
    _refuse_impossible(problem)
    if len(problem.X) <= SMALL:
        starts = _starts(problem, labels)
        ends = [kernels.guarded_search(problem.X, start, problem.k, vetoes, THOROUGH) for start in starts]
        return min(ends, key=lambda end: _spread_within(problem.X, end))
    if _failing(vetoes, labels).mean() > FEW:
        labels = _spread_anew(problem, vetoes, labels)
    return kernels.guarded_search(problem.X, labels, problem.k, vetoes, LONG if len(labels) <= MEDIUM else QUICK)


def _failing(vetoes: kernels.Guarantees, labels: Labels) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Say which cells break a model."""
    return np.asarray(vetoes.excess(labels, int(labels.max()) + 1)) > 0


def _refuse_impossible(problem: Problem) -> None:
    """Raise if a model is broken by all records as one cell: then every partition has a cell that breaks it.

    A mixture of cells that keep a model keeps it: the distances of t-closeness are convex, entropy is concave, and more
    records never have fewer values.
    """
    everything = np.zeros(len(problem.X), dtype=np.int64)
    for each, counts in zip(problem.guarded, problem.counts, strict=True):
        veto = kernels.Guarantees()
        each.model.guard(veto, each.column, counts)
        if _failing(veto, everything).any():
            raise GuaranteeError(f"{each.model} cannot be kept: {each.model.why_impossible(each.column)}.")


def _spread_within(X: Matrix, labels: Labels) -> float:
    return float(kernels.cell_spread(X, labels, int(labels.max()) + 1).sum())


def _starts(problem: Problem, labels: Labels) -> Iterator[Labels]:
    """Yield the partition given, then cells in which the first column is spread evenly, of several sizes."""
    # Where most of many cells fail, mending them one by one is no way.
    failing = _failing(problem.guarantees(), labels)
    if failing.mean() < 0.5 or len(failing) <= MANAGEABLE:
        yield labels
    first = _steering_order(problem)
    least = _least_size(problem, first)
    for size in sorted({min(max(problem.k, round(least * times)), len(problem.X)) for times in SIZES}):
        yield kernels.spread(problem.X, problem.guarded[first].codes, size, size)


def _steering_order(problem: Problem) -> int:
    """Return which model's column is spread: that of the strictest t-closeness, or else the first."""
    closeness = [
        (each.model.t, place) for place, each in enumerate(problem.guarded) if isinstance(each.model, TCloseness)
    ]
    return min(closeness)[1] if closeness else 0


def _least_size(problem: Problem, which: int) -> int:
    """Return how many records a cell needs at least for the model to hold if its column is spread perfectly.

    Every so many records of the sorted column make a cell. Tried are sizes that grow by a tenth.
    """
    veto = kernels.Guarantees()
    each = problem.guarded[which]
    each.model.guard(veto, each.column, problem.counts[which])
    n = len(each.codes)
    place = np.empty(n, dtype=np.int64)
    place[np.argsort(each.codes, kind="stable")] = np.arange(n)
    size = 2
    while size < n:
        n_cells = n // size
        if not _failing(veto, np.minimum(place % n_cells, n_cells - 1)).any():
            break
        size = max(size + 1, size * 11 // 10)
    return min(size, n)


def _spread_anew(problem: Problem, vetoes: kernels.Guarantees, labels: Labels) -> Labels:
    """Put the records of cells that break a model, with those of cells nearby, into cells that keep it.

    The pool is doubled until it can be spread so that few new cells break a model, or all records are in it.
    """
    failing = np.flatnonzero(_failing(vetoes, labels))
    sizes = np.bincount(labels)
    centroids = kernels.cell_sums(problem.X, labels, len(sizes)) / sizes[:, None]
    first = _steering_order(problem)
    order = _helpers(problem, labels, centroids, failing, first)
    least = _least_size(problem, first)
    times = _best_times(problem.part(np.arange(0, len(labels), -(-len(labels) // SAMPLE))), first, least)
    n_pooled = len(failing)
    while True:
        pooled = np.isin(labels, np.concatenate([failing, order[:n_pooled]]))
        records = np.flatnonzero(pooled)
        fresh, sound = _spread_out(problem.part(records), first, [least * more for more in times])
        if sound or n_pooled >= len(order):
            break
        n_pooled *= 2
    labels = labels.copy()
    labels[records] = fresh + len(sizes)
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def _best_times(sample: Problem, first: int, least: int) -> tuple[float, ...]:
    """Return by how much cells should be larger than the least, and what is left to try if that does not do."""
    vetoes = sample.guarantees()
    losses = []
    for times in SIZES:
        start = _spread_out(sample, first, [least * times])[0]
        end = kernels.guarded_search(sample.X, start, sample.k, vetoes, QUICK)
        losses.append(_spread_within(sample.X, end))
    return SIZES[int(np.argmin(losses)) :]


def _spread_out(part: Problem, first: int, sizes: Sequence[float]) -> tuple[Labels, bool]:
    """Return cells in which a column is spread evenly, of the first size that will do, and whether few fail."""
    vetoes = part.guarantees()
    for wanted in sizes:
        size = min(max(part.k, round(wanted)), len(part.X))
        fresh = kernels.spread(part.X, part.guarded[first].codes, size, min(size, max(3, round(wanted))))
        if _failing(vetoes, fresh).mean() < SPREAD_FEW:
            return fresh, True
    return fresh, False


def _helpers(problem: Problem, labels: Labels, centroids: Matrix, failing: Labels, which: int) -> Labels:
    """Order the cells that break nothing: those first that bring what the failing ones lack and are near to one."""
    codes = problem.guarded[which].codes
    mean = np.bincount(labels, codes) / np.bincount(labels)
    off = mean - float(codes.mean())
    others = np.setdiff1d(np.arange(len(mean)), failing)
    nearest = failing[kernels.assign(centroids[others], np.ascontiguousarray(centroids[failing]))]
    apart = ((centroids[others] - centroids[nearest]) ** 2).sum(axis=1)
    sizes = np.bincount(labels)
    together = float((off * sizes)[failing].sum())
    helps = off[others] * together < 0 if problem.guarded[which].ordered else np.ones(len(others), dtype=bool)
    return np.asarray(others[np.lexsort((apart, ~helps))])
