"""Cells in two stages: those of the base, made while records still arrive, and those of all records, made from them.

The constraints of `shoal.constraints.constrained_cells` apply here too: strata are never mixed, households stay whole
with their members grouped within, and every model is satisfied. They apply to the release, so the base may violate what
late records can still satisfy: small strata wait, and a model that the base alone cannot satisfy is enforced at the
end.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal import kernels
from shoal.aggregate import Cells
from shoal.columns.schema import Schema
from shoal.constraints.constraints import Constraints, Units, boundaries_of, constraints_of, coordinates
from shoal.constraints.enforce import enforce
from shoal.constraints.merging import join_until_kept
from shoal.errors import GuaranteeError, ShoalWarning
from shoal.incremental import join
from shoal.incremental.reopen import neighbours_of
from shoal.job import Job
from shoal.methods import partition
from shoal.methods.cell_building import members_of, renumbered
from shoal.methods.within_strata import Cut, within
from shoal.models.table_columns import violating
from shoal.space.space import Space
from shoal.typing import Labels, Matrix, Progress

NO_CELL = -1
"""Label of a base record whose stratum is still too small."""

ANY_SIZE = 1
"""Smallest stratum size while records are still to come."""

MANY = 0.05
"""If more than this share of the cells violates a model after joining, late records get separate cells."""

AROUND = 6
"""Number of cells, including itself, that are rebuilt to repair one cell that violates a model."""

Arrays = dict[str, NDArray[np.int64]]
"""Arrays of the base: `cells`, `groups` of households if there are any, and `neighbours`."""


class Task(NamedTuple):
    """Settings with which cells are made."""

    job: Job
    schema: Schema
    variant: str
    threads: int | None = None
    progress: Progress | None = None
    inertial: bool = False

    @property
    def cut(self) -> Cut:
        """Partitions records by the method of the job."""
        job = self.job
        return lambda X, threads, progress: partition(
            X, job.k, job.method, job.seed, threads=threads, progress=progress, **job.options
        )


def base_cells(task: Task, table: pa.Table, space: Space, X: Matrix) -> Arrays:
    """Return the cells of the base: -1 for records of strata that are still too small.

    Parameters
    ----------
    task : Task
    table : pyarrow.Table
        The prepared records.
    space, X : Space and ndarray of shape (n_records, n_dims)
        Their coordinates.
    """
    borders = boundaries_of(table, task.schema, ANY_SIZE)
    units = Units.of(borders, space, X)
    enough = np.bincount(units.strata)[units.strata] >= task.job.k
    points, strata = np.ascontiguousarray(units.X[enough]), renumbered(units.strata[enough])
    labels = within(points, strata, task.cut, None if units.rest else task.progress, task.threads)
    if borders.households is None:
        labels = _kept_if_possible(task, table.filter(pa.array(enough)), points, labels, strata)
    found = {_grouped(borders.households): _at_positions(labels, enough)[units.of_record]}
    if not strata.any():
        # Computed now, since time is short when the collection ends.
        with kernels.using(threads=task.threads):
            found["neighbours"] = neighbours_of(points, labels, task.job.k)
    if borders.households is not None:
        found["cells"] = _people(task, units, X, found["groups"], {})
    return found


def all_cells(task: Task, table: pa.Table, space: Space, X: Matrix, base: Arrays) -> Cells:
    """Return the cells of all records, those of the base first.

    Raises
    ------
    GuaranteeError
        If a stratum has too few records, households or subjects, or if a model cannot be satisfied.
    """
    bounds = constraints_of(table, task.schema, task.job.k, task.job.models)
    units = Units.of(bounds.boundaries, space, X)
    known = np.full(len(units.X), NO_CELL, dtype=np.int64)
    labels = base[_grouped(bounds.households)]
    known[units.of_record[: len(labels)]] = labels
    joined = _join_strata(task, units, known, base.get("neighbours"))[units.of_record]
    with kernels.using(threads=task.threads):
        if bounds.households is None:
            if not bounds.kept or violating(bounds.kept, joined).mean() <= MANY:
                return Cells(_repaired(X, joined, task.job.k, bounds))
            # Joining has undone the enforcement on the base. So late records get separate cells, and the models are
            # enforced over all cells.
            apart = _join_strata(task._replace(variant="two-step", inertial=False), units, known, None)
            return Cells(_kept(X, apart, task.job.k, bounds, bounds.strata))
        groups = join_until_kept(units.X[units.of_record], joined, bounds.strata, bounds.kept)
        people = _people(task, units, X, groups, base)
        if units.rest:
            people = _kept(coordinates(X, units.rest), people, task.job.k, bounds, groups)
        return Cells(people, groups, tuple(bounds.shared))


def _grouped(households: Labels | None) -> str:
    """Return the name of the array that holds the cells, or the groups of whole households."""
    return "cells" if households is None else "groups"


def _kept(X: Matrix, labels: Labels, k: int, bounds: Constraints, strata: Labels) -> Labels:
    return enforce(X, labels, k, bounds.kept, strata=strata) if bounds.kept else labels


def _repaired(X: Matrix, labels: Labels, k: int, bounds: Constraints) -> Labels:
    """Return cells that satisfy every model: violating cells are rebuilt with nearby cells, the others stay.

    The base's cells satisfied the models, and late records violate them in few cells. Where nearby cells do not suffice
    for the repair, more are included, eventually all.
    """
    failing = violating(bounds.kept, labels) if bounds.kept else np.zeros(1, dtype=bool)
    if not failing.any():
        return labels
    order = _nearest_first(X, labels, failing)
    n_pooled = AROUND * int(failing.sum())
    while n_pooled < len(order):
        pooled = np.zeros(len(order), dtype=bool)
        pooled[order[:n_pooled]] = True
        try:
            return enforce(X, labels, k, bounds.kept, strata=2 * bounds.strata + pooled[labels])
        except GuaranteeError:
            n_pooled *= 4
    return _kept(X, labels, k, bounds, bounds.strata)


def _nearest_first(X: Matrix, labels: Labels, failing: NDArray[np.bool_]) -> Labels:
    """Return all cells: the violating ones first, then the others by distance to the nearest violating cell."""
    sizes = np.bincount(labels)
    centroids = kernels.cell_sums(X, labels, len(sizes)) / sizes[:, None]
    poor = np.ascontiguousarray(centroids[failing])
    apart = np.square(centroids - poor[kernels.assign(centroids, poor)]).sum(axis=1)
    apart[failing] = -1
    return np.argsort(apart, kind="stable")


def _kept_if_possible(task: Task, table: pa.Table, X: Matrix, labels: Labels, strata: Labels) -> Labels:
    """Return cells of the base that satisfy every model, or the cells unchanged if that is impossible."""
    try:
        with kernels.using(threads=task.threads):
            bounds = constraints_of(table, task.schema, task.job.k, task.job.models)
            return _kept(X, labels, task.job.k, bounds, strata)
    except GuaranteeError as error:
        if task.job.models:
            text = f"The base alone cannot satisfy the models, so they are enforced at the end: {error}"
            warnings.warn(text, ShoalWarning, stacklevel=6)
        return labels


def _join_strata(task: Task, units: Units, known: Labels, neighbours: Labels | None) -> Labels:
    """Join late units to the cells of the base, stratum by stratum."""
    one = not units.strata.any()
    if one and (known[: np.count_nonzero(known >= 0)] >= 0).all():
        # The usual case: one stratum, and units with a cell come first. Nothing has to be copied.
        return _join_one(task, units.X, known, neighbours)
    labels = np.empty(len(known), dtype=np.int64)
    n_cells = 0
    for members in members_of(units.strata):
        # Units with a cell first; both in order of arrival.
        members = np.concatenate([members[known[members] >= 0], members[known[members] < 0]])
        found = _join_one(task, units.X[members], known[members], neighbours if one else None)
        labels[members] = n_cells + found
        n_cells += int(found.max()) + 1
    return labels


def _join_one(task: Task, X: Matrix, known: Labels, neighbours: Labels | None) -> Labels:
    base = renumbered(known[known >= 0])
    if len(base) == 0:
        return task.cut(X, task.threads or kernels.n_threads(), task.progress)
    settings: dict[str, Any] = {"threads": task.threads, "progress": task.progress}
    if task.variant == "reopen" and neighbours is not None:
        settings["neighbours"] = neighbours
    if task.inertial:
        settings["inertial"] = True
    return join(X, base, task.job.k, task.variant, task.job.seed, **settings)


def _people(task: Task, units: Units, X: Matrix, groups: Labels, base: Arrays) -> Labels:
    """Return the cells of people within groups of households; unchanged groups keep their cells."""
    if not units.rest:
        return groups
    cells = np.full(len(X), NO_CELL, dtype=np.int64)
    same = _unchanged(groups, base.get("groups", np.zeros(0, dtype=np.int64)))
    if same.any():
        cells[same] = base["cells"][same[: len(base["cells"])]]
    new = ~same & (groups >= 0)
    if new.any():
        found = within(coordinates(X, units.rest)[new], renumbered(groups[new]), task.cut, task.progress, task.threads)
        cells[new] = int(cells.max()) + 1 + found
    return renumbered(cells) if (cells >= 0).all() else cells


def _unchanged(groups: Labels, before: Labels) -> NDArray[np.bool_]:
    """Return which records are in a group that is the same set of records as a group of the base."""
    same = np.zeros(len(groups), dtype=bool)
    if not len(before):
        return same
    placed = np.flatnonzero(before >= 0)
    pairs, of_pair, counts = np.unique(
        np.stack([groups[placed], before[placed]]), axis=1, return_inverse=True, return_counts=True
    )
    whole = (counts == np.bincount(groups)[pairs[0]]) & (counts == np.bincount(before[placed])[pairs[1]])
    same[placed] = whole[of_pair.ravel()]
    return same


def _at_positions(labels: Labels, where: NDArray[np.bool_]) -> Labels:
    """Return an array with the labels where `where` is True, and -1 elsewhere."""
    found = np.full(len(where), NO_CELL, dtype=np.int64)
    found[where] = labels
    return found
