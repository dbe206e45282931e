"""Enlarge: more records like those at hand, so that a calibration can work at the size that is to come.

Times jump when a table outgrows the caches or a method changes its ways, and no rule foresees that from a small sample.
So the sample is made as large as the table will be. A new record takes each of its values from some record of a cell:
values, ties and dense places stay as they are. Such records are good for measuring time, and for nothing else.
"""

import numpy as np
from numpy.typing import NDArray

from shoal.partition import partition
from shoal.typing import Labels, Matrix

SIZE = 10
"""Of the cells within which values are mixed."""


class Mates:
    """Which records lend their values to new ones.

    Attributes
    ----------
    models : ndarray of shape (n_records,)
        The record that each of the enlarged set is modelled on; each of those at hand comes about equally often.
    copies : ndarray of shape (n_records,)
        The how-manieth record that is; those of copy 0 are the ones at hand.
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
        """Return who lends the values of one more column: in copy 0 everybody to himself, else a random cell mate."""
        starts, sizes = self._starts[self.models], self._sizes[self.models]
        mates = self._order[starts + (self._rng.random(len(sizes)) * sizes).astype(np.int64)]
        return np.where(self.copies == 0, self.models, mates)


def enlarged(X: Matrix, n_records: int, seed: int) -> Matrix:
    """Return `n_records` records like those of `X`, in random order.

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
    mates = Mates(X, n_records, seed)
    order: NDArray[np.int64] = rng.permutation(n_records)
    result = np.empty((n_records, X.shape[1]))
    for column in range(X.shape[1]):
        result[:, column] = X[mates.donor_rows()[order], column]
    return result
