"""Mode: the most frequent value of a cell; or the same, missing where a single record has it."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.aggregate.centred import Centred, rounded
from shoal.aggregate.members import Members, sums
from shoal.columns.categories import category_codes, code_counts, sorted_categories
from shoal.columns.prepare import categories_in_order
from shoal.columns.schema import Column, Kind
from shoal.typing import Labels


def modes(values: pa.ChunkedArray, column: Column, members: Members) -> pa.Array:
    """Return the most frequent value of each cell; of equally frequent ones that which is most frequent in the table.

    So a category that few records have is published only where a cell has none that more of them have. What is left
    equal goes by category order.
    """
    return _modes(values, column, members, least=1)


def shared_modes(values: pa.ChunkedArray, column: Column, members: Members) -> pa.Array:
    """Return the modes, missing where a single record of the cell has the category."""
    return _modes(values, column, members, least=2)


def _modes(values: pa.ChunkedArray, column: Column, members: Members, least: int) -> pa.Array:
    """Return the modes that at least so many records of their cell have; rounded numbers in any case."""
    categories = categories_of(values, column)
    of_record = category_codes(values, categories)
    pairs = members.labels * len(categories) + of_record
    if members.weights is None:
        found, n_records = code_counts(pairs, members.n_cells * len(categories))
        counts: NDArray[np.generic] = n_records
    else:
        found, where, n_records = np.unique(pairs, return_inverse=True, return_counts=True)
        counts = sums(members.weights, where, len(found))
    cells = found // len(categories)
    codes = found - cells * len(categories)
    in_table = (
        np.bincount(of_record, minlength=len(categories))
        if members.whole is None
        else members.whole.counts_of(categories)
    )
    # Pairs are in order of cells and values; of those that are left, the first of a cell is written last.
    left = _greatest_in_cells(counts, cells)
    left = left[_greatest_in_cells(in_table[codes[left]], cells[left])][::-1]
    modes = np.zeros(members.n_cells, dtype=np.int64)
    modes[cells[left]] = codes[left]
    if column.settings.round is not None:
        centred = Centred.of(categories)
        return rounded(centred.offsets[modes], centred, column)
    support = np.full(members.n_cells, least)  # cells without values are published as missing anyway
    support[cells[left]] = n_records[left]
    return categories.take(pa.array(modes, mask=support < least))


def _greatest_in_cells(numbers: NDArray[np.generic], cells: Labels) -> Labels:
    """Return where a number is the greatest of its cell; cells are in ascending order."""
    is_first = np.ones(len(cells), dtype=bool)
    is_first[1:] = cells[1:] != cells[:-1]
    greatest = np.maximum.reduceat(numbers, np.flatnonzero(is_first))
    return np.flatnonzero(numbers == greatest[np.cumsum(is_first) - 1])


def categories_of(values: pa.ChunkedArray, column: Column) -> pa.Array:
    """Return the different values of a column in its own order."""
    return categories_in_order(values, column) if column.kind is Kind.ORDINAL else sorted_categories(values)
