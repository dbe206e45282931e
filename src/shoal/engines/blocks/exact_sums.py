"""Exact sums: of numbers and of their squares, the same in whatever order and parts they are added.

A float64 is a whole number times a power of two. The whole numbers are added for each power, without rounding, and the
sums of all powers become one integer of Python.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.columns.numbers import Numbers

UNIT = 1130
"""Sums are counted in units of 2^-UNIT, sums of squares in units of 2^-(2 UNIT); every float64 is a multiple of it."""

_AT_ONCE = 1 << 20  # numbers, so that sums of 27 bits stay below 2^53
_HALF = 27  # bits
_EXACT = 2**53  # whole numbers up to here are float64 numbers too


class Sums(NamedTuple):
    """The exact sum of numbers, and that of their squares, in the units of `UNIT`."""

    total: int
    squares: int


def exact_sums(numbers: Numbers) -> Sums:
    """Return the exact sum of numbers and of their squares.

    Examples
    --------
    >>> exact_sums(np.array([1e300, 1.0, -1e300])).total == 1 << UNIT
    True
    """
    if numbers.dtype.kind in "iu" and len(numbers) and max(-int(numbers.min()), int(numbers.max())) > _EXACT:
        whole = numbers.tolist()
        return Sums(sum(whole) << UNIT, sum(number * number for number in whole) << 2 * UNIT)
    floats = numbers.astype(np.float64)
    parts = [_sums(floats[start : start + _AT_ONCE]) for start in range(0, len(floats), _AT_ONCE)]
    return Sums(sum(part.total for part in parts), sum(part.squares for part in parts))


def _sums(numbers: NDArray[np.float64]) -> Sums:
    fractions, exponents = np.frexp(numbers)
    whole = np.ldexp(fractions, 53).astype(np.int64)
    lowest = int(exponents.min())
    groups = (exponents - lowest).astype(np.int64)
    magnitudes = np.abs(whole)
    high, low = magnitudes >> _HALF, magnitudes & ((1 << _HALF) - 1)
    total = _by_group(groups, whole)
    squares = [
        (a << 2 * _HALF) + (b << _HALF + 1) + c
        for a, b, c in zip(
            _by_group(groups, high * high), _by_group(groups, high * low), _by_group(groups, low * low), strict=True
        )
    ]
    at = lowest - 53 + UNIT
    return Sums(
        sum(value << at + group for group, value in enumerate(total)),
        sum(value << 2 * (at + group) for group, value in enumerate(squares)),
    )


def _by_group(groups: NDArray[np.int64], whole: NDArray[np.int64]) -> list[int]:
    """Return the exact sum of the whole numbers, of at most 54 bits, of each group."""
    # In two halves, whose sums a float64 holds exactly.
    high, low = np.bincount(groups, whole >> _HALF), np.bincount(groups, whole & ((1 << _HALF) - 1))
    return [(int(a) << _HALF) + int(b) for a, b in zip(high.tolist(), low.tolist(), strict=True)]
