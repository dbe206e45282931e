"""The compiled loops, met by the rest of shoal only here: arrays in, arrays out.

Callers have checked what users give: matrices are C-contiguous float64 and finite, labels run from 0 without gaps, k is
at most the number of records. The compiled module checks this once more, and a mistake in shoal is a ValueError there
rather than a read outside of an array. Threads and progress travel in a context, so that an algorithm's signature stays
``(X, k, seed)``.
"""

from collections.abc import Callable, Iterator
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
    "Half",
    "Interrupted",
    "Ranks",
    "RefineHints",
    "Remaining",
    "Schedule",
    "TextReader",
    "TextWriter",
    "Tuples",
    "Watch",
    "Window",
    "anneal",
    "arrive",
    "assign",
    "cell_means",
    "cell_neighbours",
    "cell_spread",
    "cell_sums",
    "dissolve_cells",
    "distances",
    "guarded_search",
    "halves",
    "least_different",
    "linkage",
    "mdav",
    "mdav_alone",
    "most_frequent",
    "n_threads",
    "place",
    "refine",
    "refine_around",
    "simd",
    "split",
    "spread",
    "stage",
    "text_keys",
    "univariate",
    "using",
]

Keys = NDArray[np.uint64]


class _Setting(NamedTuple):
    threads: int
    progress: Progress | None


_setting: ContextVar[_Setting | None] = ContextVar("shoal_kernel_setting", default=None)


@contextmanager
def using(threads: int | None = None, progress: Progress | None = None) -> Iterator[None]:
    """Run what is inside with so many threads and this progress callback."""
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
        raise ParameterError(f"threads must be a whole number of at least 1, or None for all cores; got {threads!r}.")
    if progress is not None and not callable(progress):
        raise ParameterError(f"progress must be callable or None, not {type(progress).__name__}.")
    token = _setting.set(_Setting(threads or n_cores(), progress))
    try:
        yield
    finally:
        _setting.reset(token)


@contextmanager
def stage(begin: float, end: float) -> Iterator[None]:
    """Run what is inside as a part of a longer work: its progress goes from one share of the whole to another."""
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


class Watch:
    """Tells the progress callback now and then how far the work is, for loops that are not compiled."""

    def __init__(self, n_records: int) -> None:
        self._n_records = n_records
        self._progress = _current().progress
        self._next = monotonic() + 0.05

    def tick(self, done: int) -> None:
        """Report so many records done, unless the last report was a moment ago."""
        if self._progress is not None and monotonic() >= self._next:
            self._next = monotonic() + 0.05
            self._progress(done, self._n_records)

    def finish(self) -> None:
        """Report that all records are done."""
        if self._progress is not None:
            self._progress(self._n_records, self._n_records)


class Interrupted(KeyboardInterrupt):
    """Somebody has stopped a search; `labels` is the best partition it had found by then."""

    def __init__(self, labels: Labels) -> None:
        super().__init__()
        self.labels = labels


