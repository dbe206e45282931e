"""Statistics: what one pass over the records learns; exact, and the same for every order and split of them.

Numbers give exact sums, categories give counts. The space, the strata and the distributions that models refer to follow
from these, as they would from all records in memory.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.columns.aggregates import AGGREGATES
from shoal.columns.categories import sorted_categories
from shoal.columns.distribution import Distribution, Distributions
from shoal.columns.numbers import Numbers, as_numbers
from shoal.columns.prepare import categories_in_order, decoded, listed_categories, n_with_named_values, one_missing
from shoal.columns.schema import Column, Kind, Role, Schema
from shoal.columns.sharing import Sharing, unchanged_columns
from shoal.constraints.strata import strata_columns
from shoal.engines.blocks.exact_sums import UNIT, Sums, exact_sums
from shoal.errors import SchemaError
from shoal.sources.columnar_size import value_bytes
from shoal.space.axes import Moments, NominalAxis, NumberAxis, Scaling
from shoal.space.space import Space
from shoal.spelling import setting
from shoal.typing import Labels

_COUNT = "_shoal_count"
_AT_ONCE = 16  # parts whose counts are added together


class NumberStatistics(NamedTuple):
    """The present numbers of a column: how many, the lowest and the highest, and their exact sums."""

    n_present: int
    ends: Numbers
    sums: Sums

    @staticmethod
    def of(values: pa.ChunkedArray) -> "NumberStatistics":
        """Measure the values of a batch."""
        numbers = as_numbers(values.drop_null())
        ends = np.array([numbers.min(), numbers.max()]) if len(numbers) else numbers
        return NumberStatistics(len(numbers), ends, exact_sums(numbers))

    def moments(self, n_records: int) -> Moments:
        """Return mean and variance, exactly."""
        mean, square = (
            Fraction(total, max(self.n_present, 1) << power * UNIT)
            for power, total in ((1, self.sums.total), (2, self.sums.squares))
        )
        return Moments(self.ends, mean, square - mean**2, n_records - self.n_present)


def _sum_of_numbers(parts: Sequence[NumberStatistics]) -> NumberStatistics:
    ends = np.concatenate([part.ends for part in parts])
    return NumberStatistics(
        sum(part.n_present for part in parts),
        np.array([ends.min(), ends.max()]) if len(ends) else ends,
        Sums(sum(part.sums.total for part in parts), sum(part.sums.squares for part in parts)),
    )


@dataclass(frozen=True)
class Statistics:
    """What is known about the records of a batch, or of several together.

    Attributes
    ----------
    n_records, n_bytes : int
        Number of records, and the size of their values, which does not depend on the batches.
    missing : dict of str to int
        Number of missing values of each quasi-identifier.
    numbers : dict of str to NumberStatistics
        Numeric quasi-identifiers and dates.
    counts : dict of str to pyarrow.Table
        The values of the columns that are counted, and how many records have each.
    strata : pyarrow.Table
        The strata, and how many records each has.
    listed : dict of str to pyarrow.Array
        Ordered categories, as the type of a column lists them.
    named : dict of (str, str) to int
        For each setting that names values of a column, the number of records with one.
    unchanged : dict of str to Sharing
        How many records share the values of each column that is published unchanged.
    """

    n_records: int
    n_bytes: int
    missing: dict[str, int]
    numbers: dict[str, NumberStatistics]
    counts: dict[str, pa.Table]
    strata: pa.Table
    listed: dict[str, pa.Array]
    named: dict[tuple[str, str], int]
    unchanged: dict[str, Sharing]

    @staticmethod
    def of(batch: pa.Table, records: pa.Table, schema: Schema) -> "Statistics":
        """Measure a batch.

        Parameters
        ----------
        batch : pyarrow.Table
            Records as they were read.
        records : pyarrow.Table
            The same as they travel (`shoal.engines.blocks.block_records.travelling`).
        schema : Schema
            Roles, kinds and settings of the columns, with the types of `batch`.
        """
        ordered = [column.name for column in schema.columns if _lists_an_order(column)]
        return Statistics(
            n_records=records.num_rows,
            n_bytes=sum(map(value_bytes, records.columns)),
            missing={column.name: records[column.name].null_count for column in schema.quasi},
            numbers={c.name: NumberStatistics.of(records[c.name]) for c in schema.quasi if _is_summed(c)},
            counts={c.name: _counted({c.name: one_missing(records[c.name])}) for c in schema.columns if _is_counted(c)},
            strata=_counted(_columns(strata_columns(records, schema)), records.num_rows),
            listed={name: listed_categories(batch[name]) for name in ordered},
            named=n_with_named_values(batch, records, schema),
            unchanged={column.name: Sharing.of(batch[column.name]) for column in unchanged_columns(schema)},
        )

    @staticmethod
    def merged(parts: Iterable["Statistics"]) -> "Statistics":
        """Return the statistics of several batches together; the order of `parts` does not matter."""
        parts = list(parts)
        first = parts[0]
        for part in parts[1:]:
            for name, order in first.listed.items():
                if not order.equals(part.listed[name]):
                    raise SchemaError(
                        f"The ordered categories of column {name!r} are not listed in the same way in all parts of the "
                        "input. Give their order explicitly, lowest first: "
                        f"{setting('categories', [...], column=name)}."
                    )
        return Statistics(
            n_records=sum(part.n_records for part in parts),
            n_bytes=sum(part.n_bytes for part in parts),
            missing={name: sum(part.missing[name] for part in parts) for name in first.missing},
            numbers={name: _sum_of_numbers([part.numbers[name] for part in parts]) for name in first.numbers},
            counts={name: _recounted([part.counts[name] for part in parts]) for name in first.counts},
            strata=_recounted([part.strata for part in parts]),
            listed=first.listed,
            named={place: sum(part.named[place] for part in parts) for place in first.named},
            unchanged={name: Sharing.merged(part.unchanged[name] for part in parts) for name in first.unchanged},
        )

    @property
    def bytes_of_record(self) -> int:
        """Mean size of a record, rounded up."""
        return -(-self.n_bytes // max(self.n_records, 1))

    def settled(self, schema: Schema) -> Schema:
        """Return the schema with the order of every ordinal column in its settings, for functions that see a part."""
        return replace(schema, columns=tuple(map(self._with_order, schema.columns)))

    def _with_order(self, column: Column) -> Column:
        if column.kind is not Kind.ORDINAL or column.settings.categories is not None or column.name not in self.counts:
            return column
        values = self.counts[column.name][column.name]
        order = self.listed.get(column.name, sorted_categories(values).drop_null())
        entries = tuple(e if isinstance(e, str | int | float) else str(e) for e in order.to_pylist())
        return replace(column, settings=column.settings.model_copy(update={"categories": entries}))

    def space(self, schema: Schema, scaling: Scaling) -> Space:
        """Return the space of all records; `schema` is settled."""
        return Space(tuple(self._axis(column, scaling) for column in schema.quasi))

    def _axis(self, column: Column, scaling: Scaling) -> NumberAxis | NominalAxis:
        if column.kind is Kind.NOMINAL:
            return NominalAxis.from_counts(*self.distribution(column), column, scaling)
        order = None if column.name in self.numbers else self.distribution(column).values.drop_null()
        return NumberAxis.from_moments(self.moments(column), column, order, scaling)

    def moments(self, column: Column) -> Moments:
        """Return mean and variance of the numbers, dates or ranks of a quasi-identifier, exactly."""
        if column.name in self.numbers:
            return self.numbers[column.name].moments(self.n_records)
        values, counts = self.distribution(column)
        return _moments_of_ranks(counts[np.asarray(values.is_valid())], self.missing[column.name])

    def with_grand_total(self, schema: Schema) -> list[str]:
        """Return the columns of numbers, none of them negative, the largest of which is the sum of all others."""
        found = []
        for name, numbers in self.numbers.items():
            if schema[name].kind is not Kind.NUMERIC or not numbers.n_present or numbers.ends[0] < 0:
                continue
            moments, largest = numbers.moments(self.n_records), Fraction(float(numbers.ends[1]))
            total = moments.mean * numbers.n_present
            squares = (moments.variance + moments.mean**2) * numbers.n_present
            # At least six others that are not 0 add up, as those of a sum with few squares do (Cauchy and Schwarz).
            has_many = largest**2 >= _LEAST_SUMMED * (squares - largest**2)
            if largest > 0 and has_many and abs(2 * largest - total) * 10**9 <= total:
                found.append(name)
        return found

    def distribution(self, column: Column) -> Distribution:
        """Return the values of a counted column in the order of its kind, null last, and how often each occurs."""
        return _distribution(self.counts[column.name], column)

    def distributions(self, schema: Schema) -> Distributions:
        """Return the distributions of all counted columns."""
        return {column.name: self.distribution(column) for column in schema.columns if column.name in self.counts}


_LEAST_SUMMED = 6


def _distribution(counted: pa.Table, column: Column) -> Distribution:
    values = sorted_categories(counted[column.name])
    if column.kind is Kind.ORDINAL:
        order = categories_in_order(counted[column.name], column)
        values = pa.concat_arrays([order, values.filter(values.is_null())])
    places = pc.index_in(values, value_set=counted[column.name].combine_chunks())
    occurs = np.asarray(counted[_COUNT])
    counts = np.where(np.asarray(places.is_valid()), occurs[np.asarray(places.fill_null(0))], 0)
    untyped = pa.types.is_null(column.type)  # counted as text, but looked up by values of its own type
    return Distribution(pa.nulls(len(values)) if untyped else values, counts.astype(np.int64))


class Counts:
    """The values of some columns, counted batch by batch.

    Parameters
    ----------
    names : sequence of str
        The columns.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._counted: dict[str, list[pa.Table]] = {name: [] for name in names}

    def add(self, batch: pa.Table) -> None:
        """Count the values of a batch."""
        for name, counted in self._counted.items():
            counted.append(_counted({name: one_missing(batch[name])}))
            if len(counted) > _AT_ONCE:
                counted[:] = [_recounted(counted)]

    def distributions(self, schema: Schema) -> Distributions:
        """Return the distributions of the columns."""
        return {name: _distribution(_recounted(parts), schema[name]) for name, parts in self._counted.items()}


