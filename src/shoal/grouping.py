"""Grouping: which records are released together, with everything around the partition that a table may ask for.

Strata are never mixed. The records of a person count once. Households are grouped first and their people within.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal import kernels
from shoal.aggregate import Cells
from shoal.classes import class_ids, distinct_in_classes, value_codes
from shoal.errors import GuaranteeError, SchemaError
from shoal.partition import partition
from shoal.schema import Role, Schema
from shoal.space import Space
from shoal.typing import Labels, Matrix, Progress, Seed

Cut = Callable[[Matrix, Progress | None], Labels]
"""Splits records into cells: the method, k, seed and options that were asked for."""


def group(
    table: pa.Table,
    schema: Schema,
    space: Space,
    k: int,
    method: str = "auto",
    seed: Seed = None,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Cells:
    """Split the records of a prepared table into cells of at least `k`, or of `k` subjects, within strata.

    Parameters
    ----------
    table : pyarrow.Table
        As `shoal.prepare.prepare` returns it.
    schema : Schema
        Says which columns are never mixed (`by`, zeros kept apart), which one names the subject, which the household.
    space : Space
        Where the records lie.
    k, method, seed, threads, progress, **options
        As in `shoal.partition.partition`.

    Raises
    ------
    GuaranteeError
        If a stratum has fewer than k records, households or subjects.
    """

    def cut(X: Matrix, progress: Progress | None) -> Labels:
        return partition(X, k, method, seed, threads=threads, progress=progress, **options)

    X = space.encode(table)
    strata, _ = strata_of(table, schema, k)
    if schema.roles.household is not None:
        return _within_households(table, schema, space, X, strata, cut, k, progress)
    labels = within(X, strata, cut, progress)
    if schema.roles.subject is not None:
        labels = with_enough_subjects(X, labels, strata, value_codes(table[schema.roles.subject]), k)
    return Cells(labels)


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
        apart = apart.append_column(f"zero in {name}", pc.equal(table[name], 0))
    what = [f"by {', '.join(map(repr, by))}"] * bool(by) + [f"zeros in {', '.join(map(repr, zeros))}"] * bool(zeros)
    strata = class_ids(apart) if apart.num_columns else np.zeros(table.num_rows, dtype=np.int64)
    _refuse_small_strata(strata, " and ".join(what), k)
    return strata, " and ".join(what)


def _refuse_small_strata(strata: Labels, what: str, k: int) -> None:
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


def members_of(labels: Labels) -> list[Labels]:
    """Return the records of each cell or stratum, in their order."""
    return np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1])


def _part(progress: Progress | None, n_before: int, n_here: int, n_records: int) -> Progress | None:
    """Report the progress of a stratum, in whatever unit its method counts, as a part of all records."""
    return progress and (lambda done, total: progress(n_before + n_here * done // max(total, 1), n_records))


def with_enough_subjects(X: Matrix, labels: Labels, strata: Labels, subjects: Labels, k: int) -> Labels:
    """Merge cells with fewer than `k` different subjects into the nearest of their stratum, until all have enough.

    Raises
    ------
    GuaranteeError
        If a whole stratum has fewer than `k` subjects.
    """
    in_strata = distinct_in_classes(strata, subjects)
    if in_strata.min() < k:
        raise GuaranteeError(
            f"Cells of k={k} different subjects were asked for, but there are only {in_strata.min()} subjects"
            + (" in a stratum" if len(in_strata) > 1 else "")
            + ". Lower k, or leave the subject out if every record is a person of its own."
        )
    while True:
        poor = np.flatnonzero(distinct_in_classes(labels, subjects) < k)
        if not len(poor):
            return labels
        labels = _merged(X, labels, strata, poor)


def _merged(X: Matrix, labels: Labels, strata: Labels, poor: Labels) -> Labels:
    """Join each of some cells to the one whose mean is nearest, in its stratum."""
    sizes = np.bincount(labels)
    means = kernels.cell_sums(X, labels, len(sizes)) / sizes[:, None]
    stratum = np.empty(len(sizes), dtype=np.int64)
    stratum[labels] = strata
    target = np.arange(len(sizes))
    for cell in poor:
        if target[cell] != cell or (target == cell).sum() > 1:
            continue  # it has just been joined by another
        candidates = np.flatnonzero((stratum == stratum[cell]) & (np.arange(len(sizes)) != cell))
        nearest = candidates[kernels.distances(means[candidates], means[cell]).argmin()]
        target[target == cell] = target[nearest]
    return np.unique(target[labels], return_inverse=True)[1].astype(np.int64)


def _within_households(
    table: pa.Table,
    schema: Schema,
    space: Space,
    X: Matrix,
    strata: Labels,
    cut: Cut,
    k: int,
    progress: Progress | None,
) -> Cells:
    """Group whole households by what all their members share, then the people of each group by the rest."""
    name = schema.roles.household
    assert name is not None
    if table[name].null_count:
        raise SchemaError(
            f"The household column {name!r} is missing in {table[name].null_count:,} records. Give every record a "
            "household; somebody who lives alone is one."
        )
    households = value_codes(table[name]) - 1
    shared = _shared_columns(table, schema, households)
    dims = {axis.column.name: dims for axis, dims in zip(space.axes, space.dims(), strict=True)}
    first = np.unique(households, return_index=True)[1]
    of_households = np.hstack([X[first, dims[column]] for column in shared])
    if np.any(strata != strata[first][households]):
        raise SchemaError("Strata and households do not go together: some households have records in several strata.")
    _refuse_small_strata(strata[first], "of households", k)
    cells = within(np.ascontiguousarray(of_households), strata[first], cut)[households]
    rest = [dims[column.name] for column in schema.quasi if column.name not in shared]
    if not rest:
        return Cells(cells, cells, tuple(shared))
    of_people = np.ascontiguousarray(np.hstack([X[:, part] for part in rest]))
    return Cells(within(of_people, cells, cut, progress), cells, tuple(shared))


def _shared_columns(table: pa.Table, schema: Schema, households: Labels) -> list[str]:
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
