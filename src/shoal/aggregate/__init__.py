"""Aggregate: replace the values of a cell in each column by one value. One way per file.

`shoal.columns.aggregates` lists them. What is close to the values of a cell, as a mean is, is published as missing if
more than half of the cell's records miss it; otherwise it is computed from the records that have it. A true value
states that a record of the cell has none. Missing values therefore never split a cell.

Random aggregation, an option, scatters the records of a cell around its mean instead: ``docs/random.md``.
"""

from collections.abc import Callable
from importlib import import_module
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.aggregate.centred import rounded_type
from shoal.aggregate.members import Cells, Members
from shoal.aggregate.random_aggregation import RandomAggregation, check_random_aggregation, randomized_values
from shoal.columns.aggregates import AGGREGATES
from shoal.columns.categories import is_coded
from shoal.columns.distribution import Distribution, Distributions
from shoal.columns.prepare import listed_categories
from shoal.columns.schema import Column, Kind, Schema
from shoal.sources.clean import nulled
from shoal.typing import Vector

__all__ = [
    "Cells",
    "RandomAggregation",
    "aggregate",
    "check_random_aggregation",
    "published_type",
]


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
        published[column.name] = _published(table[column.name], column, cells, own, rho, noise, in_table)
    return published


def published_type(column: Column) -> pa.DataType:
    """Return the type in which a quasi-identifier is published, of values that are neither categories nor coarse."""
    decimals = column.settings.round
    if column.kind is not Kind.NUMERIC or (AGGREGATES[column.aggregate].picks and decimals is None):
        return column.type
    return rounded_type(column)


def _published(
    values: pa.ChunkedArray,
    column: Column,
    cells: Cells,
    weights: Vector | None,
    rho: float,
    noise: np.random.Generator | None,
    whole: Distribution | None,
) -> pa.Array:
    """Return one published column."""
    labels = cells.of(column)
    members = Members.of(values, labels, cells.sizes_of(column), weights, whole)
    sizes, present = members.all_sizes, values.drop_null()
    missing = members.sizes == 0 if column.is_true else 2 * members.sizes < sizes
    if len(present) == 0:
        return pa.nulls(len(values), pa.string() if column.is_true else values.type)
    if noise is not None:
        scattered = randomized_values(present, column, members, labels, rho, noise)
        return nulled(scattered, pa.array(missing[labels])) if missing.any() else scattered
    found = _publisher(column)(present, column, members)
    if missing.any():
        found = nulled(found, pa.array(missing))
    if is_coded(values) and not column.is_true:
        found = _as_it_came(found, values)
    return found.take(pa.array(labels))


Publisher = Callable[[pa.ChunkedArray, Column, Members], pa.Array]


def _publisher(column: Column) -> Publisher:
    """Return the function of a column's aggregate."""
    file, function = AGGREGATES[column.aggregate].publish.split(".")
    return cast(Publisher, getattr(import_module(f"shoal.aggregate.{file}"), function))


def _as_it_came(found: pa.Array, original: pa.ChunkedArray) -> pa.DictionaryArray:
    """Return values of a dictionary column as a dictionary array, in its order and without unused categories."""
    categories = listed_categories(original)
    used = categories.filter(pc.is_in(categories, value_set=found.drop_null()))
    codes = pc.index_in(found, value_set=used).cast(original.type.index_type)
    return pa.DictionaryArray.from_arrays(codes, used, ordered=original.type.ordered)
