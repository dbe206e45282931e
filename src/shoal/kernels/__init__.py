"""Kernels: the only interface to the compiled code. Arrays in, arrays out.

Callers have validated their input: matrices are C-contiguous float64 and finite, labels run from 0 without gaps, k is
at most the number of records. The compiled module checks this again, so that a bug in shoal raises ValueError instead
of reading out of bounds. Threads and progress are passed in a context variable, so that the signature of an algorithm
stays ``(X, k, seed)``.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal import _kernels
from shoal.errors import ParameterError
from shoal.kernels.cores import n_cores
from shoal.typing import Labels, Matrix, Progress, Vector

__all__ = [
    "Departures",
    "Effort",
    "Guarantees",
    "Interrupted",
    "Intervals",
    "NcpTable",
    "ProgressReporter",
    "Ranks",
    "RefineHints",
    "Remaining",
    "Schedule",
    "TextReader",
    "TextWriter",
    "Tuples",
    "Window",
    "agreeing_records",
    "all_finite",
    "anneal",
    "arrive",
    "assign",
    "balanced_cells",
    "cell_means",
    "cell_neighbours",
    "cell_spread",
    "cell_sums",
    "co_moments",
    "differ_within_cells",
    "dissolve_cells",
    "distances",
    "first_places",
    "guarded_search",
    "halves",
    "inside_intervals",
    "least_different",
    "linkage",
    "mdav",
    "mdav_alone",
    "mdav_part",
    "most_frequent",
    "n_threads",
    "ncp_recode",
    "ncp_search",
    "ncp_specialise",
    "place",
    "progress_callback",
    "refine",
    "refine_around",
    "simd",
    "split",
    "stage",
    "text_keys",
    "unit_scale",
    "univariate",
    "using",
]

Keys = NDArray[np.uint64]

N_NEAR = 16
"""Number of records around each record whose cells `ncp_search` tries for it."""


class _Setting(NamedTuple):
    threads: int
    progress: Progress | None


_setting: ContextVar[_Setting | None] = ContextVar("shoal_kernel_setting", default=None)


@contextmanager
def using(threads: int | None = None, progress: Progress | None = None) -> Iterator[None]:
    """Run the block with this number of threads, by default that of the block around it, and this progress callback."""
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
        raise ParameterError(f"threads must be a whole number of at least 1, or None for all cores; got {threads!r}.")
    if progress is not None and not callable(progress):
        raise ParameterError(f"progress must be callable or None, not {type(progress).__name__}.")
    token = _setting.set(_Setting(min(threads or n_threads(), 2**31 - 1), progress))  # the kernels count in 32 bits
    try:
        yield
    finally:
        _setting.reset(token)


@contextmanager
def stage(begin: float, end: float) -> Iterator[None]:
    """Run the block as a part of a longer computation: its progress runs from `begin` to `end` as shares of it."""
    threads, progress = _current()

    def report(done: int, total: int) -> None:
        assert progress is not None
        progress(int(total * begin + done * (end - begin)), total)

    token = _setting.set(_Setting(threads, None if progress is None else report))
    try:
        yield
    finally:
        _setting.reset(token)


def _current() -> _Setting:
    return _setting.get() or _Setting(n_cores(), None)


class ProgressReporter:
    """Calls the progress callback a few times a second, for loops in Python."""

    def __init__(self, n_records: int) -> None:
        self._n_records = n_records
        self._progress = _current().progress
        self._next = monotonic() + 0.05

    def update(self, done: int) -> None:
        """Report the number of records done, unless the last report was less than 50 ms ago."""
        if self._progress is not None and monotonic() >= self._next:
            self._next = monotonic() + 0.05
            self._progress(done, self._n_records)

    def finish(self) -> None:
        """Report that all records are done."""
        if self._progress is not None:
            self._progress(self._n_records, self._n_records)


class Interrupted(KeyboardInterrupt):
    """A search was interrupted; `labels` is the best partition found so far."""

    def __init__(self, labels: Labels) -> None:
        super().__init__()
        self.labels = labels


@contextmanager
def _kept(labels: Labels) -> Iterator[None]:
    """Raise `Interrupted` with the labels that a search updates in place, if it is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(labels) from None


