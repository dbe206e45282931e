"""Grouping: the partition of a table under strata, subjects, households and models.

Strata are never mixed. The records of a person count once. Models of confidential columns are enforced. Households are
grouped first, then the people within each group of households.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from shoal import kernels
from shoal.aggregate import Cells
from shoal.columns.distribution import Distributions
from shoal.columns.schema import Schema
from shoal.constraints.bucket_steering import steered
from shoal.constraints.constraints import Constraints, Units, constraints_of, coordinates
from shoal.constraints.enforce import enforce
from shoal.constraints.merging import join_until_kept
from shoal.constraints.ncp_cells import certain_cells
from shoal.constraints.steering import with_steering
from shoal.methods import partition
from shoal.methods.within_strata import Cut, within
from shoal.models import Model, ModelOnColumn, TCloseness
from shoal.progress import OneTotal
from shoal.space.space import Space
from shoal.typing import Labels, Matrix, Progress, Seed

CUTTING = 0.2
"""Share of the progress that the partition takes where models are enforced after it."""


def group(
    table: pa.Table,
    schema: Schema,
    space: Space,
    X: Matrix,
    k: int,
    method: str = "auto",
    seed: Seed = None,
    *,
    models: Sequence[Model] = (),
    steering: Mapping[str, float] | None = None,
    whole: Distributions | None = None,
    objective: str = "sse",
    threads: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Cells:
    """Split the records of a prepared table into cells of at least `k`, or of `k` subjects, that satisfy every model.

    Parameters
    ----------
    table : pyarrow.Table
        As `shoal.columns.prepare.prepare` returns it; with the columns of the models.
    schema : Schema
        Defines the strata (`by`, zeros kept apart), the subject column and the household column.
    space : Space
        The space in which distances are measured.
    X : ndarray of shape (n_records, n_dims)
        The records in the space, as encoded by `space.encode`.
    models : sequence of Model
        Models of confidential columns. They refer to the whole table, even with strata.
    steering : mapping of str to float, optional
        Weights of the columns that steer the partition; see `shoal.constraints.steering`.
    whole : mapping of str to Distribution, optional
        The columns of the models in the whole table, if `table` is a part of it.
    objective : {"sse", "ncp"}
        What cells are made for; `shoal.constraints.ncp_cells.check_objective` has accepted it.
    k, method, seed, threads, progress, **options
        As in `shoal.partition`.

    Raises
    ------
    GuaranteeError
        If a stratum has fewer than k records, households or subjects, or differs too much from the table for a model.
    SchemaError, ParameterError
        If models, strata and households contradict each other. The columns of the models have already been checked
        (`shoal.models.table_columns.check_models`).
    """
    constraints = constraints_of(table, schema, k, models, whole)
    if objective == "ncp":
        with kernels.using(threads=threads):
            return Cells(certain_cells(table, schema, k, constraints, seed, progress=progress, **options))

    def cut(X: Matrix, threads: int, progress: Progress | None) -> Labels:
        return partition(X, k, method, seed, threads=threads, progress=progress, **options)

    X = with_steering(X, table, schema, steering or {})
    total = OneTotal(progress, len(X))
    cutting = total.part(0.0, CUTTING if constraints.kept else 1.0)
    with kernels.using(threads=threads):
        if constraints.households is not None:
            cells = _within_households(constraints, space, X, cut, k, cutting, total)
        else:
            if constraints.steering:
                labels = _steered(constraints, X, k, cutting, method=method, seed=seed, **options)
            else:
                labels = within(X, constraints.strata, cut, cutting)
            cells = Cells(_kept(X, labels, k, constraints.kept, constraints.strata, total))
    total.finish()
    return cells


def _steered(constraints: Constraints, X: Matrix, k: int, progress: Progress | None, **settings: Any) -> Labels:
    """Split the records of each stratum as `within` does, steered by the model that has a weight."""
    model = constraints.steering[0].model
    assert isinstance(model, TCloseness)
    t, weight = model.t, model.weight or 0.0

    def cut(X: Matrix, threads: int, progress: Progress | None, codes: Labels) -> Labels:
        return steered(X, codes, k, t, weight, threads=threads, progress=progress, **settings)

    return within(X, constraints.strata, cut, progress, others=[constraints.steering[0].codes])


def _kept(X: Matrix, labels: Labels, k: int, kept: Sequence[ModelOnColumn], strata: Labels, total: OneTotal) -> Labels:
    """Return cells that satisfy every model: those given, if they do."""
    if not kept:
        return labels
    with kernels.using(progress=total.part(CUTTING, 1.0)):
        return enforce(X, labels, k, kept, strata=strata)


def _within_households(
    constraints: Constraints, space: Space, X: Matrix, cut: Cut, k: int, cutting: Progress | None, total: OneTotal
) -> Cells:
    """Group whole households by the columns their members share, then the people of each group by the others."""
    units = Units.of(constraints.boundaries, space, X)
    groups = within(units.X, units.strata, cut)[units.of_record]
    groups = join_until_kept(units.X[units.of_record], groups, constraints.strata, constraints.kept)
    if not units.rest:
        return Cells(groups, groups, tuple(constraints.shared))
    of_people = coordinates(X, units.rest)
    labels = _kept(of_people, within(of_people, groups, cut, cutting), k, constraints.kept, groups, total)
    return Cells(labels, groups, tuple(constraints.shared))
