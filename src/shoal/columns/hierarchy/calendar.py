"""Calendar: dates in months, quarters, years and decades."""

from typing import get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.columns.hierarchy.tree import ROOT, Hierarchy, leaf_texts
from shoal.columns.schema import Precision, has_calendar
from shoal.errors import SchemaError

MONTHS: dict[Precision, int] = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
"""Number of months in a period of each precision."""

LAST_MONTH = 12 * 10_000 - 1
"""The last month since the year 0 that has a name."""

EVER = "../.."
"""The period without ends, as ISO 8601-2 writes it."""

Periods = NDArray[np.int64]


def calendar(values: pa.ChunkedArray, arguments: list[str], what: str) -> Hierarchy:
    """Group dates by month, quarter, year and decade, or by those of them that `arguments` names.

    Examples
    --------
    >>> from datetime import date
    >>> days = calendar(pa.chunked_array([[date(2024, 5, 31), date(2021, 1, 7)]]), ["month", "year"], "calendar")
    >>> [days.labels[node] for node in days.nodes[1]]
    ['2024-05-31', '2024-05', '2024', '*']
    """
    known = get_args(Precision)
    unknown = [argument for argument in arguments if argument not in known]
    if unknown:
        raise SchemaError(f"{what} has no period {unknown[0]!r}. Periods: {', '.join(known)}.")
    if not has_calendar(values.type):
        raise SchemaError(f"{what} groups dates, but the column holds {values.type}. Give another hierarchy.")
    dates = pc.unique(values.drop_null())
    dates = dates.take(pc.sort_indices(dates))
    months = months_of(dates)
    wanted = [precision for precision in known if not arguments or precision in arguments]
    levels = [period_labels(months // MONTHS[precision], precision) for precision in wanted]
    return Hierarchy.of_rows(zip(leaf_texts(dates).to_pylist(), *levels, [ROOT] * len(dates), strict=True), what)


def months_of(dates: pa.ChunkedArray | pa.Array) -> Periods:
    """Return the number of each month since the year 0, of dates that are all present."""
    return np.asarray(pc.year(dates), dtype=np.int64) * 12 + np.asarray(pc.month(dates), dtype=np.int64) - 1


def period_labels(periods: Periods, precision: Precision) -> list[str]:
    """Return how periods are written, given by their number since the year 0.

    Examples
    --------
    >>> period_labels(np.array([24292]), "month"), period_labels(np.array([8097]), "quarter")
    (['2024-05'], ['2024-Q2'])
    >>> period_labels(np.array([2024]), "year"), period_labels(np.array([202]), "decade")
    (['2024'], ['2020s'])
    """
    per_year = 12 // MONTHS[precision] if precision != "decade" else 0
    if precision == "month":
        return [f"{period // per_year:04}-{period % per_year + 1:02}" for period in periods.tolist()]
    if precision == "quarter":
        return [f"{period // per_year:04}-Q{period % per_year + 1}" for period in periods.tolist()]
    return [f"{period:04}" if per_year else f"{period:03}0s" for period in periods.tolist()]
