"""Aggregate: replace the values of a cell in each column by their mean, median or mode.

A value is published as missing if it is missing in more than half of the cell's records; otherwise it is computed from
the records that have it. Missing values therefore never split a cell.

Random aggregation, an option, scatters the records of a cell around its mean instead: ``docs/random.md``.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal import kernels
from shoal.columns.axes import as_numbers, category_codes, halfway, less, sorted_categories
from shoal.columns.distribution import Distribution, Distributions
from shoal.columns.prepare import categories_in_order, listed_categories
from shoal.columns.schema import Column, Kind, Schema
from shoal.errors import SchemaError
from shoal.typing import Labels, Vector


@dataclass(frozen=True)
class Cells:
    """The cell of each record.

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


class RandomAggregation(NamedTuple):
    """Random aggregation: how far records are moved from the mean of their cell, and the seed of the noise."""

    rho: float
    seed: int

    def generator(self) -> np.random.Generator:
        """Return the source of the noise: a stream of its own, so that other uses of the seed reveal nothing of it."""
        return np.random.default_rng([0x5CA77E6, self.seed])


def aggregate(
    table: pa.Table,
    schema: Schema,
    cells: Cells,
    weights: Vector | None = None,
    randomized: RandomAggregation | None = None,
    whole: Distributions | None = None,
) -> dict[str, pa.Array]:
    """Return the published columns of the quasi-identifiers.

    Parameters
    ----------
    table : pyarrow.Table
        As `shoal.columns.prepare.prepare` returns it.
    schema : Schema
        How each quasi-identifier is aggregated and rounded.
    cells : Cells
        The cell of each record.
    weights : ndarray of shape (n_records,), optional
        Survey weights: means, medians and modes are weighted by them.
    randomized : RandomAggregation, optional
        Random aggregation: each record gets m + u in place of the mean m, with u uniform between rho (min - m) and
        rho (max - m) of its cell and column.
    whole : mapping of str to Distribution, optional
        The columns aggregated by their mode in the whole table, if `table` is a part of it.

    Returns
    -------
    dict of str to pyarrow.Array
        One array for each quasi-identifier, in the order of the records; all records of a cell have the same value,
        unless they are scattered.

    Raises
    ------
    SchemaError
        If random aggregation is combined with a quasi-identifier that is not numeric, or with households.

    Notes
    -----
    Takes O(n log n) time in records. Means preserve the sum of a column up to rounding; with weights they preserve the
    weighted sum.

    Examples
    --------
    >>> from shoal.columns.schema import Roles
    >>> people = pa.table({"age": [20, 21, 40, 44], "sex": ["f", "f", "m", "f"]})
    >>> schema = Schema.of(people.schema, Roles(quasi_identifiers=("age", "sex")))
    >>> released = aggregate(people, schema, Cells(np.array([0, 0, 1, 1])))
    >>> {name: array.to_pylist() for name, array in released.items()}
    {'age': [20.5, 20.5, 42.0, 42.0], 'sex': ['f', 'f', 'f', 'f']}
    """
    if randomized is not None:
        check_random_aggregation(schema)
    noise = None if randomized is None else randomized.generator()
    rho = 0.0 if randomized is None else randomized.rho
    published = {}
    for column in schema.quasi:
        # The weights themselves are not weighted: their plain mean preserves their total, and all weighted totals.
        own = None if column.name == schema.roles.weights else weights
        in_table = (whole or {}).get(column.name)
        published[column.name] = _published(table[column.name], column, cells.of(column), own, rho, noise, in_table)
    return published


def published_type(column: Column) -> pa.DataType:
    """Return the type in which a quasi-identifier is published, of values that are not categories."""
    decimals = column.settings.round
    if column.kind is not Kind.NUMERIC or (column.aggregate in ("mode", "withhold") and decimals is None):
        return column.type
    is_whole = pa.types.is_integer(column.type) and decimals is not None and decimals <= 0
    return column.type if is_whole else pa.float64()


