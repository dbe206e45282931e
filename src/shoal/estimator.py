"""Estimator: microaggregation as a scikit-learn transformer, for matrices and numeric frames.

Needs the extra ``sklearn``. For tables with categories, dates or missing values use `shoal.anonymize`.
"""

import secrets
import warnings
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from shoal import kernels
from shoal.aggregate import Cells, RandomAggregation, aggregate
from shoal.columns.schema import Roles, Schema
from shoal.constraints.constrained_cells import group
from shoal.distribution import install
from shoal.errors import ParameterError, ShoalWarning
from shoal.release import WITHDRAWN
from shoal.space.axes import Scaling
from shoal.space.space import Space
from shoal.typing import Labels, Matrix, Method

try:
    from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:  # pragma: no cover (the tests have it)
    raise ImportError(f"shoal.Microaggregator needs scikit-learn: {install('sklearn')}.") from error


class Microaggregator(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Replace each record by the mean of its cell of at least `k` similar records.

    Parameters
    ----------
    k : int, default 5
        Smallest cell size.
    method : str, default "auto"
        One of the methods listed in ``docs/methods.md``.
    scaling : {"zscore", "minmax", "none"}, default "zscore"
        Scaling of the columns.
    rho : float, default 0.0
        Random aggregation, from 0 (the mean of the cell) to 1 (anywhere in its range). Above 0 the result is **not**
        k-anonymous, and `fit` warns: ``docs/random.md``.
    seed : int or None, default 0
        Makes the result of a randomised method reproducible; None takes entropy from the operating system.
    threads : int, optional
        Maximum number of threads; all cores by default. The result does not depend on it.
    options : dict, optional
        Options of the method, such as ``{"effort": "best", "seconds": 60}``.

    Attributes
    ----------
    labels_ : ndarray of shape (n_records,)
        Cell number of each record of the fitted table.
    cell_values_ : ndarray of shape (n_cells, n_features)
        Published values of each cell; with `rho` above 0, its means.
    published_ : ndarray of shape (n_records, n_features)
        Published values of each record of the fitted table.
    n_features_in_, feature_names_in_
        As in every scikit-learn estimator.

    Notes
    -----
    ``fit_transform(X)`` and ``transform(X)`` of the same table return the k-anonymous release, the same as that of
    `shoal.anonymize` for these columns. ``transform`` of other records returns the values of the nearest cell, with
    `rho` above 0 its means, and guarantees nothing: records that were not fitted are not among the k of a cell.

    Examples
    --------
    >>> import numpy as np
    >>> Microaggregator(k=2).fit_transform(np.array([[1.0], [9.0], [2.0], [8.0]]))
    array([[1.5],
           [8.5],
           [1.5],
           [8.5]])
    """

    def __init__(
        self,
        k: int = 5,
        *,
        method: Method = "auto",
        scaling: Scaling = "zscore",
        rho: float = 0.0,
        seed: int | None = 0,
        threads: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.k = k
        self.method = method
        self.scaling = scaling
        self.rho = rho
        self.seed = seed
        self.threads = threads
        self.options = options

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Group the records of a table into cells.

        Parameters
        ----------
        X : array_like of shape (n_records, n_features)
            Finite numbers.
        y : ignored
            Present for compatibility with scikit-learn.
        """
        if isinstance(self.k, bool) or not isinstance(self.k, int | np.integer):
            raise ParameterError(f"k must be a whole number, not {type(self.k).__name__}.")
        if self.scaling not in ("zscore", "minmax", "none"):
            raise ParameterError("scaling must be one of zscore, minmax, none.")
        if isinstance(self.rho, bool) or not isinstance(self.rho, int | float) or not 0 <= self.rho <= 1:
            raise ParameterError(f"rho must be a number from 0 to 1; got {self.rho!r}.")
        matrix: Matrix = validate_data(self, X, dtype=np.float64, ensure_min_samples=max(int(self.k), 1))
        table = _as_table(matrix)
        schema = Schema.of(table.schema, Roles(quasi_identifiers=tuple(table.column_names)))
        self.space_ = Space.fit(table, schema, self.scaling)
        points = self.space_.encode(table)
        settings = {"threads": self.threads, **(self.options or {})}
        cells = group(table, schema, self.space_, points, self.k, self.method, self.seed, **settings)
        self.labels_ = cells.labels
        self.cell_values_ = _cell_values(table, schema, cells)
        self.published_ = self._published(table, schema, cells)
        self._keys = _row_keys(matrix)
        return self

    def transform(self, X: ArrayLike) -> Matrix:
        """Return the published values of fitted records, and the values of the nearest cell for others.

        Parameters
        ----------
        X : array_like of shape (n_records, n_features)
            Finite numbers.
        """
        check_is_fitted(self)
        matrix: Matrix = validate_data(self, X, dtype=np.float64, reset=False)
        if np.array_equal(_row_keys(matrix), self._keys):
            return self.published_.copy()
        return np.asarray(self.cell_values_[self._cells_of(matrix)])

    def predict(self, X: ArrayLike) -> Labels:
        """Return the cell of fitted records, and the nearest cell for others, shape (n_records,)."""
        check_is_fitted(self)
        return self._cells_of(validate_data(self, X, dtype=np.float64, reset=False))

    def fit_transform(self, X: ArrayLike, y: Any = None, **fit_params: Any) -> Matrix:
        """Group the records of a table and return their published values."""
        self.fit(X, y, **fit_params)
        return self.published_.copy()

    def _published(self, table: pa.Table, schema: Schema, cells: Cells) -> Matrix:
        """Return the values of the cells, or with `rho` randomized values and a warning."""
        if not self.rho:
            return np.asarray(self.cell_values_[cells.labels])
        warnings.warn(WITHDRAWN.format(rho=self.rho), ShoalWarning, stacklevel=3)
        seed = secrets.randbits(63) if self.seed is None else int(self.seed)
        made = aggregate(table, schema, cells, randomized=RandomAggregation(self.rho, seed))
        return np.column_stack([np.asarray(made[name]) for name in table.column_names])

    def _cells_of(self, X: Matrix) -> Labels:
        keys = _row_keys(X)
        if np.array_equal(keys, self._keys):
            return self.labels_
        order = np.argsort(self._keys, kind="stable")
        places = np.minimum(np.searchsorted(self._keys, keys, sorter=order), len(order) - 1)
        known = self._keys[order[places]] == keys
        cells = np.empty(len(X), dtype=np.int64)
        cells[known] = self.labels_[order[places[known]]]
        if not known.all():
            points = self.space_.encode(_as_table(self.cell_values_))
            cells[~known] = kernels.assign(self.space_.encode(_as_table(X[~known])), points)
        return cells


def _as_table(X: Matrix) -> pa.Table:
    return pa.table({str(j): X[:, j] for j in range(X.shape[1])})


def _cell_values(table: pa.Table, schema: Schema, cells: Cells) -> Matrix:
    """Return the published values of each cell, shape (n_cells, n_features)."""
    first = np.unique(cells.labels, return_index=True)[1]
    published = aggregate(table, schema, cells)
    return np.column_stack([np.asarray(published[name])[first] for name in table.column_names])


def _row_keys(X: Matrix) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each row."""
    multipliers = np.random.default_rng(X.shape[1]).integers(1, 2**63, X.shape[1], dtype=np.uint64) * 2 + 1
    bits = np.ascontiguousarray(X + 0.0).view(np.uint64)
    # Bits are mixed before they are added, since numbers with few digits have empty low bits.
    mixed = (bits ^ (bits >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    return np.asarray((mixed * multipliers).sum(axis=1, dtype=np.uint64))
