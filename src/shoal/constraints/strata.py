"""Strata: groups of records that are never mixed in a cell."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.columns.equivalence import class_ids
from shoal.columns.schema import Role, Schema
from shoal.errors import GuaranteeError
from shoal.typing import Labels


def strata_of(table: pa.Table, schema: Schema, k: int) -> tuple[Labels, str]:
    """Return the number of each record's stratum, and a description of the strata.

    Raises
    ------
    GuaranteeError
        If a stratum has fewer than `k` records.
    """
    apart, what = strata_columns(table, schema), strata_in_words(schema)
    strata = class_ids(apart) if apart.num_columns else np.zeros(table.num_rows, dtype=np.int64)
    refuse_small_strata(np.bincount(strata), what, k)
    return strata, what


def strata_columns(table: pa.Table, schema: Schema) -> pa.Table:
    """Return the columns whose values no cell mixes: those of `by`, and whether a number is a zero that is kept."""
    apart = table.select([column.name for column in schema.having(Role.BY)])
    for name in _zeros(schema):
        is_zero = pc.equal(table[name].cast(pa.float64(), safe=False), 0.0)
        apart = apart.append_column(f"zero in {name}", pc.fill_null(is_zero, False))
    return apart


def strata_in_words(schema: Schema) -> str:
    """Return a description of the strata, empty if there is only one."""
    by, zeros = [column.name for column in schema.having(Role.BY)], _zeros(schema)
    what = [f"by {', '.join(map(repr, by))}"] * bool(by) + [f"zeros in {', '.join(map(repr, zeros))}"] * bool(zeros)
    return " and ".join(what)


def _zeros(schema: Schema) -> list[str]:
    return [column.name for column in schema.quasi if column.settings.keep_zeros]


def refuse_small_strata(sizes: Labels, what: str, k: int) -> None:
    """Refuse strata of fewer than `k` records; `what` describes the strata."""
    small = sizes[sizes < k]
    if what and len(small):
        raise GuaranteeError(
            f"{len(small):,} of {len(sizes):,} strata ({what}) have fewer than k={k} records, {small.sum():,} records "
            f"in all; the smallest has {small.min()}. Lower k, merge strata, or leave a column out of the strata."
        )
