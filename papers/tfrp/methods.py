"""The six methods of the paper, timed, each ``+`` form being its base followed by phase II.

Losses are those of shoal's kernels; times are theirs and, where that takes minutes at most, those of the plain twins.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from papers.data_and_results import one_thread, timed
from papers.tfrp.plain import PLAIN, phase_two
from shoal import kernels
from shoal.measures import loss
from shoal.methods import ALGORITHMS
from shoal.methods.dissolve import dissolve
from shoal.typing import Labels, Matrix

BASES: dict[str, tuple[str, dict[str, Any]]] = {
    "Diameter": ("diameter", {}),
    "Centroid": ("centroid", {}),
    "TFRP_I": ("tfrp", {"phases": 1}),
}
SCATTERED = {"Diameter": "Diameter+", "Centroid": "Centroid+", "TFRP_I": "TFRP"}
N_TIMES, LONG = 3, 0.1
METHODS = ("Diameter", "Diameter+", "Centroid", "Centroid+", "TFRP_I", "TFRP")


class Result(NamedTuple):
    """The result of one method on one data set."""

    data: str
    n: int
    n_dims: int
    k: int
    method: str
    il: float
    seconds: float
    """Processor time of shoal's kernels."""

    plain_seconds: float | None = None
    """Processor time of the plain twin; None where it was not run."""


class Limit(NamedTuple):
    """Limits up to which the plain twins are run."""

    pairs: float
    """Largest n^3 / k for Diameter, which takes that time."""

    records: int
    """Largest n for the others."""

    def allows(self, base: str, n: int, k: int) -> bool:
        """Return whether the plain twin of a method is run."""
        return n**3 / k <= self.pairs if base == "Diameter" else n <= self.records


SMALL_LIMIT = Limit(pairs=1.1e10, records=9_000)


def measure(data: str, X: Matrix, k: int, limit: Limit = SMALL_LIMIT) -> list[Result]:
    """Run the six methods on standardised records, on one thread as in the paper; return them in their order."""
    n, n_dims = X.shape
    found: dict[str, Result] = {}
    with kernels.using(threads=1), one_thread():
        for base, (name, options) in BASES.items():
            cut = partial(_cut, ALGORITHMS[name], options)
            labels, first = _timed(partial(cut, X, k))
            again, second = _timed(partial(dissolve, X, labels, k, cut))
            plain = _plain_times(base, X, k) if limit.allows(base, n, k) else (None, None)
            plus = SCATTERED[base]
            found[base] = Result(data, n, n_dims, k, base, 100 * loss(X, labels).il, first, plain[0])
            found[plus] = Result(data, n, n_dims, k, plus, 100 * loss(X, again).il, first + second, plain[1])
    return [found[method] for method in METHODS]


def _plain_times(base: str, X: Matrix, k: int) -> tuple[float, float]:
    """Return the time of a plain twin, without and with phase II."""
    labels, first = _timed(partial(PLAIN[base], X, k))
    return first, first + _timed(partial(phase_two, X, labels, k, PLAIN[base]))[1]


def _cut(algorithm: Callable[..., Labels], options: dict[str, Any], X: Matrix, k: int) -> Labels:
    return algorithm(X, k, None, **options)


def _timed(work: Callable[[], Labels]) -> tuple[Labels, float]:
    """Return what the work returns and how long it takes; of short work, the shortest of three times."""
    seconds = math.inf
    for _ in range(N_TIMES):
        labels, taken = timed(work)
        seconds = min(seconds, taken)
        if seconds > LONG:
            break
    return labels, seconds
