"""Grid: where the published intervals of a numeric column may end.

Ends are rounded outwards to multiples of a step, so that they do not show the lowest and the highest value of single
persons. The proposed step is the smallest of 1, 2, 5, 10, 20, 50, ... times the grain of the data (what all values are
multiples of) for which k records, on average, share a range of that width; the grain itself only where k records share
every value, so that an end shows nothing of one person. A column of a single value that k records share shows it.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.columns.axes import as_numbers
from shoal.columns.schema import Column
from shoal.errors import SchemaError
from shoal.typing import Vector

Units = NDArray[np.int64]

_MOST_DECIMALS = 9
_LARGEST = 2.0**53  # floats represent whole numbers up to here


@dataclass(frozen=True)
class Grid:
    """Multiples of a step, counted in the last decimal that values have.

    Attributes
    ----------
    decimals : int
        Number of decimals of the published ends.
    width : int
        The step, in units of the last decimal.
    is_exact : bool
        Whether all values have so many decimals. If so, an interval ends one unit below the next multiple of the step,
        as in ``[30, 39]``; if not, at the multiple itself.
    shows_values : bool
        Whether ends are values that fewer than k records share: only where a user gave a step that small.
    """

    decimals: int
    width: int
    is_exact: bool
    shows_values: bool = False

    @property
    def step(self) -> str:
        """The step, as it is written."""
        return self.written(self.width)

    def lows(self, numbers: Vector) -> Units:
        """Return the highest ends, in units, that are not above the numbers."""
        return np.asarray(self._units(numbers) // self.width * self.width)

    def highs(self, numbers: Vector) -> Units:
        """Return the lowest ends, in units, that are not below the numbers."""
        units = self._units(numbers)
        if self.is_exact:
            return np.asarray((units // self.width + 1) * self.width - 1)
        found = -(-units // self.width) * self.width
        # The number may lie above the unit that it was rounded down to.
        return np.where(self.value(found) < numbers, found + self.width, found)

    def value(self, units: Units) -> Vector:
        """Return the numbers that ends stand for."""
        return np.asarray(units / 10.0**self.decimals)

    def written(self, units: int) -> str:
        """Return an end as text.

        Examples
        --------
        >>> Grid(0, 10, True).written(30), Grid(2, 50, True).written(-149)
        ('30', '-1.49')
        """
        whole, part = divmod(abs(units), 10**self.decimals)
        sign = "-" if units < 0 else ""
        return f"{sign}{whole}" + (f".{part:0{self.decimals}}" if self.decimals else "")

    def _units(self, numbers: Vector) -> Units:
        """Return numbers in units, rounded down where they are not whole."""
        scaled = numbers * 10.0**self.decimals
        units = np.rint(scaled) if self.is_exact else np.floor(scaled)
        if not self.is_exact:
            units -= units / 10.0**self.decimals > numbers  # the product was rounded up
        return units.astype(np.int64)


def grid_of(values: pa.ChunkedArray, column: Column, k: int) -> Grid:
    """Return the grid for the intervals of a prepared numeric column.

    Parameters
    ----------
    values : pyarrow.ChunkedArray
        The prepared values.
    column : Column
        Its step, if it has one.
    k : int
        Smallest number of records in a cell.

    Raises
    ------
    SchemaError
        If the numbers are too large, or the step is larger than the range of the values.

    Examples
    --------
    >>> from shoal.columns.schema import Roles, Schema
    >>> ages = pa.table({"age": [*range(20, 60)] * 2})
    >>> column = Schema.of(ages.schema, Roles(quasi_identifiers=("age",)))["age"]
    >>> grid_of(ages["age"], column, k=2).step, grid_of(ages["age"], column, k=8).step
    ('1', '5')
    """
    numbers = as_numbers(values.drop_null()).astype(np.float64)
    decimals = _decimals(numbers, column)
    if decimals is None:
        return _coarse(numbers, column, k)
    decimals = _with_those_of_step(decimals, numbers, column)
    units = np.rint(numbers * 10.0**decimals).astype(np.int64)
    return _with_step(Grid(decimals, 1, True), units, column, k)


def _decimals(numbers: Vector, column: Column) -> int | None:
    """Return how many decimals the numbers have, None if too many."""
    if np.abs(numbers).max(initial=0.0) >= _LARGEST:
        raise SchemaError(
            f"Column {column.name!r} has numbers of more than 15 digits, whose intervals cannot be written exactly. "
            "Scale them down, limit them (top, bottom), or publish a set."
        )
    for decimals in range(_MOST_DECIMALS + 1):
        scaled = np.rint(numbers * 10.0**decimals)
        if np.abs(scaled).max(initial=0.0) >= _LARGEST:
            return None
        if np.array_equal(scaled / 10.0**decimals, numbers):
            return decimals
    return None


def _with_those_of_step(decimals: int, numbers: Vector, column: Column) -> int:
    """Return the number of decimals of the numbers and of the step, if one was given."""
    step = column.settings.step
    if step is None:
        return decimals
    found = 0 if step >= _LARGEST else _decimals(np.array([step]), column)
    if found is None:
        raise SchemaError(f"The step of column {column.name!r} has more than {_MOST_DECIMALS} decimals. Round it.")
    if np.abs(numbers).max(initial=0.0) * 10.0**found >= _LARGEST:
        raise SchemaError(
            f"The step of column {column.name!r} is {step:g}, so fine that the ends of intervals would have more than "
            "15 digits. Give a larger step, or leave it out."
        )
    return max(decimals, found)


def _coarse(numbers: Vector, column: Column, k: int) -> Grid:
    """Return the grid of numbers without a last decimal: six digits of their range are enough for the ends."""
    spread = float(numbers.max() - numbers.min())
    decimals = int(np.clip(6 - np.floor(np.log10(spread or 1.0)), 0, 300))
    while decimals and np.abs(numbers).max() * 10.0**decimals >= _LARGEST:
        decimals -= 1
    decimals = _with_those_of_step(decimals, numbers, column)
    grid = Grid(decimals, 1, False)
    return _with_step(grid, grid._units(numbers), column, k)


def _with_step(grid: Grid, units: Units, column: Column, k: int) -> Grid:
    """Return the grid with the step that was given, or the proposed one."""
    grain = int(np.gcd.reduce(units)) if len(units) and grid.is_exact else 1
    grain = grain or 1
    spread = int(units.max() - units.min()) if len(units) else 0
    counts = np.unique(units, return_counts=True)[1]
    shared = bool(len(counts) == 0 or counts.min() >= k) and grid.is_exact
    step = column.settings.step
    if step is not None:
        width = round(step * 10.0**grid.decimals)
        if width > spread:
            raise SchemaError(
                f"The step of column {column.name!r} is {step:g}, which is more than the range of its values, so every "
                "interval would hold all of them. Give a smaller step, or leave it out."
            )
        return Grid(grid.decimals, width, grid.is_exact, shows_values=width <= grain and not shared)
    if shared and spread == 0:
        return grid
    for width in _ladder(grain, spread):
        if (width > grain or shared) and len(units) >= k * len(np.unique(units // width)):
            break
    return Grid(grid.decimals, width, grid.is_exact)


def _ladder(grain: int, spread: int) -> list[int]:
    """Return 1, 2, 5, 10, ... times the grain, up to the first above the range."""
    found = [grain]
    while found[-1] <= spread or len(found) < 2:
        power, digit = divmod(len(found), 3)
        found.append(grain * (1, 2, 5)[digit] * 10**power)
    return found