def _lists_an_order(column: Column) -> bool:
    return column.kind is Kind.ORDINAL and column.settings.categories is None and pa.types.is_dictionary(column.type)


def _is_summed(column: Column) -> bool:
    return column.kind in (Kind.NUMERIC, Kind.DATE)


def _is_counted(column: Column) -> bool:
    by_value = column.kind in (Kind.NOMINAL, Kind.ORDINAL) or AGGREGATES[column.aggregate].counts
    return column.role is Role.CONFIDENTIAL or (column.role is Role.QUASI and by_value)


def _columns(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    return {name: table[name] for name in table.column_names}


def _counted(columns: dict[str, pa.ChunkedArray], n_records: int | None = None) -> pa.Table:
    """Count how often each combination of values occurs; without columns, all records are one."""
    if not columns:
        return pa.table({_COUNT: pa.array([n_records], pa.int64())})
    table = pa.table({name: _countable(values) for name, values in columns.items()})
    found = table.group_by(table.column_names, use_threads=False).aggregate([([], "count_all")])
    return found.rename_columns([*table.column_names, _COUNT])


def _countable(values: pa.ChunkedArray) -> pa.ChunkedArray:
    values = decoded(values)
    return values.cast(pa.string()) if pa.types.is_null(values.type) else values


def _recounted(parts: Sequence[pa.Table]) -> pa.Table:
    """Add the counts of several parts."""
    table = pa.concat_tables(parts)
    names = [name for name in table.column_names if name != _COUNT]
    if not names:
        return pa.table({_COUNT: pa.array([pc.sum(table[_COUNT]).as_py()], pa.int64())})
    found = table.group_by(names, use_threads=False).aggregate([(_COUNT, "sum")])
    return found.rename_columns([*names, _COUNT])


def _moments_of_ranks(counts: Labels, n_missing: int) -> Moments:
    ranks = np.flatnonzero(counts)
    n = max(int(counts.sum()), 1)
    mean = Fraction(sum(int(rank) * int(counts[rank]) for rank in ranks), n)
    square = Fraction(sum(int(rank) ** 2 * int(counts[rank]) for rank in ranks), n)
    return Moments(ranks[[0, -1]] if len(ranks) else ranks, mean, square - mean**2, n_missing)


@dataclass(frozen=True)
class Strata:
    """The strata of the table, numbered in the order of their values, and the number of records of each."""

    categories: tuple[pa.Array, ...]
    combinations: Labels
    """For each stratum its number in the product of all categories, ascending."""

    sizes: Labels

    @staticmethod
    def of(statistics: Statistics) -> "Strata":
        """Return the strata that occur."""
        table = statistics.strata
        names = [name for name in table.column_names if name != _COUNT]
        categories = tuple(sorted_categories(table[name]) for name in names)
        numbers = _combined(table.select(names), categories, table.num_rows)
        order = np.argsort(numbers)
        return Strata(categories, numbers[order], np.asarray(table[_COUNT])[order].astype(np.int64))

    def codes(self, records: pa.Table, schema: Schema) -> Labels:
        """Return the stratum of each record."""
        numbers = _combined(strata_columns(records, schema), self.categories, records.num_rows)
        return np.searchsorted(self.combinations, numbers)


def _combined(table: pa.Table, categories: Sequence[pa.Array], n_records: int) -> Labels:
    numbers = np.zeros(n_records, dtype=np.int64)
    for column, values in zip(table.columns, categories, strict=True):
        codes = pc.index_in(_countable(column), value_set=values)
        numbers = numbers * len(values) + np.asarray(codes.fill_null(0), dtype=np.int64)
    return numbers
