"""Grouping: which records are released together, with everything around the partition that a table may ask for.

Strata are never mixed. The records of a person count once. Models about confidential columns are kept. Households are
grouped first and their people within.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal import kernels
from shoal.cells.aggregate import Cells
from shoal.cells.bucket_steering import steered
from shoal.cells.enforce import enforce
from shoal.cells.merging import join_until_kept
from shoal.cells.subjects import k_subjects
from shoal.columns.equivalence import class_ids, distinct_in_classes, identity_codes, value_codes
from shoal.columns.prepare import decoded, one_missing
from shoal.columns.schema import Role, Schema
from shoal.columns.space import Space
from shoal.errors import GuaranteeError, ParameterError, SchemaError
from shoal.models import Guarded, Model, TCloseness
from shoal.models.table_columns import check_models, guarded_by, refuse_impossible
from shoal.partition import partition
from shoal.partition.cell_building import members_of
from shoal.typing import Labels, Matrix, Progress, Seed

ALONE = 1000
"""Fewer records are left to one thread."""

Cut = Callable[[Matrix, Progress | None], Labels]
"""Splits records into cells: the method, k, seed and options that were asked for."""


class Bounds(NamedTuple):
    """What cells have to keep, found possible: nothing is left that could be refused before they are made."""

    strata: Labels
    """The stratum of each record, from 0."""

    households: Labels | None
    """The household of each record, from 0."""

    shared: list[str]
    """The quasi-identifiers that stay equal within a household."""

    kept: list[Guarded]
    """What is kept to the letter: k subjects, and every model that promises something."""

    steering: list[Guarded]
    """At most one model that only leads the way."""


def group(
    table: pa.Table,
    schema: Schema,
    space: Space,
    k: int,
    method: str = "auto",
    seed: Seed = None,
    *,
    models: Sequence[Model] = (),
    threads: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Cells:
    """Split the records of a prepared table into cells of at least `k`, or of `k` subjects, that keep every model.

    Parameters
    ----------
    table : pyarrow.Table
        As `shoal.columns.prepare.prepare` returns it; with the columns of the models.
    schema : Schema
        Says which columns are never mixed (`by`, zeros kept apart), which one names the subject, which the household.
    space : Space
        Where the records lie.
    models : sequence of Model
        What to keep about confidential columns. They speak of the whole table, strata or not.
    k, method, seed, threads, progress, **options
        As in `shoal.partition.partition`.

    Raises
    ------
    GuaranteeError
        If a stratum has fewer than k records, households or subjects, or is too unlike the table for a model.
    SchemaError, ParameterError
        If a model is not about a confidential column, or models, strata and households do not go together.
    """
    bounds = bounds_of(table, schema, k, models)

    def cut(X: Matrix, progress: Progress | None) -> Labels:
        return partition(X, k, method, seed, threads=_n_threads(threads, len(X)), progress=progress, **options)

    X = space.encode(table)
    with kernels.using(threads=threads):
        if bounds.households is not None:
            return _within_households(bounds, schema, space, X, cut, k, progress)
        if bounds.steering:
            labels = _steered(bounds, X, k, progress, method=method, seed=seed, threads=threads, **options)
        else:
            labels = within(X, bounds.strata, cut, progress)
        return Cells(_kept(X, labels, k, bounds.kept, bounds.strata))


def _steered(bounds: Bounds, X: Matrix, k: int, progress: Progress | None, **settings: Any) -> Labels:
    """Split the records of each stratum as `within` does, led by the one model that has a weight."""
    model = bounds.steering[0].model
    assert isinstance(model, TCloseness)
    t, weight = model.t, model.weight or 0.0

    def cut(Z: Matrix, told: Progress | None) -> Labels:
        # The last column is what the model is about.
        return steered(
            np.ascontiguousarray(Z[:, :-1]), Z[:, -1].astype(np.int64), k, t, weight, progress=told, **settings
        )

    return within(np.column_stack([X, bounds.steering[0].codes]), bounds.strata, cut, progress)


def _kept(X: Matrix, labels: Labels, k: int, kept: Sequence[Guarded], strata: Labels) -> Labels:
    """Return cells that keep every model: those given, as long as they do."""
    return enforce(X, labels, k, kept, strata=strata) if kept else labels


def _n_threads(threads: int | None, n_records: int) -> int | None:
    # A few records are done before a second thread is awake, and there may be thousands of strata.
    return 1 if threads is None and n_records < ALONE else threads


def bounds_of(table: pa.Table, schema: Schema, k: int, models: Sequence[Model] = ()) -> Bounds:
    """Gather what cells have to keep, and refuse what no cells can; as `group` does before it begins."""
    check_models(models, schema)
    strata, households, shared = borders_of(table, schema, k)
    guarded = guarded_by(models, schema, table)
    steering = [each for each in guarded if not each.model.promised]
    _refuse_steering(steering, households is not None)
    kept = [each for each in guarded if each.model.promised]
    if schema.roles.subject is not None:
        subjects = identity_codes(table[schema.roles.subject])
        kept = [k_subjects(subjects, strata, k, schema.roles.subject), *kept]
    refuse_impossible(kept, strata)
    return Bounds(strata, households, shared, kept, steering)


class Borders(NamedTuple):
    """What no cell crosses: the first three of `Bounds`."""

    strata: Labels
    households: Labels | None
    shared: list[str]


def borders_of(table: pa.Table, schema: Schema, k: int) -> Borders:
    """Find strata and households, and refuse those that are smaller than `k` or that do not go together."""
    strata, _ = strata_of(table, schema, k)
    if schema.roles.household is None:
        return Borders(strata, None, [])
    households = _households(table, schema)
    shared = _shared_columns(table, schema, households)
    _refuse_split_households(households, strata, k)
    return Borders(strata, households, shared)


def _refuse_steering(steering: list[Guarded], in_households: bool) -> None:
    """Refuse weights that contradict each other, or that have nothing to lead."""
    if len(steering) > 1:
        raise ParameterError(
            f"{len(steering)} models have a weight, but only one can steer: two would contradict each other. Leave the "
            "weight of the others out; they are then enforced."
        )
    if steering and in_households:
        raise ParameterError(
            f"{steering[0].model.name} of column {steering[0].model.column!r} has a weight, which leads records one by "
            "one, but households are grouped whole. Leave the weight out: then the model is enforced."
        )


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
    bounds: Bounds, schema: Schema, space: Space, X: Matrix, cut: Cut, k: int, progress: Progress | None
) -> Cells:
    """Group whole households by what all their members share, then the people of each group by the rest."""
    assert bounds.households is not None
    dims = {axis.column.name: dims for axis, dims in zip(space.axes, space.dims(), strict=True)}
    first = np.unique(bounds.households, return_index=True)[1]
    of_households = coordinates(X, [dims[name] for name in bounds.shared])
    cells = within(of_households[first], bounds.strata[first], cut)[bounds.households]
    cells = join_until_kept(of_households, cells, bounds.strata, bounds.kept)
    rest = [dims[column.name] for column in schema.quasi if column.name not in bounds.shared]
    if not rest:
        return Cells(cells, cells, tuple(bounds.shared))
    of_people = coordinates(X, rest)
    labels = _kept(of_people, within(of_people, cells, cut, progress), k, bounds.kept, cells)
    return Cells(labels, cells, tuple(bounds.shared))


def coordinates(X: Matrix, parts: list[slice]) -> Matrix:
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


def _refuse_split_households(households: Labels, strata: Labels, k: int) -> None:
    first = np.unique(households, return_index=True)[1]
    if np.any(strata != strata[first][households]):
        raise SchemaError("Strata and households do not go together: some households have records in several strata.")
    _refuse_small_strata(strata[first], "of households", k)


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
