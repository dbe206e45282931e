"""Enforce: turn any partition into one that satisfies every model, at a low loss.

There are two strategies, and the better result is returned. The first repairs the cells that violate a model by swaps
and moves of records, the cheapest first. The second starts from new cells, each with the same share of every part of
the confidential column. Both then swap and move records as long as the loss decreases and no model is violated.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal import kernels
from shoal.arrays import as_cell_size, as_matrix
from shoal.constraints.bucket_steering import refuse_second_weight, steered
from shoal.errors import GuaranteeError, ParameterError
from shoal.kernels.parallel_calls import side_by_side
from shoal.methods import partition
from shoal.methods.cell_building import renumbered
from shoal.methods.within_strata import within
from shoal.models.model import Model
from shoal.models.model_on_column import ModelOnColumn, excess_of, vetoes_of
from shoal.models.t_closeness import TCloseness
from shoal.progress import TotalProgress
from shoal.typing import Labels, Matrix, Progress, Seed

# Maximum number of records for which several initial partitions are tried and each search runs until it gains nothing.
SMALL = 5_000
THOROUGH = kernels.Effort(rounds=60, neighbours=40, least_gain=1e-5, at_any_cost=True)
# Above that there are one or two searches, which are longer up to this number of records.
MEDIUM = 60_000
LONG = kernels.Effort(rounds=20, neighbours=20, least_gain=0.003, at_any_cost=True)
WIDE = LONG._replace(neighbours=40)
QUICK = kernels.Effort(rounds=4, neighbours=15, least_gain=0.01, at_any_cost=True)
# Number of records in the sample on which the best cell size is determined; it grows with the fourth root of n.
SAMPLE = 4_000
# If at most the first share of the cells fail, they are repaired; above the second share, all cells are rebuilt; in
# between, the better of both is taken, unless there are too many records for two searches.
FEW = 0.15
MANY = 0.5
MANAGEABLE = 50
BALANCED_FEW = 0.01
# Sizes of balanced cells that are tried, as multiples of the minimum size that the model needs: larger cells leave the
# search more choice, smaller ones lose less.
SIZES = (1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)
SAMPLED_SIZES = (1.0, 1.5, 2.0, 3.0)


class Problem(NamedTuple):
    """Records and the models to satisfy; the vetoes refer to the whole table, even if the records are a part of it."""

    X: Matrix
    k: int
    guarded: Sequence[ModelOnColumn]
    vetoes: kernels.Guarantees

    def part(self, records: Labels) -> "Problem":
        """Return the same for some of the records."""
        X = np.ascontiguousarray(self.X[records])
        return Problem(X, self.k, [each.part(records) for each in self.guarded], self.vetoes.part(records))

    def fails(self, labels: Labels) -> NDArray[np.bool_]:
        """Return which cells violate a model."""
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
    """Return a partition that satisfies k and every model.

    Parameters
    ----------
    X : ndarray of shape (n_records, n_dims)
        Quasi-identifiers in the space.
    labels : ndarray of shape (n_records,), optional
        Initial partition; by default that of `method`. Returned unchanged if it satisfies every model.
    k : int
        Smallest cell size.
    models : sequence of (model, codes, n_values, ordered)
        The models and their columns; see `shoal.models.encode`. A `ModelOnColumn` may also give the person of each
        record, who is then counted once for each value.
    method, seed
        As in `shoal.partition`.
    strata : ndarray of shape (n_records,), optional
        No cell has records of two strata. Models still refer to the whole table.

    Returns
    -------
    labels : ndarray of shape (n_records,), int64
        Cell number of each record, from 0 and without gaps.

    Raises
    ------
    GuaranteeError
        If no partition satisfies every model.

    Notes
    -----
    Near-linear in the records, unless thousands of cells have to be repaired with distant ones. A model with a weight
    (`TCloseness`) steers the initial partition and is not enforced.

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
    if labels is not None and not steering:
        return _repaired(whole, labels, groups)

    def cut(problem: Problem, records: Labels) -> Labels:
        return _enforced(problem, _start(problem, [each.part(records) for each in steering], method, seed))

    result = _within(whole, groups, np.arange(len(matrix)), cut)
    _recount(strict, result)
    return result


