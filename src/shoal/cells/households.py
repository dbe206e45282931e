"""Households: who lives together, and which quasi-identifiers the members of every household share."""

import numpy as np
import pyarrow as pa

from shoal.cells.strata import refuse_small_strata
from shoal.columns.equivalence import distinct_in_classes, value_codes
from shoal.columns.prepare import as_seen, decoded, one_missing
from shoal.columns.schema import Schema
from shoal.errors import SchemaError
from shoal.typing import Labels


def households_of(table: pa.Table, schema: Schema) -> Labels:
    """Return the number of each record's household, or say that some have none."""
    name = schema.roles.household
    assert name is not None
    values = as_seen(one_missing(decoded(table[name])))
    if values.null_count:
        raise SchemaError(
            f"The household column {name!r} is missing or blank in {values.null_count:,} records. Give every record a "
            "household; somebody who lives alone is one."
        )
    return value_codes(values)


def refuse_split_households(households: Labels, strata: Labels, k: int) -> None:
    """Refuse households with records in several strata, and strata of fewer than `k` households."""
    first = np.unique(households, return_index=True)[1]
    if np.any(strata != strata[first][households]):
        raise SchemaError("Strata and households do not go together: some households have records in several strata.")
    refuse_small_strata(strata[first], "of households", k)


def shared_columns(table: pa.Table, schema: Schema, households: Labels) -> list[str]:
    """Name the quasi-identifiers that all members of a household share: those that were given, or all that do."""
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
