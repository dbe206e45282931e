"""Calibrate: measure on this machine how long a method takes on records like these, for the planner."""

from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from shoal.errors import ParameterError
from shoal.incremental import join
from shoal.metrics import loss
from shoal.partition import partition
from shoal.plan import Measured, Run
from shoal.space import as_cell_size, as_matrix
from shoal.typing import Matrix, Seed

LATE_SHARES = (0.1, 0.3, 0.5)
LEAST = 6_000


def calibrate(
    X: ArrayLike,
    n_records: int,
    k: int,
    *,
    method: str = "auto",
    variant: str = "reopen",
    seconds: float = 60.0,
    seed: Seed = None,
    threads: int | None = None,
    clock: Callable[[], float] = perf_counter,
) -> Measured:
    """Run base and late records on random samples of growing size until the time is spent.

    Parameters
    ----------
    X : array_like of shape (n_sample, n_dims)
        Records like those to come, in the space: what has arrived so far, or last year's. At least 8 `k` of them.
    n_records : int
        How many records to plan for.
    k : int
        Smallest cell size.
    method, variant : str
        How the base is partitioned and how the late records join.
    seconds : float
        Stop before a size that would go beyond this.
    seed : int, optional
        Repeats the samples. Times differ from run to run all the same.
    threads : int, optional
        How many threads may work, as in the run to come.
    clock : callable
        What measures time. On a machine that is busy now and will not be then, ``time.process_time`` with one thread.

    Returns
    -------
    Measured
        For `shoal.plan.plan`.
    """
    matrix = as_matrix(X)
    k = as_cell_size(k, len(matrix))
    if len(matrix) < 8 * k:
        raise ParameterError(f"A calibration with k={k} needs at least {8 * k} records; there are {len(matrix)}.")
    shuffled = matrix[np.random.default_rng(seed).permutation(len(matrix))]
    sizes = _sizes(min(len(matrix), n_records), k)
    quickest: dict[int, list[Run]] = {}
    begin = perf_counter()
    # The last ones again: a single run may have met other work on the machine, and these decide the forecast.
    for n in [*sizes, *(2 * sizes[-2:]), *(2 * sizes[-2:])]:
        if len(quickest) >= 2 and perf_counter() - begin + _expected(quickest, n) > seconds:
            continue
        runs = _run(shuffled[:n], k, Task(method, variant, seed, threads, clock))
        quickest[n] = [_quicker(*pair) for pair in zip(runs, quickest.get(n, runs), strict=True)]
    return Measured(n_records, tuple(run for runs in quickest.values() for run in runs), variant)


def _expected(quickest: dict[int, list[Run]], n: int) -> float:
    """Say how long all runs of a size may take: a little more than in proportion to the largest so far."""
    largest = max(quickest)
    spent = sum(run.base_seconds + run.late_seconds for run in quickest[largest])
    return 1.25 * spent * n / largest


def _quicker(run: Run, other: Run) -> Run:
    """Return the quicker of two measurements, each part by itself."""
    return Run(
        run.n_records,
        run.late_share,
        min(run.base_seconds, other.base_seconds),
        min(run.late_seconds, other.late_seconds),
        run.extra_loss,
    )


def _sizes(most: int, k: int) -> list[int]:
    """Double from a small sample to all there is.

    Not from a very small one if that can be helped: there the default method searches on, and times tell nothing about
    large tables.
    """
    sizes = [most]
    while sizes[0] // 2 >= max(4 * k, LEAST) or len(sizes) < 2:
        sizes.insert(0, sizes[0] // 2)
    return sizes


class Task(NamedTuple):
    """What is run, and how it is measured."""

    method: str
    variant: str
    seed: Seed
    threads: int | None
    clock: Callable[[], float]


def _run(X: Matrix, k: int, task: Task) -> list[Run]:
    """Measure the ordinary job and each late share."""
    method, variant, seed, threads, clock = task
    start = clock()
    ordinary = partition(X, k, method, seed, threads=threads)
    runs = [Run(len(X), 0.0, clock() - start, 0.0, 0.0)]
    whole = loss(X, ordinary).sse
    for share in LATE_SHARES:
        n_base = round(len(X) * (1 - share))
        start = clock()
        base = partition(X[:n_base], k, method, seed, threads=threads)
        between = clock()
        labels = join(X, base, k, variant, seed, threads=threads)
        end = clock()
        extra = loss(X, labels).sse / whole - 1 if whole > 0 else 0.0
        runs.append(Run(len(X), share, between - start, end - between, extra))
    return runs
