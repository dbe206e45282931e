"""Numbers that are something else: dates, amounts with thousands points, and codes for a missing value.

What is asked follows from the shape of the values: how many there are and how often each occurs, their gaps, spikes and
masses apart. Strong evidence is a question, weak evidence a note.
"""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.columns.name_topics import is_date
from shoal.columns.schema import POSITIONS, Kind
from shoal.findings.column_view import ColumnView
from shoal.findings.finding import HIDDEN, Finding, Remedy, kinds

_OFTEN = 5  # records with a code, on average
_LEAST_RECORDS = 20
_LEAST_REST = 5  # different values besides the suspected ones
_MOST_CODES = 4
_MOSTLY = 0.9
_SHARE = 0.002
_FIRST_DATE, _LAST_DATE = 1800_01_01, 2199_12_31
_LEAST_WITH_POINT = 20  # numbers with a point, and endings of theirs, that say something

_NINES = {10**digits - step for digits in range(2, 13) for step in (1, 2, 3, 4)}
_REPEATED = {int(str(digit) * times) for digit in (7, 8, 9) for times in range(2, 13)}
_HIGH = _NINES | _REPEATED
_LOW = {-value for value in _HIGH} | {-1, -7, -8, -9}
_MARKS = _HIGH | _LOW


def dates_as_numbers(view: ColumnView) -> Finding | None:
    """Find whole numbers that are dates, months or times, written without anything between: 19800131, 198001, 1259."""
    if view.kind is not Kind.NUMERIC or len(view.numbers) < _LEAST_RECORDS:
        return None
    return (_whole_dates(view) or _other_dates(view) if view.are_whole else None) or _days_of_sheets(view)


def _whole_dates(view: ColumnView) -> Finding | None:
    """Return what was found if most numbers are year, month and day."""
    numbers = view.numbers
    n_between = np.count_nonzero((numbers >= _FIRST_DATE) & (numbers <= _LAST_DATE))
    if n_between < _MOSTLY * len(numbers):
        return None
    year, rest = np.divmod(numbers, 10_000)
    is_date = _is_day_of(year, *np.divmod(rest, 100))
    n_dates = int(np.count_nonzero(is_date))
    if n_dates < _MOSTLY * len(numbers) or len(np.unique(numbers[is_date])) < _LEAST_REST:
        return None
    readings = (Remedy("field", view.name, {"date_format": "%Y%m%d"}),) if view.has_fields else ()
    return Finding(
        "dates-as-numbers",
        view.name,
        f"{view.share(n_dates)} of the records hold a number that is a date (year, month, day)",
        "Dates are averaged like amounts: a cell of 19800131 and 19800201 would publish a number that is not a date",
        (*readings, Remedy("column", view.name, {"kind": "ordinal"}), Remedy("column", view.name, {"kind": "numeric"})),
        question=True,
    )


def _other_dates(view: ColumnView) -> Finding | None:
    """Return what was found if all numbers are day, month and year, year and month, or hours and minutes."""
    values = view.different[0]
    if len(values) < _LEAST_WITH_POINT:
        return None
    rest, year = np.divmod(values, 10_000)
    head, tail = np.divmod(values, 100)
    is_varied = min(len(np.unique(head)), len(np.unique(tail))) >= _LEAST_REST and len(values) >= _LEAST_TIMES
    if _is_day_of(year, *np.divmod(rest, 100)[::-1]).all():
        what = "a number that is a date (day, month, year)"
    elif _is_day_of(head, tail, np.ones(len(values))).all():
        what = "a number that is a month (year, month)"
    elif is_varied and values[0] >= 0 and values[-1] <= 2400 and tail.max() < 60:
        what = "a number that may be a time of day (hour, minute)"
    else:
        return None
    return Finding(
        "dates-as-numbers",
        view.name,
        f"{view.share(len(view.numbers))} of the records hold {what}",
        "Dates and times are averaged like amounts: a cell of 1259 and 1301 would publish 1280, which is no time",
        kinds(view.name, "ordinal", "numeric"),
        question="time" not in what,
    )


_DAYS_OF_DATES, _RECENT_DAYS = (7000, 60_000), (33_000, 46_500)  # of Excel: 1919 to 2064, 1990 to 2027


