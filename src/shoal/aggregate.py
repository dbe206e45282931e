"""Aggregate: the records of a cell become one value in each column.

Mean, median or mode. A value is published as missing if more than half of the cell's records miss it; else it comes
from those that have it, so missingness never splits a cell.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.axes import category_codes, sorted_categories
from shoal.prepare import categories_in_order, date_units
from shoal.schema import Column, Kind, Schema
from shoal.typing import Labels

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Cells:
    """Which records are released together.

    Attributes
    ----------
    labels : ndarray of shape (n_records,)
        Cell number of each record, from 0 and without gaps.
    household_labels : ndarray of shape (n_records,), optional
        Coarser cells, for the columns that stay equal within a household.
    household_level : tuple of str
        Those columns.
    """

    labels: Labels
    household_labels: Labels | None = None
    household_level: tuple[str, ...] = ()

    def of(self, column: Column) -> Labels:
        """Return the cells that a column is aggregated in."""
        if self.household_labels is not None and column.name in self.household_level:
            return self.household_labels
        return self.labels


def aggregate(table: pa.Table, schema: Schema, cells: Cells, weights: Vector | None = None) -> dict[str, pa.Array]:
    """Return the columns that are published in place of the quasi-identifiers.

    Parameters
    ----------
    table : pyarrow.Table
        As `shoal.prepare.prepare` returns it.
    schema : Schema
        Says for each quasi-identifier how it is aggregated and rounded.
    cells : Cells
        The cell of each record.
    weights : ndarray of shape (n_records,), optional
        Survey weights: means, medians and modes are weighted by them.

    Returns
    -------
    dict of str to pyarrow.Array
        One array for each quasi-identifier, in the order of the records; all records of a cell have the same value.

    Notes
    -----
    Takes O(n log n) time in records. Sums of means are the sums of the column up to rounding; with weights it is the
    weighted sums that are kept.

    Examples
    --------
    >>> from shoal.schema import Roles
    >>> people = pa.table({"age": [20, 21, 40, 44], "sex": ["f", "f", "m", "f"]})
    >>> schema = Schema.of(people.schema, Roles(quasi_identifiers=("age", "sex")))
    >>> released = aggregate(people, schema, Cells(np.array([0, 0, 1, 1])))
    >>> {name: array.to_pylist() for name, array in released.items()}
    {'age': [20.5, 20.5, 42.0, 42.0], 'sex': ['f', 'f', 'f', 'f']}
    """
    return {column.name: _published(table[column.name], column, cells.of(column), weights) for column in schema.quasi}


def _published(values: pa.ChunkedArray, column: Column, labels: Labels, weights: Vector | None) -> pa.Array:
    """Return one column as it is published."""
    n_cells = int(labels.max()) + 1
    where = np.asarray(values.combine_chunks().is_valid())
    members = _Members(labels[where], n_cells, None if weights is None else weights[where])
    present = values.drop_null()
    sizes = np.bincount(labels, minlength=n_cells)
    missing = 2 * members.sizes < sizes
    if len(present) == 0:
        return pa.nulls(len(values), values.type)
    if column.aggregate == "mean":
        found = _means(present, column, members)
    elif column.aggregate == "median":
        found = _medians(present, column, members)
    else:
        found = _modes(present, column, members)
    if missing.any():
        found = pc.if_else(pa.array(missing), None, found)
    return _as_it_came(found.take(pa.array(labels)), values)


class _Members:
    """The records of each cell that have a value."""

    def __init__(self, labels: Labels, n_cells: int, weights: Vector | None) -> None:
        self.labels, self.n_cells = labels, n_cells
        self.sizes = np.bincount(labels, minlength=n_cells)
        self.weights = weights
        if weights is not None:
            # A cell whose weights are all 0 is aggregated without them.
            weightless = np.bincount(labels, weights, n_cells) == 0
            self.weights = np.where(weightless[labels], 1.0, weights)

    def totals(self, numbers: Vector | None = None) -> Vector:
        """Return the weighted sum of some numbers in each cell, or of the weights alone."""
        parts = self.weights if numbers is None else numbers if self.weights is None else numbers * self.weights
        return np.bincount(self.labels, parts, self.n_cells).astype(np.float64)


def _means(values: pa.ChunkedArray, column: Column, members: _Members) -> pa.Array:
    """Return the mean of each cell: of dates at the resolution of the column, of whole numbers with decimals."""
    numbers = date_units(values) if column.kind is Kind.DATE else np.asarray(values.cast(pa.float64(), safe=False))
    # From the first value on, so that a large offset costs no digits.
    pivot = numbers[0]
    means = members.totals((numbers - pivot).astype(np.float64)) / np.maximum(members.totals(), 1e-300)
    if column.kind is Kind.DATE:
        return _as_dates(np.rint(means).astype(np.int64) + pivot, column.type)
    return _rounded(means + pivot, column)


def _rounded(numbers: Vector, column: Column) -> pa.Array:
    """Return numbers rounded as the settings say; whole numbers stay whole when nothing is left behind the point."""
    decimals = column.settings.round
    if decimals is None:
        # Without the sign of a zero, which would be one more value to tell records apart by.
        return pa.array(numbers + 0.0)
    rounded = np.round(numbers, decimals) + 0.0
    if decimals <= 0 and pa.types.is_integer(column.type):
        return pa.array(rounded).cast(column.type)
    return pa.array(rounded)


def _medians(values: pa.ChunkedArray, column: Column, members: _Members) -> pa.Array:
    """Return the median of each cell; of ordinal columns and dates the lower of two middle ones."""
    categories = _categories(values, column)
    ranks = category_codes(values, categories)
    order = np.lexsort((ranks, members.labels))
    starts = np.cumsum(members.sizes) - members.sizes
    if members.weights is None:
        places = starts + (members.sizes - 1) // 2, starts + members.sizes // 2
    else:
        places = (_weighted_middles(members, order, starts),) * 2
    # A cell without any value has no place; what it finds is not published.
    lower, upper = (categories.take(pa.array(ranks[order[np.clip(place, 0, len(order) - 1)]])) for place in places)
    if column.kind is not Kind.NUMERIC:
        return lower
    low, high = (np.asarray(side.cast(pa.float64(), safe=False)) for side in (lower, upper))
    return _rounded(low + (high - low) / 2, column)


def _weighted_middles(members: _Members, order: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where, in the order of cells and values, each cell's weight passes its half."""
    assert members.weights is not None
    running = np.cumsum(members.weights[order])
    before = np.where(starts > 0, running[np.maximum(starts - 1, 0)], 0.0)
    places = np.searchsorted(running, before + members.totals() / 2)
    # Rounding may carry the search past the cell; its own last record is then the one.
    return np.clip(places, starts, starts + np.maximum(members.sizes - 1, 0))


