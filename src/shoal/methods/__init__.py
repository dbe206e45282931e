"""Partition: split records into cells of at least k similar records.

A partition is an array of cell numbers in which every number occurs at least k times. Each algorithm is one file with
one function ``(X, k, seed, *, its own options) -> labels`` and one line in the registry below, which feeds
`partition`, the command line, the docs, the contract tests and the benchmarks.
"""

from typing import Any

from numpy.typing import ArrayLike

from shoal import kernels
from shoal.arrays import as_cell_size, as_matrix, check_seed
from shoal.errors import ParameterError
from shoal.methods.algorithm import Algorithm, check_options
from shoal.methods.auto import auto
from shoal.methods.blocks import blocks
from shoal.methods.centroid import centroid
from shoal.methods.diameter import diameter
from shoal.methods.dissolve import with_dissolving
from shoal.methods.mdav import mdav
from shoal.methods.mst import mst
from shoal.methods.tfrp import tfrp
from shoal.methods.topdown import topdown
from shoal.methods.univariate import univariate
from shoal.methods.vmdav import vmdav
from shoal.typing import Labels, Method, Progress, Seed

ALGORITHMS: dict[str, Algorithm] = {
    # Its search draws records by index, and stops when a step gains less than the rounding error.
    "auto": Algorithm(auto, not_promised={"order", "shift"}, in_blocks=True),
    "mdav": Algorithm(mdav, largest=1_000_000),
    "mdav+": Algorithm(with_dissolving(mdav), largest=200_000),
    "blocks": Algorithm(blocks),
    "tfrp": Algorithm(tfrp, largest=200_000),
    # Of the two records farthest apart, the one with the lower index forms its cell first: nothing else distinguishes
    # them, and any other rule gives losses farther from the published ones.
    "diameter": Algorithm(diameter, largest=200_000, not_promised={"order"}),
    "diameter+": Algorithm(with_dissolving(diameter), largest=200_000, not_promised={"order"}),
    "centroid": Algorithm(centroid, largest=200_000),
    "centroid+": Algorithm(with_dissolving(centroid), largest=200_000),
    "vmdav": Algorithm(vmdav, largest=200_000),
    "vmdav+": Algorithm(with_dissolving(vmdav), largest=200_000),
    "topdown": Algorithm(topdown, largest=1_000_000),
    "topdown+": Algorithm(with_dissolving(topdown), largest=1_000_000),
    "mst": Algorithm(mst, largest=20_000),
    "univariate": Algorithm(univariate),
}


def partition(
    X: ArrayLike,
    k: int,
    method: Method | str = "auto",
    seed: Seed = None,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Labels:
    """Split records into cells of at least `k` similar records.

    Parameters
    ----------
    X : array_like of shape (n_records, n_dims)
        Records in the space: finite numbers, already scaled and weighted. The input is not changed.
    k : int
        Smallest cell size, at least 2 and at most n_records.
    method : str
        One of the methods listed in ``docs/methods.md``.
    seed : int, optional
        Makes the result of a randomised method reproducible. Accepted by deterministic methods too.
    threads : int, optional
        Maximum number of threads; all cores by default. Labels do not depend on it.
    progress : callable, optional
        Called a few times a second as ``progress(records_done, n_records)``. An exception that it raises stops the
        partition.
    **options
        Options of the method. Unknown options are errors.

    Returns
    -------
    labels : ndarray of shape (n_records,), int64
        Cell number of each record, from 0 and without gaps.

    Raises
    ------
    ParameterError
        If the matrix, `k`, the method or an option cannot be used.
    GuaranteeError
        If there are fewer than `k` records.

    Notes
    -----
    The cost in n_records depends on the method: see its docstring.

    Examples
    --------
    >>> import numpy as np
    >>> np.bincount(partition(np.array([[1.0], [9.0], [2.0], [8.0]]), k=2))
    array([2, 2])
    """
    algorithm = algorithm_of(method, options)
    matrix = as_matrix(X)
    k = as_cell_size(k, len(matrix))
    check_seed(seed)
    with kernels.using(threads=threads, progress=progress):
        return algorithm(matrix, k, seed, **options)


def algorithm_of(method: str, options: dict[str, Any]) -> Algorithm:
    """Look up the method and refuse options that it does not take."""
    if method not in ALGORITHMS:
        raise ParameterError(f"Unknown method {method!r}. Methods: {', '.join(ALGORITHMS)}.")
    check_options(ALGORITHMS[method].function, f"Method {method!r}", options)
    return ALGORITHMS[method]
