"""MDAV in plain NumPy, with the five strategies of F-MDAV as switches.

Without switches it is traditional MDAV, each step as the paper writes it down; every switch replaces one step.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.arrays import as_matrix
from shoal.errors import ParameterError
from shoal.typing import Labels, Matrix

Reals = NDArray[Any]
"""float64, or float32 under the switch `single`."""

Positions = NDArray[np.intp]
"""Positions of records among those that remain."""


def numpy_mdav(
    X: ArrayLike,
    k: int,
    *,
    algebraic: bool = False,
    reuse: bool = False,
    selection: bool = False,
    subtraction: bool = False,
    single: bool = False,
) -> Labels:
    """Split records into cells by MDAV in plain NumPy, with the five strategies of F-MDAV as switches.

    Parameters
    ----------
    X : array_like of shape (n_records, n_dims)
        Records in the space, finite numbers.
    k : int
        Smallest cell size, at least 2 and at most n_records.
    algebraic : bool
        Compare by ``|x|^2 / 2 - <x, point>`` with the half norms computed once (section 3.1), instead of summing
        squared differences.
    reuse : bool
        Compute the distances to P once, for its cell and for Q (3.2), instead of twice.
    selection : bool
        Select the k nearest (3.3), instead of sorting all records by distance.
    subtraction : bool
        Keep a running sum of the remaining records (3.4), instead of averaging them anew.
    single : bool
        Calculate in float32 (3.5), instead of float64.

    Returns
    -------
    labels : ndarray of shape (n_records,), int64
        Cell number of each record, from 0 and without gaps.

    Raises
    ------
    ParameterError
        If the matrix or `k` cannot be used.

    Notes
    -----
    O(n^2 / k) time in records with or without switches; they change the factor. Ties go to the lowest record number.
    Sums run column by column, so without switches the distances are those of the kernel to the last bit; `algebraic`
    and `single` round differently, which can break a tie, and so a cell, differently.

    Examples
    --------
    >>> numpy_mdav(np.array([[1.0], [9.0], [2.0], [8.0]]), k=2, reuse=True, selection=True)
    array([0, 1, 0, 1])
    """
    matrix = as_matrix(X)
    if not 2 <= k <= len(matrix):
        raise ParameterError(f"k must be from 2 to the number of records; k={k} was asked for {len(matrix)} records.")
    everyone = _everyone(matrix, np.float32 if single else np.float64, algebraic)
    labels = np.full(len(matrix), -1, dtype=np.int64)
    distances = _algebraic_distances if algebraic else _squared_distances
    nearest = _select_nearest if selection else _sort_nearest

    rest, total, n_cells = everyone, everyone.columns.sum(axis=1), 0
    while len(rest.records) >= 2 * k:
        centroid = total / len(rest.records) if subtraction else rest.columns.mean(axis=1)
        p = distances(rest, centroid).argmax()
        from_p = distances(rest, rest.columns[:, p])
        p_cell = nearest(from_p, p, k)

        if not reuse:
            from_p = distances(rest, rest.columns[:, p])
        from_p[p_cell] = -np.inf
        q = from_p.argmax()
        from_q = distances(rest, rest.columns[:, q])
        from_q[p_cell] = np.inf
        q_cell = nearest(from_q, q, k)

        labels[rest.records[p_cell]] = n_cells
        labels[rest.records[q_cell]] = n_cells + 1
        n_cells += 2
        gone = np.sort(np.concatenate([p_cell, q_cell]))
        if subtraction:
            total -= rest.columns[:, gone].sum(axis=1)
        rest = _without(rest, gone)

    labels[rest.records] = n_cells if len(rest.records) >= k else _nearest_cells(everyone, rest, labels)
    return labels


class _Rest(NamedTuple):
    """Records that are in no cell yet, in record order.

    One row per column of the data, as Matlab lays it out: a step of the algorithm runs along contiguous memory.
    """

    records: Positions
    columns: Reals
    half_norms: Reals
    """|x|^2 / 2, or nothing where distances are squared differences."""


def _everyone(X: Matrix, dtype: type[np.floating[Any]], algebraic: bool) -> _Rest:
    columns = np.ascontiguousarray(X.T, dtype=dtype)
    origin = np.zeros(len(columns), dtype=dtype)
    return _Rest(np.arange(len(X)), columns, _squares(columns, origin) / 2 if algebraic else columns[:0])


def _without(rest: _Rest, gone: Positions) -> _Rest:
    """Close the gaps that `gone`, in ascending order, leave."""
    edges = [-1, *gone.tolist(), len(rest.records)]
    runs = [slice(left + 1, right) for left, right in pairwise(edges)]
    return _Rest(*(np.concatenate([part[..., run] for run in runs], axis=-1) for part in rest))


def _squared_distances(rest: _Rest, point: Reals) -> Reals:
    """Return |x - point|^2: three operations per number."""
    return _squares(rest.columns, point)


def _algebraic_distances(rest: _Rest, point: Reals) -> Reals:
    """Return (|x - point|^2 - |point|^2) / 2, which puts records in the same order: two operations per number."""
    # einsum and not @: BLAS would use several threads, and the paper measures one.
    distances: Reals = rest.half_norms - np.einsum("j,ji->i", point, rest.columns)
    return distances


def _squares(columns: Reals, point: Reals) -> Reals:
    total: Reals = np.zeros_like(columns[0])
    for column, value in zip(columns, point, strict=True):
        difference = column - value
        difference *= difference
        total += difference
    return total


def _sort_nearest(distances: Reals, own: np.intp, k: int) -> Positions:
    """Return the k nearest by a full sort."""
    distances[own] = -np.inf
    # Not kind="stable", which takes five times as long where NumPy sorts by vector instructions.
    return _settle_ties(distances, np.argsort(distances), k)


def _select_nearest(distances: Reals, own: np.intp, k: int) -> Positions:
    """Return the k nearest by quickselect."""
    distances[own] = -np.inf
    return _settle_ties(distances, np.argpartition(distances, k), k)


def _settle_ties(distances: Reals, order: Positions, k: int) -> Positions:
    """Return the first k of `order`; among records at the distance of the last, those with the lowest numbers."""
    nearest = order[:k]
    reach = distances[nearest].max()
    if distances[order[k]] > reach:
        return nearest
    within = np.flatnonzero(distances < reach)
    return np.concatenate([within, np.flatnonzero(distances == reach)[: k - len(within)]])


def _nearest_cells(everyone: _Rest, rest: _Rest, labels: Labels) -> Labels:
    """Return, for each record that is left over, the cell with the nearest centroid."""
    placed = labels >= 0
    sizes = np.bincount(labels[placed])
    sums = [np.bincount(labels[placed], weights=column[placed]) for column in everyone.columns]
    centroids = (np.stack(sums) / sizes).astype(everyone.columns.dtype)
    return np.array([_squares(centroids, point).argmin() for point in rest.columns.T], dtype=np.int64)
