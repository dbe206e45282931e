"""Arrays: validation of numeric input that does not come from a table.

`as_matrix` validates a matrix, `as_cell_size` validates k, and `standardize` brings columns to the scale used in the
literature.
"""

import operator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.errors import GuaranteeError, ParameterError
from shoal.typing import Matrix, Seed, Vector


def standardize(X: ArrayLike) -> Matrix:
    """Bring each column to mean 0 and unit population standard deviation.

    Parameters
    ----------
    X : array_like of shape (n_records, n_dims)
        Finite numbers. The input is not changed.

    Returns
    -------
    Z : ndarray of shape (n_records, n_dims), float64
        Equal entries of a column stay equal. A constant column becomes zeros.

    Raises
    ------
    ParameterError
        If `X` is not a matrix of finite numbers.

    Notes
    -----
    Takes O(n) time in records and one working copy of the matrix. Offset and mean are subtracted before anything is
    squared, so a column of Unix timestamps keeps its digits. Each column is first scaled by an exact power of two, so
    columns of any magnitude neither overflow nor underflow.

    Dividing by the sample standard deviation (n - 1) instead would scale every column by the same factor: the cells and
    the information loss would be the same.

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
    # First relative to a record, then to the mean: the digits that all records share cancel without rounding, and a
    # constant column is exactly 0. The rounded mean of equal numbers may differ from them, and be scaled up to 1.
    Z -= Z[0].copy()
    Z -= Z.mean(axis=0)
    sd = np.sqrt(np.square(Z).mean(axis=0))
    Z /= np.where(sd > 0, sd, 1.0)
    return Z


MOST_RECORDS = 2**31 - 1
"""Maximum number of records that the kernels can index."""


def times_power_of_two(values: Vector | Matrix, exponents: "int | NDArray[np.integer]") -> Matrix:
    """Return what `np.ldexp` returns, by a product where that is exact too, which takes a tenth of the time."""
    if (abs(exponents) if isinstance(exponents, int) else np.abs(exponents).max(initial=0)) < 1000:
        return np.asarray(values * np.ldexp(1.0, exponents))
    return np.asarray(np.ldexp(values, exponents))


def check_n_records(n_records: int) -> None:
    """Refuse more records than the kernels can index."""
    if n_records > MOST_RECORDS:
        raise ParameterError(
            f"There are {n_records:,} records, and at most {MOST_RECORDS:,} can be partitioned together. Split the "
            "table into parts, and release each separately."
        )


def as_matrix(X: ArrayLike) -> Matrix:
    """Return `X` as a C-contiguous float64 matrix of finite numbers, or raise ParameterError."""
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
            f"X must have two dimensions, records by columns; it has {array.ndim}. For one column use X.reshape(-1, 1)."
        )
    check_n_records(array.shape[0])
    if array.shape[1] == 0 and array.shape[0] > 0:
        raise ParameterError(f"X has {array.shape[0]} records but no columns. Pass at least one column.")
    with np.errstate(over="ignore"):
        matrix = np.ascontiguousarray(array, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        total = matrix.sum()
    # The sum of numbers of which one is not finite is not: one pass, without an array of the same shape.
    if not np.isfinite(total) and (bad := ~np.isfinite(matrix)).any():
        rows, columns = np.nonzero(bad)
        raise ParameterError(
            f"X must be finite; {bad.sum()} entries are NaN or infinite, in column(s) "
            f"{', '.join(map(str, np.unique(columns)[:10]))}, the first at index {rows[0]}. "
            "Drop these records or impute the values first."
        )
    return matrix


def check_seed(seed: Seed) -> None:
    """Raise ParameterError unless the seed is a whole number or None."""
    if not (seed is None or isinstance(seed, int | np.integer)):
        raise ParameterError(f"seed must be a whole number or None, not {type(seed).__name__}.")


def as_k(k: int) -> int:
    """Return `k` as an int of at least 2, or raise ParameterError."""
    if isinstance(k, bool | np.bool_) or not hasattr(k, "__index__"):
        raise ParameterError(f"k must be a whole number, not {type(k).__name__}.")
    k = operator.index(k)
    if k < 2:
        raise ParameterError(f"k must be at least 2; k={k} was asked for. With k=1 every record would be unprotected.")
    return k


def as_cell_size(k: int, n_records: int) -> int:
    """Return `k` as an int of at most `n_records`, or raise."""
    k = as_k(k)
    if n_records < k:
        raise GuaranteeError(
            f"Cells of k={k} records were asked for, but there are only {n_records} records. Lower k or add records."
        )
    return k
