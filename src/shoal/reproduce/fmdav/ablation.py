"""The strategies of F-MDAV, alone and together, timed beside shoal's kernel (figures 6 to 8 and 11)."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from shoal.arrays import standardize
from shoal.metrics import loss
from shoal.partition import partition
from shoal.reproduce.data_and_results import Source, timed
from shoal.reproduce.fmdav.switches import numpy_mdav
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


def ablate(
    source: Source,
    n: int,
    k: int = 10,
    seed: int = 0,
    tick: Callable[[str], None] = lambda variant: None,
    n_samples: int = N_SAMPLES,
) -> list[Result]:
    """Time every variant on random samples of `n` records, columns normalised; processor time.

    Parameters
    ----------
    source : Source
        Where the samples come from.
    n : int
        Records in a sample.
    k : int
        Smallest cell size.
    seed : int
        Repeats the samples.
    tick : callable, optional
        Called with a variant's name after each of its runs.
    n_samples : int
        Number of samples; the paper takes three.

    Returns
    -------
    results : list of Result
        One for each of `variants`, in their order.
    """
    runs: dict[str, list[tuple[float, float, float]]] = {name: [] for name in variants()}
    for sample in range(n_samples):
        X = standardize(source.sample(n, np.random.default_rng([seed, n, sample])))
        cells: dict[str, Labels] = {}
        for name, mdav in variants().items():
            cells[name], seconds = timed(mdav, X, k)
            runs[name].append((seconds, agreement(cells[TRADITIONAL], cells[name]), loss(X, cells[name]).il))
            tick(name)
    means = {name: np.mean(measured, axis=0).tolist() for name, measured in runs.items()}
    baseline = means[TRADITIONAL][0]
    return [
        Result(source.name, n, name, seconds, baseline / seconds, same, il, n_samples)
        for name, (seconds, same, il) in means.items()
    ]


def agreement(labels: Labels, others: Labels) -> float:
    """Return the share of records whose cell holds exactly the same records in both partitions.

    Examples
    --------
    >>> agreement(np.array([0, 0, 1, 1, 2, 2]), np.array([5, 5, 3, 4, 3, 4]))
    0.3333333333333333
    """
    pairs, pair_of = np.unique(np.stack([labels, others]), axis=1, return_inverse=True)
    shared = np.bincount(pair_of.ravel())
    same = (shared == np.bincount(labels)[pairs[0]]) & (shared == np.bincount(others)[pairs[1]])
    return float(shared[same].sum() / len(labels))


def ablation_table(results: Sequence[Result]) -> str:
    """Format the ablation as text: one block per data set and size."""
    lines = [
        f"{'data':<24} {'n':>8}  {'variant':<24} {'seconds':>9} {'speed-up':>9} {'paper up to':>12} {'same cells':>11}"
        f" {'IL %':>9}"
    ]
    data = list(dict.fromkeys(result.data for result in results))
    for result in sorted(results, key=lambda result: data.index(result.data)):
        if result.variant == TRADITIONAL:
            lines.append("")
        paper = f"{PAPERS_BEST[result.variant]:.2f}" if result.variant in PAPERS_BEST else ""
        lines.append(
            f"{result.data:<24} {result.n:>8,}  {result.variant:<24} {result.seconds:>9.3f} {result.speedup:>9.2f}"
            f" {paper:>12} {result.agreement:>11.2%} {result.il:>9.4f}"
        )
    return "\n".join([*lines, ""])
