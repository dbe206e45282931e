"""Refine: improve any partition by moves and swaps between neighbouring cells."""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from shoal import kernels
from shoal.arrays import as_cell_size, as_matrix
from shoal.errors import GuaranteeError, ParameterError
from shoal.methods.cell_building import cut_large, renumbered
from shoal.methods.mdav import mdav
from shoal.methods.within_strata import within
from shoal.typing import Labels, Matrix, Progress


def refine(
    X: ArrayLike,
    labels: ArrayLike,
    k: int,
    *,
    rounds: int = 10,
    neighbours: int = 20,
    least_gain: float = 0.005,
    thorough: bool = False,
    strata: ArrayLike | None = None,
) -> Labels:
    """Lower the loss of a partition; no cell falls below `k`.

    Parameters
    ----------
    X : array_like of shape (n_records, n_dims)
        The records.
    labels : array_like of shape (n_records,)
        Cell number of each record, from 0 and without gaps, at least `k` records to a cell. Not changed.
    k : int
        Smallest cell size.
    rounds : int
        Maximum number of rounds over all pairs of neighbouring cells.
    neighbours : int
        Number of neighbouring cells considered for each cell.
    least_gain : float
        Stop after a round that lowers the loss by less than this share.
    thorough : bool
        Finally also move records along chains of three cells, and repartition neighbouring cells: some tenths of a
        percent less loss for a tenth to a quarter more time.
    strata : array_like of shape (n_records,), optional
        Records of different strata are never put into one cell; by default there is one stratum.

    Returns
    -------
    labels : ndarray of shape (n_records,), int64
        A partition whose SSE is at most that of `labels`.

    Raises
    ------
    ParameterError
        If `k` is not a whole number of at least 2, `labels` are not valid cell numbers, or a cell has records of
        several strata.
    GuaranteeError
        If there are fewer than `k` records, or a cell of `labels` has fewer.

    Notes
    -----
    Near-linear in the number of records. Deterministic: the result depends only on the initial partition, not on the
    number of threads. `shoal.constraints.guarded_refine` does the same under privacy models.

    Cells of 2k records or more are first split by MDAV. Then there are three kinds of steps: a record moves from a cell
    of more than `k` to another; two records swap cells; a cell is dissolved into its neighbours if that raises their
    SSE by less than its own. A step is taken only if it lowers the sum of squared distances in float64 arithmetic.

    Examples
    --------
    >>> import numpy as np
    >>> refine(np.array([[1.0], [9.0], [2.0], [8.0]]), np.array([0, 0, 1, 1]), k=2)
    array([0, 1, 0, 1])
    """
    matrix = as_matrix(X)
    k = as_cell_size(k, len(matrix))
    start = np.ascontiguousarray(labels)
    if start.dtype.kind not in "iu" or start.shape != (len(matrix),):
        raise ParameterError(
            f"labels must be one whole number for each of the {len(matrix)} records; got {start.dtype} of shape "
            f"{start.shape}."
        )
    start = start.astype(np.int64)
    if len(start) == 0 or start.min() < 0 or start.max() >= len(start):
        raise ParameterError(
            "labels must number the cells from 0; renumber with np.unique(labels, return_inverse=True)."
        )
    smallest = np.bincount(start).min()
    if smallest < k:
        raise GuaranteeError(f"Cells of k={k} records were asked for, but the smallest cell has {smallest} records.")
    search = partial(refined, k=k, rounds=rounds, neighbours=neighbours, least_gain=least_gain, thorough=thorough)
    return search(matrix, start) if strata is None else _within(matrix, start, np.asarray(strata), search)


def refined(
    X: Matrix,
    labels: Labels,
    k: int,
    rounds: int = 10,
    neighbours: int = 20,
    least_gain: float = 0.005,
    thorough: bool = False,
) -> Labels:
    """Do what `refine` does, for arguments that are known to be valid."""
    # Splitting a cell never raises the SSE, and cells of similar size fit into tiles of one size.
    start = cut_large(X, labels, k, mdav)
    return kernels.refine(X, start, k, rounds, neighbours, least_gain, thorough)


def _within(X: Matrix, labels: Labels, strata: Labels, search: Callable[[Matrix, Labels], Labels]) -> Labels:
    """Refine the cells of each stratum separately, several strata at a time."""
    if strata.shape != labels.shape:
        raise ParameterError(f"strata must have one entry for each of the {len(labels)} records; got {strata.shape}.")
    codes = renumbered(strata)
    of_cell = np.empty(int(labels.max()) + 1, dtype=np.int64)
    of_cell[labels] = codes
    if (of_cell[labels] != codes).any():
        raise ParameterError("A cell of the partition has records of several strata. Pass a partition within strata.")

    def refine_part(part: Matrix, threads: int, progress: Progress | None, cells: Labels) -> Labels:
        with kernels.using(threads, progress):
            return search(part, renumbered(cells))

    return within(X, codes, refine_part, kernels.progress_callback(), others=[labels])
