"""The compiled loops, met by the rest of shoal only here: arrays in, arrays out.

Callers have checked everything: matrices are C-contiguous float64 and finite, labels run from 0 without gaps, k is at
most the number of records. Threads and progress travel in a context, so that an algorithm's signature stays
``(X, k, seed)``.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal import _kernels
from shoal.errors import ParameterError
from shoal.typing import Labels, Matrix, Progress

__all__ = ["Remaining", "cell_spread", "cell_sums", "distances", "farthest", "mdav", "nearest", "simd", "using"]

Vector = NDArray[np.float64]


class _Setting(NamedTuple):
    threads: int
    progress: Progress | None


_setting: ContextVar[_Setting | None] = ContextVar("shoal_kernel_setting", default=None)


@contextmanager
def using(threads: int | None = None, progress: Progress | None = None) -> Iterator[None]:
    """Run what is inside with so many threads and this progress callback."""
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
        raise ParameterError(f"threads must be a whole number of at least 1, or None for all cores; got {threads!r}.")
    if progress is not None and not callable(progress):
        raise ParameterError(f"progress must be callable or None, not {type(progress).__name__}.")
    token = _setting.set(_Setting(threads or _n_cores(), progress))
    try:
        yield
    finally:
        _setting.reset(token)


def _n_cores() -> int:
    """Count the cores this process may use, which in a container is fewer than the machine has."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _current() -> _Setting:
    return _setting.get() or _Setting(_n_cores(), None)


def _as_labels(array: Labels) -> Labels:
    """Give an array of 64-bit integers the name that NumPy has for them, where the compiler has another."""
    return array.view(np.int64)


def simd() -> str:
    """Name the instruction set the loops run with on this machine: generic, avx2 or avx512."""
    return _kernels.simd()


def mdav(X: Matrix, k: int) -> Labels:
    """Partition by MDAV; see `shoal.partition.mdav`."""
    threads, progress = _current()
    return _as_labels(_kernels.mdav(X, k, threads, progress))


def distances(X: Matrix, point: Vector) -> Vector:
    """Return the squared distances of the records from a point, shape (n_records,)."""
    return _kernels.distances(X, point)


def nearest(X: Matrix, point: Vector, k: int) -> Labels:
    """Return the numbers of the k records nearest to a point, nearest first, ties by record number."""
    return Remaining(X).nearest(point, k)[0]


def farthest(X: Matrix, point: Vector) -> int:
    """Return the number of the record farthest from a point, the lowest of equally far ones."""
    return Remaining(X).farthest(point)


def cell_sums(X: Matrix, labels: Labels, n_cells: int) -> Matrix:
    """Return the sums of the records of each cell, correctly rounded, shape (n_cells, n_dims)."""
    return _kernels.cell_sums(X, labels, n_cells)


def cell_spread(X: Matrix, labels: Labels, n_cells: int) -> Vector:
    """Return, for each cell, the squared distances of its records from their mean, summed; shape (n_cells,)."""
    return _kernels.cell_spread(X, labels, n_cells)


class Remaining:
    """The records not yet in a cell, and what algorithms ask of them; every answer is exact.

    Parameters
    ----------
    X : ndarray of shape (n_records, n_dims)
        All records; it must not change while this object lives.

    Examples
    --------
    >>> remaining = Remaining(np.array([[1.0], [9.0], [2.0], [8.0]]))
    >>> records, squared = remaining.nearest(np.array([0.0]), 2)
    >>> records, squared
    (array([0, 2]), array([1., 4.]))
    >>> remaining.remove(records)
    >>> len(remaining), remaining.farthest(np.array([0.0])), remaining.centroid()
    (2, 1, array([8.5]))
    """

    def __init__(self, X: Matrix) -> None:
        self._records = _kernels.Remaining(X, _current().threads)

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, record: int) -> bool:
        return record in self._records

    def centroid(self) -> Vector:
        """Return the mean of the records that remain: sums correctly rounded, then divided; shape (n_dims,)."""
        return self._records.centroid()

    def nearest(self, point: Vector, k: int) -> tuple[Labels, Vector]:
        """Return the k records nearest to a point, nearest first, ties by number, and their squared distances."""
        records, squared = self._records.nearest(point, k)
        return _as_labels(records), squared

    def farthest(self, point: Vector) -> int:
        """Return the record farthest from a point, the lowest of equally far ones."""
        return self._records.farthest(point)

    def farthest_from_centroid(self) -> int:
        """Return the record farthest from the centroid, much sooner than `farthest` would."""
        return self._records.farthest_from_centroid()

    def remove(self, records: Labels) -> None:
        """Take records out; each must still remain."""
        self._records.remove(records)