def check_random_aggregation(schema: Schema) -> None:
    """Refuse random aggregation of columns without a mean, and together with households."""
    unfit = [column.name for column in schema.quasi if column.kind is not Kind.NUMERIC or column.aggregate != "mean"]
    if unfit:
        raise SchemaError(
            f"Random aggregation (rho) needs numeric quasi-identifiers that are aggregated by their mean; these are "
            f"not: {', '.join(map(repr, unfit))}. Leave rho out, or give them another role."
        )
    if schema.roles.household is not None:
        raise SchemaError(
            "Random aggregation (rho) gives every record its own values, but a household column requires equal ones. "
            "Leave one of them out."
        )


def _published(
    values: pa.ChunkedArray,
    column: Column,
    labels: Labels,
    weights: Vector | None,
    rho: float,
    noise: np.random.Generator | None,
    in_table: Distribution | None,
) -> pa.Array:
    """Return one published column."""
    n_cells = int(labels.max()) + 1
    where = np.asarray(values.is_valid())
    members = _Members(labels[where], n_cells, None if weights is None else weights[where])
    present = values.drop_null()
    sizes = np.bincount(labels, minlength=n_cells)
    missing = 2 * members.sizes < sizes
    if len(present) == 0:
        return pa.nulls(len(values), values.type)
    if noise is not None:
        scattered = _randomized(present, column, members, labels, rho, noise)
        return pc.if_else(pa.array(missing[labels]), None, scattered) if missing.any() else scattered
    if column.aggregate == "mean":
        found = _means(present, column, members)
    elif column.aggregate == "median":
        found = _medians(present, column, members)
    else:
        found = _modes(present, column, members, in_table)
    if missing.any():
        found = pc.if_else(pa.array(missing), None, found)
    return _as_it_came(found.take(pa.array(labels)), values)


class _Members:
    """The records of each cell that have a value."""

    def __init__(self, labels: Labels, n_cells: int, weights: Vector | None) -> None:
        self.labels, self.n_cells = labels, n_cells
        self.sizes = np.bincount(labels, minlength=n_cells)
        self.weights = None if weights is None else _relative(weights, labels, n_cells)

    def totals(self, numbers: Vector | None = None) -> Vector:
        """Return the sum of `numbers` in each cell; without them, the sum of the weights."""
        return np.bincount(self.labels, self.weights if numbers is None else numbers, self.n_cells).astype(np.float64)

    def means(self, numbers: Vector) -> Vector:
        """Return the weighted mean of `numbers` in each cell; exact if all are equal."""
        unit = 0.25 if np.abs(numbers).max() > 1e307 else 1.0  # so that no difference overflows
        numbers = numbers * unit
        one = np.zeros(self.n_cells, dtype=np.int64)
        one[self.labels] = np.arange(len(numbers))
        # Relative to a record of the cell: the digits that all its records share cancel before anything is summed.
        pivots = numbers[one]
        shares = (1.0 if self.weights is None else self.weights) / self.totals()[self.labels]
        return np.asarray((pivots + self.totals((numbers - pivots[self.labels]) * shares)) / unit)


def _relative(weights: Vector, labels: Labels, n_cells: int) -> Vector:
    """Return weights relative to about the largest of their cell, so that they neither overflow nor underflow.

    The unit is a power of two, so that nothing is rounded. A cell whose weights are all 0 is aggregated without them.
    """
    largest = np.zeros(n_cells)
    np.maximum.at(largest, labels, weights)
    unit = np.where(largest > 0, np.ldexp(1.0, np.frexp(largest)[1] - 1), 0.0)[labels]
    return np.divide(weights, unit, out=np.ones_like(weights), where=unit > 0)