def _as_labels(array: Labels) -> Labels:
    """View an array of 64-bit integers as np.int64, which the compiler may call by another type name."""
    return array.view(np.int64)


def n_threads() -> int:
    """Return the number of threads to use."""
    return _current().threads


def progress_callback() -> Progress | None:
    """Return the progress callback to report to."""
    return _current().progress


def simd() -> str:
    """Return the instruction set used on this machine: generic, avx2 or avx512."""
    return _kernels.simd()


def mdav(X: Matrix, k: int) -> Labels:
    """Partition by MDAV; see `shoal.methods.mdav`."""
    threads, progress = _current()
    return _as_labels(_kernels.mdav(X, k, threads, progress))


def mdav_alone(X: Matrix, k: int, check: Callable[[], None] | None = None) -> Labels:
    """Partition by MDAV on one thread, for callers that run several side by side; `check` may stop it."""
    return _as_labels(_kernels.mdav(X, k, 1, check and (lambda done, total: check())))


def mdav_part(X: Matrix, records: Labels, k: int, threads: int, check: Callable[[], None]) -> Labels:
    """Partition some of the records by MDAV, for callers that run several parts side by side; `check` may stop it."""
    return _as_labels(_kernels.mdav_part(X, records, k, threads, lambda done, total: check()))


def refine(
    X: Matrix, labels: Labels, k: int, rounds: int, neighbours: int, least_gain: float, thorough: bool
) -> Labels:
    """Lower the loss of a partition by moves and swaps; see `shoal.methods.refine`."""
    best = labels.copy()
    with _kept(best):
        _kernels.refine(X, best, k, rounds, neighbours, least_gain, thorough, *_current())
    return best


class RefineHints(NamedTuple):
    """Facts about cells that are refined again: which have changed, and their previous neighbours."""

    cells: Labels
    """Numbers of the cells that have changed."""
    neighbours: Labels
    """Neighbour lists of the first cells, concatenated, as `cell_neighbours` returns them; empty to search for them."""
    origins: Labels
    """For each cell after the first ones, the cell that it was split from."""


def cell_neighbours(X: Matrix, labels: Labels, k: int, n_neighbours: int) -> Labels:
    """Return the neighbouring cells of each cell, nearest first, as concatenated lists.

    Lists of cells with fewer neighbours are padded with 2**32 - 1. No cell has many more than 2k records.
    """
    return _as_labels(_kernels.cell_neighbours(X, labels, k, n_neighbours, n_threads()))


def refine_around(
    X: Matrix, labels: Labels, touched: RefineHints, k: int, rounds: int, neighbours: int, least_gain: float
) -> Labels:
    """Lower the loss around the cells that have changed, and form new cells from surplus records of others.

    No cell has 2k records or more. See `shoal.incremental`.
    """
    return _as_labels(_kernels.refine_around(X, labels, *touched, k, rounds, neighbours, least_gain, *_current()))


def arrive(X: Matrix, labels: Labels, k: int, *, inertial: bool, split_mid: bool) -> Labels:
    """Assign the records after the first ``len(labels)`` in order to the nearest cells.

    With `inertial` the squared distance to a cell of n records is multiplied by n / (n + 1); with `split_mid` a cell of
    2k records is split by MDAV at once. See `shoal.incremental`.
    """
    threads, progress = _current()
    return _as_labels(_kernels.arrive(X, labels, k, inertial, split_mid, threads, progress))


class Schedule(NamedTuple):
    """Annealing schedule: initial temperature `hot`, in units of the mean loss per record, lowered by ``e**-fall``."""

    steps: int
    hot: float
    fall: float