@contextmanager
def _kept(labels: Labels) -> Iterator[None]:
    """Hand over what a search has found in place if it is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(labels) from None


def _as_labels(array: Labels) -> Labels:
    """Give an array of 64-bit integers the name that NumPy has for them, where the compiler has another."""
    return array.view(np.int64)


def n_threads() -> int:
    """Say how many threads may work."""
    return _current().threads


def simd() -> str:
    """Name the instruction set the loops run with on this machine: generic, avx2 or avx512."""
    return _kernels.simd()


def mdav(X: Matrix, k: int) -> Labels:
    """Partition by MDAV; see `shoal.partition.mdav`."""
    threads, progress = _current()
    return _as_labels(_kernels.mdav(X, k, threads, progress))


def mdav_alone(X: Matrix, k: int, check: Callable[[], None] | None = None) -> Labels:
    """Partition by MDAV on one thread, for callers that run several side by side; `check` may stop it."""
    return _as_labels(_kernels.mdav(X, k, 1, check and (lambda done, total: check())))


def refine(
    X: Matrix, labels: Labels, k: int, rounds: int, neighbours: int, least_gain: float, thorough: bool
) -> Labels:
    """Lower the loss of a partition by moves and swaps; see `shoal.partition.refine`."""
    best = labels.copy()
    with _kept(best):
        _kernels.refine(X, best, k, rounds, neighbours, least_gain, thorough, *_current())
    return best


class RefineHints(NamedTuple):
    """What is known of cells that are refined again: which have changed, and who was near whom before."""

    cells: Labels
    """Numbers of the cells that have changed."""
    neighbours: Labels
    """Lists of the first cells, one after the other, as `cell_neighbours` returns them; empty to look for them."""
    origins: Labels
    """Which cell each of those behind the first ones was cut from."""


def cell_neighbours(X: Matrix, labels: Labels, k: int, n_neighbours: int) -> Labels:
    """Return the numbers of the cells around each cell, nearest first, one list after the other.

    Where a cell has fewer, the rest is 2**32 - 1. No cell has many more than 2k records.
    """
    return _as_labels(_kernels.cell_neighbours(X, labels, k, n_neighbours, n_threads()))


def refine_around(
    X: Matrix, labels: Labels, touched: RefineHints, k: int, rounds: int, neighbours: int, least_gain: float
) -> Labels:
    """Lower the loss around the cells that were touched, and open cells where others have records to spare.

    No cell has 2k records or more. See `shoal.batches`.
    """
    return _as_labels(_kernels.refine_around(X, labels, *touched, k, rounds, neighbours, least_gain, *_current()))


def arrive(X: Matrix, labels: Labels, k: int, *, inertial: bool, split_mid: bool) -> Labels:
    """Let the records behind the first, which `labels` puts into cells, join the nearest cells in their order.

    With `inertial` a squared distance counts n / (n + 1) times for a cell of n; with `split_mid` a cell of 2k records
    is cut by MDAV at once. See `shoal.batches`.
    """
    threads, progress = _current()
    return _as_labels(_kernels.arrive(X, labels, k, inertial, split_mid, threads, progress))


class Schedule(NamedTuple):
    """How long a search by annealing is: from `hot`, in shares of the mean loss of a record, down by ``e**-fall``."""

    steps: int
    hot: float
    fall: float


def anneal(X: Matrix, labels: Labels, k: int, schedule: Schedule, seed: int) -> Labels:
    """Search for a partition with a lower loss by random steps; see `shoal.partition.auto`."""
    best = labels.copy()
    with _kept(best):
        _kernels.anneal(X, best, k, *schedule, seed, _current().progress)
    return best


Guarantees = _kernels.Guarantees
"""What every cell must keep, with the codes it is about: the search below gives each a veto. See `shoal.models`."""


class Effort(NamedTuple):
    """How long a search under a veto goes on: rounds, cells to look at around each, and the gain that is too little."""

    rounds: int
    neighbours: int
    least_gain: float
    at_any_cost: bool
    """Repair every cell that breaks a guarantee, if need be by merging it with another."""


def guarded_search(X: Matrix, labels: Labels, k: int, guarantees: Guarantees, effort: Effort) -> Labels:
    """Repair cells that break a guarantee, then lower the loss by steps that keep them all; see `shoal.models`."""
    return _as_labels(_kernels.guarded_search(X, labels, k, guarantees, *effort, _current().progress))


def spread(X: Matrix, codes: Labels, size: int, parts: int) -> Labels:
    """Return cells of `size` records or a few more that each hold the same share of each of `parts` parts of the codes.

    Near records come together; the size is at most the number of records and at least the number of parts.
    """
    return _as_labels(_kernels.spread(X, codes, size, parts))


def univariate(values: Vector, k: int) -> Labels:
    """Return the sizes of the cheapest cells of ascending values, from the lowest values to the highest."""
    return _as_labels(_kernels.univariate(values, k, _current().progress))


def split(X: Matrix, parts: Labels, k: int) -> Labels:
    """Split parts of at least k records around their farthest pairs until all have k to 2k-1; return the cells."""
    threads, progress = _current()
    return _as_labels(_kernels.split(X, parts, int(parts.max()) + 1, k, threads, progress))


def assign(X: Matrix, points: Matrix) -> Labels:
    """Return the number of the point nearest to each record, the lowest of equally near ones, shape (n_records,)."""
    return _as_labels(_kernels.assign(X, points, _current().threads))


def dissolve_cells(X: Matrix, labels: Labels, k: int) -> Labels:
    """Dissolve cells whose records are better off nearby; the numbers of those cells are then missing.

    No number of `X` exceeds 1 in magnitude. See `shoal.partition.dissolve`.
    """
    return _as_labels(_kernels.dissolve_cells(X, labels, k, _current().threads))


class Ranks(NamedTuple):
    """How many are nearer than the own one, and how many are as near, the own one included; shape (n_records,) each."""

    ahead: Labels
    ties: Labels


def linkage(X: Matrix, points: Matrix, labels: Labels, asked: Labels | None = None) -> tuple[Ranks, Ranks]:
    """Rank by distance the original records around each released point, and the released records around each original.

    Record i was released as ``points[labels[i]]``. Of the originals, seen from a point, no more than two are counted
    ahead: 2 stands for more too, and there `ties` is 0. Distances are compared as they compute in float64, squared
    differences added column by column after an exact scaling by a power of two. With `asked`, ascending numbers of
    some records, the ranks are those of these records alone, among all.
    """
    threads, progress = _current()
    records = np.arange(len(X)) if asked is None else asked
    own = np.unique(labels[records])
    originals, released = _kernels.linkage(X, points, labels, records, own, threads, progress)
    return Ranks(*(_as_labels(r)[records] for r in originals)), Ranks(*(_as_labels(r)[records] for r in released))


def distances(X: Matrix, point: Vector) -> Vector:
    """Return the squared distances of the records from a point, shape (n_records,)."""
    return _kernels.distances(X, point)


class Half(NamedTuple):
    """Numbers of records, ascending, and their rows."""

    records: Labels
    X: Matrix


def halves(X: Matrix, direction: Vector, threads: int) -> tuple[Half, Half]:
    """Cut records in two across a direction: the lower n // 2, of equal ones those with lower numbers, and the rest."""
    low, high = _kernels.halves(X, direction, threads)
    return Half(_as_labels(low[0]), low[1]), Half(_as_labels(high[0]), high[1])


