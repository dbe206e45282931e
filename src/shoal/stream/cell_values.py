"""Cell values: how a column of a stream becomes coordinates and codes, and what its cells publish.

Kinds and settings are those of a release (`shoal.columns.schema`), and each cell publishes the default aggregate of the
kind. What differs follows from the stream: values become positions on a range, or keys that are only compared, so that
memory does not grow with their number; the rows of a cell lie one after the other, which takes a fraction of the time;
and of equally frequent values the first in order is published, since no whole table says which is more frequent.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal import kernels
from shoal.aggregate.median import middle_ranks
from shoal.aggregate.members import Members
from shoal.columns.categories import category_codes, sorted_categories
from shoal.columns.numbers import from_units, time_units
from shoal.columns.schema import Column, Kind, value_type
from shoal.stream.contiguous import as_array, floats_of, is_plain
from shoal.stream.keys import MISSING, Keys, keys_of
from shoal.typing import Labels, Vector

Mask = NDArray[np.bool_]


class Encoded(NamedTuple):
    """A column of a batch: a position before scaling (NaN where missing), or keys."""

    values: Vector | None
    keys: Keys | None


def is_placed(column: Column) -> bool:
    """Return whether the values of a column have numeric positions; nominal ones are equal or not."""
    return column.kind is not Kind.NOMINAL


def levels_of(column: Column) -> list[str]:
    """Return the levels of an ordinal column, lowest first."""
    return [str(level) for level in column.settings.order or ()]


def read(column: Column, values: pa.Array) -> Encoded:
    """Read numbers, units of time since the epoch, ranks from 0 to 1, or keys.

    A level that is not in the order becomes infinite.
    """
    if column.kind is Kind.NOMINAL:
        return Encoded(None, keys_of(values))
    if column.kind is Kind.DATE:
        return Encoded(_as_floats(time_units(values, column.type)), None)
    if column.kind is Kind.NUMERIC:
        return Encoded(_as_floats(values), None)
    ranks = pc.index_in(values.cast(pa.string()), pa.array(levels_of(column), pa.string()))
    found = np.array(ranks.to_numpy(zero_copy_only=False), dtype=np.float64)
    found[np.asarray(pc.and_(pc.is_valid(values), pc.is_null(ranks)).to_numpy(zero_copy_only=False))] = np.inf
    return Encoded(found / _largest_rank(column), None)


def published_type(column: Column, given: pa.DataType) -> pa.DataType:
    """Return the type of the published column; it does not carry categories that it does not use."""
    return pa.float64() if column.kind is Kind.NUMERIC else value_type(given)


def publish(column: Column, values: pa.Array, encoded: Encoded, sizes: Labels) -> pa.Array:
    """Give every member of a cell the value that the cell publishes; cells lie one after the other."""
    if column.kind is Kind.NOMINAL:
        plain = values.cast(value_type(values.type))
        ranks = category_codes(plain, sorted_categories(plain))
        assert encoded.keys is not None
        return plain.take(pa.array(np.repeat(kernels.most_frequent(encoded.keys, ranks, sizes), sizes)))
    if column.kind is Kind.DATE:
        return _mean_times(time_units(values, column.type), column.type, sizes)
    assert encoded.values is not None
    if column.kind is Kind.NUMERIC:
        return _means(encoded.values, sizes)
    ranks = _median_ranks(encoded.values * _largest_rank(column), sizes)
    return pa.array(levels_of(column), pa.string()).take(ranks).cast(value_type(values.type))


def indicator(values: Vector) -> Keys:
    """Return codes that separate present from missing values."""
    return np.where(np.isnan(values), MISSING, np.uint64(0))


def _as_floats(column: pa.Array) -> Vector:
    """Return numbers as float64, NaN where missing; the array is read-only.

    A decimal or a very large integer loses digits here, which do not matter for distances.
    """
    if is_plain(column):
        return floats_of(column)
    return np.asarray(pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)


def _largest_rank(column: Column) -> int:
    return max(len(column.settings.order or ()) - 1, 1)


def _means(values: Vector, sizes: Labels) -> pa.Array:
    """Return, for each value, the mean of those present in its cell; missing where more than half of the cell is."""
    means, any_missing = kernels.cell_means(values, sizes)
    return pa.array(means, mask=np.isnan(means)) if any_missing else as_array(means)


def _mean_times(units: pa.Array, type_: pa.DataType, sizes: Labels) -> pa.Array:
    """Return, for each time, the mean of its cell, rounded to a whole unit.

    Nanoseconds since 1970 have more digits than a float64: offsets from the middle of the cell are averaged.
    """
    numbers, missing = np.asarray(units.fill_null(0)), np.asarray(units.is_null())
    middles = np.repeat(_even_middles(numbers, missing, sizes), sizes)
    means = _means(np.where(missing, np.nan, (numbers - middles).astype(np.float64)), sizes)
    return from_units(pc.add(pc.round(means).cast(pa.int64()), pa.array(middles)), type_)


def _even_middles(numbers: Labels, missing: Mask, sizes: Labels) -> Labels:
    """Return an even number halfway between the lowest and the highest of each cell.

    It depends on the cell alone, not on the batch; a mean between two units is rounded as without an offset.
    """
    starts = np.cumsum(sizes) - sizes
    ends = np.iinfo(np.int64)
    lows = np.minimum.reduceat(np.where(missing, ends.max, numbers), starts)
    highs = np.maximum.reduceat(np.where(missing, ends.min, numbers), starts)
    # (low + high + 1) // 2 without the sum, which may not fit.
    middles: Labels = (lows >> 1) + (highs >> 1) + ((lows | highs) & 1)
    return middles & ~1


def _median_ranks(ranks: Vector, sizes: Labels) -> pa.Array:
    """Return, for each rank, the median of its cell, the lower one of two; missing where more than half of it is."""
    labels, present = np.repeat(np.arange(len(sizes)), sizes), ~np.isnan(ranks)
    members = Members(labels[present], len(sizes), None, sizes)
    lower, _ = middle_ranks(np.rint(ranks[present]).astype(np.int64), members)
    return pa.array(lower[labels], mask=(2 * members.sizes < sizes)[labels])
