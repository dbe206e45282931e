"""Kernels: the only interface to the compiled code. Arrays in, arrays out.

Callers have validated their input: matrices are C-contiguous float64 and finite, labels run from 0 without gaps, k is
at most the number of records. The compiled module checks this again, so that a bug in shoal raises ValueError instead
of reading out of bounds. A kernel is described where it is bound (`src/kernels/bindings`); all names of the compiled
module are names of this one. Threads, progress and the instruction set are a setting around a call (`using`), which
every kernel looks up, so that the signature of an algorithm stays ``(X, k, seed)``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal import _kernels
from shoal._kernels import *  # noqa: F403 - each kernel is named where it is bound
from shoal.errors import ParameterError
from shoal.kernels.cores import n_cores
from shoal.typing import Labels, Matrix, Progress, Vector


class Setting(NamedTuple):
    """What a kernel looks up when it is called."""

    threads: int
    progress: Progress | None
    simd: str = ""
    """The instruction set; the best available by default."""


_setting: ContextVar[Setting | None] = ContextVar("shoal_kernel_setting", default=None)


def setting() -> Setting:
    """Return the setting of the block around the call; by default all cores, and nobody to report to."""
    return _setting.get() or Setting(n_cores(), None)


@contextmanager
def using(threads: int | None = None, progress: Progress | None = None, simd: str | None = None) -> Iterator[None]:
    """Run the block with this progress callback; threads and instruction set are by default those of the block around.

    Every kernel calls `progress` a few times a second; an exception that it raises, as Ctrl-C does, ends the work.
    """
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
        raise ParameterError(f"threads must be a whole number of at least 1, or None for all cores; got {threads!r}.")
    if progress is not None and not callable(progress):
        raise ParameterError(f"progress must be callable or None, not {type(progress).__name__}.")
    around = setting()
    n_threads = min(threads or around.threads, 2**31 - 1)  # the kernels count in 32 bits
    with _set(Setting(n_threads, progress, around.simd if simd is None else simd)):
        yield


@contextmanager
def stage(begin: float, end: float) -> Iterator[None]:
    """Run the block as a part of a longer computation: its progress runs from `begin` to `end` as shares of it."""
    around = setting()
    whole = around.progress

    def report(done: int, total: int) -> None:
        assert whole is not None
        whole(int(total * begin + done * (end - begin)), total)

    with _set(around._replace(progress=None if whole is None else report)):
        yield


@contextmanager
def _set(new: Setting) -> Iterator[None]:
    token = _setting.set(new)
    try:
        yield
    finally:
        _setting.reset(token)


def n_threads() -> int:
    """Return the number of threads to use."""
    return setting().threads


def progress_callback() -> Progress | None:
    """Return the progress callback to report to."""
    return setting().progress


class ProgressReporter:
    """Calls the progress callback a few times a second, for loops in Python."""

    def __init__(self, n_records: int) -> None:
        self._n_records = n_records
        self._progress = progress_callback()
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


class RefineHints(NamedTuple):
    """Facts about cells that are refined again: which have changed, and their previous neighbours."""

    cells: Labels
    """Numbers of the cells that have changed."""
    neighbours: Labels
    """Neighbour lists of the first cells, concatenated, as `cell_neighbours` returns them; empty to search for them."""
    origins: Labels
    """For each cell after the first ones, the cell that it was split from."""


class Schedule(NamedTuple):
    """Annealing schedule: initial temperature `hot`, in units of the mean loss per record, lowered by ``e**-fall``."""

    steps: int
    hot: float
    fall: float


class Effort(NamedTuple):
    """Length of a guarded search: maximum number of rounds, neighbours per cell, and gain of the last round."""

    rounds: int
    neighbours: int
    least_gain: float
    at_any_cost: bool
    """Repair every cell that violates a model, if necessary by merging it with another."""


class Intervals(NamedTuple):
    """Intervals around values: from `low` to `high`, and `reach` around `centre`; shape (n_values,) but for `reach`."""

    low: Vector
    high: Vector
    centre: Vector
    reach: float


class Tuples(NamedTuple):
    """Tuples of a stream in order of arrival, as stored in the window."""

    X: Matrix
    """Coordinates, shape (n_tuples, n_dims)."""
    codes: NDArray[np.uint64]
    """Nominal values, compared for equality, shape (n_tuples, n_codes)."""
    tags: NDArray[np.uint64]
    """Values that must differ within a cell, shape (n_tuples, n_tags)."""
    times: Vector
    """Arrival times in seconds, shape (n_tuples,)."""


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
    records = np.arange(len(X)) if asked is None else asked
    originals, released = _kernels.ranks(X, points, labels, records, np.unique(labels[records]))
    return Ranks(*(found[records] for found in originals)), Ranks(*(found[records] for found in released))
