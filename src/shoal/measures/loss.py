"""Information loss of replacing each record by the mean of its cell.

Papers use the same few sums under different names; ``docs/loss.md`` lists them.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.arrays import as_matrix
from shoal.errors import ParameterError
from shoal.typing import Labels, Matrix, Vector


@dataclass(frozen=True, eq=False)
class Loss:
    """Information loss of a partition, in the units of the matrix it was measured on.

    Attributes
    ----------
    sse : float
        Sum of the squared distances between the records and the means of their cells.
    sst : float
        Sum of the squared distances between the records and their overall mean: the `sse` of a single cell.
    il : float
        Information loss, SSE / SST: from 0 to 1, and 0 if all records are equal.
    mse : float
        Mean squared distance of a record to the mean of its cell: SSE / n_records.
    mae : float
        Mean distance, not squared, of a record to the mean of its cell.
    gse : ndarray of shape (n_cells,)
        Contribution of each cell to `sse`.
    """

    sse: float
    sst: float
    il: float
    mse: float
    mae: float
    gse: NDArray[np.float64] = field(repr=False)


def loss(X: ArrayLike, labels: ArrayLike) -> Loss:
    """Measure the information lost when each record is replaced by the mean of its cell.

    Parameters
    ----------
    X : array_like of shape (n_records, n_dims)
        At least one record of finite numbers. The literature measures on `shoal.arrays.standardize`d columns.
    labels : array_like of shape (n_records,)
        Cell number of each record, whole numbers from 0 and without gaps. Cells may have any size.

    Returns
    -------
    Loss
        SSE, SST, IL, MSE, MAE and the GSE of each cell.

    Raises
    ------
    ParameterError
        If `X` is not a matrix of finite numbers with at least one record, or `labels` are not valid cell numbers.

    Notes
    -----
    Takes O(n) time in records and memory for a second copy of the matrix.

    Large offsets cost no accuracy: coordinates are taken relative to a member of the cell before its mean is computed.
    If squares would overflow or underflow, the columns are first scaled by an exact power of two, so `il` and `mae` are
    accurate at any magnitude. A sum or mean of squares too large for a float64 is returned as infinity, without a
    warning, and one too small as 0. If all records are equal, SST is 0 and `il` is 0 by definition.

    Examples
    --------
    >>> import numpy as np
    >>> result = loss(np.array([[1.0], [2.0], [8.0], [9.0]]), np.array([0, 0, 1, 1]))
    >>> result
    Loss(sse=1.0, sst=50.0, il=0.02, mse=0.25, mae=0.5)
    >>> result.gse
    array([0.5, 0.5])
    """
    matrix = as_matrix(X)
    n_records = len(matrix)
    if n_records == 0:
        raise ParameterError("X has no records, so there is no loss to measure. Pass at least one record.")
    cells = _as_labels(labels, n_records)
    columns, exponent = _scaled_columns(matrix)
    within = _squared_distances(columns, cells)
    sse = within.sum()
    sst = _squared_distances(columns, np.zeros_like(cells)).sum()
    return Loss(
        sse=float(_unscaled(sse, 2 * exponent)),
        sst=float(_unscaled(sst, 2 * exponent)),
        il=float(sse / sst) if sst > 0 else 0.0,
        mse=float(_unscaled(sse / n_records, 2 * exponent)),
        mae=float(_unscaled(np.sqrt(within).mean(), exponent)),
        gse=_unscaled(np.bincount(cells, within).astype(np.float64), 2 * exponent),
    )


def _as_labels(labels: ArrayLike, n_records: int) -> Labels:
    """Return `labels` as int64 cell numbers from 0 without gaps, one for each record, or raise ParameterError."""
    array = np.asarray(labels)
    if array.ndim != 1 or len(array) != n_records:
        raise ParameterError(
            f"labels must give one cell number for each of the {n_records} records; its shape is {array.shape}."
        )
    if array.dtype.kind not in "iu":
        raise ParameterError(
            f"labels must be whole numbers; their dtype is {array.dtype}. Number the cells with "
            "np.unique(labels, return_inverse=True)[1]."
        )
    if array.min() < 0:
        raise ParameterError(
            f"labels must start at 0; {np.count_nonzero(array < 0)} records have a negative label, the first is at "
            f"index {np.argmax(array < 0)}. Assign every record to a cell."
        )
    # The maximum is checked first: a label of 10**12 must not allocate that many counters.
    if array.max() >= n_records or not np.bincount(array.astype(np.int64)).all():
        raise ParameterError(
            f"labels must number the cells without gaps; the largest is {array.max()} but only {len(np.unique(array))} "
            "different labels occur. Renumber them with np.unique(labels, return_inverse=True)[1]."
        )
    return array.astype(np.int64)


class _Columns(NamedTuple):
    """Columns of shape (n_dims, n_records); each number times 2**exponent is the original."""

    columns: Matrix
    exponent: int


# Ranges of 2**-300 to 2**480 need no scaling: sums of up to 2**60 squares neither overflow nor underflow.
_SMALLEST, _LARGEST = -300, 480


def _scaled_columns(X: Matrix) -> _Columns:
    """Drop the constant columns, which do not affect distances, and scale the others so that they can be squared."""
    low, high = X.min(axis=0), X.max(axis=0)
    varying = high > low
    columns = np.ascontiguousarray(X.T if varying.all() else X[:, varying].T)
    with np.errstate(over="ignore"):
        widest = np.minimum((high - low).max(), np.finfo(np.float64).max)
    magnitude = int(np.frexp(widest)[1])
    if _SMALLEST <= magnitude <= _LARGEST:
        return _Columns(columns, 0)
    exponent = magnitude - _LARGEST
    return _Columns(np.ldexp(columns, -exponent), exponent)


def _unscaled(value: NDArray[np.float64] | np.float64, exponent: int) -> NDArray[np.float64]:
    """Return ``value * 2**exponent``: exact, or infinite, or rounded where it is subnormal."""
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.ldexp(value, exponent))


class CellDistances:
    """Squared distances of records to the means of their cells, column by column."""

    def __init__(self, labels: Labels) -> None:
        self._labels = labels
        self._sizes = np.bincount(labels)
        self._member = np.empty(len(self._sizes), dtype=np.int64)
        self._member[labels] = np.arange(len(labels))

    def squared(self, column: Vector) -> Vector:
        """Return the squared distance of each number to the mean of its cell."""
        # Relative to a member of the cell: the digits that all members share cancel before anything is summed.
        difference = column - column[self._member][self._labels]
        difference -= (np.bincount(self._labels, difference) / self._sizes)[self._labels]
        difference *= difference
        return difference


def _squared_distances(columns: Matrix, labels: Labels) -> Vector:
    """Return the squared distance of each record to the mean of its cell."""
    cells, squares = CellDistances(labels), np.zeros(len(labels))
    for column in columns:
        squares += cells.squared(column)
    return squares
