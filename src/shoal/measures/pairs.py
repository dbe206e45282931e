"""Pairs of columns, before and after: checks and moments shared by risk and utility, at any unit and magnitude."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal import kernels
from shoal.arrays import times_power_of_two
from shoal.errors import ParameterError
from shoal.typing import Labels, Matrix, Vector

Columns = Mapping[str, ArrayLike] | ArrayLike
"""Columns by name, or a matrix of shape (n_records, n_columns) whose columns are named by their numbers."""


class Pair(NamedTuple):
    """A column before and after, NaN where a value is missing."""

    name: str
    before: Vector
    after: Vector


def as_pairs(before: Columns, after: Columns) -> list[Pair]:
    """Return the columns by name, before and after, or raise ParameterError if they do not match."""
    first, second = _by_name(before), _by_name(after)
    if list(first) != list(second):
        raise ParameterError(
            f"The columns before and after must be the same; found {', '.join(map(repr, first))} before and "
            f"{', '.join(map(repr, second))} after."
        )
    pairs = [Pair(name, _as_numbers(name, first[name]), _as_numbers(name, second[name])) for name in first]
    check_lengths([(pair.name, pair.before, pair.after) for pair in pairs])
    return pairs


def check_lengths(pairs: list[tuple[str, NDArray[np.generic], NDArray[np.generic]]]) -> None:
    """Refuse columns of different lengths."""
    n_records = len(pairs[0][1]) if pairs else 0
    for name, before, after in pairs:
        if len(before) != n_records or len(after) != n_records:
            raise ParameterError(
                f"All columns must have one value for each record; {name!r} has {len(before)} before and {len(after)} "
                f"after, the first column has {n_records}."
            )


def _by_name(columns: Columns) -> dict[str, ArrayLike]:
    if isinstance(columns, Mapping):
        return dict(columns)
    matrix = np.asarray(columns)
    if matrix.ndim != 2:
        raise ParameterError(f"Columns must be a mapping or a matrix; the array found has {matrix.ndim} dimensions.")
    return {str(number): column for number, column in enumerate(matrix.T)}


def _as_numbers(name: str, column: ArrayLike) -> Vector:
    array = np.asarray(column)
    if array.dtype.kind not in "buif" or array.ndim != 1:
        raise ParameterError(
            f"Column {name!r} must hold one real number for each record; its dtype is {array.dtype}, its shape "
            f"{array.shape}."
        )
    numbers = np.asarray(array, dtype=np.float64)
    if np.isinf(numbers).any():
        raise ParameterError(
            f"Column {name!r} has {np.isinf(numbers).sum()} infinite values. Replace them by NaN, or drop the records."
        )
    return numbers


def as_weights(weights: ArrayLike, n_records: int) -> Vector:
    """Return weights, one for each record, none negative and not all zero, or raise ParameterError."""
    array = np.asarray(weights)
    if array.shape != (n_records,) or array.dtype.kind not in "buif":
        raise ParameterError(
            f"There must be one weight, a number, for each of the {n_records} records; the shape found is "
            f"{array.shape}, the dtype {array.dtype}."
        )
    array = np.asarray(array, dtype=np.float64)
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        raise ParameterError(
            f"Weights must be finite and not negative; {np.count_nonzero(bad)} are not, the first at index "
            f"{np.argmax(bad)}."
        )
    if not array.any():
        raise ParameterError("All weights are 0, so no record counts. Give at least one record a positive weight.")
    return array


def present(columns: Sequence[Vector], weights: Vector | None = None) -> tuple[Sequence[Vector], Vector | None]:
    """Return the entries of columns and weights at which no value is missing and the weight is positive.

    Where all entries are such, the arrays themselves are returned.
    """
    where = ~np.isnan(columns[0])
    for column in columns[1:]:
        where &= ~np.isnan(column)
    if weights is not None:
        where &= weights > 0
    if where.all():
        return columns, weights
    return [column[where] for column in columns], None if weights is None else weights[where]


class ScaledMoments(NamedTuple):
    """Mean and standard deviation of ``values * 2**-exponent - origin``."""

    exponent: int
    origin: float
    mean: float
    sd: float

    def relative_to(self, origin: float) -> "ScaledMoments":
        """Return the same unit with a number as origin, and as mean."""
        return self._replace(origin=float(times_power_of_two(np.array([origin]), -self.exponent)[0]), mean=0.0)

    def moved(self, values: Vector) -> Vector:
        """Return numbers in this unit and from this origin."""
        found = times_power_of_two(values, -self.exponent)
        found -= self.origin
        return found

    def deviations(self, values: Vector) -> Vector:
        """Return numbers as standard deviations from the mean; from the mean alone if all values were equal."""
        found = self.moved(values)
        found -= self.mean
        found /= self.sd or 1.0
        return found


def moments(values: Vector, weights: Vector | None = None, like: ScaledMoments | None = None) -> ScaledMoments:
    """Return mean and population standard deviation of numbers without NaN, at any offset and magnitude.

    Exponent and origin are those of `like`, if given, so that means can be compared digit by digit.
    """
    if like is None:
        exponent = int(np.frexp(max(values.max(), -values.min()))[1])
        like = ScaledMoments(exponent, 0.0, 0.0, 1.0).relative_to(values[0])
    mean, variance = kernels.co_moments([values], [-like.exponent], [like.origin], weights)
    return like._replace(mean=float(mean[0]), sd=float(np.sqrt(variance[0, 0])))


def covariance(columns: Sequence[Vector], units: Sequence[ScaledMoments], weights: Vector | None = None) -> Matrix:
    """Return the covariances of columns without NaN, in standard deviations of their units; shape (n_columns,) * 2.

    A column of equal values has covariances of exactly 0.
    """
    # Relative to a record: equal values are then exactly 0.
    frames = [unit.relative_to(column[0]) for unit, column in zip(units, columns, strict=True)]
    exponents, origins = [-frame.exponent for frame in frames], [frame.origin for frame in frames]
    found = kernels.co_moments(columns, exponents, origins, weights)[1]
    sds = [unit.sd or 1.0 for unit in units]
    return np.asarray(found / np.outer(sds, sds))


BLOCK = 1 << 13
"""Number of records of a block, whose columns stay in the cache."""


def blocks(n_records: int) -> Iterator[slice]:
    """Yield the blocks of records, one after the other."""
    for start in range(0, n_records, BLOCK):
        yield slice(start, min(start + BLOCK, n_records))


def weighted_sum(values: Vector | NDArray[np.bool_], weights: Vector | None) -> float:
    """Return the sum, always the same: that of a product by BLAS would depend on its number of threads."""
    return float((values if weights is None else values * weights).sum())


def total_weight(values: Vector | Labels, weights: Vector | None) -> float:
    """Return the sum of the weights of values: their number, if they have none."""
    return float(len(values)) if weights is None else float(weights.sum())


def one_of_each(labels: Labels) -> Labels:
    """Return the first record of each cell, of cells numbered from 0 without gaps; shape (n_cells,)."""
    return kernels.first_places(labels, int(labels.max(initial=-1)) + 1)


def as_classes(classes: ArrayLike, n_records: int | None = None) -> Labels:
    """Return classes renumbered from 0 without gaps."""
    array = np.asarray(classes)
    if array.ndim != 1 or len(array) != (n_records if n_records is not None else len(array)):
        wanted = "record" if n_records is None else f"of the {n_records} records"
        raise ParameterError(f"There must be one class number for each {wanted}; the shape found is {array.shape}.")
    if len(array) == 0:
        raise ParameterError("There are no records, so there is no risk to measure. Pass at least one record.")
    if array.dtype.kind not in "iu":
        raise ParameterError(
            f"Classes must be whole numbers; their dtype is {array.dtype}. Number them with "
            "np.unique(classes, return_inverse=True)[1]."
        )
    if array.min() >= 0 and array.max() < len(array) and np.bincount(np.asarray(array, dtype=np.int64)).all():
        return np.asarray(array, dtype=np.int64)
    return np.unique(array, return_inverse=True)[1].reshape(-1).astype(np.int64)
