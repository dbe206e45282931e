"""Frequencies: how many records have each value, or range of values, of a column, as rows of a table."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from shoal.output.report.formatting import counted


class Row(NamedTuple):
    """A value or a range, and its counts: before, where it is known, and published."""

    name: str
    counts: tuple[str, ...]


def frequency_rows(distribution: Mapping[str, Any]) -> list[Row]:
    """Return the counts of a distribution, as `shoal.output.report.distributions.distribution` returns it.

    Examples
    --------
    >>> bins = [{"from": "0", "to": "5", "after": 1200}, {"from": "5", "to": "10", "after": 30}]
    >>> for row in frequency_rows({"figure": "histogram", "bins": bins, "missing": {"after": None}}):
    ...     print(row.name, *row.counts)
    below 5 1,200
    5 and more 30
    missing < k
    """
    rows = {"histogram": _bins, "bars": _bars}.get(distribution["figure"])
    return [] if rows is None else [Row(name, tuple(map(_written, counts))) for name, counts in rows(distribution)]


def bin_range(bins: Sequence[Mapping[str, Any]], i: int) -> str:
    """Return the range of a bin in words; the first and the last have everything beyond them."""
    if i == 0:
        return f"below {bins[i]['to']}"
    if i == len(bins) - 1:
        return f"{bins[i]['from']} and more"
    return f"{bins[i]['from']} to below {bins[i]['to']}"


def _bins(distribution: Mapping[str, Any]) -> Iterator[tuple[str, list[int | None]]]:
    bins, missing = distribution["bins"], distribution["missing"]
    for i, each in enumerate(bins):
        yield bin_range(bins, i), _sides(each)
    if any(count != 0 for count in missing.values()):
        yield "missing", _sides(missing)


def _bars(distribution: Mapping[str, Any]) -> Iterator[tuple[str, list[int | None]]]:
    for bar in distribution["bars"]:
        yield bar["category"], _sides(bar)
    if distribution.get("others"):
        others = distribution["others"]
        yield counted(others["categories"], "other value"), _sides(others)


def _sides(counts: Mapping[str, Any]) -> list[int | None]:
    return [counts[side] for side in ("before", "after") if side in counts]


def _written(count: int | None) -> str:
    """Return a count; one that is above 0 and below k is not shown."""
    return "< k" if count is None else f"{count:,}"
