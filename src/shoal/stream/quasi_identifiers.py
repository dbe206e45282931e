"""Quasi-identifiers of a stream: how a column becomes coordinates and codes, and how it is aggregated.

Every column has range 1 in distance: numbers and dates by their range, ordered levels by rank; two nominal values
are equal (0) or not (1). Memory does not grow with the number of different values.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal import kernels
from shoal.columns.prepare import CAST_ERRORS
from shoal.columns.schema import Kind, natural_kind
from shoal.errors import SchemaError
from shoal.stream.contiguous import as_array, floats_of, is_plain
from shoal.stream.keys import MISSING, Keys, keys_of
from shoal.stream.rules import Rules
from shoal.typing import Labels, Vector

Mask = NDArray[np.bool_]


class Encoded(NamedTuple):
    """A column of a batch: a position before scaling (NaN where missing), or keys."""

    values: Vector | None
    keys: Keys | None


@dataclass(frozen=True)
class Numeric:
    """A column of numbers; a cell publishes their mean."""

    name: str

    placed = True

    def released(self, kind: pa.DataType) -> pa.DataType:
        """Return the type of the published column."""
        return pa.float64()

    def read(self, column: pa.Array) -> Encoded:
        """Read the numbers, as float64."""
        return Encoded(as_floats(self.name, column), None)

    def publish(self, column: pa.Array, values: Encoded, sizes: Labels) -> pa.Array:
        """Give every member of a cell the mean of those that are present."""
        assert values.values is not None
        return _means(values.values, sizes)


@dataclass(frozen=True)
class Date:
    """A column of dates or times; a cell publishes their mean at the column's resolution."""

    name: str
    unit: pa.DataType

    placed = True

    def released(self, kind: pa.DataType) -> pa.DataType:
        """Return the type of the published column."""
        return self.unit

    def read(self, column: pa.Array) -> Encoded:
        """Read the number of units since the epoch."""
        return Encoded(as_floats(self.name, self._counted(column)), None)

    def publish(self, column: pa.Array, values: Encoded, sizes: Labels) -> pa.Array:
        """Give every member of a cell the mean, rounded to a whole unit."""
        counted = self._counted(column)
        numbers, missing = np.asarray(counted.fill_null(0)), np.asarray(counted.is_null())
        # Nanoseconds since 1970 have more digits than a float64: offsets from the middle of the cell are averaged.
        middles = np.repeat(_even_middles(numbers, missing, sizes), sizes)
        means = _means(np.where(missing, np.nan, (numbers - middles).astype(np.float64)), sizes)
        whole = pc.add(pc.round(means).cast(pa.int64()), pa.array(middles))
        return whole.cast(pa.int32() if self.unit.bit_width == 32 else pa.int64()).cast(self.unit)

    def _counted(self, column: pa.Array) -> pa.Array:
        if column.type != self.unit:
            column = column.cast(self.unit)
        return column.cast(pa.int32() if self.unit.bit_width == 32 else pa.int64()).cast(pa.int64())


@dataclass(frozen=True)
class Ordinal:
    """A column of ordered levels; a cell publishes the median, the lower one of two."""

    name: str
    levels: tuple[str, ...]

    placed = True

    def released(self, kind: pa.DataType) -> pa.DataType:
        """Return the type of the published column."""
        return _plain(kind)

    def read(self, column: pa.Array) -> Encoded:
        """Read the rank of each level, from 0 to 1; a level that is not in the list becomes infinite."""
        ranks = pc.index_in(column.cast(pa.string()), pa.array(self.levels, pa.string()))
        found = np.array(ranks.to_numpy(zero_copy_only=False), dtype=np.float64)
        unknown = np.asarray(pc.and_(pc.is_valid(column), pc.is_null(ranks)).to_numpy(zero_copy_only=False))
        found[unknown] = np.inf
        return Encoded(found / max(len(self.levels) - 1, 1), None)

    def publish(self, column: pa.Array, values: Encoded, sizes: Labels) -> pa.Array:
        """Give every member of a cell the median level."""
        assert values.values is not None
        ranks = values.values * max(len(self.levels) - 1, 1)
        medians = np.concatenate([_lower_median(cell) for cell in np.split(ranks, np.cumsum(sizes)[:-1])])
        where = pa.array(np.repeat(medians, sizes), mask=np.isnan(np.repeat(medians, sizes))).cast(pa.int32())
        return pa.array(self.levels, pa.string()).take(where).cast(_plain(column.type))