def _days_of_sheets(view: ColumnView) -> Finding | None:
    """Return what was found if most numbers may be dates as sheets store them: days since 1900."""
    named = is_date(view.name)
    first, last = _DAYS_OF_DATES if named else _RECENT_DAYS
    numbers = view.numbers
    if not named and not view.are_whole:
        return None
    n_days = int(np.count_nonzero((numbers >= first) & (numbers <= last)))
    if n_days < (_MOSTLY if named else 1) * len(numbers) or len(view.different[0]) < _LEAST_WITH_POINT:
        return None
    return Finding(
        "dates-as-numbers",
        view.name,
        f"{view.share(n_days)} of the records hold a number that may be a date of a sheet (days since "
        f"1900){', and its name says so' if named else ''}",
        "Such a number shows no date to whoever reads the release. Give the cells a format of dates, and save again",
        kinds(view.name, "ordinal", "numeric"),
        question=named,
    )


_LEAST_TIMES = 30  # different numbers none of which has more than 59 minutes: chance gives one column in millions


def _is_day_of(year: NDArray[np.float64], month: NDArray[np.float64], day: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which years, months and days may be those of a date."""
    is_day: NDArray[np.bool_] = (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    return (year >= 1800) & (year < 2200) & is_day


def thousands_as_decimals(view: ColumnView) -> Finding | None:
    """Find amounts whose mark separates thousands: 850 and 22.096, or 7.920 in all records."""
    if not view.has_fields or not pa.types.is_floating(view.values.type) or len(view.numbers) < _LEAST_RECORDS:
        return None
    mark = view.receipt.found.decimal or "."
    if view.receipt.decided_by("decimal", view.name) in ("column", "file"):
        return None
    if view.name in view.receipt.thousandths:
        if _is_known(view, mark) or len(view.different[0]) < _LEAST_WITH_POINT:
            return None
        what = "every decimal mark in it is between one to three digits and three more"
        # A comma may separate thousands in any file, a point where decimal commas are likely: beside semicolons.
        return _thousands(view, mark, what, mark == "," or view.receipt.found.delimiter == ";")
    if not _are_thousands(np.abs(view.numbers)):
        return None
    n_marked = int(np.count_nonzero(view.numbers != np.rint(view.numbers)))
    what = (
        f"{view.share(n_marked)} of the records hold a number of at least 1 with three decimals, the others a whole "
        "number below 1000"
    )
    return _thousands(view, mark, what, True)


def _is_known(view: ColumnView, mark: str) -> bool:
    """Return whether the mark is the decimal mark of another column, or the file has commas between its fields."""
    found = view.receipt.found
    others = (how.decimal for name, how in found.fields.items() if name not in view.receipt.thousandths)
    return mark in others or found.delimiter == ","


def _thousands(view: ColumnView, mark: str, what: str, question: bool) -> Finding:
    other = "," if mark == "." else "."
    return Finding(
        "thousands-as-decimals",
        view.name,
        f"{what}, as if the {'point' if mark == '.' else 'comma'} separated thousands",
        "Read as a decimal mark, amounts of a thousand and more become a thousandth of what they are",
        (
            Remedy("field", view.name, {"thousands": mark, "decimal": other}),
            Remedy("accept", view.name, {"accept": [f"{view.name}=thousands-as-decimals"]}),
        ),
        question=question,
    )


def _are_thousands(numbers: NDArray[np.float64]) -> bool:
    """Return whether numbers are whole, or at least 1 with three decimals, as where a point separates thousands."""
    if numbers.max() >= 1000:
        return False
    has_point = numbers != np.rint(numbers)
    thousandths = numbers[has_point] * 1000
    endings = np.rint(thousandths).astype(np.int64) % 1000
    # Of amounts, one in ten ends in 0 and one in a thousand in 000; those below 1000 have no point.
    few_whole = np.count_nonzero(~has_point) < max(3, 0.01 * len(numbers))
    if few_whole or len(np.unique(endings)) < _LEAST_WITH_POINT or numbers[has_point].min() < 1:
        return False
    return bool(np.abs(thousandths - np.rint(thousandths)).max() <= 1e-6 and np.mean(endings % 10 != 0) >= 0.8)


def missing_codes(view: ColumnView) -> Finding | None:
    """Find a frequent value that lies apart from all others, such as -9 or 99999, or one of many nines among them."""
    numbers = view.numbers
    if len(numbers) < _LEAST_RECORDS:
        return None
    apart = _codes_apart(view)
    found = apart or _outlying_spike(view)
    told = [_position(view, side, values, bool(apart)) for side, values in found.items()]
    named: list[Any] = [*found]
    suspected = [value for values in found.values() for value in values]
    if not found:
        suspected, told = _repeated_digit(view)
        named = [HIDDEN] * len(suspected)
    if not suspected:
        return None
    if view.show_values and view.kind is not Kind.DATE:
        named = [int(value) if value == int(value) else value for value in suspected]
    return Finding(
        "missing-code",
        view.name,
        "; ".join(told),
        "Such a value often stands for a missing one, and then changes the means or widens the intervals of others",
        (
            Remedy("column", view.name, {"missing_codes": named}),
            Remedy("accept", view.name, {"accept": [f"{view.name}=missing-code"]}),
        ),
        question=bool(apart),
    )


def codes_at(view: ColumnView) -> dict[str, NDArray[np.float64]]:
    """Return the frequent values below and above all others, as a setting names them: smallest, largest."""
    return _codes_apart(view) or _outlying_spike(view)


def _codes_apart(view: ColumnView) -> dict[str, NDArray[np.float64]]:
    least = max(3, int(_SHARE * view.n_records))
    found = {side: _apart(view.numbers, side, least) for side in POSITIONS if len(view.numbers) >= _LEAST_RECORDS}
    return {side: values for side, values in found.items() if len(values)}


def _outlying_spike(view: ColumnView) -> dict[str, NDArray[np.float64]]:
    """Return a frequent smallest or largest value that is far from the usual ones."""
    values, counts = view.different
    if len(values) < _LEAST_WITH_POINT:
        return {}
    least = max(_OFTEN, int(_SPIKE * view.n_records))
    for side, place in zip(POSITIONS, (0, len(values) - 1), strict=True):
        is_far = _is_outlying(values, counts, place)
        is_mark = values[place] in _MARKS and counts[place] >= _FAR * np.median(counts)
        if counts[place] >= least and _is_isolated(values, counts, place) and (is_far or is_mark):
            return {side: values[place : place + 1]}
    return {}


def _repeated_digit(view: ColumnView) -> tuple[list[float], list[str]]:
    """Return frequent values such as 9999 among others, and what they are."""
    values, counts = view.different
    if len(values) < _LEAST_WITH_POINT:
        return [], []
    is_often = (counts >= max(_OFTEN, _SPIKE * view.n_records)) & (counts >= _FAR * np.median(counts))
    found = np.flatnonzero(np.isin(values, _LONG) & is_often)
    share = view.share(int(counts[found].sum()))
    return values[found].tolist(), [f"a value of one repeated digit belongs to {share} of the records"]


def _is_isolated(values: NDArray[np.float64], counts: NDArray[np.int64], place: int) -> bool:
    """Return whether the smallest or largest value is more frequent than those near it, and further from them."""
    near = slice(1, 1 + _NEAR) if place == 0 else slice(-1 - _NEAR, -1)
    gap = abs(values[place] - values[1 if place == 0 else -2])
    return bool(counts[place] > 2 * np.median(counts[near]) and gap > _FAR * np.median(np.diff(values[near])))


def _is_outlying(values: NDArray[np.float64], counts: NDArray[np.int64], place: int) -> bool:
    """Return whether a value is outside of Tukey's fences around the others."""
    rest, below = np.delete(values, place), np.cumsum(np.delete(counts, place))
    low, high = (rest[np.searchsorted(below, share * below[-1])] for share in (0.25, 0.75))
    fence = 1.5 * (high - low)
    return bool(values[place] < low - fence or values[place] > high + fence)


def zeros(view: ColumnView) -> Finding | None:
    """Find many zeros apart from all other numbers, which may be missing values or another sort of records."""
    if view.kind is not Kind.NUMERIC or len(view.numbers) < _LEAST_RECORDS or view.numbers.min() != 0:
        return None
    values, counts = view.different
    is_few = len(values) < _LEAST_WITH_POINT or counts[0] < _MANY_ZEROS * view.n_records
    if is_few or not _is_isolated(values, counts, 0) or _is_outlying(values, counts, 0):
        return None
    return Finding(
        "zeros",
        view.name,
        f"{view.share(int(counts[0]))} of the records hold 0, apart from all other numbers",
        "Zeros and amounts in one cell have a mean that none of them has; and a zero may stand for a missing value",
        (Remedy("column", view.name, {"keep_zeros": True}), Remedy("column", view.name, {"missing_codes": [0]})),
    )


_STEPS, _LOWEST = 8, 20  # a gap in steps, of the lowest numbers above it


def two_scales(view: ColumnView) -> Finding | None:
    """Find numbers in two masses, one of which is 10, 100 or 1000 times the other, as metres and centimetres are."""
    if view.kind is not Kind.NUMERIC or len(view.numbers) < _LEAST_RECORDS or view.numbers.min() < 0:
        return None
    if (found := _years(view) or _shares_and_percent(view)) is not None:
        return found
    is_any = view.different[0] > 0
    logs, counts = np.log10(view.different[0][is_any]), view.different[1][is_any]
    if len(logs) < 2 * _LEAST_REST:
        return None
    place = int(np.diff(logs).argmax()) + 1
    low, high = logs[:place], logs[place:]
    n_low, n_high = int(counts[:place].sum()), int(counts[place:].sum())
    if min(len(low), len(high)) < _LEAST_REST or min(n_low, n_high) < _SHARE * len(view.numbers):
        return None
    factor = round(float(np.median(high) - np.median(low)))
    if not 1 <= factor <= 3 or high[0] - low[-1] < max(_GAP, 0.3 * max(np.ptp(low), np.ptp(high))):
        return None
    # On a scale of powers the low end of evenly spread numbers is sparse, and has gaps of no meaning.
    plain = view.different[0][is_any]
    if plain[place] - plain[place - 1] < _STEPS * np.median(np.diff(plain[place : place + _LOWEST])):
        return None
    usual, moved = (low, high - factor) if n_low > n_high else (high, low + factor)
    if np.ptp(usual) < _LEAST_SPREAD:
        return None  # the same number, nearly
    if np.mean((moved >= usual[0] - 0.1) & (moved <= usual[-1] + 0.1)) < _MOSTLY:
        return None
    return Finding(
        "two-scales",
        view.name,
        f"{min(n_low, n_high):,} of {view.n_records:,} records hold numbers {10**factor:,} times as "
        f"{'small' if n_low < n_high else 'large'} as those of the others, and none lies between them",
        "Such numbers are often of another unit, as metres among centimetres, and would be averaged with the others. "
        "Convert them first, or say that they are right",
        (Remedy("accept", view.name, {"accept": [f"{view.name}=two-scales"]}),),
        question=True,
    )


def _years(view: ColumnView) -> Finding | None:
    """Return what was found if some years have four digits and others two."""
    values, counts = view.different
    is_short, is_long = values <= 99, (values >= _FIRST_DATE // 10_000) & (values <= _LAST_DATE // 10_000)
    n_short, n_long = int(counts[is_short].sum()), int(counts[is_long].sum())
    if not (is_short | is_long).all() or not view.are_whole or min(n_short, n_long) < _LEAST_YEARS:
        return None
    return Finding(
        "two-scales",
        view.name,
        f"{n_long:,} of {view.n_records:,} records hold a year of four digits, and {n_short:,} a number of at most two",
        "Years of two digits among those of four would be averaged as they stand. Write all of them in the same way, "
        "or say that they are right",
        (Remedy("accept", view.name, {"accept": [f"{view.name}=two-scales"]}),),
        question=True,
    )


_LEAST_YEARS = 3


def _shares_and_percent(view: ColumnView) -> Finding | None:
    """Return what was found if some numbers are shares below 1, and all others whole numbers up to 100."""
    values, counts = view.different
    is_share = (values < 1) & (values > 0)
    is_whole = (values == np.rint(values)) & (values <= 100)
    n_shares, n_percent = int(counts[is_share].sum()), int(counts[is_whole & (values > 1)].sum())
    if not (is_share | is_whole).all() or min(n_shares, n_percent) < max(_LEAST_REST, 0.02 * len(view.numbers)):
        return None
    if is_share.sum() < _LEAST_WITH_POINT:
        return None  # halves and quarters
    return Finding(
        "two-scales",
        view.name,
        f"{n_shares:,} of {view.n_records:,} records hold a number below 1 with decimals, and {n_percent:,} a whole "
        "number up to 100",
        "Shares and percent would be averaged with one another. Write all of them in the same way, or say that they "
        "are right",
        (Remedy("accept", view.name, {"accept": [f"{view.name}=two-scales"]}),),
        question=True,
    )


def repeats_of_identifiers(view: ColumnView) -> Finding | None:
    """Find whole numbers that occur in nearly as many records each, or long ones in one, as numbers of persons do."""
    numbers = view.numbers
    if view.kind is not Kind.NUMERIC or len(numbers) < _LEAST_RECORDS or not view.are_whole:
        return None
    values, counts = view.different
    mean = counts.mean()
    n_digits = len(str(int(values[-1])))
    is_long = n_digits >= _LONG_NUMBER and values[0] >= 10 ** (n_digits - 1)
    if is_long and len(values) >= _LEAST_NUMBERED and len(values) >= _MOSTLY * len(numbers):
        return _numbering(view, f"nearly all of its whole numbers differ, and all of them have {n_digits} digits")
    if len(counts) < _LEAST_NUMBERED or not 1.5 <= mean <= 20 or counts.var() > 0.2 * mean:
        return None
    return _numbering(view, f"each of its {len(counts):,} different whole numbers occurs about {mean:.3g} times")


def _numbering(view: ColumnView, what: str) -> Finding:
    return Finding(
        "repeats-of-identifiers",
        view.name,
        what,
        "Amounts repeat unevenly and differ in length; numbers of persons, households, accounts or telephones are like "
        "this, and mean nothing on average",
        (
            Remedy("role", view.name, {"subject": view.name}),
            Remedy("role", view.name, {"identifiers": [view.name]}),
        ),
    )


_LONG_NUMBER = 9  # digits
_SPIKE = 0.005
_MANY_ZEROS = 0.1
_NEAR = 10
_FAR = 3.0
_LONG = np.array([value for value in _HIGH if value >= 999], dtype=np.float64)
_GAP = 0.3  # decades
_LEAST_SPREAD = 0.01
_LEAST_NUMBERED = 30


def _position(view: ColumnView, side: str, values: NDArray[np.float64], is_apart: bool) -> str:
    count = int(np.isin(view.numbers, values).sum())
    which = f"the {side} value" if len(values) == 1 else f"the {len(values)} {side} values"
    belongs, lies = ("belongs", "lies") if len(values) == 1 else ("belong", "lie")
    where = f"{lies} apart from all others" if is_apart else f"{lies} far from the usual values or those next to it"
    return f"{which} {belongs} to {view.share(count)} of the records and {where}"


def _apart(numbers: NDArray[np.float64], side: str, least: int) -> NDArray[np.float64]:
    """Return the extreme values on one side that look like codes for a missing value; each is frequent."""
    sign = 1.0 if side == "smallest" else -1.0
    low = sign * numbers  # suspected are the smallest of these
    marks = {sign * value for value in (_LOW if side == "smallest" else _HIGH)}
    suspected: list[float] = []
    rest = low
    while len(suspected) < _MOST_CODES and len(rest):
        value = rest.min()
        is_it = rest == value
        if np.count_nonzero(is_it) < least:
            break
        if value not in marks and suspected:
            break
        suspected.append(float(value))
        rest = rest[~is_it]
        if _is_apart(suspected, rest, marks, side):
            return np.array([sign * value for value in suspected])
    return np.empty(0)


def _is_apart(suspected: list[float], rest: NDArray[np.float64], marks: set[float], side: str) -> bool:
    """Return whether the suspected values lie apart from all others."""
    if len(rest) < _LEAST_REST or len(np.unique(rest[:10_000])) < _LEAST_REST:
        return False
    nearest, farthest = rest.min(), rest.max()
    gap, spread = nearest - suspected[-1], farthest - nearest
    if set(suspected) <= marks:
        if side == "smallest" and nearest >= 0:
            return True
        # The interquartile range of the others measures their spread even where another code is among them.
        usual = float(np.subtract(*np.percentile(rest, [75, 25])))
        return bool(gap > spread or gap > 10 * usual > 0 or (gap > 0.2 * spread and min(map(abs, suspected)) < 100))
    return bool(gap > 10 * spread)