def anneal(X: Matrix, labels: Labels, k: int, schedule: Schedule, seed: int) -> Labels:
    """Search for a partition with a lower loss by random steps; see `shoal.methods.auto`."""
    best = labels.copy()
    with _kept(best):
        _kernels.anneal(X, best, k, *schedule, seed, _current().progress)
    return best


Guarantees = _kernels.Guarantees
"""The models that every cell must satisfy, with their codes; each has a veto in `guarded_search`."""


class Effort(NamedTuple):
    """Length of a guarded search: maximum number of rounds, neighbours per cell, and gain of the last round."""

    rounds: int
    neighbours: int
    least_gain: float
    at_any_cost: bool
    """Repair every cell that violates a model, if necessary by merging it with another."""


def guarded_search(X: Matrix, labels: Labels, k: int, guarantees: Guarantees, effort: Effort) -> Labels:
    """Repair cells that violate a model, then lower the loss by steps that violate none; see `shoal.models`."""
    return _as_labels(_kernels.guarded_search(X, labels, k, guarantees, *effort, *_current()))


NcpTable = _kernels.NcpTable
"""Columns of numbers, categories and hierarchies, as the certainty penalty sees them; see `shoal.space.ncp_weights`."""


def ncp_specialise(table: NcpTable, k: int) -> Labels:
    """Return cells of at least `k` records, cut from the whole table column by column; see ``docs/ncp.md``."""
    return _as_labels(_kernels.ncp_specialise(table, k, _current().progress))


def ncp_recode(table: NcpTable, labels: Labels, k: int, guarantees: Guarantees, steps: int, seed: int) -> Labels:
    """Lower the certainty penalty by steps that change whole groups of records and violate no model."""
    best = labels.copy()
    with _kept(best):
        _kernels.ncp_recode(table, best, k, guarantees, steps, seed, *_current())
    return best


def ncp_search(
    table: NcpTable,
    X: Matrix,
    labels: Labels,
    k: int,
    guarantees: Guarantees,
    rounds: int,
    schedule: Schedule,
    seed: int,
) -> Labels:
    """Lower the certainty penalty by random moves and swaps that violate no model; see `shoal.constraints.ncp_cells`.

    Records that are near each other in `X` are tried in one cell. The temperature of the schedule is in units of the
    mean penalty of a record.
    """
    steps, hot, fall = schedule
    best = labels.copy()
    with _kept(best):
        _kernels.ncp_search(table, X, best, k, guarantees, steps, rounds, N_NEAR, hot, fall, seed, *_current())
    return best


def balanced_cells(X: Matrix, codes: Labels, size: int, parts: int) -> Labels:
    """Return cells of about `size` near records that each hold the same share of each of `parts` parts of the codes.

    The size is at most the number of records and at least the number of parts.
    """
    return _as_labels(_kernels.balanced_cells(X, codes, size, parts))


def univariate(values: Vector, k: int) -> Labels:
    """Return the sizes of the cells of minimum SSE of ascending values, in ascending order of values."""
    return _as_labels(_kernels.univariate(values, k, _current().progress))


def split(X: Matrix, parts: Labels, k: int) -> Labels:
    """Split parts of at least k records around their farthest pairs into cells of k to 2k-1; return the cells."""
    threads, progress = _current()
    return _as_labels(_kernels.split(X, parts, int(parts.max()) + 1, k, threads, progress))


def assign(X: Matrix, points: Matrix) -> Labels:
    """Return the index of the point nearest to each record, shape (n_records,); ties go to the lowest index."""
    return _as_labels(_kernels.assign(X, points, _current().threads))


def dissolve_cells(X: Matrix, labels: Labels, k: int) -> Labels:
    """Dissolve cells where that lowers the SSE; their numbers are then unused.

    No number of `X` exceeds 1 in magnitude. See `shoal.methods.dissolve`.
    """
    return _as_labels(_kernels.dissolve_cells(X, labels, k, _current().threads))