def cell_sums(X: Matrix, labels: Labels, n_cells: int) -> Matrix:
    """Return the sums of the records of each cell, correctly rounded, shape (n_cells, n_dims)."""
    return _kernels.cell_sums(X, labels, n_cells, n_threads())


def cell_spread(X: Matrix, labels: Labels, n_cells: int) -> Vector:
    """Return, for each cell, the squared distances of its records from their mean, summed; shape (n_cells,)."""
    return _kernels.cell_spread(X, labels, n_cells, n_threads())


class Remaining:
    """The records not yet in a cell, and what algorithms ask of them; every answer is exact.

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
        """Return the mean of the records that remain: sums correctly rounded, then divided; shape (n_dims,)."""
        return self._records.centroid()

    def nearest(self, point: Vector, k: int) -> tuple[Labels, Vector]:
        """Return the k records nearest to a point, nearest first, ties by number, and their squared distances."""
        records, squared = self._records.nearest(point, k)
        return _as_labels(records), squared

    def farthest(self, point: Vector) -> int:
        """Return the record farthest from a point, the lowest of equally far ones."""
        return self._records.farthest(point)

    def farthest_from_centroid(self) -> int:
        """Return the record farthest from the centroid, much sooner than `farthest` would."""
        return self._records.farthest_from_centroid()

    def gather(self, record: int, k: int) -> Labels:
        """Take out a record and its k - 1 nearest, ties by number; return them, the record first."""
        return _as_labels(self._records.gather(record, k))

    def grow(self, record: int, k: int) -> Labels:
        """Take out a record and, k - 1 times, the one nearest to the mean of those taken out; return them in order."""
        return _as_labels(self._records.grow(record, k))

    def remove(self, records: Labels) -> None:
        """Take records out; each must still remain."""
        self._records.remove(records)


class Tuples(NamedTuple):
    """Tuples of a stream in order of arrival, as the window sees them."""

    X: Matrix
    """Coordinates, shape (n_tuples, n_dims)."""
    codes: Keys
    """What is alike or not, shape (n_tuples, n_codes)."""
    tags: Keys
    """What has to differ within a cell, shape (n_tuples, n_tags)."""
    times: Vector
    """When they came, in seconds, shape (n_tuples,)."""


TextReader = _kernels.TextReader
TextWriter = _kernels.TextWriter


class Departures(NamedTuple):
    """What has left a window: rows counted from the tuples that waited before, on through those pushed."""

    rows: Labels
    """Cell after cell, in order of arrival within each."""
    sizes: Labels
    """How many rows each cell has."""
    side: Labels
    """Rows that found no cell."""
    reasons: Labels
    """Why, for each of those: 0 for too few tuples, 1 + j for too few different tags in column j."""
    kept: Labels
    """Rows that wait."""


class Window:
    """Tuples of a stream that wait until the oldest is due and leaves with its nearest; see `shoal.stream`.

    Parameters
    ----------
    n_dims, k : int
        Coordinates of a tuple, and the smallest cell.
    delay : int or None
        A tuple is due when so many have come after it.
    max_age : float or None
        Or when it is so many seconds old.
    order_weight : float
        What one position counts in distance.
    max_cell : int
        How large tuples that are close may make a cell; 0 for k.
    code_weights : sequence of float
        What a different code counts in squared distance.
    least : sequence of int
        How many different tags of each column a cell has to hold.
    simd : str
        The instruction set; the best there is by default.
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
        """Take tuples in, one after the other, and let go what is due after each."""
        return _departures(self._window.push(*tuples))

    def advance(self, now: float) -> Departures:
        """Let time go by, and let go what is due then."""
        return _departures(self._window.advance(now))

    def flush(self) -> Departures:
        """Let go of everything: the last cell takes what would be too few on their own."""
        return _departures(self._window.flush())

    def recode(self, X: Matrix) -> None:
        """Give the tuples that wait other coordinates, in order of arrival."""
        self._window.recode(X)

    def waiting(self) -> tuple[Labels, Vector]:
        """Return the arrival numbers and times of the tuples that wait."""
        positions, times = self._window.waiting()
        return _as_labels(positions), times

    def tally(self) -> dict[str, Any]:
        """Return what was measured on all tuples that have left."""
        return dict(self._window.tally())

    def restore(self, tuples: Tuples, positions: Labels, tally: dict[str, Any]) -> None:
        """Go on where another window stopped; this one is still empty."""
        self._window.restore(*tuples, positions, tally)


