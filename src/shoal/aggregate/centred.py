"""Centred: numbers and dates relative to a central one, so that large ones keep their digits; and their rounding."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.columns.numbers import as_numbers, from_units, halfway, less
from shoal.columns.schema import Column
from shoal.typing import Vector


class Centred(NamedTuple):
    """Numbers minus a central whole number, so that large whole numbers and dates keep their digits."""

    offsets: Vector
    middle: int
    is_unsigned: bool

    @staticmethod
    def of(values: pa.ChunkedArray | pa.Array) -> "Centred":
        """Subtract the central number from numbers or dates without nulls, if floats would round them."""
        numbers = as_numbers(values)
        whole = numbers.dtype.kind in "iu" and len(numbers) > 0
        # Numbers that floats represent exactly are not shifted, so that integers and floats have the same mean.
        beyond = whole and max(-int(numbers.min()), int(numbers.max())) > 2**53
        middle = int(halfway(numbers)) if beyond else 0
        return Centred(less(numbers, middle), middle, numbers.dtype.kind == "u")

    def whole(self, offsets: Vector) -> NDArray[np.int64] | NDArray[np.uint64]:
        """Return the whole numbers nearest to some offsets from the middle."""
        # As 64-bit numbers that wrap around: the sum lies between numbers of the column, so it fits.
        steps = np.rint(np.clip(offsets, -(2.0**63), 2.0**63 - 1024)).astype(np.int64).view(np.uint64)
        found = steps + np.uint64(self.middle % 2**64)
        return found if self.is_unsigned else found.view(np.int64)


def rounded(offsets: Vector, centred: Centred, column: Column) -> pa.Array:
    """Round numbers according to the settings; integers stay integers if no decimals are kept."""
    decimals = column.settings.round
    numbers = offsets + centred.middle
    # Numbers of this size have no decimals, and rounding the largest of them would overflow.
    small = np.abs(numbers) < 2.0**52
    type_ = rounded_type(column)
    if pa.types.is_integer(type_):
        whole = centred.whole(offsets)
        if decimals:
            whole[small] = np.round(numbers[small], decimals).astype(np.int64).view(whole.dtype)
        return pa.array(whole).cast(type_)
    if decimals is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            numbers = np.where(small, np.round(numbers, decimals), numbers)
    # Without negative zero, which would be a distinguishable value.
    return pa.array(numbers + 0.0)


def rounded_type(column: Column) -> pa.DataType:
    """Return the type of rounded numbers, which follows from the settings alone, so that all blocks have the same."""
    decimals = column.settings.round
    if not pa.types.is_integer(column.type) or decimals is None or decimals > 0:
        return pa.float64()
    # 127 in tens is 130, which 8 bits do not hold.
    return column.type if decimals == 0 or column.type.bit_width == 64 else pa.int64()


def as_dates(numbers: NDArray[np.int64] | NDArray[np.uint64], type_: pa.DataType) -> pa.Array:
    """Return numbers as dates of a type."""
    if pa.types.is_date64(type_):
        numbers = numbers // 86_400_000 * 86_400_000
    return from_units(pa.array(numbers), type_)