class Ranks(NamedTuple):
    """Numbers of records nearer than the own one, and as near (itself included); shape (n_records,) each."""

    ahead: Labels
    ties: Labels


def linkage(X: Matrix, points: Matrix, labels: Labels, asked: Labels | None = None) -> tuple[Ranks, Ranks]:
    """Rank by distance the original records around each released point, and the released records around each original.

    Record i was released as ``points[labels[i]]``. Around a released point, `ahead` is counted up to 2: a value of 2
    means two or more, and `ties` is then 0. Distances are compared in float64, with squared differences added column by
    column after an exact scaling by a power of two. `asked` are ascending indices of the records to rank, among all
    records.
    """
    threads, progress = _current()
    records = np.arange(len(X)) if asked is None else asked
    own = np.unique(labels[records])
    originals, released = _kernels.linkage(X, points, labels, records, own, threads, progress)
    return Ranks(*(_as_labels(r)[records] for r in originals)), Ranks(*(_as_labels(r)[records] for r in released))


def distances(X: Matrix, point: Vector) -> Vector:
    """Return the squared distances of the records from a point, shape (n_records,)."""
    return _kernels.distances(X, point)


def halves(X: Matrix, records: Labels, direction: Vector, scale: float, threads: int) -> tuple[Labels, Labels]:
    """Cut some records in two across a direction: the lower half of them, ties by index, and the rest.

    `records` are ascending indices, and so are the results. `scale` is that of `unit_scale`.
    """
    low, high = _kernels.halves(X, records, direction, scale, threads)
    return _as_labels(low), _as_labels(high)


def unit_scale(X: Matrix) -> float:
    """Return the power of two that brings the largest magnitude into [1/2, 1)."""
    return _kernels.unit_scale(X, n_threads())


def cell_sums(X: Matrix, labels: Labels, n_cells: int) -> Matrix:
    """Return the sums of the records of each cell, correctly rounded, shape (n_cells, n_dims)."""
    return _kernels.cell_sums(X, labels, n_cells, n_threads())


def cell_spread(X: Matrix, labels: Labels, n_cells: int) -> Vector:
    """Return the sum of squared distances of the records of each cell from their mean; shape (n_cells,)."""
    return _kernels.cell_spread(X, labels, n_cells, n_threads())


def co_moments(
    columns: Sequence[Vector], exponents: Sequence[int], origins: Sequence[float], weights: Vector | None = None
) -> tuple[Vector, Matrix]:
    """Return means and covariances of the columns ``values * 2**exponent - origin``; the latter divide by the weight.

    The same bits for any number of threads. The columns may hold NaN, and the results then do.
    """
    own = [] if weights is None else [weights]
    # Of fewer numbers the sums take less time than starting a thread.
    threads = n_threads() if len(columns) * len(columns[0]) >= 1 << 20 else 1
    return _kernels.co_moments(list(columns), list(exponents), np.array(origins, dtype=float), own, threads)


class Intervals(NamedTuple):
    """Intervals around values: from `low` to `high`, and `reach` around `centre`; shape (n_values,) but for `reach`."""

    low: Vector
    high: Vector
    centre: Vector
    reach: float


def inside_intervals(
    numbers: Vector, exponent: int, origin: float, own: Labels, intervals: Intervals
) -> tuple[int, int]:
    """Count the numbers inside the interval of their own value: between its ends, and within reach of its centre.

    The centre is compared with ``numbers * 2**exponent - origin``. An interval whose ends are NaN holds nothing.
    """
    low, high, centre, reach = intervals
    threads = n_threads() if len(numbers) >= 1 << 18 else 1
    return _kernels.inside_intervals(numbers, exponent, origin, own, low, high, centre, reach, threads)


