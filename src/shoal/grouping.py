"""Grouping: which records are released together, with everything around the partition that a table may ask for.

Strata are never mixed. The records of a person count once. Households are grouped first and their people within.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.aggregate import Cells
from shoal.classes import class_ids, distinct_in_classes, identity_codes, value_codes
from shoal.errors import GuaranteeError, SchemaError
from shoal.partition import partition
from shoal.prepare import decoded, one_missing
from shoal.schema import Role, Schema
from shoal.space import Space
from shoal.subjects import join_until_enough, members_of, with_enough_subjects
from shoal.typing import Labels, Matrix, Progress, Seed

ALONE = 1000
"""Fewer records are left to one thread."""

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
        # A few records are done before a second thread is awake, and there may be thousands of strata.
        n_threads = 1 if threads is None and len(X) < ALONE else threads
        return partition(X, k, method, seed, threads=n_threads, progress=progress, **options)

    X = space.encode(table)
    strata, _ = strata_of(table, schema, k)
    subjects = None if schema.roles.subject is None else identity_codes(table[schema.roles.subject])
    if schema.roles.household is not None:
        return _within_households(table, schema, space, X, strata, cut, k, subjects, progress)
    labels = within(X, strata, cut, progress)
    return Cells(labels if subjects is None else with_enough_subjects(X, labels, strata, subjects, k))


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


def _part(progress: Progress | None, n_before: int, n_here: int, n_records: int) -> Progress | None:
    """Report the progress of a stratum, in whatever unit its method counts, as a part of all records."""
    return progress and (lambda done, total: progress(n_before + n_here * done // max(total, 1), n_records))


def _within_households(
    table: pa.Table,
    schema: Schema,
    space: Space,
    X: Matrix,
    strata: Labels,
    cut: Cut,
    k: int,
    subjects: Labels | None,
    progress: Progress | None,
) -> Cells:
    """Group whole households by what all their members share, then the people of each group by the rest."""
    households = _households(table, schema)
    shared = _shared_columns(table, schema, households)
    dims = {axis.column.name: dims for axis, dims in zip(space.axes, space.dims(), strict=True)}
    first = np.unique(households, return_index=True)[1]
    if np.any(strata != strata[first][households]):
        raise SchemaError("Strata and households do not go together: some households have records in several strata.")
    _refuse_small_strata(strata[first], "of households", k)
    of_households = _columns(X, [dims[name] for name in shared])
    cells = within(of_households[first], strata[first], cut)[households]
    if subjects is not None:
        cells = join_until_enough(of_households, cells, strata, subjects, k)
    rest = [dims[column.name] for column in schema.quasi if column.name not in shared]
    if not rest:
        return Cells(cells, cells, tuple(shared))
    of_people = _columns(X, rest)
    labels = within(of_people, cells, cut, progress)
    if subjects is not None:
        labels = with_enough_subjects(of_people, labels, cells, subjects, k)
    return Cells(labels, cells, tuple(shared))


def _columns(X: Matrix, parts: list[slice]) -> Matrix:
    """Return some of the coordinates of all records."""
    return np.ascontiguousarray(np.hstack([X[:, part] for part in parts]))


def _households(table: pa.Table, schema: Schema) -> Labels:
    """Return the number of each record's household, or say that some have none."""
    name = schema.roles.household
    assert name is not None
    values = one_missing(decoded(table[name]))
    if values.null_count:
        raise SchemaError(
            f"The household column {name!r} is missing in {values.null_count:,} records. Give every record a "
            "household; somebody who lives alone is one."
        )
    return value_codes(values)


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
