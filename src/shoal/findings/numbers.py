"""Numbers that are something else: codes, dates, amounts with thousands points, and codes for a missing value."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.columns.name_topics import is_code, is_count
from shoal.columns.schema import Kind
from shoal.findings.column_view import ColumnView
from shoal.findings.finding import HIDDEN, Finding, Remedy, kinds

_FEW_CODES = 8
_FEW_NAMED_CODES = 30
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


def codes(view: ColumnView) -> Finding | None:
    """Find whole numbers that are codes of categories rather than counts or measurements."""
    if view.kind is not Kind.NUMERIC or len(view.numbers) < _LEAST_RECORDS or is_count(view.name):
        return None
    if view.description is not None and view.description.measure in ("nominal", "ordinal"):
        return None
    named = is_code(view.name)
    values = _few_whole(view, _FEW_NAMED_CODES if named else _FEW_CODES)
    if values is None and not (named and view.are_whole):
        return None
    n_values = _FEW_NAMED_CODES + 1 if values is None else len(values)
    # With many codes, such as postcodes, close numbers may mean close places: their mean is less wrong.
    surely = values is not None and (named or n_values == 2) and 0.0 not in values
    if n_values == 1 or not (surely or named or _counts_from_one(values)):
        return None
    n_different = "many" if values is None else str(n_values)
    told = ", and its name suggests codes" if named else ""
    return Finding(
        "codes",
        view.name,
        f"it holds {n_different} different whole numbers that look like codes of categories{told}",
        "Codes are averaged like amounts: a cell of codes 1 and 4 would publish 2.5",
        kinds(view.name, "nominal", "ordinal", "numeric"),
        question=surely,
    )


def dates_as_numbers(view: ColumnView) -> Finding | None:
    """Find whole numbers that are dates, written as year, month and day without anything between: 19800131."""
    numbers = view.numbers
    if view.kind is not Kind.NUMERIC or len(numbers) < _LEAST_RECORDS:
        return None
    n_between = np.count_nonzero((numbers >= _FIRST_DATE) & (numbers <= _LAST_DATE))
    if n_between < _MOSTLY * len(numbers) or not view.are_whole:
        return None
    year, rest = np.divmod(numbers, 10_000)
    month, day = np.divmod(rest, 100)
    is_date = (year >= 1800) & (year < 2200) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
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


def thousands_as_decimals(view: ColumnView) -> Finding | None:
    """Find amounts whose points separate thousands: 850 and 22.096, of which no number lies between 0 and 1."""
    if not view.has_fields or not pa.types.is_floating(view.values.type) or len(view.numbers) < _LEAST_RECORDS:
        return None
    numbers = np.abs(view.numbers)
    if numbers.max() >= 1000:
        return None
    has_point = numbers != np.rint(numbers)
    thousandths = numbers[has_point] * 1000
    endings = np.rint(thousandths).astype(np.int64) % 1000
    # Of amounts, one in ten ends in 0 and one in a thousand in 000; those below 1000 have no point.
    few_whole = np.count_nonzero(~has_point) < max(3, 0.01 * len(numbers))
    if few_whole or len(np.unique(endings)) < _LEAST_WITH_POINT or numbers[has_point].min() < 1:
        return None
    if np.abs(thousandths - np.rint(thousandths)).max() > 1e-6 or np.mean(endings % 10 != 0) < 0.8:
        return None
    return Finding(
        "thousands-as-decimals",
        view.name,
        f"{view.share(int(has_point.sum()))} of the records hold a number of at least 1 with three decimals, the "
        "others a whole number below 1000, as if the point separated thousands",
        "Read as a decimal point, amounts of a thousand and more become a thousandth of what they are",
        (
            Remedy("field", view.name, {"thousands": ".", "decimal": ","}),
            Remedy("accept", view.name, {"accept": [f"{view.name}=thousands-as-decimals"]}),
        ),
        question=True,
    )


def missing_codes(view: ColumnView) -> Finding | None:
    """Find a frequent extreme value that lies apart from all others, such as -9 or 99999."""
    numbers = view.numbers
    if len(numbers) < _LEAST_RECORDS:
        return None
    least = max(3, int(_SHARE * view.n_records))
    found = [(side, values) for side in ("smallest", "largest") if len(values := _apart(numbers, side, least))]
    if not found:
        return None
    told = [_position(view, side, values) for side, values in found]
    suspected = [value for _, values in found for value in values]
    written = [int(value) if value == int(value) else value for value in suspected]
    is_date = view.kind is Kind.DATE
    shown = written if view.show_values and not is_date else [HIDDEN] * len(suspected)
    return Finding(
        "missing-code",
        view.name,
        "; ".join(told),
        "Such a value often stands for a missing one, and then changes the means or widens the intervals of others",
        (
            Remedy("column", view.name, {"missing_codes": shown}),
            Remedy("accept", view.name, {"accept": [f"{view.name}=missing-code"]}),
        ),
        question=True,
    )


def _position(view: ColumnView, side: str, values: NDArray[np.float64]) -> str:
    count = int(np.isin(view.numbers, values).sum())
    which = f"the {side} value" if len(values) == 1 else f"the {len(values)} {side} values"
    has = "belongs to" if len(values) == 1 else "belong to"
    apart = "lies" if len(values) == 1 else "lie"
    return f"{which} {has} {view.share(count)} of the records and {apart} apart from all others"


def _few_whole(view: ColumnView, most: int) -> NDArray[np.float64] | None:
    """Return the different values if they are few and whole."""
    low, high = view.numbers.min(), view.numbers.max()
    if not (low > -1000 and high < 1000) or not view.are_whole:
        return None
    counts = np.bincount((view.numbers - low).astype(np.int64))
    found = np.flatnonzero(counts) + low
    return found if len(found) <= most else None


def _counts_from_one(values: NDArray[np.float64] | None) -> bool:
    """Return whether values are 1, 2, 3 and so on, as codes of categories are; counts begin at 0."""
    return values is not None and len(values) > 2 and values[0] == 1 and values[-1] == len(values)


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