def _modes(values: pa.ChunkedArray, column: Column, members: _Members) -> pa.Array:
    """Return the most frequent value of each cell; of equally frequent ones the first in category order."""
    categories = _categories(values, column)
    pairs, where = np.unique(members.labels * len(categories) + category_codes(values, categories), return_inverse=True)
    counts = np.bincount(where, members.weights, len(pairs))
    cells, codes = np.divmod(pairs, len(categories))
    order = np.lexsort((codes, -counts, cells))
    firsts = order[np.unique(cells[order], return_index=True)[1]]
    found = np.zeros(members.n_cells, dtype=np.int64)
    found[cells[firsts]] = codes[firsts]
    return categories.take(pa.array(found))


def _categories(values: pa.ChunkedArray, column: Column) -> pa.Array:
    """Return the different values of a column in its own order."""
    return categories_in_order(values, column) if column.kind is Kind.ORDINAL else sorted_categories(values)


def _as_dates(numbers: NDArray[np.int64], type_: pa.DataType) -> pa.Array:
    """Return numbers as dates of a type."""
    if pa.types.is_date64(type_):
        numbers = numbers // 86_400_000 * 86_400_000
    return pa.array(numbers).cast(pa.int32() if type_.bit_width == 32 else pa.int64()).cast(type_)


def _as_it_came(values: pa.Array, original: pa.ChunkedArray) -> pa.Array:
    """Return values as categories if they came as such, in their order, without any that do not occur."""
    if not pa.types.is_dictionary(original.type):
        return values
    categories = original.unify_dictionaries().combine_chunks().dictionary
    used = categories.filter(pc.is_in(categories, value_set=pc.unique(values)))
    return pa.DictionaryArray.from_arrays(pc.index_in(values, value_set=used), used, ordered=original.type.ordered)
