"""Enlarge a sample with similar records, so that a calibration can run at the expected size.

Times jump when a table outgrows the caches or a method switches its strategy, which cannot be predicted from a small
sample. So the sample is enlarged to the expected size. A new record takes each of its values from a random record of
the same cell, which preserves values, ties and dense regions. Such records are suitable for timing only.
"""

import numpy as np
from numpy.typing import NDArray

from shoal.methods import partition
from shoal.typing import Labels, Matrix

SIZE = 10
"""Size of the cells within which values are mixed."""


class Donors:
    """Records of the sample from which the values of the enlarged set are taken.

    Attributes
    ----------
    models : ndarray of shape (n_records,)
        Record of the sample on which each enlarged record is based; all are used about equally often.
    copies : ndarray of shape (n_records,)
        Copy number of each record; copy 0 is the sample itself.
    """

    def __init__(self, X: Matrix, n_records: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        n_copies = -(-n_records // len(X))
        rest = rng.permutation(len(X))[: n_records - (n_copies - 1) * len(X)]
        self.models: Labels = np.concatenate([*[np.arange(len(X))] * (n_copies - 1), rest])
        self.copies: Labels = np.repeat(np.arange(n_copies), len(X))[:n_records]
        labels = partition(X, SIZE, "mdav", seed) if len(X) >= SIZE else np.zeros(len(X), dtype=np.int64)
        sizes = np.bincount(labels)
        self._order = np.argsort(labels, kind="stable")
        self._sizes, self._starts = sizes[labels], (np.cumsum(sizes) - sizes)[labels]
        self._rng = rng

    def donor_rows(self) -> Labels:
        """Return the source records of one column: in copy 0 the record itself, else a random record of its cell."""
        starts, sizes = self._starts[self.models], self._sizes[self.models]
        donors = self._order[starts + (self._rng.random(len(sizes)) * sizes).astype(np.int64)]
        return np.where(self.copies == 0, self.models, donors)


def enlarged(X: Matrix, n_records: int, seed: int) -> Matrix:
    """Return `n_records` records similar to those of `X`, in random order.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [0.5, 1.5], [9.0, 8.0], [9.5, 8.5]])
    >>> more = enlarged(X, 100, seed=1)
    >>> more.shape, set(np.unique(more)) == set(np.unique(X))
    ((100, 2), True)
    """
    rng = np.random.default_rng(seed)
    if n_records <= len(X):
        return np.ascontiguousarray(X[rng.permutation(len(X))[:n_records]])
    donors = Donors(X, n_records, seed)
    order: NDArray[np.int64] = rng.permutation(n_records)
    result = np.empty((n_records, X.shape[1]))
    for column in range(X.shape[1]):
        result[:, column] = X[donors.donor_rows()[order], column]
    return result