@dataclass(frozen=True)
class Nominal:
    """A column of values without order; a cell publishes the most frequent one."""

    name: str

    placed = False

    def released(self, kind: pa.DataType) -> pa.DataType:
        """Return the type of the published column."""
        return _plain(kind)

    def read(self, column: pa.Array) -> Encoded:
        """Read a key for each value."""
        return Encoded(None, keys_of(column))

    def publish(self, column: pa.Array, values: Encoded, sizes: Labels) -> pa.Array:
        """Give every member of a cell its most frequent value; ties go to the first in sorted order."""
        assert values.keys is not None
        plain = column.cast(_plain(column.type))
        winners = kernels.most_frequent(values.keys, _ranks(plain), sizes)
        return plain.take(pa.array(np.repeat(winners, sizes)))


Quasi = Numeric | Date | Ordinal | Nominal


def as_quasi(name: str, type_: pa.DataType, rules: Rules) -> Quasi:
    """Choose the treatment of a column: as declared, else by its type, as everywhere in shoal."""
    if name in rules.ordinal:
        return Ordinal(name, rules.ordinal[name])
    natural = Kind.NOMINAL if _is_bytes(type_) else natural_kind(type_)
    told = rules.columns[name].kind if name in rules.columns else None
    kind = told or natural
    if kind is Kind.NOMINAL:
        return Nominal(name)
    if natural is not kind or kind is None:
        what = f"is declared {told}, but holds {type_}" if told else f"is of type {type_}, which has no distance"
        raise SchemaError(f"Column {name!r} {what}. Leave it out or convert it.")
    if kind is Kind.ORDINAL:
        raise SchemaError(
            f"Column {name!r} has ordered categories; say its levels, lowest first: columns={{{name!r}: "
            '{"categories": [...]}}.'
        )
    return Numeric(name) if kind is Kind.NUMERIC else Date(name, type_)


def _is_bytes(type_: pa.DataType) -> bool:
    """Return whether the values are the unparsed texts of lines."""
    return bool(pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or "view" in str(type_))


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return the type without a dictionary, since a released column must not carry categories it does not use."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def as_floats(name: str, column: pa.Array) -> Vector:
    """Return numbers as float64, NaN where missing; the array is read-only."""
    if is_plain(column):
        return floats_of(column)
    try:
        # A decimal or a very large integer loses digits here, which do not matter for distances.
        numbers = pc.cast(column, pa.float64(), safe=False)
    except CAST_ERRORS:
        raise SchemaError(f"Column {name!r} is of type {column.type} and cannot be read as numbers.") from None
    return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)


def _means(values: Vector, sizes: Labels) -> pa.Array:
    """Return, for each value, the mean of those present in its cell; missing where more than half of the cell is."""
    means, any_missing = kernels.cell_means(values, sizes)
    return pa.array(means, mask=np.isnan(means)) if any_missing else as_array(means)


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


def _lower_median(cell: Vector) -> Vector:
    present = np.sort(cell[~np.isnan(cell)])
    if 2 * len(present) < len(cell):
        return np.array([np.nan])
    return present[[(len(present) - 1) // 2]]


def _ranks(column: pa.Array) -> Labels:
    """Return the position of each value among the different ones, missing last."""
    coded = column.dictionary_encode()
    order = pc.sort_indices(coded.dictionary).to_numpy()
    places = np.empty(len(order) + 1, dtype=np.int64)
    places[order] = np.arange(len(order))
    places[-1] = len(order)
    indices = pc.fill_null(coded.indices, len(order)) if coded.null_count else coded.indices
    ranks: Labels = places[indices.to_numpy(zero_copy_only=False)]
    return ranks


def indicator(values: Vector) -> Keys:
    """Return codes that separate present from missing values."""
    return np.where(np.isnan(values), MISSING, np.uint64(0))
