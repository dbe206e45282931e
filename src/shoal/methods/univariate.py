"""Univariate: the optimal partition along one line.

With one column microaggregation is tractable: some partition of minimum SSE has cells of k to 2k-1 neighbours in sorted
order (Hansen, Mukherjee), and dynamic programming finds it. With several columns the records are first projected on a
line; the result is then optimal for the projections, not for the full space.
"""

import numpy as np
from numpy.typing import NDArray

from shoal import kernels
from shoal.errors import ParameterError
from shoal.typing import Labels, Matrix, Seed


def univariate(X: Matrix, k: int, seed: Seed = None, *, axis: str | int = "principal") -> Labels:
    """Return the cells of minimum SSE along one line: a column, or the first principal component.

    Parameters
    ----------
    X : ndarray of shape (n_records, n_dims)
        Records in the space.
    k : int
        Smallest cell size.
    seed : int, optional
        Ignored; the method is deterministic.
    axis : "principal" or int
        The line to use if there are several columns: the first principal component, or the column of this number. With
        one column both mean that column.

    Returns
    -------
    labels : ndarray of shape (n_records,), int64
        Cells are numbered along the line.

    Raises
    ------
    ParameterError
        If `axis` is neither "principal" nor the number of a column.

    Notes
    -----
    Takes O(n log n) time in records, most of it for sorting, and O(n) memory, for any `k`. Cells hold k to 2k-1
    records. The cost of a cell is computed without cancellation, so large offsets and outliers do not reduce its
    accuracy, and the SSE is minimal up to a relative error of about k * 2**-53. Equal values keep the order of the
    records; of partitions with the same computed cost, the one with the smallest last cell is taken, then the smallest
    next-to-last cell, and so on.

    References
    ----------
    Hansen, Mukherjee (2003), "A polynomial algorithm for optimal univariate microaggregation".

    Examples
    --------
    >>> univariate(np.array([[1.0], [9.0], [2.0], [8.0], [3.0]]), k=2)
    array([0, 1, 0, 1, 0])
    """
    values = _places(X, axis)
    order = np.argsort(values, kind="stable")
    sizes = kernels.univariate(values[order], k)
    labels = np.empty(len(X), dtype=np.int64)
    labels[order] = np.repeat(np.arange(len(sizes)), sizes)
    return labels


def _places(X: Matrix, axis: str | int) -> NDArray[np.float64]:
    """Return the position of each record on the line."""
    n_dims = X.shape[1]
    if axis == "principal":
        return X[:, 0].copy() if n_dims == 1 else _along_principal_component(X)
    if isinstance(axis, bool) or not isinstance(axis, int | np.integer) or not 0 <= axis < n_dims:
        raise ParameterError(f'axis must be "principal" or the number of a column, 0 to {n_dims - 1}; got {axis!r}.')
    return X[:, axis].copy()


def _along_principal_component(X: Matrix) -> NDArray[np.float64]:
    """Project on the eigenvector of the largest eigenvalue of the covariance, its largest component made positive."""
    Z = np.ldexp(X, -np.frexp(np.abs(X).max())[1])
    Z -= Z.min(axis=0)  # the digits that all records share cancel without rounding
    Z = np.ldexp(Z, -np.frexp(Z.max())[1])
    deviations = Z - Z.mean(axis=0)
    component = np.linalg.eigh(deviations.T @ deviations)[1][:, -1]
    component *= np.sign(component[np.argmax(np.abs(component))])
    places = np.zeros(len(X))
    # Column by column: a matrix product may round equal records differently.
    for column, share in zip(Z.T, component, strict=True):
        places += column * share
    return places
