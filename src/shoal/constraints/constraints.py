"""Constraints: what the cells of a table must satisfy, collected and checked before any cell is made."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from shoal.columns.distribution import Distributions
from shoal.columns.equivalence import identity_codes
from shoal.columns.schema import Schema
from shoal.constraints.bucket_steering import refuse_second_weight
from shoal.constraints.households import households_of, refuse_split_households, shared_columns
from shoal.constraints.strata import strata_of
from shoal.constraints.subjects import k_subjects
from shoal.errors import ParameterError
from shoal.models import Model, ModelOnColumn
from shoal.models.model_on_column import counting_persons
from shoal.models.table_columns import models_on_columns, refuse_impossible
from shoal.space.space import Space
from shoal.typing import Labels, Matrix


class Constraints(NamedTuple):
    """What cells must satisfy; all checks that are possible before cells are made have passed."""

    strata: Labels
    """The stratum of each record, from 0."""

    households: Labels | None
    """The household of each record, from 0."""

    shared: list[str]
    """The quasi-identifiers that stay equal within a household."""

    kept: list[ModelOnColumn]
    """The models that are enforced: k subjects, and every model that is guaranteed, for records and for persons."""

    steering: list[ModelOnColumn]
    """At most one model that only steers the partition."""

    @property
    def boundaries(self) -> "Boundaries":
        """What no cell crosses."""
        return Boundaries(self.strata, self.households, self.shared)


def constraints_of(
    table: pa.Table, schema: Schema, k: int, models: Sequence[Model] = (), whole: Distributions | None = None
) -> Constraints:
    """Collect the constraints, and refuse those that no partition can satisfy; the first step of `group`.

    `whole` are the confidential columns of the whole table, if `table` is a part of it.
    """
    strata, households, shared = boundaries_of(table, schema, k)
    guarded = models_on_columns(models, schema, table, whole)
    steering = [each for each in guarded if not each.model.promised]
    _refuse_steering(steering, households is not None)
    kept = [each for each in guarded if each.model.promised]
    if schema.roles.subject is not None:
        subjects = identity_codes(table[schema.roles.subject])
        kept = [k_subjects(subjects, strata, k, schema.roles.subject), *kept, *counting_persons(kept, subjects)]
    refuse_impossible(kept, strata)
    return Constraints(strata, households, shared, kept, steering)


class Boundaries(NamedTuple):
    """Strata and households, which no cell crosses: the first three fields of `Constraints`."""

    strata: Labels
    households: Labels | None
    shared: list[str]


class Units(NamedTuple):
    """What is grouped first: records, or whole households by the columns that all their members share."""

    X: Matrix
    strata: Labels
    of_record: Labels
    """The unit of each record."""

    rest: list[slice]
    """Coordinates in which members of a household differ."""

    @staticmethod
    def of(borders: Boundaries, space: Space, X: Matrix) -> "Units":
        """Return the units of records with these coordinates."""
        if borders.households is None:
            return Units(X, borders.strata, np.arange(len(X)), [])
        first = np.unique(borders.households, return_index=True)[1]
        dims = {axis.column.name: part for axis, part in zip(space.axes, space.dims(), strict=True)}
        shared = coordinates(X, [dims[name] for name in borders.shared])[first]
        rest = [part for name, part in dims.items() if name not in borders.shared]
        return Units(shared, borders.strata[first], borders.households, rest)


def coordinates(X: Matrix, parts: list[slice]) -> Matrix:
    """Return some of the coordinates of all records."""
    return np.ascontiguousarray(np.hstack([X[:, part] for part in parts]))


def boundaries_of(table: pa.Table, schema: Schema, k: int) -> Boundaries:
    """Find strata and households, and refuse those smaller than `k` and households split by strata."""
    strata, _ = strata_of(table, schema, k)
    if schema.roles.household is None:
        return Boundaries(strata, None, [])
    households = households_of(table, schema)
    shared = shared_columns(table, schema, households)
    refuse_split_households(households, strata, k)
    return Boundaries(strata, households, shared)


def _refuse_steering(steering: list[ModelOnColumn], in_households: bool) -> None:
    """Refuse more than one weight, and a weight together with households."""
    refuse_second_weight(steering)
    if steering and in_households:
        raise ParameterError(
            f"{steering[0].model.name} of column {steering[0].model.column!r} has a weight, which steers single "
            "records, but households are grouped whole. Leave out the weight; the model is then enforced."
        )
