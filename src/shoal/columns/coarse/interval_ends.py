"""Interval ends: where the published intervals of a numeric column end; and the same for the periods of dates.

Ends are rounded outwards to multiples of a step, so that they do not show the lowest and the highest value of single
persons. The proposed step is the smallest of 1, 2, 5, 10, 20, 50, ... times the grain of the data (what all values are
multiples of) for which k records, on average, share a range of that width; the grain itself only where k records share
every value, so that an end shows nothing of one person. A column of a single value that k records share shows it.

Steps that fewer than k persons share are joined with their neighbours, until whoever sees where an interval ends knows
no more than that one of k persons is there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Context
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.columns.equivalence import distinct_in_classes
from shoal.columns.hierarchy.calendar import EVER, LAST_MONTH, MONTHS, Periods, months_of, period_labels
from shoal.columns.numbers import as_numbers
from shoal.columns.prepare import decoded, is_present
from shoal.columns.schema import Column, Precision
from shoal.errors import SchemaError
from shoal.typing import Labels

Units = NDArray[np.int64]

_MOST_DECIMALS = 9
_LARGEST = 2.0**53  # floats represent whole numbers up to here
_EXACT = Context(prec=100)  # decimals have at most 76 digits


class Ends(NamedTuple):
    """The steps of a column at which ranges end, in ascending order, joined until k persons share each.

    Attributes
    ----------
    starts : ndarray of shape (n_ends,), int64
        The lowest unit that belongs to each: a value lies in the last one that starts at it or below.
    lows, highs : ndarray of shape (n_ends,), int64
        The lowest and the highest unit of each, as they are published.
    open_below, open_above : bool
        Whether the first has no lower end, and the last no upper one.
    """

    starts: Units
    lows: Units
    highs: Units
    open_below: bool
    open_above: bool

    @staticmethod
    def of(
        units: Units, persons: Labels | None, k: int, width: int, codes: Sequence[int | None] = (None, None)
    ) -> "Ends":
        """Join the steps of a column.

        Parameters
        ----------
        units : ndarray of shape (n_values,)
            The values, rounded down to units.
        persons : ndarray of shape (n_values,), optional
            The number of the person of each; by default every record is one.
        k : int
            Smallest number of persons.
        width : int
            The step, in units.
        codes : pair of int or None
            The bottom and the top code: values lie at them or beyond, nobody knows how far.

        Notes
        -----
        Steps are joined from the highest down, since most columns are sparse there, and what is left over at the other
        side is dense. One that k persons share has the ends of the step. Another ends at the roundest multiple that the
        gap to its neighbour allows; the outermost ones, which have no neighbour, at a multiple of the smallest of 1, 2,
        5, 10, ... steps of which two hold k persons, so that the end follows the k outermost persons, not the last one.
        Where fewer than k persons have a value at all, there are no ends.
        """
        nowhere = np.full(1, np.iinfo(np.int64).min)
        none = Ends(nowhere, nowhere, nowhere, open_below=True, open_above=True)
        if not len(units):
            return none
        bottom, top = codes
        starts = units // width * width
        starts = starts if bottom is None else np.where(units <= bottom, bottom, np.maximum(starts, bottom + 1))
        starts = starts if top is None else np.where(units >= top, top, starts)
        starts, number = np.unique(starts, return_inverse=True)
        full = (np.bincount(number) if persons is None else distinct_in_classes(number, persons)) >= k
        last = _joined(number, np.arange(len(units)) if persons is None else persons, full, k)
        if not len(last):
            return none
        first = np.append(0, last[:-1] + 1)
        highest = np.full(len(starts), np.iinfo(np.int64).min)
        np.maximum.at(highest, number, units)
        ladder = _ladder(width, int(units.max() - units.min()))
        between = _roundest(highest[last[:-1]], starts[first[1:]], ladder)
        above = -1 - _outermost(-1 - units, persons, k, ladder)  # as below, seen from the other side
        step_ends = np.where(starts == bottom, starts, starts // width * width + width - 1)
        return Ends(
            starts[first],
            np.where(full[first], starts[first], np.append(_outermost(units, persons, k, ladder), between)),
            np.where(full[last], step_ends[last], np.append(between - 1, above)),
            open_below=bottom is not None and bool(units.min() <= bottom),
            open_above=top is not None and bool(units.max() >= top),
        )

    @property
    def are_none(self) -> bool:
        """Whether ranges have no ends at all."""
        return self.open_below and self.open_above and len(self.starts) == 1

    def places(self, units: Units) -> Units:
        """Return which of the steps values lie in."""
        return np.asarray(np.searchsorted(self.starts, units, side="right") - 1)

    def shared(self, units: Units, k: int, persons: Labels | None) -> NDArray[np.bool_]:
        """Return for each of the steps whether k persons have a value from its published low end to its high one."""
        places = self.places(units)
        below = self.open_below & (places == 0) | (self.lows[places] <= units)
        above = self.open_above & (places == len(self.starts) - 1) | (units <= self.highs[places])
        pairs = np.column_stack([places, np.arange(len(units)) if persons is None else persons])[below & above]
        return np.bincount(np.unique(pairs, axis=0)[:, 0], minlength=len(self.starts)) >= k


def _joined(number: Labels, persons: Labels, full: NDArray[np.bool_], k: int) -> Labels:
    """Return the last step of each of those joined, from the persons of each value's step; none if they are too few."""
    by_step = np.split(persons[np.argsort(number, kind="stable")], np.cumsum(np.bincount(number))[:-1])
    last: list[int] = []
    held: set[int] = set()
    enough = True
    for step in reversed(range(len(full))):
        if enough:
            last.append(step)
            held = set()
        if not full[step]:
            held.update(by_step[step].tolist())
        enough = bool(full[step]) or len(held) >= k
    return np.array(last if enough else last[:-1], dtype=np.int64)[::-1]


