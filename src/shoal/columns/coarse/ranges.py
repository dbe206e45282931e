"""Ranges: intervals of numbers and periods of dates, as low and high ends.

``[30, 39]`` holds both ends; ``[90, inf)`` and ``(-inf, 20]`` are open. ``2024-05``, ``2024-Q2``, ``2024`` and
``2020s`` are periods, ``2019/2021`` a range of them, ``../..`` one without ends. `` or missing`` follows where some
records have no value.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.columns.coarse.missing import without_missing
from shoal.columns.hierarchy.calendar import months_of
from shoal.columns.numbers import as_numbers
from shoal.columns.prepare import decoded
from shoal.errors import ParameterError
from shoal.typing import Seed, Vector

_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|[-+]?inf"
_INTERVAL = re.compile(rf"([\[(\]])\s*({_NUMBER})\s*[,;]\s*({_NUMBER})\s*([\])\[])")
_PERIOD = re.compile(r"(\d{4})-(0[1-9]|1[0-2])|(\d{4})-Q([1-4])|(\d{3})0s|(\d{4})")


_DIGITS = Context(prec=100)  # decimals have at most 76 digits

Decimals = NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class Ranges:
    """A column of intervals or periods, one for each record.

    Attributes
    ----------
    low, high : ndarray of shape (n_records,)
        The ends, which belong to the range: numbers, infinite where a range is open, or months since the year 0 for
        periods; NaN where all records of the class have no value.
    missing : ndarray of shape (n_records,), bool
        Whether some records of the class have no value.
    is_period : bool
        Whether the ends are months.
    exact : pair of ndarray of shape (n_records,), optional
        The ends of intervals with all their digits, as `decimal.Decimal`.

    Examples
    --------
    >>> ages = Ranges.of(["[30, 39]", "[40, 44] or missing", None])
    >>> ages.midpoint
    array([34.5, 42. ,  nan])
    >>> drawn = ages.draw(seed=1)
    >>> bool(30 <= drawn[0] <= 39)
    True
    """

    low: Vector
    high: Vector
    missing: NDArray[np.bool_]
    is_period: bool = False
    exact: tuple[Decimals, Decimals] | None = field(default=None, repr=False)

    @staticmethod
    def of(texts: Sequence[str | None]) -> "Ranges":
        """Read published texts; None stands for a class without values.

        Raises
        ------
        ParameterError
            If a text is neither an interval nor a period, both occur, or a range ends before it starts.
        """
        found = [_read(text) for text in texts]
        low, high = np.array([entry.ends for entry in found], dtype=np.float64).reshape(-1, 2).T
        is_period = any(entry.is_period for entry in found)
        if is_period and not all(entry.is_period for entry, text in zip(found, texts, strict=True) if text is not None):
            raise ParameterError("The column holds both intervals and periods. Name one that was published as either.")
        if (low > high).any():
            raise ParameterError(
                "The column holds a range that ends before it starts. Correct it, or leave the column out."
            )
        exact = np.array([entry.exact for entry in found], dtype=object).reshape(-1, 2).T
        return Ranges(
            low, high, np.array([entry.missing for entry in found], dtype=bool), is_period, (exact[0], exact[1])
        )

    def take(self, codes: NDArray[np.int64]) -> "Ranges":
        """Return the ranges of records, given the number of each record's range."""
        exact = self.exact and (self.exact[0][codes], self.exact[1][codes])
        return Ranges(self.low[codes], self.high[codes], self.missing[codes], self.is_period, exact)

    @property
    def midpoint(self) -> Vector:
        """The middle of each range; of an open one its only end, NaN where there is none."""
        low, high = (np.where(np.isinf(end), np.nan, end) for end in (self.low, self.high))
        return np.where(np.isnan(low), high, np.where(np.isnan(high), low, low + (high - low) / 2))

    def draw(self, seed: Seed = None) -> Vector:
        """Return a number drawn evenly from each range, NaN where it is open or missing."""
        width = np.where(np.isfinite(self.high - self.low), self.high - self.low, np.nan)
        return np.asarray(self.low + np.random.default_rng(seed).random(len(width)) * width)

    def holds(self, values: pa.ChunkedArray) -> NDArray[np.bool_]:
        """Return for each record whether its own value lies in its range; a missing one where the range includes it."""
        there = np.asarray(values.is_valid())
        found = np.where(there, False, self.missing | np.isnan(self.low))
        present = decoded(values.drop_null())
        low, high = self.low[there], self.high[there]
        if self.exact is not None and _has_more_digits(present):
            low, high, numbers = self.exact[0][there], self.exact[1][there], np.array(present.to_pylist(), dtype=object)
        else:
            numbers = months_of(present) if self.is_period else as_numbers(present)
        found[there] = (low <= numbers) & (numbers <= high)
        return np.asarray(found)

    @property
    def first_day(self) -> NDArray[np.datetime64]:
        """The first day of each period."""
        return _days(self.low)

    @property
    def last_day(self) -> NDArray[np.datetime64]:
        """The last day of each period."""
        return np.asarray(_days(self.high + 1) - np.timedelta64(1, "D"))

    def draw_days(self, seed: Seed = None) -> NDArray[np.datetime64]:
        """Return a day drawn evenly from each period."""
        n_days = (self.last_day - self.first_day).astype(np.int64) + 1
        drawn = (np.random.default_rng(seed).random(len(n_days)) * n_days).astype(np.int64)
        return np.asarray(self.first_day + drawn.astype("timedelta64[D]"))

    def middle_days(self, type_: pa.DataType) -> pa.Array:
        """Return the middle day of each period as a date of a type; null where all records have no value."""
        days = self.first_day + (self.last_day - self.first_day) // 2
        return pa.array(days.astype("datetime64[D]")).cast(type_)


