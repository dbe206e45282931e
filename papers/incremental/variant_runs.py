"""One data set, one k: every variant at every late share, relative to MDAV of everything."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from papers.data_and_results import one_thread, timed
from papers.fmdav.switches import numpy_mdav
from papers.incremental.plain import PLAIN
from shoal.arrays import standardize
from shoal.incremental import join
from shoal.measures import loss
from shoal.methods import partition
from shoal.typing import Matrix

LINES: dict[str, tuple[str, bool]] = {
    "2MDAV": ("two-step", False),
    "NN": ("nearest", False),
    "NN split-mid": ("split-mid", False),
    "NN split-end": ("split-end", False),
    "NN split-mid, inertial": ("split-mid", True),
    "NN split-end, inertial": ("split-end", True),
    "ours": ("reopen", False),
}
"""The lines compared: the variant, and whether with the inertial coefficient."""


class Problem(NamedTuple):
    """Records to be released, in the order of their arrival."""

    data: str
    X: Matrix
    k: int


class Result(NamedTuple):
    """One variant at one late share; times and loss relative to MDAV of everything."""

    data: str
    n: int
    dims: int
    k: int
    nu: float
    line: str
    delta: float
    """Relative extra loss: 0.05 is five percent more than MDAV of everything."""
    tau_0: float
    """Time of the base, shoal's kernels, one thread."""
    tau_plus: float
    """Time of the late records, shoal's kernels, one thread."""
    plain_tau_0: float | None
    plain_tau_plus: float | None
    """The same for plain NumPy, as the thesis timed it; None where that was not measured."""


def total(result: Result) -> float | None:
    """Return tau_0 + tau_+ of plain NumPy."""
    a, b = result.plain_tau_0, result.plain_tau_plus
    return None if a is None or b is None else a + b


def measure(problem: Problem, shares: Sequence[float], plain: bool) -> Iterator[list[Result]]:
    """Yield the results of all lines, share by share."""
    if not shares:
        return
    X, k = problem.X, problem.k
    everything, seconds = timed(partition, X, k, "mdav", threads=1)
    whole = Whole(loss(X, everything).sse, seconds, timed(numpy_mdav, X, k)[1] if plain else None)
    for nu in shares:
        with one_thread():
            results = list(_at_share(problem, nu, whole))
        yield results


class Whole(NamedTuple):
    """MDAV of everything, to which losses and times are relative."""

    sse: float
    seconds: float
    plain_seconds: float | None


def _at_share(problem: Problem, nu: float, whole: Whole) -> Iterator[Result]:
    """Yield a result for each line."""
    X, k = problem.X, problem.k
    n_base = max(round(len(X) * (1 - nu)), k)
    bases = {name: timed(partition, X[:n_base], k, name, seed=0, threads=1) for name in ("mdav", "auto")}
    plain_base = timed(numpy_mdav, X[:n_base], k)[1] if whole.plain_seconds else None
    for line, (variant, inertial) in LINES.items():
        base, base_seconds = bases["auto" if variant == "reopen" else "mdav"]
        options: dict[str, Any] = {"inertial": True} if inertial else {}
        labels, late_seconds = timed(join, X, base, k, variant, seed=0, threads=1, **options)
        plain = whole.plain_seconds and variant in PLAIN and not inertial
        plain_late = timed(PLAIN[variant], X, base, k)[1] if plain else None
        yield Result(
            *(problem.data, len(X), X.shape[1], k, nu, line),
            loss(X, labels).sse / whole.sse - 1,
            base_seconds / whole.seconds,
            late_seconds / whole.seconds,
            _ratio(plain_base if plain else None, whole.plain_seconds),
            _ratio(plain_late, whole.plain_seconds),
        )


def _ratio(part: float | None, whole: float | None) -> float | None:
    return None if part is None or whole is None else part / whole


def gaussian_problem(n: int, dims: int, k: int, seed: int) -> Problem:
    """Draw standard normal records; fewer dimensions are the first columns of the same records."""
    X = np.random.default_rng([seed, n]).normal(size=(n, 15))
    return Problem("gaussian", np.ascontiguousarray(X[:, :dims]), k)


def census_problem(records: Matrix, n: int, dims: int, k: int, seed: int) -> Problem:
    """Draw records of a survey at random, the first columns of them, and standardise."""
    rows = np.random.default_rng([seed, n]).choice(len(records), n, replace=False)
    return Problem("census", standardize(records[rows][:, :dims]), k)
