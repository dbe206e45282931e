"""The strategies of F-MDAV, alone and together, timed beside shoal's kernel (figures 6 to 8 and 11)."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import numpy as np

from papers.data_and_results import Source, agreement, timed
from papers.fmdav.switches import numpy_mdav
from papers.tables import table
from shoal.arrays import standardize
from shoal.measures import loss
from shoal.methods import partition
from shoal.typing import Labels, Matrix

STRATEGIES = {
    "algebraic": "algebraic distance",
    "reuse": "distance reuse",
    "selection": "partial selection",
    "subtraction": "centroid by subtraction",
    "single": "single precision",
}
TRADITIONAL, TOGETHER, KERNEL = "traditional", "all five", "shoal"
PAPERS_BEST = {
    "algebraic distance": 1.54,
    "distance reuse": 1.31,
    "partial selection": 2.0,
    "centroid by subtraction": 1.15,
    "single precision": 1.35,
    TOGETHER: 4.0,
}
"""The largest speed-up that section 4.3 reports for each."""

N_SAMPLES = 3


class Result(NamedTuple):
    """One line of the ablation: the mean over the samples."""

    data: str
    n: int
    variant: str
    seconds: float
    speedup: float
    agreement: float
    """Share of records whose cell consists of the same records as in traditional MDAV."""

    il: float
    n_samples: int = N_SAMPLES
    """Random samples that the means are over."""


def variants() -> dict[str, Callable[[Matrix, int], Labels]]:
    """Return what is compared, traditional MDAV first and shoal's kernel last."""
    alone = {title: partial(numpy_mdav, **{switch: True}) for switch, title in STRATEGIES.items()}
    together = partial(numpy_mdav, **dict.fromkeys(STRATEGIES, True))
    return {
        TRADITIONAL: numpy_mdav,
        **alone,
        TOGETHER: together,
        KERNEL: lambda X, k: partition(X, k, "mdav", threads=1),
    }


class Run(NamedTuple):
    """One variant on one sample."""

    cells: Labels
    seconds: float
    il: float


Task = tuple[Source, int]
"""A data set and the number of records to draw from it."""


def measure(source: Source, n: int, k: int, seed: int, sample: int, variant: str) -> Run:
    """Time a variant on a random sample of `n` records, columns normalised; processor time."""
    X = standardize(source.sample(n, np.random.default_rng([seed, n, sample])))
    cells, seconds = timed(variants()[variant], X, k)
    return Run(cells, seconds, 100 * loss(X, cells).il)


@contextmanager
def side_by_side(jobs: int) -> Iterator[Callable[..., Callable[[], Run]]]:
    """Yield what starts a run and returns a function for its result.

    With one job, a run takes place in this process when its result is asked for.
    """
    if jobs == 1:
        yield partial(partial, measure)
        return
    pool = ProcessPoolExecutor(jobs)
    try:
        yield lambda *arguments: pool.submit(measure, *arguments).result
    finally:
        pool.shutdown(cancel_futures=True)


def ablate(
    tasks: Sequence[Task],
    k: int = 10,
    seed: int = 0,
    n_samples: int = N_SAMPLES,
    jobs: int = 1,
    tick: Callable[[Task, str], None] = lambda task, variant: None,
) -> Iterator[list[Result]]:
    """Time every variant on random samples.

    Parameters
    ----------
    tasks : sequence of (Source, int)
        Where samples come from, and their size.
    k : int
        Smallest cell size.
    seed : int
        Repeats the samples.
    n_samples : int
        Number of samples; the paper takes three.
    jobs : int
        Runs at the same time, each in a process of its own. Processor time is measured; runs that share caches and
        memory still slow one another.
    tick : callable, optional
        Called with a task and a variant's name after each run.

    Yields
    ------
    results : list of Result
        For a task, one result for each of `variants`, in their order.
    """
    with side_by_side(jobs) as start:
        started = [
            [{name: start(*task, k, seed, sample, name) for name in variants()} for sample in range(n_samples)]
            for task in tasks
        ]
        for task, samples in zip(tasks, started, strict=True):
            runs = [_finish(sample, partial(tick, task)) for sample in samples]
            yield _means(task, runs)


def _finish(sample: dict[str, Callable[[], Run]], tick: Callable[[str], None]) -> dict[str, Run]:
    runs = {}
    for name, result in sample.items():
        runs[name] = result()
        tick(name)
    return runs


def _means(task: Task, samples: Sequence[dict[str, Run]]) -> list[Result]:
    """Average over the samples."""
    source, n = task
    means = {
        name: np.mean(
            [
                (runs[name].seconds, agreement(runs[TRADITIONAL].cells, runs[name].cells), runs[name].il)
                for runs in samples
            ],
            axis=0,
        ).tolist()
        for name in variants()
    }
    baseline = means[TRADITIONAL][0]
    return [
        Result(source.name, n, name, seconds, baseline / seconds, same, il, len(samples))
        for name, (seconds, same, il) in means.items()
    ]


def ablation_table(results: Sequence[Result]) -> str:
    """Format the ablation as text: one block per data set and size."""
    columns = {"data": "<24", "n": ">8,", "variant": "<24", "seconds": ">9.3f", "speed-up": ">9.2f"}
    columns |= {"paper up to": ">12.2f", "same cells": ">11.2%", "IL %": ">9.4f"}
    rows: list[tuple[object, ...]] = []
    for data in dict.fromkeys(result.data for result in results):
        for r in (result for result in results if result.data == data):
            rows += [()] if r.variant == TRADITIONAL else []
            rows.append((*r[:5], PAPERS_BEST.get(r.variant), r.agreement, r.il))
    return table(columns, rows)
