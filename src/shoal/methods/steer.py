"""Steer: append weighted artificial attributes, so that a partition also takes them into account.

Steered microaggregation SM(D, k, M, A, Omega): the attributes A are appended to the matrix D, each scaled to a range
equal to its weight in Omega, and any algorithm M runs on the result. Every method of `partition` can be steered.

References
----------
Domingo-Ferrer, Soria-Comas (2017), "Steered microaggregation: a unified primitive for anonymization of data sets and
data streams", definition 3.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from shoal.arrays import as_matrix
from shoal.errors import ParameterError
from shoal.typing import Matrix


def steer(X: ArrayLike, attributes: ArrayLike, weights: float | Sequence[float]) -> Matrix:
    """Append artificial attributes to a matrix, each scaled to the range from 0 to its weight.

    Parameters
    ----------
    X : array_like of shape (n_records, n_dims)
        Records in the space. The paper's bounds on weights are for columns of range 1.
    attributes : array_like of shape (n_records,) or (n_records, n_attributes)
        What should be similar within a cell: a time, a place, a group coded as numbers. Finite numbers.
    weights : float or sequence of float
        One for each attribute, at least 0. A larger weight makes an attribute count more relative to the columns of
        `X`; 0 disables it. Constant attributes have no effect.

    Returns
    -------
    steered : ndarray of shape (n_records, n_dims + n_attributes), float64
        The matrix to partition. Loss is measured on `X`, not on this matrix.

    Raises
    ------
    ParameterError
        If the numbers of attributes, records and weights do not match, or a weight is negative.

    Examples
    --------
    Four records in order of time. Without steering the first is grouped with the third, with steering with the second.

    >>> import numpy as np
    >>> from shoal import partition
    >>> X = np.array([[0.0], [1.0], [0.1], [0.9]])
    >>> partition(X, k=2)
    array([0, 1, 0, 1])
    >>> partition(steer(X, np.arange(4), weights=9), k=2)
    array([0, 0, 1, 1])
    """
    matrix = as_matrix(X)
    columns = np.asarray(attributes)
    columns = as_matrix(columns[:, None] if columns.ndim == 1 else columns)
    if len(columns) != len(matrix):
        raise ParameterError(f"attributes has {len(columns)} rows, but X has {len(matrix)}. Pass one row per record.")
    weight = np.atleast_1d(np.asarray(weights, dtype=np.float64))
    if weight.shape != (columns.shape[1],):
        raise ParameterError(
            f"weights must have one entry for each of the {columns.shape[1]} attributes; got shape {weight.shape}."
        )
    if not (np.isfinite(weight) & (weight >= 0)).all():
        raise ParameterError("weights must be finite numbers of at least 0.")
    low, high = columns.min(axis=0, initial=np.inf), columns.max(axis=0, initial=-np.inf)
    # Halved first, so that the largest possible range does not overflow.
    span = high / 2 - low / 2
    scaled = np.divide(columns / 2 - low / 2, span, out=np.zeros_like(columns), where=span > 0)
    return np.ascontiguousarray(np.hstack([matrix, scaled * weight]))
