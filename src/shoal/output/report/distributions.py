"""Distributions: the values of a column before and after, in groups of at least k records.

Numbers and dates become histograms, categories become bars. No bin, bar or remainder stands for fewer than k records,
in the internal report either: a plot must not disclose what the release protects.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from shoal.columns.equivalence import value_counts
from shoal.columns.numbers import date_units
from shoal.columns.prepare import CAST_ERRORS, categories_in_order
from shoal.columns.schema import Column, Kind, has_calendar
from shoal.output.report.binning import date_grid, joined, number_grid
from shoal.output.report.formatting import significant
from shoal.typing import Vector

MOST_BARS = 15
"""Maximum number of bars in a chart, besides the one of all other categories."""

MISSING = "(missing)"

_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def distribution(column: Column, before: pa.ChunkedArray | None, after: pa.ChunkedArray, k: int) -> dict[str, Any]:
    """Return the distribution of one column.

    Parameters
    ----------
    column : Column
        Its kind says whether it becomes a histogram or bars.
    before : pyarrow.ChunkedArray or None
        The original values; None leaves them out.
    after : pyarrow.ChunkedArray
        The released values.
    k : int
        Minimum number of records in every group shown.

    Returns
    -------
    dict
        ``figure`` is "histogram" (with ``bins``), "bars" (with ``bars``) or None (with a ``note`` that says why).
        ``missing`` counts missing values, None where they are some but fewer than k.

    Notes
    -----
    Takes O(n) time in records, besides what sorting the categories takes.

    Examples
    --------
    >>> from shoal.columns.schema import Roles, Schema
    >>> ages = pa.table({"age": [20, 21, 22, 23, 40, 41, 42, 43]})
    >>> column = Schema.of(ages.schema, Roles(quasi_identifiers=("age",)))["age"]
    >>> after = pa.chunked_array([[21.5] * 4 + [41.5] * 4])
    >>> [(bin["from"], bin["before"], bin["after"]) for bin in distribution(column, ages["age"], after, k=4)["bins"]]
    [('21', 4, 4), ('24', 4, 4)]
    """
    sides = {"after": after} if before is None else {"before": before, "after": after}
    figure = _histogram(sides, k) if column.kind in (Kind.NUMERIC, Kind.DATE) else _bars(column, sides, k)
    missing = {side: _count(values.null_count, k) for side, values in sides.items()}
    return {"name": column.name, "role": column.role.value, "kind": column.kind.value, **figure, "missing": missing}


def _count(count: int, k: int) -> int | None:
    """Return a count of records, or None if it is above 0 but below k."""
    return count if count == 0 or count >= k else None


def as_numbers(values: pa.ChunkedArray) -> Vector:
    """Return numbers, or seconds of dates, that are not missing, in ascending order; shape (n_present,)."""
    present = values.drop_null()
    if pa.types.is_temporal(present.type):
        return np.sort(_seconds(present))
    numbers = np.sort(np.asarray(present.cast(pa.float64(), safe=False)))
    # Only confidential and other columns can have infinities and NaN, which are at the ends after sorting.
    return (
        numbers
        if np.isfinite(numbers[:1]).all() and np.isfinite(numbers[-1:]).all()
        else np.asarray(numbers[np.isfinite(numbers)])
    )


def _seconds(values: pa.ChunkedArray) -> Vector:
    units = date_units(values).astype(np.float64)
    if pa.types.is_date32(values.type):
        return units * 86400.0
    return units * (1e-3 if pa.types.is_date64(values.type) else _SECONDS[values.type.unit])


def _histogram(sides: dict[str, pa.ChunkedArray], k: int) -> dict[str, Any]:
    numbers = {side: as_numbers(values) for side, values in sides.items()}
    first = next(iter(sides.values()))
    if has_calendar(first.type):
        grid = date_grid(numbers["after"], k)
    else:
        grid = number_grid(numbers["after"], k, whole=bool(pa.types.is_integer(first.type)))
    histogram = joined(grid, numbers, k) if grid is not None else None
    if histogram is None:
        return {"figure": None, "note": f"Too few different values, with at least {k} records each, to draw."}
    summary = (
        {} if has_calendar(first.type) else {"summary": {side: _summary(found) for side, found in numbers.items()}}
    )
    return {**histogram.to_dict(), **summary}


def _summary(numbers: Vector) -> dict[str, float | None]:
    """Return mean and standard deviation, rounded: all records together, to four digits."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = {"mean": numbers.mean(), "sd": numbers.std()}
    return {name: significant(value) if np.isfinite(value) else None for name, value in found.items()}


def _bars(column: Column, sides: dict[str, pa.ChunkedArray], k: int) -> dict[str, Any]:
    try:
        counts = {side: _value_counts(values) for side, values in sides.items()}
    except CAST_ERRORS:
        return {"figure": None, "note": "Values of this type are not drawn."}
    names = sorted({name for found in counts.values() for name in found})  # of equally many, the first are drawn
    if column.kind is Kind.ORDINAL:
        rank = {name: i for i, name in enumerate(_order(column, next(iter(sides.values()))))}
        names.sort(key=lambda name: rank.get(name, len(rank)))
    kept = _told(names, counts, k)
    if column.kind is not Kind.ORDINAL:
        first = next(iter(counts.values()))
        kept.sort(key=lambda name: (-first.get(name, 0), name))
    others = [name for name in names if name not in set(kept)]
    if len(kept) + bool(others) < 2:
        return {"figure": None, "note": f"Too few different values, with at least {k} records each, to draw."}
    bars = [{"category": name, **{side: found.get(name, 0) for side, found in counts.items()}} for name in kept]
    result: dict[str, Any] = {"figure": "bars", "bars": bars}
    if others:
        pooled = {side: sum(found.get(name, 0) for name in others) for side, found in counts.items()}
        result["others"] = {"categories": len(others), **pooled}
    return result


def _value_counts(values: pa.ChunkedArray) -> dict[str, int]:
    """Count the records of each category, by its name."""
    names, counts = value_counts(values)
    result: dict[str, int] = {}
    for name, count in zip(map(_called, names.to_pylist()), counts.tolist(), strict=True):
        result[name] = result.get(name, 0) + count
    return result


def _called(value: object) -> str:
    if value is None:
        return MISSING
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _order(column: Column, values: pa.ChunkedArray) -> list[str]:
    return [*map(_called, categories_in_order(values, column).to_pylist()), MISSING]


def _told(names: list[str], counts: dict[str, dict[str, int]], k: int) -> list[str]:
    """Return the categories with their own bar: the most frequent ones, such that all others together have k records.

    A category is shown if it has k records on the first side counted; on the other it may have none.
    """
    first, *more = counts.values()
    may = [
        name
        for name in names
        if first.get(name, 0) >= k and all(_count(found.get(name, 0), k) is not None for found in more)
    ]
    by_size = sorted(may, key=lambda name: -first.get(name, 0))
    n_kept = min(len(by_size), MOST_BARS if len(names) > MOST_BARS + 1 else MOST_BARS + 1)
    totals = [sum(found.values()) for found in counts.values()]

    def hidden(n_kept: int) -> list[int]:
        """Count the records of the other categories together."""
        told = by_size[:n_kept]
        return [
            total - sum(found.get(name, 0) for name in told)
            for total, found in zip(totals, counts.values(), strict=True)
        ]

    while n_kept and any(0 < rest < k for rest in hidden(n_kept)):
        n_kept -= 1
    kept = set(by_size[:n_kept])
    return [name for name in names if name in kept]