class _Centred(NamedTuple):
    """Numbers minus a central whole number, so that large whole numbers and dates keep their digits."""

    offsets: Vector
    middle: int
    is_unsigned: bool

    @staticmethod
    def of(values: pa.ChunkedArray | pa.Array) -> "_Centred":
        """Subtract the central number from numbers or dates without nulls, if floats would round them."""
        numbers = as_numbers(values)
        whole = numbers.dtype.kind in "iu" and len(numbers) > 0
        # Numbers that floats represent exactly are not shifted, so that integers and floats have the same mean.
        beyond = whole and max(-int(numbers.min()), int(numbers.max())) > 2**53
        middle = int(halfway(numbers)) if beyond else 0
        return _Centred(less(numbers, middle), middle, numbers.dtype.kind == "u")

    def whole(self, offsets: Vector) -> NDArray[np.int64] | NDArray[np.uint64]:
        """Return the whole numbers nearest to some offsets from the middle."""
        # As 64-bit numbers that wrap around: the sum lies between numbers of the column, so it fits.
        steps = np.rint(np.clip(offsets, -(2.0**63), 2.0**63 - 1024)).astype(np.int64).view(np.uint64)
        found = steps + np.uint64(self.middle % 2**64)
        return found if self.is_unsigned else found.view(np.int64)


def _means(values: pa.ChunkedArray, column: Column, members: _Members) -> pa.Array:
    """Return the mean of each cell: of dates at the resolution of the column, of whole numbers with decimals."""
    is_number = column.kind is Kind.NUMERIC and column.settings.round is None
    if is_number and (means := _plain_means(values, members)) is not None:
        return pa.array(means + 0.0)
    centred = _Centred.of(values)
    means = members.means(centred.offsets)
    return (
        _as_dates(centred.whole(means), column.type) if column.kind is Kind.DATE else _rounded(means, centred, column)
    )


def _randomized(
    values: pa.ChunkedArray, column: Column, members: _Members, labels: Labels, rho: float, noise: np.random.Generator
) -> pa.Array:
    """Return m + u for each record, u uniform between rho (min - m) and rho (max - m) of its cell."""
    centred = _Centred.of(values)
    means = members.means(centred.offsets)
    lows, highs = np.full_like(means, np.inf), np.full_like(means, -np.inf)
    np.minimum.at(lows, members.labels, centred.offsets)
    np.maximum.at(highs, members.labels, centred.offsets)
    empty = members.sizes == 0  # published as missing, whatever stands here
    means, lows, highs = (np.where(empty, 0.0, side) for side in (means, lows, highs))
    below, above = rho * (lows - means), rho * (highs - means)
    offsets = (means + below)[labels] + noise.random(len(labels)) * (above - below)[labels]
    # Rounding must not carry a value out of the range of its cell.
    return _rounded(np.clip(offsets, lows[labels], highs[labels]), centred, column)


def _plain_means(values: pa.ChunkedArray, members: _Members) -> Vector | None:
    """Return means as correctly rounded sums divided by sizes; None if the numbers are too large for that."""
    numbers = np.asarray(values.cast(pa.float64(), safe=False))
    if members.weights is not None or np.abs(numbers).max(initial=0.0) >= 2.0**53:
        return None
    sums = kernels.cell_sums(numbers.reshape(-1, 1), members.labels, len(members.sizes))[:, 0]
    lowest, highest = np.full(len(sums), np.inf), np.full(len(sums), -np.inf)
    np.minimum.at(lowest, members.labels, numbers)
    np.maximum.at(highest, members.labels, numbers)
    # Clipped to the range of the cell, which a rounded quotient may leave by a bit: equal values stay unchanged.
    return np.clip(sums / np.maximum(members.sizes, 1), lowest, np.maximum(highest, lowest))


def _rounded(offsets: Vector, centred: _Centred, column: Column) -> pa.Array:
    """Round numbers according to the settings; integers stay integers if no decimals are kept."""
    decimals = column.settings.round
    whole = pa.types.is_integer(column.type)
    if whole and decimals == 0:
        return pa.array(centred.whole(offsets)).cast(column.type)
    numbers = offsets + centred.middle
    if decimals is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            # Numbers of this size have no decimals, and rounding the largest of them would overflow.
            numbers = np.where(np.abs(numbers) < 2.0**52, np.round(numbers, decimals), numbers)
    # Without negative zero, which would be a distinguishable value.
    found = pa.array(numbers + 0.0)
    if whole and decimals is not None and decimals < 0:
        try:
            return found.cast(column.type)
        except pa.ArrowInvalid:
            return found  # out of the range of the type after rounding
    return found


