"""Period: the month, quarter, year or decade that holds all dates of a cell, or the range of them."""

from typing import get_args

import numpy as np
import pyarrow as pa

from shoal.cells.aggregate.members import Members
from shoal.columns.coarse.missing import or_missing
from shoal.columns.hierarchy.calendar import MONTHS, months_of, period_labels
from shoal.columns.schema import Column, Precision
from shoal.errors import SchemaError


def periods(values: pa.ChunkedArray, column: Column, members: Members) -> pa.Array:
    """Return the period of each cell: at the column's precision, or at the finest one at which its dates agree.

    Dates that differ at that precision, or in their decades, are published as a range: ``2019/2021``.
    """
    months = months_of(values)
    if months.min() < 0 or months.max() >= 12 * 10_000:
        raise SchemaError(
            f"Column {column.name!r} has dates outside the years 0 to 9999, for which no period is written. Correct "
            "them, or make them missing."
        )
    first = np.full(members.n_cells, np.iinfo(np.int64).max)
    last = np.full(members.n_cells, np.iinfo(np.int64).min)
    np.minimum.at(first, members.labels, months)
    np.maximum.at(last, members.labels, months)
    empty = members.sizes == 0  # published as missing, whatever stands here
    first, last = np.where(empty, 0, first), np.where(empty, 0, last)
    wanted = get_args(Precision) if column.settings.precision is None else (column.settings.precision,)
    texts = np.full(members.n_cells, None, dtype=object)
    for precision in reversed(wanted):
        low, high = first // MONTHS[precision], last // MONTHS[precision]
        lower, upper = (np.array(period_labels(ends, precision), dtype=object) for ends in (low, high))
        # The coarsest precision comes first and is always true, if need be as a range.
        texts = np.where(low == high, lower, lower + "/" + upper if texts[0] is None else texts)
    return pa.array(or_missing(texts.tolist(), members.some_missing), pa.string())
