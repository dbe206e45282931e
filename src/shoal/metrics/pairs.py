"""Pairs of columns, before and after: checks and moments shared by risk and utility, at any unit and magnitude."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.arrays import times_power_of_two
from shoal.errors import ParameterError
from shoal.typing import Labels, Vector

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
            f"Weights must be finite and not negative; {np.count_nonzero(bad)} are not, the first at record "
            f"{np.argmax(bad)}."
        )
    if not array.any():
        raise ParameterError("All weights are 0, so no record counts. Give at least one record a positive weight.")
    return array


def those(where: NDArray[np.bool_], *arrays: Vector) -> tuple[Vector, ...]:
    """Return the entries at which a condition holds; the arrays themselves if it holds everywhere."""
    return arrays if where.all() else tuple(array[where] for array in arrays)


class Moments(NamedTuple):
    """Mean and standard deviation of ``values * 2**-exponent - origin``."""

    exponent: int
    origin: float
    mean: float
    sd: float


def moments(values: Vector, weights: Vector | None = None) -> Moments:
    """Return mean and population standard deviation of numbers without NaN, at any offset and magnitude."""
    exponent = int(np.frexp(np.abs(values).max())[1])
    scaled = times_power_of_two(values, -exponent)
    origin = float(scaled[0])
    # Relative to a value, then to the mean: shared digits cancel before anything is summed or squared.
    scaled -= origin
    mean = float(np.average(scaled, weights=weights))
    return Moments(exponent, origin, mean, float(np.sqrt(np.average(np.square(scaled - mean), weights=weights))))


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
    if array.min() >= 0 and array.max() < len(array) and np.bincount(array.astype(np.int64)).all():
        return array.astype(np.int64)
    return np.unique(array, return_inverse=True)[1].reshape(-1).astype(np.int64)
