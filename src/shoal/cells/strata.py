"""Strata: groups of records that no cell mixes, and the partition of each of them by itself."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.columns.equivalence import class_ids
from shoal.columns.schema import Role, Schema
from shoal.errors import GuaranteeError
from shoal.partition.cell_building import members_of
from shoal.typing import Labels, Matrix, Progress

Cut = Callable[[Matrix, Progress | None], Labels]
"""Splits records into cells: the method, k, seed and options that were asked for."""


def strata_of(table: pa.Table, schema: Schema, k: int) -> tuple[Labels, str]:
    """Return the number of each record's stratum, and what strata are made of in words.

    Raises
    ------
    GuaranteeError
        If a stratum has fewer than `k` records.
    """
    by = [column.name for column in schema.having(Role.BY)]
    zeros = [column.name for column in schema.quasi if column.settings.keep_zeros]
    apart = table.select(by)
    for name in zeros:
        is_zero = pc.equal(table[name].cast(pa.float64(), safe=False), 0.0)
        apart = apart.append_column(f"zero in {name}", pc.fill_null(is_zero, False))
    what = [f"by {', '.join(map(repr, by))}"] * bool(by) + [f"zeros in {', '.join(map(repr, zeros))}"] * bool(zeros)
    strata = class_ids(apart) if apart.num_columns else np.zeros(table.num_rows, dtype=np.int64)
    refuse_small_strata(strata, " and ".join(what), k)
    return strata, " and ".join(what)


def refuse_small_strata(strata: Labels, what: str, k: int) -> None:
    """Refuse strata of fewer than `k` records; `what` says what strata are made of."""
    sizes = np.bincount(strata)
    small = sizes[sizes < k]
    if what and len(small):
        raise GuaranteeError(
            f"{len(small):,} of {len(sizes):,} strata ({what}) have fewer than k={k} records, {small.sum():,} records "
            f"in all; the smallest has {small.min()}. Lower k, join strata, or leave a column out of the strata."
        )


def within(X: Matrix, strata: Labels, cut: Cut, progress: Progress | None = None) -> Labels:
    """Split the records of each stratum by themselves, and number all cells without gaps."""
    if not strata.any():
        return cut(X, progress)
    labels = np.empty(len(X), dtype=np.int64)
    n_cells = n_done = 0
    for members in members_of(strata):
        cells = cut(X[members], _part(progress, n_done, len(members), len(X)))
        labels[members] = cells + n_cells
        n_cells += int(cells.max()) + 1
        n_done += len(members)
    return labels


def _part(progress: Progress | None, n_before: int, n_here: int, n_records: int) -> Progress | None:
    """Report the progress of a stratum, in whatever unit its method counts, as a part of all records."""
    return progress and (lambda done, total: progress(n_before + n_here * done // max(total, 1), n_records))