def _departures(arrays: tuple[Labels, ...]) -> Departures:
    return Departures(*map(_as_labels, arrays))


def text_keys(offsets: NDArray[np.int32] | Labels, data: NDArray[np.uint8]) -> Keys:
    """Return 64-bit keys of texts that lie one after the other; equal texts have equal keys, everywhere."""
    return _kernels.text_keys(offsets, data).view(np.uint64)


def place(columns: list[Vector], n: int, low: Vector, high: Vector, weights: Vector) -> tuple[Matrix, Labels]:
    """Return columns of n values on their ranges, 0 to `weights`, as a matrix, and for each how many lay outside.

    Those outside are put on the border, missing ones (NaN) in the middle, all at 0 where a range has no width.
    """
    X, outside = _kernels.place(columns, n, low, high, weights)
    return X, _as_labels(outside)


def cell_means(values: Vector, sizes: Labels) -> Vector:
    """Return for each value the mean of its cell; cells lie one after the other."""
    return _kernels.cell_means(values, sizes)


def least_different(keys: Keys, sizes: Labels) -> int:
    """Return the smallest number of different keys in a cell; cells lie one after the other, and there is one."""
    return _kernels.least_different(keys, sizes)


def most_frequent(keys: Keys, ranks: Labels, sizes: Labels) -> Labels:
    """Return, for each cell, a row that holds its most frequent key; of equally frequent ones that of lowest rank."""
    return _as_labels(_kernels.most_frequent(keys, ranks, sizes))
