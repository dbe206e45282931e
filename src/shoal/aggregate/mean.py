"""Mean: of numbers with decimals, of dates at the resolution of the column."""

import numpy as np
import pyarrow as pa

from shoal.aggregate.centred import Centred, as_dates, rounded
from shoal.aggregate.members import Members
from shoal.columns.schema import Column, Kind
from shoal.typing import Vector


def means(values: pa.ChunkedArray, column: Column, members: Members) -> pa.Array:
    """Return the mean of each cell: of dates at the resolution of the column, of whole numbers with decimals."""
    is_number = column.kind is Kind.NUMERIC and column.settings.round is None
    if is_number and (means := _plain_means(values, members)) is not None:
        return pa.array(means + 0.0)
    centred = Centred.of(values)
    means = members.means(centred.offsets)
    return as_dates(centred.whole(means), column.type) if column.kind is Kind.DATE else rounded(means, centred, column)


def _plain_means(values: pa.ChunkedArray, members: Members) -> Vector | None:
    """Return means as correctly rounded sums divided by sizes; None if the numbers are too large for that."""
    numbers = np.asarray(values.cast(pa.float64(), safe=False))
    largest = max(-numbers.min(initial=0.0), numbers.max(initial=0.0))
    if members.weights is not None or largest >= 2.0**53:
        return None
    if pa.types.is_integer(values.type) and largest * len(numbers) < 2.0**53:
        # Sums of whole numbers of this size do not round, and their quotients stay within the range of the cell.
        return np.bincount(members.labels, numbers, members.n_cells) / np.maximum(members.sizes, 1)
    totals = members.totals(numbers)
    # Clipped to the range of the cell, which a rounded quotient may leave by a bit: equal values stay unchanged.
    return np.clip(totals / np.maximum(members.sizes, 1), *members.extremes(numbers))
