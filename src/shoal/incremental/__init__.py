"""Incremental microaggregation: extend a partition of the records that have arrived to the records that come late.

The base is partitioned before the data are complete; `join` adds the late records. Each variant is one function
``(X, base, k, seed, *, its own options) -> labels`` and one line in the registry below. `reopen`, the default, is ours;
the other four are those of the thesis described in `docs/incremental.md`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shoal import kernels
from shoal.arrays import as_cell_size, as_matrix, check_seed
from shoal.errors import GuaranteeError, ParameterError
from shoal.incremental.joining import nearest, split_end, split_mid, two_step
from shoal.incremental.reopen import reopen
from shoal.methods.algorithm import check_options
from shoal.typing import Labels, Matrix, Progress, Seed

__all__ = ["VARIANTS", "join", "variant_of"]

VARIANTS: dict[str, Callable[..., Labels]] = {
    "reopen": reopen,
    "two-step": two_step,
    "nearest": nearest,
    "split-mid": split_mid,
    "split-end": split_end,
}


def join(
    X: ArrayLike,
    base: ArrayLike,
    k: int,
    variant: str = "reopen",
    seed: Seed = None,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Labels:
    """Extend a partition to late records.

    Parameters
    ----------
    X : array_like of shape (n_records, n_dims)
        All records in the space: the base first, then the late records in order of arrival.
    base : array_like of shape (n_base,)
        Cell numbers of the first records, from 0 and without gaps, with at least `k` records per cell. Not modified.
    k : int
        Smallest cell size, the same as for the base.
    variant : str
        One of ``shoal.incremental.VARIANTS``.
    seed : int, optional
        Seed of a randomised method. Always accepted, even where nothing is random.
    threads : int, optional
        Maximum number of threads; all cores by default. Labels do not depend on it.
    progress : callable, optional
        Called a few times a second as ``progress(records_done, n_records)``. An exception it raises ends the work.
    **options
        Options of the variant. An unknown option is an error.

    Returns
    -------
    labels : ndarray of shape (n_records,), int64
        Cell number of each record, from 0 and without gaps.

    Raises
    ------
    ParameterError
        If the matrix, the base, `k`, the variant or an option cannot be used.
    GuaranteeError
        If a cell of the base has fewer than `k` records.

    Notes
    -----
    Without late records every variant returns the base unchanged. For the cost, see the docstring of the variant.

    Examples
    --------
    >>> X = np.array([[1.0], [2.0], [8.0], [9.0], [1.5], [8.5]])
    >>> join(X, [0, 0, 1, 1], k=2)
    array([0, 0, 1, 1, 0, 1])
    """
    joining = variant_of(variant, options)
    matrix = as_matrix(X)
    k = as_cell_size(k, len(matrix))
    cells = _as_base(base, matrix, k)
    check_seed(seed)
    if len(cells) == len(matrix):
        return cells
    with kernels.using(threads=threads, progress=progress):
        return joining(matrix, cells, k, seed, **options)


def variant_of(variant: str, options: dict[str, Any]) -> Callable[..., Labels]:
    """Look up the variant and refuse options that it does not take."""
    if variant not in VARIANTS:
        raise ParameterError(f"Unknown variant {variant!r}. Variants: {', '.join(VARIANTS)}.")
    check_options(VARIANTS[variant], f"Variant {variant!r}", options)
    return VARIANTS[variant]


def _as_base(base: ArrayLike, X: Matrix, k: int) -> Labels:
    """Return the cells of the base as int64; raise if they are not valid labels."""
    cells = np.array(base)
    if cells.ndim != 1 or cells.dtype.kind not in "iu" or not 0 < len(cells) <= len(X):
        raise ParameterError(
            f"base must give one whole number for each of the first records, at least one and at most all {len(X)}; "
            f"got {cells.dtype} of shape {cells.shape}."
        )
    if cells.min() < 0 or cells.max() >= len(cells) or not (sizes := np.bincount(cells.astype(np.int64))).all():
        raise ParameterError(
            "base must number the cells from 0 without gaps; renumber with np.unique(base, return_inverse=True)[1]."
        )
    if sizes.min() < k:
        raise GuaranteeError(
            f"Cells of k={k} records were asked for, but the smallest cell of the base has {sizes.min()} records. "
            "Partition the base again with this k."
        )
    return cells.astype(np.int64)