def agreeing_records(columns: Sequence[Labels]) -> Labels:
    """Return classes of records that agree in all columns of 64-bit words, numbered by their first records."""
    return _as_labels(_kernels.agreeing_records([np.ascontiguousarray(column) for column in columns]))


def first_places(codes: Labels, n_codes: int) -> Labels:
    """Return where each code first occurs, after the last record if it does not."""
    return _as_labels(_kernels.first_places(codes, n_codes))


class Remaining:
    """The records not yet in a cell, with exact nearest and farthest searches.

    Parameters
    ----------
    X : ndarray of shape (n_records, n_dims)
        All records; it must not change while this object lives.

    Examples
    --------
    >>> remaining = Remaining(np.array([[1.0], [9.0], [2.0], [8.0]]))
    >>> records, squared = remaining.nearest(np.array([0.0]), 2)
    >>> records, squared
    (array([0, 2]), array([1., 4.]))
    >>> remaining.remove(records)
    >>> len(remaining), remaining.farthest(np.array([0.0])), remaining.centroid()
    (2, 1, array([8.5]))
    """

    def __init__(self, X: Matrix) -> None:
        self._records = _kernels.Remaining(X, _current().threads)

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, record: int) -> bool:
        return record in self._records

    def centroid(self) -> Vector:
        """Return the mean of the remaining records: correctly rounded sums divided by their number; shape (n_dims,)."""
        return self._records.centroid()

    def nearest(self, point: Vector, k: int) -> tuple[Labels, Vector]:
        """Return the k records nearest to a point, nearest first, ties by index, and their squared distances."""
        records, squared = self._records.nearest(point, k)
        return _as_labels(records), squared

    def farthest(self, point: Vector) -> int:
        """Return the record farthest from a point; ties go to the lowest index."""
        return self._records.farthest(point)

    def farthest_from_centroid(self) -> int:
        """Return the record farthest from the centroid, much faster than `farthest`."""
        return self._records.farthest_from_centroid()

    def gather(self, record: int, k: int) -> Labels:
        """Remove a record and its k - 1 nearest, ties by index; return them, the record first."""
        return _as_labels(self._records.gather(record, k))

    def grow(self, record: int, k: int) -> Labels:
        """Remove a record and, k - 1 times, the one nearest to the mean of those removed; return them in order."""
        return _as_labels(self._records.grow(record, k))

    def remove(self, records: Labels) -> None:
        """Remove records; each must still remain."""
        self._records.remove(records)


class Tuples(NamedTuple):
    """Tuples of a stream in order of arrival, as stored in the window."""

    X: Matrix
    """Coordinates, shape (n_tuples, n_dims)."""
    codes: Keys
    """Nominal values, compared for equality, shape (n_tuples, n_codes)."""
    tags: Keys
    """Values that must differ within a cell, shape (n_tuples, n_tags)."""
    times: Vector
    """Arrival times in seconds, shape (n_tuples,)."""


TextReader = _kernels.TextReader
TextWriter = _kernels.TextWriter


class Departures(NamedTuple):
    """Rows released by a window; rows are numbered through the tuples that were waiting and then those pushed."""

    rows: Labels
    """Cell by cell, in order of arrival within each."""
    sizes: Labels
    """Number of rows of each cell."""
    side: Labels
    """Rows for which no cell was found."""
    reasons: Labels
    """The reason for each of those: 0 for too few tuples, 1 + j for too few different tags in column j."""
    kept: Labels
    """Rows that are still waiting."""


