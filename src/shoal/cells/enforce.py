"""Enforce: from any partition to one that keeps every model, at a low loss.

Two ways lead there, and the better end is kept. Either the cells that break a model are mended: swaps and moves of
records, the cheapest first. Or the start is new: cells that each hold the same share of every part of the confidential
column. From both, records swap and move on as long as the loss falls and no model says no.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal import kernels
from shoal.arrays import as_cell_size, as_matrix
from shoal.cells.bucket_steering import refuse_second_weight, steered
from shoal.errors import GuaranteeError, ParameterError
from shoal.models.model import Model
from shoal.models.model_on_column import ModelOnColumn, excess_of, vetoes_of
from shoal.models.t_closeness import TCloseness
from shoal.partition import partition
from shoal.partition.cell_building import members_of, renumbered
from shoal.typing import Labels, Matrix, Seed

# Up to so many records several starts are tried to the end, and each search goes on until nothing is left to gain.
SMALL = 5_000
THOROUGH = kernels.Effort(rounds=60, neighbours=40, least_gain=1e-5, at_any_cost=True)
# Beyond, there is one search, or two, longer up to some tens of thousands.
MEDIUM = 60_000
LONG = kernels.Effort(rounds=20, neighbours=20, least_gain=0.003, at_any_cost=True)
WIDE = LONG._replace(neighbours=40)
QUICK = kernels.Effort(rounds=4, neighbours=15, least_gain=0.01, at_any_cost=True)
# Which size is best is found out on so many of the records; with more of them it grows like the fourth root.
SAMPLE = 4_000
# Up to the first share of the cells they are mended one by one; above the second, all are made anew; in between, the
# better of both is kept, unless there are too many records for two searches.
FEW = 0.15
MANY = 0.5
MANAGEABLE = 50
SPREAD_FEW = 0.01
# Cells of evenly spread values are tried with so many times the records that the model needs at least: with more of
# them there is more to choose from, with fewer they are smaller.
SIZES = (1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)
SAMPLED_SIZES = (1.0, 1.5, 2.0, 3.0)


class Problem(NamedTuple):
    """Records, and what is promised about them; the vetoes know the whole table, also where the records are a part."""

    X: Matrix
    k: int
    guarded: Sequence[ModelOnColumn]
    vetoes: kernels.Guarantees

    def part(self, records: Labels) -> "Problem":
        """Return the same for some of the records."""
        X = np.ascontiguousarray(self.X[records])
        return Problem(X, self.k, [each.part(records) for each in self.guarded], self.vetoes.part(records))

    def fails(self, labels: Labels) -> NDArray[np.bool_]:
        """Say which cells break a model."""
        return _failing(self.vetoes, labels)


def enforce(
    X: Matrix,
    labels: Labels | None,
    k: int,
    models: Sequence[ModelOnColumn | tuple[Model, Labels, int, bool]],
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
        What to keep about which column; see `shoal.models.encode`. A `ModelOnColumn` may also name the person of each
        record, who then counts once for each value.
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
    groups = np.zeros(len(matrix), dtype=np.int64) if strata is None else renumbered(strata)
    if labels is not None:
        labels = _valid(labels, groups, k)
    guarded = [checked(ModelOnColumn(*each), len(matrix)) for each in models]
    strict = [each for each in guarded if each.model.promised]
    whole = Problem(matrix, k, strict, vetoes_of(strict))
    steering = [each for each in guarded if not each.model.promised]
    parts = members_of(groups)
    if labels is not None and not steering:
        return _mended(whole, labels, parts)
    result = np.empty(len(matrix), dtype=np.int64)
    n_cells = 0
    for records in parts:
        problem = whole.part(records)
        start = _start(problem, [each.part(records) for each in steering], method, seed)
        result[records] = _enforced(problem, start) + n_cells
        n_cells = int(result[records].max()) + 1
    _recount(strict, result)
    return result


def _valid(labels: Labels, groups: Labels, k: int) -> Labels:
    """Refuse labels that are not a partition, within the groups, into cells of at least k records."""
    if np.shape(labels) != np.shape(groups):
        raise ParameterError(f"labels have shape {np.shape(labels)}; {len(groups)} records need one each.")
    labels = renumbered(labels)
    labels = renumbered(groups * (int(labels.max()) + 1) + labels)
    smallest = int(np.bincount(labels).min())
    if smallest < k:
        raise GuaranteeError(f"Cells of k={k} records were asked for, but the smallest cell has {smallest} records.")
    return labels


def _mended(whole: Problem, labels: Labels, parts: Sequence[Labels]) -> Labels:
    """Return a partition that keeps every model, changed only in the strata where one is broken."""
    failing = whole.fails(labels) if whole.guarded else np.zeros(0, dtype=bool)
    if not failing.any():
        return labels
    result = labels.copy()
    broken = failing[labels]
    n_cells = len(failing)
    for records in parts:
        if broken[records].any():
            problem = whole if len(parts) == 1 else whole.part(records)
            result[records] = _enforced(problem, renumbered(labels[records])) + n_cells
            n_cells = int(result[records].max()) + 1
    result = renumbered(result)
    _recount(whole.guarded, result)
    return result


def _recount(strict: Sequence[ModelOnColumn], labels: Labels) -> None:
    """Count again, in another way than the search does, before anything is returned."""
    for each in strict:
        found = each.model.measure(labels, each.column)
        if not found.holds:
            raise GuaranteeError(
                f"{each.model} is broken by {found.n_failing} of {found.n_classes} cells in the recount. Nothing is "
                "returned; please report this."
            )


def checked(guarded: ModelOnColumn, n_records: int) -> ModelOnColumn:
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


def _start(problem: Problem, steering: Sequence[ModelOnColumn], method: str, seed: Seed) -> Labels:
    """Return the partition to begin with: the method's, steered where a weight says so."""
    refuse_second_weight(steering)
    if steering:
        model = steering[0].model
        assert isinstance(model, TCloseness)
        assert model.weight is not None
        return steered(problem.X, steering[0].codes, problem.k, model.t, model.weight, method, seed)
    return partition(problem.X, problem.k, method, seed)