def _roundest(above: Units, up_to: Units, ladder: list[int]) -> Units:
    """Return for each gap the number in it that is a multiple of the highest rung."""
    found = up_to
    for rung in ladder:
        multiple = up_to // rung * rung
        found = np.where(multiple > above, multiple, found)
    return found


def _outermost(units: Units, persons: Labels | None, k: int, ladder: list[int]) -> int:
    """Return the multiple of the smallest rung, not above any unit, for which k persons are less than two rungs off."""
    if persons is not None:
        lowest = np.full(persons.max() + 1, np.iinfo(np.int64).max)
        np.minimum.at(lowest, persons, units)
        units = lowest
    extreme, reach = int(units.min()), int(np.partition(units, k - 1)[k - 1])
    return next(low for rung in ladder if reach < (low := extreme // rung * rung) + 2 * rung)


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
    ends : Ends
        The steps, joined where fewer than k persons share them.
    shows_values : bool
        Whether steps are as fine as the values, so that ends are values that fewer than k records share: only where a
        user gave a step that small.
    """

    decimals: int
    width: int
    is_exact: bool
    ends: Ends = field(compare=False)
    shows_values: bool = False

    @property
    def step(self) -> str:
        """The step, as it is written."""
        return written(self.width, self.decimals)

    def units(self, values: pa.ChunkedArray) -> Units:
        """Return values, none missing, in units, rounded down where they are not whole."""
        return _units(values, self.decimals, self.is_exact)

    def intervals(self, lowest: Units, highest: Units) -> list[str]:
        """Return the intervals from some units to others, rounded outwards."""
        low, high = self.ends.places(lowest), self.ends.places(highest)
        lower = ["(-inf" if place < self.ends.open_below else f"[{self._low(place)}" for place in low.tolist()]
        upper = [
            "inf)" if self.ends.open_above and place == len(self.ends.highs) - 1 else f"{self._high(place)}]"
            for place in high.tolist()
        ]
        return [f"{start}, {end}" for start, end in zip(lower, upper, strict=True)]

    def shared_ends(self, values: pa.ChunkedArray, k: int, persons: Labels | None) -> tuple[set[float], set[float]]:
        """Return the low and the high ends of intervals that k persons share; `values` are all, none missing."""
        shared = self.ends.shared(self.units(values), k, persons) | self.ends.are_none
        low, high = (
            [float(end(place)) for place in np.flatnonzero(shared).tolist()] for end in (self._low, self._high)
        )
        low[0:1] = [-np.inf] if self.ends.open_below and shared[0] else low[0:1]
        high[-1:] = [np.inf] if self.ends.open_above and shared[-1] else high[-1:]
        return set(low), set(high)

    def _low(self, place: int) -> str:
        return written(int(self.ends.lows[place]), self.decimals)

    def _high(self, place: int) -> str:
        return written(int(self.ends.highs[place]) + (not self.is_exact), self.decimals)


@dataclass(frozen=True, eq=False)
class Calendar:
    """Where the periods of a column of dates end: for each precision, the steps joined where too few share them."""

    ends: dict[Precision, Ends]

    def periods(self, first: Periods, last: Periods, precisions: Sequence[Precision]) -> list[str]:
        """Return the periods from some months to others: the shortest that is one step of any of the precisions.

        Where no step holds them, it is a range of the coarsest precision; `precisions` are in ascending order.
        """
        texts = np.full(len(first), EVER, dtype=object)
        shortest = np.full(len(first), np.iinfo(np.int64).max)
        for precision in reversed(precisions):
            ends, n_months = self.ends[precision], MONTHS[precision]
            if ends.are_none:
                continue
            low, high = (ends.places(months // n_months) for months in (first, last))
            start, end = ends.lows[low], np.minimum(ends.highs[high], LAST_MONTH // n_months)
            lower, upper = (period_labels(side, precision) for side in (start, end))
            found = [one if one == other else f"{one}/{other}" for one, other in zip(lower, upper, strict=True)]
            length = (end - start + 1) * n_months
            better = (length < shortest) & ((low == high) | (precision == precisions[-1]))
            texts, shortest = np.where(better, np.array(found, dtype=object), texts), np.where(better, length, shortest)
        return [str(text) for text in texts]

    def shared_ends(self, dates: pa.ChunkedArray, k: int, persons: Labels | None) -> tuple[set[str], set[str]]:
        """Return the periods at which ranges begin and end that k persons share; `dates` are all, none missing."""
        months = months_of(dates)
        first: set[str] = set()
        last: set[str] = set()
        for precision, ends in self.ends.items():
            shared = ends.shared(months // MONTHS[precision], k, persons)
            first |= {".."} if ends.are_none else set(period_labels(ends.lows[shared], precision))
            highs = np.minimum(ends.highs[shared], LAST_MONTH // MONTHS[precision])
            last |= {".."} if ends.are_none else set(period_labels(highs, precision))
        return first, last


def written(units: int, decimals: int) -> str:
    """Return a number of units as text.

    Examples
    --------
    >>> written(30, 0), written(-149, 2)
    ('30', '-1.49')
    """
    whole, part = divmod(abs(units), 10**decimals)
    sign = "-" if units < 0 else ""
    return f"{sign}{whole}" + (f".{part:0{decimals}}" if decimals else "")


def grid_of(values: pa.ChunkedArray, column: Column, k: int, persons: Labels | None = None) -> Grid:
    """Return the grid for the intervals of a prepared numeric column.

    Parameters
    ----------
    values : pyarrow.ChunkedArray
        The prepared values.
    column : Column
        Its step, if it has one, and its top and bottom codes.
    k : int
        Smallest number of records in a cell.
    persons : ndarray of shape (n_records,), optional
        The number of the person of each record; by default every record is one.

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
    persons = persons if persons is None else persons[is_present(values)]
    values = decoded(values.drop_null())
    decimals, is_exact = _decimals(values, column)
    units = _units(values, decimals, is_exact)
    width, shows_values = _step(units, persons, decimals, is_exact, column, k)
    limits = (column.settings.bottom, column.settings.top)
    # As the column stores them: in single precision 0.7 is another number.
    stored = [None if code is None else pa.chunked_array([[code]], pa.float64()).cast(values.type) for code in limits]
    codes = [None if code is None else int(_units(code, decimals, is_exact)[0]) for code in stored]
    return Grid(decimals, width, is_exact, Ends.of(units, persons, k, width, codes), shows_values)


def calendar_of(dates: pa.ChunkedArray, k: int, persons: Labels | None = None) -> Calendar:
    """Return the calendar for the periods of a prepared column of dates; arguments as in `grid_of`."""
    persons = persons if persons is None else persons[is_present(dates)]
    months = months_of(dates.drop_null())
    return Calendar({name: Ends.of(months // n_months, persons, k, 1) for name, n_months in MONTHS.items()})


def _decimals(values: pa.ChunkedArray, column: Column) -> tuple[int, bool]:
    """Return how many decimals ends have, those of a given step included, and whether all values have so many."""
    numbers = as_numbers(values).astype(np.float64)
    largest = float(np.abs(numbers).max(initial=0.0))
    if largest >= _LARGEST:
        raise SchemaError(
            f"Column {column.name!r} has numbers of more than 15 digits, whose intervals cannot be written exactly. "
            "Scale them down, limit them (top, bottom), or publish a set."
        )
    found = _own_decimals(values, largest)
    if found is not None:
        return max(found, _decimals_of_step(column, largest)), True
    # Numbers without a last decimal: six digits of their range are enough for the ends.
    spread = float(numbers.max() - numbers.min())
    found = int(np.clip(6 - np.floor(np.log10(spread or 1.0)), 0, 300))
    while found and largest * 10.0**found >= _LARGEST:
        found -= 1
    return max(found, _decimals_of_step(column, largest)), False


def _own_decimals(values: pa.ChunkedArray, largest: float) -> int | None:
    """Return how many decimals values have, None if too many."""
    for decimals in range(_MOST_DECIMALS + 1):
        if largest * 10.0**decimals >= _LARGEST:
            return None
        if pa.types.is_integer(values.type):
            return 0
        if pa.types.is_decimal(values.type):
            same = pc.all(pc.equal(pc.round(values, decimals), values), min_count=0).as_py()
        else:
            numbers = as_numbers(values)
            same = np.array_equal(np.rint(numbers * 10.0**decimals) / 10.0**decimals, numbers)
        if same:
            return decimals
    return None


def _decimals_of_step(column: Column, largest: float) -> int:
    """Return how many decimals the given step has; raise if there are too many."""
    step = column.settings.step
    if step is None:
        return 0
    found = 0 if step >= _LARGEST else _own_decimals(pa.chunked_array([[step]]), step)
    if found is None:
        raise SchemaError(f"The step of column {column.name!r} has more than {_MOST_DECIMALS} decimals. Round it.")
    if largest * 10.0**found >= _LARGEST:
        raise SchemaError(
            f"The step of column {column.name!r} is {step:g}, so fine that the ends of intervals would have more than "
            "15 digits. Give a larger step, or leave it out."
        )
    return found


def _units(values: pa.ChunkedArray, decimals: int, is_exact: bool) -> Units:
    """Return values in units of the last decimal, rounded down where they are not whole."""
    if pa.types.is_integer(values.type):
        return np.asarray(as_numbers(values).astype(np.int64) * 10**decimals)
    if pa.types.is_decimal(values.type):  # through text, since floats have fewer digits
        different = pc.unique(values)
        floor = [int(_EXACT.scaleb(v, decimals).to_integral_value(ROUND_FLOOR)) for v in different.to_pylist()]
        return np.array(floor, dtype=np.int64)[np.asarray(pc.index_in(values, value_set=different), dtype=np.int64)]
    numbers = as_numbers(values).astype(np.float64)
    scaled = numbers * 10.0**decimals
    units = np.rint(scaled) if is_exact else np.floor(scaled)
    if not is_exact:
        units -= units / 10.0**decimals > numbers  # the product was rounded up
    return units.astype(np.int64)


def _step(
    units: Units, persons: Labels | None, decimals: int, is_exact: bool, column: Column, k: int
) -> tuple[int, bool]:
    """Return the step that was given, or the proposed one, and whether it shows values of single persons."""
    grain = (int(np.gcd.reduce(units)) if len(units) and is_exact else 1) or 1
    spread = int(units.max() - units.min()) if len(units) else 0
    number = np.unique(units, return_inverse=True)[1]
    counts = np.bincount(number) if persons is None or not len(units) else distinct_in_classes(number, persons)
    shared = bool(len(counts) == 0 or counts.min() >= k) and is_exact
    step = column.settings.step
    if step is not None:
        width = round(step * 10.0**decimals)
        if width > spread:
            raise SchemaError(
                f"The step of column {column.name!r} is {step:g}, which is more than the range of its values, so every "
                "interval would hold all of them. Give a smaller step, or leave it out."
            )
        return width, width <= grain and not shared
    if shared and spread == 0:
        return 1, False
    n_values = len(units) if persons is None else int(counts.sum())  # different values of persons
    for width in _ladder(grain, spread):
        if (width > grain or shared) and n_values >= k * len(np.unique(units // width)):
            break
    return width, False


def _ladder(grain: int, spread: int) -> list[int]:
    """Return 1, 2, 5, 10, ... times the grain, up to the first above the range."""
    found = [grain]
    while found[-1] <= spread or len(found) < 2:
        power, digit = divmod(len(found), 3)
        found.append(grain * (1, 2, 5)[digit] * 10**power)
    return found