class Window:
    """Waiting tuples of a stream; when the oldest is due, it is released with its nearest. See `shoal.stream`.

    Parameters
    ----------
    n_dims, k : int
        Number of coordinates of a tuple, and smallest cell size.
    delay : int or None
        A tuple is due after this number of later tuples,
    max_age : float or None
        or at this age in seconds.
    order_weight : float
        Weight of one position in the distance.
    max_cell : int
        Maximum size to which a cell may be extended by close tuples; 0 for k.
    code_weights : sequence of float
        Squared distance between different codes, for each column.
    least : sequence of int
        Minimum number of different tags in a cell, for each column.
    simd : str
        The instruction set; the best available by default.
    """

    def __init__(
        self,
        n_dims: int,
        k: int,
        *,
        delay: int | None = None,
        max_age: float | None = None,
        order_weight: float = 0.0,
        max_cell: int = 0,
        code_weights: tuple[float, ...] = (),
        least: tuple[int, ...] = (),
        simd: str = "",
    ) -> None:
        never = np.iinfo(np.int64).max
        self._window = _kernels.StreamWindow(
            n_dims,
            k,
            never if delay is None else delay,
            np.inf if max_age is None else max_age,
            order_weight,
            max_cell,
            code_weights,
            least,
            simd,
        )

    def __len__(self) -> int:
        return len(self._window)

    def push(self, tuples: Tuples) -> Departures:
        """Add tuples one by one, and release what is due after each."""
        return _departures(self._window.push(*tuples))

    def advance(self, now: float) -> Departures:
        """Advance the clock, and release what is due."""
        return _departures(self._window.advance(now))

    def flush(self) -> Departures:
        """Release everything: the last cell also takes the tuples that would be too few for a cell."""
        return _departures(self._window.flush())

    def recode(self, X: Matrix) -> None:
        """Replace the coordinates of the waiting tuples, in order of arrival."""
        self._window.recode(X)

    def waiting(self) -> tuple[Labels, Vector]:
        """Return the arrival numbers and times of the waiting tuples."""
        positions, times = self._window.waiting()
        return _as_labels(positions), times

    def tally(self) -> dict[str, Any]:
        """Return the statistics of all released tuples."""
        return dict(self._window.tally())

    def restore(self, tuples: Tuples, positions: Labels, tally: dict[str, Any]) -> None:
        """Restore the state of another window; this one must be empty."""
        self._window.restore(*tuples, positions, tally)


def _departures(arrays: tuple[Labels, ...]) -> Departures:
    return Departures(*map(_as_labels, arrays))


def text_keys(offsets: NDArray[np.int32] | Labels, data: NDArray[np.uint8]) -> Keys:
    """Return 64-bit keys of concatenated strings; equal strings have equal keys on every machine."""
    return _kernels.text_keys(offsets, data).view(np.uint64)


def place(columns: list[Vector], n: int, low: Vector, high: Vector, weights: Vector) -> tuple[Matrix, Labels]:
    """Return columns of n values, scaled from their ranges to 0 to `weights`, and the number of values outside.

    Values outside a range are clipped, missing ones (NaN) go to its middle, and all are 0 if a range has no width.
    """
    X, outside = _kernels.place(columns, n, low, high, weights)
    return X, _as_labels(outside)


def all_finite(columns: list[Vector]) -> bool:
    """Return whether no value is NaN or infinite."""
    return _kernels.all_finite(columns)


def cell_means(values: Vector, sizes: Labels) -> tuple[Vector, bool]:
    """Return for each value the mean of those present in its cell, and whether any is NaN; cells are contiguous.

    A missing value is NaN. A mean is missing where more than half of its cell is.
    """
    return _kernels.cell_means(values, sizes)


def differ_within_cells(values: Vector | Keys, sizes: Labels) -> bool:
    """Return whether any cell has different values; cells are contiguous."""
    return _kernels.differ_within_cells(values, sizes)


def least_different(keys: Keys, sizes: Labels) -> int:
    """Return the smallest number of different keys in a cell; cells are contiguous, and there is at least one."""
    return _kernels.least_different(keys, sizes)


def most_frequent(keys: Keys, ranks: Labels, sizes: Labels) -> Labels:
    """Return, for each cell, a row that holds its most frequent key; ties go to the lowest rank."""
    return _as_labels(_kernels.most_frequent(keys, ranks, sizes))
