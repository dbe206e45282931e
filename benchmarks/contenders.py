"""The contenders, by name. Every algorithm in shoal's registry is one."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from shoal.methods import ALGORITHMS, partition
from shoal.typing import Labels, Matrix

PLAIN = "numpy plain"
COLUMNS = "numpy by columns"
FMDAV = "numpy f-mdav"
BRUTE_FORCE = "brute force"

TITLES = {
    PLAIN: "NumPy MDAV as commonly written",
    COLUMNS: "NumPy MDAV laid out by columns",
    FMDAV: "NumPy F-MDAV, all five strategies",
    BRUTE_FORCE: "three brute-force passes in C++",
}


def shoal(algorithm: str = "mdav") -> str:
    """Name a registered algorithm among the contenders."""
    return f"shoal {algorithm}"


def with_threads(name: str, threads: int) -> str:
    """Return the name of a contender with its number of threads."""
    return f"{name}, {threads} thread{'s' if threads > 1 else ''}"


# Imported on demand, so that a process loads only what it measures.
def load(name: str, threads: int, folder: Path) -> Callable[[Matrix, int], Labels]:
    """Return the contender as a function of the matrix and k; only shoal's can use more than one thread."""
    if name == PLAIN:
        from plain_numpy import plain_mdav

        return plain_mdav
    if name in (COLUMNS, FMDAV):
        import materials  # noqa: F401 - puts papers on the path
        from papers.fmdav import numpy_mdav
        from papers.fmdav.ablation import STRATEGIES

        return partial(numpy_mdav, **dict.fromkeys(STRATEGIES, name == FMDAV))
    if name == BRUTE_FORCE:
        from brute_force import load as load_brute_force

        return load_brute_force(folder)
    (algorithm,) = [algorithm for algorithm in ALGORITHMS if shoal(algorithm) == name]
    return partial(partition, method=algorithm, seed=0, threads=threads)
