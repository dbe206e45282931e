"""Refine: make any partition better by moves and swaps between neighbouring cells."""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from shoal import kernels
from shoal.arrays import as_cell_size, as_matrix
from shoal.errors import GuaranteeError, ParameterError
from shoal.partition.cell_building import cut_large, members_of, renumbered
from shoal.partition.mdav import mdav
from shoal.typing import Labels, Matrix


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
        The records the partition is of.
    labels : array_like of shape (n_records,)
        Cell number of each record, from 0 and without gaps, at least `k` records to a cell. Not changed.
    k : int
        Smallest cell size.
    rounds : int
        At most so many rounds over all pairs of neighbouring cells.
    neighbours : int
        How many cells around each cell are looked at.
    least_gain : float
        A round that lowers the loss by less than this share is the last.
    thorough : bool
        In the end also let records move along chains of three cells, and cut neighbouring cells anew: some tenths of a
        percent less loss for a tenth to a quarter more time.
    strata : array_like of shape (n_records,), optional
        Records of different strata never get into one cell; by default there is one stratum.

    Returns
    -------
    labels : ndarray of shape (n_records,), int64
        A partition whose SSE is at most that of `labels`.

    Raises
    ------
    ParameterError
        If `k` is not a whole number of at least 2, `labels` does not number the cells of the records, or a cell has
        records of several strata.
    GuaranteeError
        If there are fewer than `k` records, or a cell of `labels` has fewer.

    Notes
    -----
    Near-linear in the number of records. Nothing is random: the same start gives the same end, on any number of
    threads. Under the veto of privacy models, `shoal.cells.guarded_refine` does the same.

    Cells of 2k records or more are cut by MDAV first. Then there are three kinds of steps: a record moves from a cell
    of more than `k` to another; two records swap their cells; a cell is scattered over its neighbours where that costs
    less than what it loses by itself. Each is taken only if float64 arithmetic says that the sum of squared distances
    falls.

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
            "labels must count the cells from 0; renumber with np.unique(labels, return_inverse=True)."
        )
    smallest = np.bincount(start).min()
    if smallest < k:
        raise GuaranteeError(f"Cells of k={k} records were asked for, but the smallest cell has {smallest} records.")
    search = partial(_refine, k=k, rounds=rounds, neighbours=neighbours, least_gain=least_gain, thorough=thorough)
    return search(matrix, start) if strata is None else _within(matrix, start, np.asarray(strata), search)


def _refine(
    X: Matrix, labels: Labels, k: int, rounds: int, neighbours: int, least_gain: float, thorough: bool
) -> Labels:
    # Cutting a cell never raises the SSE; and cells that are all about the same size fit into tiles of one size.
    start = cut_large(X, labels, k, mdav)
    return kernels.refine(X, start, k, rounds, neighbours, least_gain, thorough)


def _within(X: Matrix, labels: Labels, strata: Labels, search: Callable[[Matrix, Labels], Labels]) -> Labels:
    """Refine the cells of each stratum by themselves."""
    if strata.shape != labels.shape:
        raise ParameterError(f"strata must be one for each of the {len(labels)} records; got shape {strata.shape}.")
    codes = renumbered(strata)
    of_cell = np.empty(int(labels.max()) + 1, dtype=np.int64)
    of_cell[labels] = codes
    if (of_cell[labels] != codes).any():
        raise ParameterError("A cell of the partition has records of several strata. Give a partition within strata.")
    refined, n_cells = np.empty_like(labels), 0
    for records in members_of(codes):
        refined[records] = search(np.ascontiguousarray(X[records]), renumbered(labels[records])) + n_cells
        n_cells = int(refined[records].max()) + 1
    return refined