def _valid(labels: Labels, groups: Labels, k: int) -> Labels:
    """Refuse labels that are not a partition, within the groups, into cells of at least k records."""
    if np.shape(labels) != np.shape(groups):
        raise ParameterError(f"labels must have one entry for each of {len(groups)} records; got {np.shape(labels)}.")
    labels = renumbered(labels)
    labels = renumbered(groups * (int(labels.max()) + 1) + labels)
    smallest = int(np.bincount(labels).min())
    if smallest < k:
        raise GuaranteeError(f"Cells of k={k} records were asked for, but the smallest cell has {smallest} records.")
    return labels


def _repaired(whole: Problem, labels: Labels, groups: Labels) -> Labels:
    """Return a partition that satisfies every model, changed only in the strata that violate one."""
    failing = whole.fails(labels) if whole.guarded else np.zeros(0, dtype=bool)
    if not failing.any():
        return labels

    is_violated = np.zeros(int(groups.max()) + 1, dtype=bool)
    is_violated[groups[failing[labels]]] = True
    records = np.flatnonzero(is_violated[groups])

    def repair(problem: Problem, records: Labels) -> Labels:
        return _enforced(problem, renumbered(labels[records]))

    result = labels.copy()
    result[records] = _within(whole, groups, records, repair) + len(failing)
    result = renumbered(result)
    _recount(whole.guarded, result)
    return result


def _within(whole: Problem, groups: Labels, records: Labels, cut: Callable[[Problem, Labels], Labels]) -> Labels:
    """Cut some of the strata, each separately and several at a time.

    `records` are those of these strata; `cut` takes the problem of a stratum and its records.
    """

    def cut_part(X: Matrix, threads: int, progress: Progress | None, records: Labels) -> Labels:
        with kernels.using(threads, progress):
            return cut(whole if len(records) == len(whole.X) else whole.part(records), records)

    strata = renumbered(groups[records])
    return within(whole.X[records], strata, cut_part, kernels.progress_callback(), others=[records])


def _recount(strict: Sequence[ModelOnColumn], labels: Labels) -> None:
    """Recount every model, independently of the search, before anything is returned."""
    for each in strict:
        found = each.model.measure(labels, each.column)
        if not found.holds:
            raise GuaranteeError(
                f"The recount found that {found.n_failing} of {found.n_classes} cells violate {each.model}. Nothing is "
                "returned. This is a bug in shoal; please report it."
            )


def checked(guarded: ModelOnColumn, n_records: int) -> ModelOnColumn:
    """Refuse codes of the wrong shape or out of range."""
    codes = np.ascontiguousarray(guarded.codes, dtype=np.int64)
    if codes.shape != (n_records,):
        raise ParameterError(
            f"The codes of column {guarded.model.column!r} must have one entry for each of {n_records} records; got "
            f"shape {codes.shape}."
        )
    if len(codes) and not 0 <= codes.min() <= codes.max() < guarded.n_values:
        raise ParameterError(
            f"The codes of column {guarded.model.column!r} must be from 0 to {guarded.n_values - 1}. "
            "Make them with shoal.models.encode."
        )
    return guarded._replace(codes=codes)


def _start(problem: Problem, steering: Sequence[ModelOnColumn], method: str, seed: Seed) -> Labels:
    """Return the initial partition: that of the method, steered by the model with a weight, if any."""
    refuse_second_weight(steering)
    if steering:
        model = steering[0].model
        assert isinstance(model, TCloseness)
        assert model.weight is not None
        return steered(problem.X, steering[0].codes, problem.k, model.t, model.weight, method, seed)
    return partition(problem.X, problem.k, method, seed)


def _enforced(problem: Problem, labels: Labels) -> Labels:
    """Return a partition of these records that satisfies every model, starting from `labels`."""
    if not problem.guarded:
        return labels
    failing = problem.fails(labels)
    if not failing.any():
        return labels
    _refuse_impossible(problem)
    if len(problem.X) <= SMALL:
        return _searched(problem, [(start, THOROUGH) for start in _starts(problem, labels)])
    if len(problem.X) <= MEDIUM:
        starts = [(labels, LONG)] if failing.mean() <= MANY else []
        wide = WIDE if any(each.ordered for each in problem.guarded) else LONG
        starts += [(_balanced(problem), wide)] if failing.mean() > FEW else []
        return _searched(problem, starts)
    return _searched(problem, [(labels if failing.mean() <= MANY else _balanced(problem), QUICK)])


def _searched(problem: Problem, starts: Sequence[tuple[Labels, kernels.Effort]]) -> Labels:
    """Return the partition with the lowest loss that a search from one of the starts finds."""
    total = TotalProgress(kernels.progress_callback(), len(problem.X) * len(starts))
    found = _searches(problem, starts, total)
    total.finish()
    return min(found, key=lambda labels: _sse(problem.X, labels))


