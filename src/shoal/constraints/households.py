"""Households: the household of each record, and the quasi-identifiers that are equal within every household."""

import numpy as np
import pyarrow as pa

from shoal.columns.equivalence import distinct_in_classes, value_codes
from shoal.columns.prepare import as_seen, decoded, one_missing
from shoal.columns.schema import Schema
from shoal.constraints.strata import refuse_small_strata
from shoal.errors import SchemaError
from shoal.typing import Labels


def households_of(table: pa.Table, schema: Schema) -> Labels:
    """Return the number of each record's household, or raise SchemaError if some are missing."""
    name = schema.roles.household
    assert name is not None
    values = as_seen(one_missing(decoded(table[name])))
    if values.null_count:
        raise SchemaError(
            f"The household column {name!r} is missing or blank in {values.null_count:,} records. Give every record a "
            "household; a person who lives alone is a household of one."
        )
    return value_codes(values)


def refuse_split_households(households: Labels, strata: Labels, k: int) -> None:
    """Refuse households with records in several strata, and strata of fewer than `k` households."""
    first = np.unique(households, return_index=True)[1]
    if np.any(strata != strata[first][households]):
        raise SchemaError("Some households have records in several strata. Leave out the household or the strata.")
    refuse_small_strata(np.bincount(strata[first]), "of households", k)


def shared_columns(table: pa.Table, schema: Schema, households: Labels) -> list[str]:
    """Return the quasi-identifiers that are equal within every household: those given, or all of them."""
    given = schema.roles.household_level
    names = [column.name for column in schema.quasi] if given is None else list(given)
    varying = {name: int((distinct_in_classes(households, value_codes(table[name])) > 1).sum()) for name in names}
    if given is not None and any(varying.values()):
        listed = ", ".join(f"{name!r} (in {count:,})" for name, count in varying.items() if count)
        raise SchemaError(f"Columns given as household-level vary within households: {listed}.")
    shared = [name for name, count in varying.items() if not count]
    if not shared:
        raise SchemaError(
            "A household column is given, but no quasi-identifier is the same for all members of every household. "
            "Leave the household out, or correct the columns that should agree."
        )
    return shared
