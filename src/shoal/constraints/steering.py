"""Steering columns: by their weights, they pull records with equal values into the same cell, or push them apart.

Steered microaggregation (Domingo-Ferrer, Soria-Comas 2017, definition 3) for tables: the points of the records get one
artificial attribute for each steering column, and every method runs on the result. A positive weight keeps equal values
together. A negative one spreads them: records with the same value get different numbers, and near records of different
values the same number (steps 3 to 6 of the paper's algorithm 1). Steering guarantees nothing. Loss is measured without
the attributes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from shoal import kernels
from shoal.columns.equivalence import value_codes
from shoal.columns.prepare import Missing, prepare, refuse_missing
from shoal.columns.schema import Role, Roles, Schema
from shoal.errors import ParameterError, SchemaError
from shoal.methods.cell_building import members_of
from shoal.methods.steer import steer
from shoal.models import Model
from shoal.space.space import Space
from shoal.typing import Labels, Matrix, Vector


def check_steering(steering: Mapping[str, float], schema: Schema, models: Sequence[Model] = ()) -> None:
    """Refuse steering columns that are not in the table, and steering together with households or weighted models."""
    names = [column.name for column in schema.columns]
    for name in steering:
        if name not in names:
            raise SchemaError(f"Steering column {name!r} is not in the table. Columns: {', '.join(names)}.")
    if steering and schema.roles.household is not None:
        raise ParameterError("Steering cannot be combined with households, which are grouped first. Leave one out.")
    if steering and not all(model.promised for model in models):
        raise ParameterError(
            "A model with a weight cannot be combined with steering columns, since both steer the partition. Leave out "
            "the weight, so that the model is enforced, or the steering columns."
        )


def check_values(table: pa.Table, schema: Schema, steering: Mapping[str, float], missing: Missing) -> None:
    """Refuse values of steering columns that have no place in the space, as for quasi-identifiers."""
    for name in steering:
        alone = _alone(schema, name, 1.0)
        n_missing = prepare(table.select([name]), alone, "own-value")[name].null_count
        if missing == "error":
            refuse_missing({name: n_missing}, table.num_rows, alone, "steering columns")


def with_steering(X: Matrix, table: pa.Table, schema: Schema, steering: Mapping[str, float]) -> Matrix:
    """Append the attributes of the steering columns to the points of the records.

    Parameters
    ----------
    X : ndarray of shape (n_records, n_dims)
        Points of the records.
    table : pyarrow.Table
        Holds the steering columns.
    schema : Schema
        Kinds and settings of the columns.
    steering : mapping of str to float
        The weight of each column: the distance between its lowest and highest value, or between two categories, in the
        units of `X`; negative to spread equal values.

    Returns
    -------
    steered : ndarray of shape (n_records, more dims)
        `X` itself if nothing steers.
    """
    parts = [X]
    for name, weight in steering.items():
        if weight > 0:
            alone = _alone(schema, name, weight)
            values = prepare(table.select([name]), alone, "own-value")
            parts.append(Space.fit(values, alone, "minmax").encode(values))
        elif weight < 0:
            buckets = sorted(members_of(value_codes(table[name])), key=len, reverse=True)
            parts.append(steer(X, chain_numbers(X, buckets), -weight)[:, X.shape[1] :])
    return X if len(parts) == 1 else np.ascontiguousarray(np.hstack(parts))


def chain_numbers(X: Matrix, buckets: Iterable[Labels]) -> Vector:
    """Return a number for each record, from 1: near records of different buckets share one, those of a bucket do not.

    The records of the first bucket are numbered in order. Each record of a later bucket, in record order, takes the
    number of the nearest record of the previous bucket whose number is still free; no bucket is larger than the
    previous one. Takes one tree search for each record.
    """
    number = np.zeros(len(X))
    before: Labels | None = None
    for bucket in buckets:
        if before is None:
            number[bucket] = np.arange(1, len(bucket) + 1)
        else:
            free = kernels.Remaining(np.ascontiguousarray(X[before]))
            for record in bucket:
                taken = free.nearest(X[record], 1)[0]
                free.remove(taken)
                number[record] = number[before[taken[0]]]
        before = bucket
    return number


def _alone(schema: Schema, name: str, weight: float) -> Schema:
    """Return a schema with the column as its only quasi-identifier, with this weight."""
    column = schema[name]
    settings = column.settings.model_copy(update={"weight": weight})
    return Schema((replace(column, role=Role.QUASI, settings=settings),), Roles(quasi_identifiers=(name,)))
