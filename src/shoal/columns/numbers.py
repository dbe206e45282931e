"""Numbers: the values of a column as numbers of NumPy, and differences that lose no digits."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.typing import Vector

Numbers = NDArray[np.int64] | NDArray[np.uint64] | Vector


def as_numbers(values: pa.ChunkedArray | pa.Array) -> Numbers:
    """Return numbers or dates that are all present: whole ones as int64 or uint64, others as float64."""
    if pa.types.is_temporal(values.type):
        return date_units(values)
    if pa.types.is_integer(values.type):
        return np.asarray(values.cast(pa.uint64() if pa.types.is_uint64(values.type) else pa.int64()))
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.string())  # the nearest float: Arrow's own conversion may be one off
    return np.asarray(values.cast(pa.float64(), safe=False))


def halfway(numbers: Numbers) -> int | float:
    """Return a number halfway between the lowest and the highest, a whole one where they are."""
    if len(numbers) == 0:
        return 0
    low, high = numbers.min(), numbers.max()
    return (int(low) + int(high) + 1) // 2 if numbers.dtype.kind in "iu" else float(low / 2 + high / 2)


def less(numbers: Numbers, pivot: int | float) -> Vector:
    """Subtract the pivot, without rounding where whole numbers allow it."""
    if numbers.dtype.kind in "iu" and isinstance(pivot, int) and len(numbers):
        lowest, highest = int(numbers.min()) - pivot, int(numbers.max()) - pivot
        if lowest >= -(2**63) and highest < 2**63 and -(2**63) <= pivot < 2**64:
            # Unsigned numbers wrap around, and the difference read as a signed one is right again.
            wrapped = numbers.view(np.uint64) - np.uint64(pivot % 2**64)
            return wrapped.view(np.int64).astype(np.float64)
    return numbers.astype(np.float64) - pivot


def date_units(values: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return dates, none missing, as the integers in which Arrow stores them, in units of their type."""
    return np.asarray(time_units(values, values.type))


def time_units(values: pa.ChunkedArray | pa.Array, type_: pa.DataType) -> pa.Array:
    """Return dates or times as int64, in the units of a type."""
    return values.cast(type_).cast(_integers(type_)).cast(pa.int64())


def from_units(units: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return int64 as dates or times of the type in whose units they are."""
    return units.cast(_integers(type_)).cast(type_)


def _integers(type_: pa.DataType) -> pa.DataType:
    """Return the integers in which Arrow stores a type of dates or times."""
    return pa.int32() if type_.bit_width == 32 else pa.int64()