def _searches(
    problem: Problem, starts: Sequence[tuple[Labels, kernels.Effort]], total: TotalProgress | None = None
) -> list[Labels]:
    """Search from each start, several at a time; if there are fewer starts than threads, a search has several."""
    at_once = min(kernels.n_threads(), len(starts))
    threads = kernels.n_threads() // at_once
    total = total or TotalProgress(None, 0)

    def search(number: int) -> Labels:
        labels, effort = starts[number]
        with kernels.using(progress=total.of(number, len(problem.X), kernels.progress_callback())):
            return kernels.guarded_search(problem.X, labels, problem.k, problem.vetoes, effort)

    return side_by_side(search, range(len(starts)), at_once, threads)


def _failing(vetoes: kernels.Guarantees, labels: Labels) -> NDArray[np.bool_]:
    return excess_of(vetoes, labels) > 0


def _refuse_impossible(problem: Problem) -> None:
    """Raise if all records as one cell violate a model: then every partition has a cell that violates it.

    A union of cells that satisfy a model satisfies it: the distances of t-closeness are convex, entropy is concave, and
    adding records never removes values. If persons count once this proof does not hold, but the search still needs the
    single cell of all records as its last resort.
    """
    everything = np.zeros(len(problem.X), dtype=np.int64)
    for place, each in enumerate(problem.guarded):
        if _failing(problem.vetoes.one(place), everything).any():
            raise GuaranteeError(f"{each.model} cannot be satisfied: {each.model.why_impossible(each.column)}.")


def _sse(X: Matrix, labels: Labels) -> float:
    return float(kernels.cell_spread(X, labels, int(labels.max()) + 1).sum())


def _starts(problem: Problem, labels: Labels) -> Iterator[Labels]:
    """Yield the partition given, then cells of several sizes in which one column is balanced."""
    # If most of many cells fail, repairing them one by one does not pay.
    failing = problem.fails(labels)
    if failing.mean() < MANY or len(failing) <= MANAGEABLE:
        yield labels
    first = _balanced_column(problem)
    least = _least_size(problem, first)
    for size in sorted({min(max(problem.k, round(least * times)), len(problem.X)) for times in SIZES}):
        yield kernels.balanced_cells(problem.X, problem.guarded[first].codes, size, size)


def _balanced_column(problem: Problem) -> int:
    """Return the index of the model whose column is balanced: the strictest t-closeness, or else the first model."""
    closeness = [
        (each.model.t, place) for place, each in enumerate(problem.guarded) if isinstance(each.model, TCloseness)
    ]
    return min(closeness)[1] if closeness else 0


def _least_size(problem: Problem, which: int) -> int:
    """Return the minimum cell size for which the model holds if its column is perfectly balanced.

    With n_cells cells, every n_cells-th record of the sorted column goes into the same cell. Sizes grow by a tenth.
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


def _balanced(problem: Problem) -> Labels:
    """Return cells in which a column is balanced, of the size that is best on a sample."""
    first = _balanced_column(problem)
    least = _least_size(problem, first)
    sample = problem.part(np.arange(0, len(problem.X), -(-len(problem.X) // SAMPLE)))
    grown = (len(problem.X) / len(sample.X)) ** 0.25
    return _balanced_of_size(problem, first, [least * times * grown for times in _best_times(sample, first, least)])


def _best_times(sample: Problem, first: int, least: int) -> tuple[float, ...]:
    """Return the best multiple of the minimum size on a sample, followed by the larger ones to try if it fails."""
    starts = [(_balanced_of_size(sample, first, [least * times]), QUICK) for times in SAMPLED_SIZES]
    losses = [_sse(sample.X, labels) for labels in _searches(sample, starts)]
    return SAMPLED_SIZES[int(np.argmin(losses)) :]


def _balanced_of_size(problem: Problem, first: int, sizes: Sequence[float]) -> Labels:
    """Return cells in which a column is balanced, of the first size with which few fail, or of the last."""
    for wanted in sizes:
        size = min(max(problem.k, round(wanted)), len(problem.X))
        codes, n_parts = problem.guarded[first].codes, min(size, max(3, round(wanted)))
        labels = kernels.balanced_cells(problem.X, codes, size, n_parts)
        if problem.fails(labels).mean() < BALANCED_FEW:
            break
    return labels
