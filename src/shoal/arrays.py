"""Arrays: the gate for numbers that come without a table.

`as_matrix` accepts a matrix or says what is wrong with it, `as_cell_size` accepts a k that the records can meet, and
`standardize` brings columns to the scale that the literature compares on.
"""

import operator

import numpy as np
from numpy.typing import ArrayLike

from shoal.errors import GuaranteeError, ParameterError
from shoal.typing import Matrix


def standardize(X: ArrayLike) -> Matrix:
    """Bring each column to mean 0 and unit population standard deviation.

    Parameters
    ----------
    X : array_like of shape (n_records, n_dims)
        Finite numbers. The input is not changed.

    Returns
    -------
    Z : ndarray of shape (n_records, n_dims), float64
        Equal entries of a column stay equal. A constant column becomes zeros: it carries no distance.

    Raises
    ------
    ParameterError
        If `X` is not a matrix of finite numbers.

    Notes
    -----
    Takes O(n) time in records and one working copy of the matrix. Offset and mean are gone before anything is squared,
    so a column of Unix timestamps keeps its digits. Each column is first scaled by an exact power of two, so no
    magnitude that a float64 can hold overflows or vanishes.

    Dividing by the sample standard deviation (n - 1) instead would change every column by the same factor: the same
    cells, the same information loss.

    Examples
    --------
    >>> standardize([[1.0, 1e9, 5.0], [3.0, 1e9 + 1, 5.0]])
    array([[-1., -1.,  0.],
           [ 1.,  1.,  0.]])
    """
    matrix = as_matrix(X)
    if len(matrix) == 0:
        return matrix.copy()
    Z: Matrix = np.ldexp(matrix, -np.frexp(np.abs(matrix).max(axis=0))[1])
    # From the first record, not yet from the mean: the digits that all records share go without a rounding, and a
    # constant column is exactly 0, where the rounded mean of equal numbers may differ from them and be scaled up to 1.
    Z -= Z[0].copy()
    Z -= Z.mean(axis=0)
    sd = np.sqrt(np.square(Z).mean(axis=0))
    Z /= np.where(sd > 0, sd, 1.0)
    return Z


MOST_RECORDS = 2**31 - 1
"""How many records the kernels can number."""


def check_n_records(n_records: int) -> None:
    """Refuse more records than the kernels can number."""
    if n_records > MOST_RECORDS:
        raise ParameterError(
            f"There are {n_records:,} records, and at most {MOST_RECORDS:,} can be partitioned together. Split the "
            "table into parts, and release each."
        )


def as_matrix(X: ArrayLike) -> Matrix:
    """Return `X` as a C-contiguous float64 matrix of finite numbers, or say what is wrong with it."""
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise ParameterError("X must be a matrix; its rows have different lengths.") from error
    if array.dtype.kind not in "buif":
        raise ParameterError(
            f"X must hold real numbers; its dtype is {array.dtype}. Encode text, dates and categories first, "
            "or convert with X.astype(float)."
        )
    if array.ndim != 2:
        raise ParameterError(
            f"X must have two dimensions, records by columns; it has {array.ndim}. One column is X.reshape(-1, 1)."
        )
    check_n_records(array.shape[0])
    if array.shape[1] == 0 and array.shape[0] > 0:
        raise ParameterError(f"X has {array.shape[0]} records but no columns; there is nothing to tell them apart by.")
    with np.errstate(over="ignore"):
        matrix = np.ascontiguousarray(array, dtype=np.float64)
    bad = ~np.isfinite(matrix)
    if bad.any():
        rows, columns = np.nonzero(bad)
        raise ParameterError(
            f"X must be finite; {bad.sum()} entries are NaN or infinite, in column(s) "
            f"{', '.join(map(str, np.unique(columns)[:10]))}, the first at record {rows[0]}. "
            "Drop these records or fill the gaps first."
        )
    return matrix


def as_k(k: int) -> int:
    """Return `k` as an int of at least 2, or say what is wrong with it."""
    if isinstance(k, bool | np.bool_) or not hasattr(k, "__index__"):
        raise ParameterError(f"k must be a whole number, not {type(k).__name__}.")
    k = operator.index(k)
    if k < 2:
        raise ParameterError(f"k must be at least 2 for a record to hide among others; k={k} was asked for.")
    return k


def as_cell_size(k: int, n_records: int) -> int:
    """Return `k` as an int that `n_records` records can meet, or say why there is none."""
    k = as_k(k)
    if n_records < k:
        raise GuaranteeError(
            f"Cells of k={k} records were asked for, but there are only {n_records} records. Lower k or add records."
        )
    return k