def _medians(values: pa.ChunkedArray, column: Column, members: _Members) -> pa.Array:
    """Return the median of each cell; of ordinal columns and dates the lower of two middle ones."""
    categories = _categories(values, column)
    ranks = category_codes(values, categories)
    order = np.lexsort((ranks, members.labels))
    # A cell without values has no median; the value found for it is not published.
    lower, upper = (ranks[order[np.minimum(place, len(order) - 1)]] for place in _middles(members, order))
    if column.kind is not Kind.NUMERIC:
        return categories.take(pa.array(lower))
    centred = _Centred.of(categories)
    low, high = centred.offsets[lower], centred.offsets[upper]
    with np.errstate(over="ignore"):
        halfway_up = np.where((low < 0) & (high > 0), (low + high) / 2, low + (high - low) / 2)
    return _rounded(halfway_up, centred, column)


def _middles(members: _Members, order: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the positions, sorted by cell and value, where each cell reaches half of its weight and exceeds it."""
    starts = np.cumsum(members.sizes) - members.sizes
    if members.weights is None:
        return starts + np.maximum(members.sizes - 1, 0) // 2, starts + members.sizes // 2
    running = np.cumsum(members.weights[order])
    before = np.concatenate([[0.0], running])[starts]
    half = before + members.totals() / 2
    # Rounding may move the search past the cell; its last record is then taken.
    last = starts + np.maximum(members.sizes - 1, 0)
    reached, passed = (np.searchsorted(running, half, side) for side in ("left", "right"))
    return np.clip(reached, starts, last), np.clip(passed, starts, last)


def _modes(values: pa.ChunkedArray, column: Column, members: _Members, whole: Distribution | None) -> pa.Array:
    """Return the most frequent value of each cell; of equally frequent ones that which is most frequent in the table.

    So a category that few records have is published only where a cell has none that more of them have. What is left
    equal goes by category order. `withhold` leaves out what a single record of the cell has.
    """
    categories = _categories(values, column)
    of_record = category_codes(values, categories)
    found, where, n_records = np.unique(
        members.labels * len(categories) + of_record, return_inverse=True, return_counts=True
    )
    counts = n_records if members.weights is None else np.bincount(where, members.weights)
    cells, codes = np.divmod(found, len(categories))
    in_table = np.bincount(of_record, minlength=len(categories)) if whole is None else whole.counts_of(categories)
    # Pairs are in order of cells and values; a stable sort leaves the first of equally frequent values in front.
    order = np.lexsort((-in_table[codes], -counts, cells))[::-1]
    modes = np.zeros(members.n_cells, dtype=np.int64)
    modes[cells[order]] = codes[order]
    if column.settings.round is not None:
        centred = _Centred.of(categories)
        return _rounded(centred.offsets[modes], centred, column)
    if column.aggregate == "withhold":
        support = np.zeros(members.n_cells, dtype=np.int64)
        support[cells[order]] = n_records[order]
        return categories.take(pa.array(modes, mask=support == 1))
    return categories.take(pa.array(modes))


def _categories(values: pa.ChunkedArray, column: Column) -> pa.Array:
    """Return the different values of a column in its own order."""
    return categories_in_order(values, column) if column.kind is Kind.ORDINAL else sorted_categories(values)


def _as_dates(numbers: NDArray[np.int64] | NDArray[np.uint64], type_: pa.DataType) -> pa.Array:
    """Return numbers as dates of a type."""
    if pa.types.is_date64(type_):
        numbers = numbers // 86_400_000 * 86_400_000
    return pa.array(numbers).cast(pa.int32() if type_.bit_width == 32 else pa.int64()).cast(type_)


def _as_it_came(values: pa.Array, original: pa.ChunkedArray) -> pa.Array:
    """Return values as a dictionary array if the original was one, in its order and without unused categories."""
    if not pa.types.is_dictionary(original.type):
        return values
    categories = listed_categories(original)
    used = categories.filter(pc.is_in(categories, value_set=pc.unique(values).drop_null()))
    codes = pc.index_in(values, value_set=used).cast(original.type.index_type)
    return pa.DictionaryArray.from_arrays(codes, used, ordered=original.type.ordered)
