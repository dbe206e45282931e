"""Period: the month, quarter, year or decade that holds all dates of a cell, or the range of them."""

from typing import get_args

import pyarrow as pa

from shoal.aggregate.members import Members
from shoal.columns.coarse.missing import or_missing
from shoal.columns.hierarchy.calendar import LAST_MONTH, months_of
from shoal.columns.schema import Column, Precision
from shoal.errors import SchemaError


def periods(values: pa.ChunkedArray, column: Column, members: Members) -> pa.Array:
    """Return the period of each cell: at the column's precision, or the shortest at any.

    Dates that differ at that precision, or in their decades, are published as a range: ``2019/2021``. So are those in a
    period that too few persons share, with its neighbours.
    """
    months = months_of(values)
    if months.min() < 0 or months.max() > LAST_MONTH:
        raise SchemaError(
            f"Column {column.name!r} has dates outside the years 0 to 9999, for which no period is written. Correct "
            "them, or make them missing."
        )
    calendar = column.calendar
    assert calendar is not None
    first, last = members.extremes(months)
    wanted = get_args(Precision) if column.settings.precision is None else (column.settings.precision,)
    texts = calendar.periods(first, last, wanted)
    return pa.array(or_missing(texts, members.some_missing), pa.string())