def _days(months: Vector) -> NDArray[np.datetime64]:
    """Return the first day of months since the year 0; NaT where there is none or it is open."""
    known = np.isfinite(months)
    found = (np.where(known, months, 0.0).astype(np.int64) - 1970 * 12).astype("datetime64[M]").astype("datetime64[D]")
    found[~known] = np.datetime64("NaT", "D")
    return np.asarray(found)


def _has_more_digits(values: pa.ChunkedArray) -> bool:
    """Return whether values have digits that a float would round."""
    if not pa.types.is_integer(values.type):
        return bool(pa.types.is_decimal(values.type))
    return bool(np.abs(as_numbers(values).astype(np.float64)).max(initial=0.0) >= 2.0**53)


class _Read(NamedTuple):
    """A text that was read: its ends as floats, whether some are missing, and, of an interval, its exact ends."""

    ends: tuple[float, float]
    missing: bool
    is_period: bool
    exact: tuple[Decimal, Decimal] = (Decimal("nan"), Decimal("nan"))


def _read(text: str | None) -> _Read:
    if text is None:
        return _Read((np.nan, np.nan), False, False)
    plain, missing = without_missing(text)
    interval = _INTERVAL.fullmatch(plain)
    if interval is not None:
        low, high = float(interval[2]), float(interval[3])
        exact = Decimal(interval[2]), Decimal(interval[3])
        # An end that does not belong to the range, as other tools write it: the next number does.
        if interval[1] in "(]" and np.isfinite(low):
            low, exact = float(np.nextafter(low, np.inf)), (exact[0].next_plus(_DIGITS), exact[1])
        if interval[4] in ")[" and np.isfinite(high):
            high, exact = float(np.nextafter(high, -np.inf)), (exact[0], exact[1].next_minus(_DIGITS))
        return _Read((low, high), missing, False, exact)
    first, _, last = plain.partition("/")
    return _Read((_months(first)[0], _months(last or first)[1]), missing, True)


def _months(text: str) -> tuple[float, float]:
    """Return the first and the last month of a period."""
    if text == "..":
        return -np.inf, np.inf
    found = _PERIOD.fullmatch(text)
    if found is None:
        raise ParameterError(
            "The column holds a value that is neither an interval such as [30, 39] nor a period such as 2024-Q2. Name "
            "a column that was published as interval or period."
        )
    year, month, quarter_year, quarter, decade, alone = found.groups()
    if month is not None:
        return int(year) * 12 + int(month) - 1, int(year) * 12 + int(month) - 1
    if quarter is not None:
        first = int(quarter_year) * 12 + 3 * (int(quarter) - 1)
        return first, first + 2
    first, n_years = (int(decade) * 10, 10) if decade is not None else (int(alone), 1)
    return first * 12, (first + n_years) * 12 - 1
