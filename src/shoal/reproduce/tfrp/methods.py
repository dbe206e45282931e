"""The six methods of the paper, timed, each ``+`` form being its base followed by phase II."""

import math
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

from shoal import kernels
from shoal.metrics import loss
from shoal.partition import ALGORITHMS
from shoal.partition.dissolve import scatter
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
    """What one method makes of one data set."""

    data: str
    n: int
    n_dims: int
    k: int
    method: str
    il: float
    seconds: float


def measure(data: str, X: Matrix, k: int) -> list[Result]:
    """Run the six methods on standardised records, on one thread as in the paper; return them in their order."""
    n, n_dims = X.shape
    found: dict[str, Result] = {}
    with kernels.using(threads=1):
        for base, (name, options) in BASES.items():
            cut = partial(_cut, ALGORITHMS[name], options)
            labels, first = _timed(partial(cut, X, k))
            again, second = _timed(partial(scatter, X, labels, k, cut))
            plus = SCATTERED[base]
            found[base] = Result(data, n, n_dims, k, base, loss(X, labels).il, first)
            found[plus] = Result(data, n, n_dims, k, plus, loss(X, again).il, first + second)
    return [found[method] for method in METHODS]


def _cut(algorithm: Callable[..., Labels], options: dict[str, Any], X: Matrix, k: int) -> Labels:
    return algorithm(X, k, None, **options)


def _timed(work: Callable[[], Labels]) -> tuple[Labels, float]:
    """Return what the work returns and how long it takes; of short work, the shortest of three times."""
    seconds = math.inf
    for _ in range(N_TIMES):
        start = perf_counter()
        labels = work()
        seconds = min(seconds, perf_counter() - start)
        if seconds > LONG:
            break
    return labels, seconds