def _enforced(problem: Problem, labels: Labels) -> Labels:
    """Return a partition of these records that keeps every model, beginning with `labels`."""
    if not problem.guarded:
        return labels
    failing = problem.fails(labels)
    if not failing.any():
        return labels
    _refuse_impossible(problem)
    if len(problem.X) <= SMALL:
        return _best(problem, [_searched(problem, start, THOROUGH) for start in _starts(problem, labels)])
    if len(problem.X) <= MEDIUM:
        ends = [_searched(problem, labels, LONG)] if failing.mean() <= MANY else []
        wide = WIDE if any(each.ordered for each in problem.guarded) else LONG
        ends += [_searched(problem, _spread_anew(problem), wide)] if failing.mean() > FEW else []
        return _best(problem, ends)
    return _searched(problem, labels if failing.mean() <= MANY else _spread_anew(problem), QUICK)


def _best(problem: Problem, ends: Sequence[Labels]) -> Labels:
    """Return the partition with the least loss."""
    return min(ends, key=lambda end: _spread_within(problem.X, end))


def _searched(problem: Problem, labels: Labels, effort: kernels.Effort) -> Labels:
    return kernels.guarded_search(problem.X, labels, problem.k, problem.vetoes, effort)


def _failing(vetoes: kernels.Guarantees, labels: Labels) -> NDArray[np.bool_]:
    return excess_of(vetoes, labels) > 0


def _refuse_impossible(problem: Problem) -> None:
    """Raise if a model is broken by all records as one cell: then every partition has a cell that breaks it.

    A mixture of cells that keep a model keeps it: the distances of t-closeness are convex, entropy is concave, and more
    records never have fewer values. Where persons count once this is no proof, but then, too, one cell of everything is
    what the search can fall back on.
    """
    everything = np.zeros(len(problem.X), dtype=np.int64)
    for place, each in enumerate(problem.guarded):
        if _failing(problem.vetoes.one(place), everything).any():
            raise GuaranteeError(f"{each.model} cannot be kept: {each.model.why_impossible(each.column)}.")


def _spread_within(X: Matrix, labels: Labels) -> float:
    return float(kernels.cell_spread(X, labels, int(labels.max()) + 1).sum())


def _starts(problem: Problem, labels: Labels) -> Iterator[Labels]:
    """Yield the partition given, then cells in which the first column is spread evenly, of several sizes."""
    # Where most of many cells fail, mending them one by one is no way.
    failing = problem.fails(labels)
    if failing.mean() < MANY or len(failing) <= MANAGEABLE:
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
    veto = problem.vetoes.one(which)
    n = len(problem.X)
    place = np.empty(n, dtype=np.int64)
    place[np.argsort(problem.guarded[which].codes, kind="stable")] = np.arange(n)
    size = 2
    while size < n:
        n_cells = n // size
        if not _failing(veto, np.minimum(place % n_cells, n_cells - 1)).any():
            break
        size = max(size + 1, size * 11 // 10)
    return min(size, n)


def _spread_anew(problem: Problem) -> Labels:
    """Return cells in which a column is spread evenly, of the size that is best on a sample."""
    first = _steering_order(problem)
    least = _least_size(problem, first)
    sample = problem.part(np.arange(0, len(problem.X), -(-len(problem.X) // SAMPLE)))
    grown = (len(problem.X) / len(sample.X)) ** 0.25
    return _spread_out(problem, first, [least * times * grown for times in _best_times(sample, first, least)])


def _best_times(sample: Problem, first: int, least: int) -> tuple[float, ...]:
    """Return by how much cells should be larger than the least, and what is left to try if that does not do."""
    losses = []
    for times in SAMPLED_SIZES:
        start = _spread_out(sample, first, [least * times])
        losses.append(_spread_within(sample.X, _searched(sample, start, QUICK)))
    return SAMPLED_SIZES[int(np.argmin(losses)) :]


def _spread_out(problem: Problem, first: int, sizes: Sequence[float]) -> Labels:
    """Return cells in which a column is spread evenly, of the first size with which few fail, or of the last."""
    for wanted in sizes:
        size = min(max(problem.k, round(wanted)), len(problem.X))
        fresh = kernels.spread(problem.X, problem.guarded[first].codes, size, min(size, max(3, round(wanted))))
        if problem.fails(fresh).mean() < SPREAD_FEW:
            break
    return fresh
