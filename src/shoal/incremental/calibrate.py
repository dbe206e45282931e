"""Calibrate: measure on this machine how long a method takes on records like these, for the planner."""

from time import perf_counter

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
    runs: list[Run] = []
    begin = perf_counter()
    for n in sizes:
        start = perf_counter()
        # Twice, as the first is cold; the quicker is nearer to what a longer run does.
        both = [_run(shuffled[:n], k, method, variant, seed, threads) for _ in range(2)]
        runs += [min(pair, key=lambda run: run.base_seconds + run.late_seconds) for pair in zip(*both, strict=True)]
        # Twice the records take a little more than twice as long.
        if perf_counter() - begin + 2.5 * (perf_counter() - start) > seconds and n != sizes[0]:
            break
    return Measured(n_records, tuple(runs), variant)


def _sizes(most: int, k: int) -> list[int]:
    """Double from a small sample to all there is.

    Not from a very small one if that can be helped: there the default method searches on, and times tell nothing about
    large tables.
    """
    sizes = [most]
    while sizes[0] // 2 >= max(4 * k, LEAST) or len(sizes) < 2:
        sizes.insert(0, sizes[0] // 2)
    return sizes


def _run(X: Matrix, k: int, method: str, variant: str, seed: Seed, threads: int | None) -> list[Run]:
    """Measure the ordinary job and each late share."""
    start = perf_counter()
    ordinary = partition(X, k, method, seed, threads=threads)
    runs = [Run(len(X), 0.0, perf_counter() - start, 0.0, 0.0)]
    whole = loss(X, ordinary).sse
    for share in LATE_SHARES:
        n_base = round(len(X) * (1 - share))
        start = perf_counter()
        base = partition(X[:n_base], k, method, seed, threads=threads)
        between = perf_counter()
        labels = join(X, base, k, variant, seed, threads=threads)
        end = perf_counter()
        extra = loss(X, labels).sse / whole - 1 if whole > 0 else 0.0
        runs.append(Run(len(X), share, between - start, end - between, extra))
    return runs
