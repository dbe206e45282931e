"""Linked cells: persons with similar whole histories, so that at least k have identical ones as published.

Persons of one pattern are points in the space of all their records, one after the other; any method groups them. The
records at the same place in the histories of a cell of persons are a cell of records. Records without the link are
grouped one by one, apart from the others, and a cell of them has records of k persons.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from shoal import kernels
from shoal.aggregate import Cells
from shoal.columns.equivalence import identity_codes
from shoal.columns.schema import Schema
from shoal.constraints.enforce import enforce
from shoal.constraints.linked_histories import UNLINKED, Histories
from shoal.constraints.merging import Excess, joined_until
from shoal.constraints.strata import strata_of
from shoal.constraints.subjects import k_subjects
from shoal.errors import GuaranteeError
from shoal.methods import partition
from shoal.methods.cell_building import renumbered
from shoal.methods.within_strata import Cut, within
from shoal.models import Model, ModelOnColumn
from shoal.models.model_on_column import counting_persons, excess_of, vetoes_of
from shoal.models.table_columns import models_on_columns, refuse_impossible, violating
from shoal.progress import OneTotal
from shoal.typing import Labels, Matrix, Progress, Seed, Vector


class Guards(NamedTuple):
    """What cells of persons must satisfy: every model, at each place of the histories and for whole persons."""

    records: list[ModelOnColumn]
    """The models, for the records at one place of the histories of a cell."""

    persons: list[ModelOnColumn]
    """Those that count frequencies, for the persons of a cell, each once for each value."""

    @staticmethod
    def of(models: Sequence[Model], schema: Schema, table: pa.Table) -> "Guards":
        """Return the guards of prepared records, all of which are published."""
        assert schema.link is not None
        records = models_on_columns(models, schema, table)
        persons = counting_persons(records, identity_codes(table[schema.link.name])) if models else []
        return Guards(*([each._replace(whole=each.column.counts()) for each in some] for some in (records, persons)))

    def of_records(self, records: Labels) -> list[ModelOnColumn]:
        """Return all of them for some records that are not linked."""
        return [each.part(records) for each in (*self.records, *self.persons)]

    def of_persons(self, records: Labels) -> list[ModelOnColumn]:
        """Return the models in which a person has one value: at each place of the histories, and for sets of values."""
        by_place = [each.part(own) for own in records.T for each in self.records]
        return by_place + self._sets(records)

    def _sets(self, records: Labels) -> list[ModelOnColumn]:
        return [_of_sets(each, records) for each in self.records if each.model.merges_lookalikes]

    def excess(self, records: Labels) -> Excess:
        """Return how much cells of persons violate the models; `records` has a row for each person."""
        sets = self._sets(records)
        n_places = records.shape[1]

        def excess(persons: Labels, labels: Labels) -> Vector:
            own = records[persons].ravel()
            by_place = (labels[:, None] * n_places + np.arange(n_places)).ravel()
            by_place_too = excess_of(vetoes_of([each.part(own) for each in self.records]), by_place)
            found: Vector = by_place_too.reshape(-1, n_places).sum(axis=1)
            if self.persons:
                found = found + excess_of(vetoes_of([each.part(own) for each in self.persons]), labels.repeat(n_places))
            return found + (excess_of(vetoes_of([each.part(persons) for each in sets]), labels) if sets else 0.0)

        return excess

    def possible(self, records: Labels) -> bool:
        """Return whether all these persons together, as one cell, satisfy the models."""
        everyone = np.arange(len(records))
        return not self.records or not self.excess(records)(everyone, np.zeros_like(everyone)).any()

    def possible_alone(self, records: Labels) -> bool:
        """Return whether records without the link satisfy the models together, as one cell."""
        guarded = self.of_records(records)
        return not guarded or not violating(guarded, np.zeros_like(records)).any()


def _of_sets(guarded: ModelOnColumn, records: Labels) -> ModelOnColumn:
    """Return a model of diversity for the persons of one pattern: the values in a history, as a set, are one value."""
    codes = np.sort(guarded.codes[records], axis=1)
    codes[:, 1:][codes[:, 1:] == codes[:, :-1]] = -1
    sets = np.unique(np.sort(codes, axis=1), axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return ModelOnColumn(guarded.model, sets, int(sets.max()) + 1, ordered=False)


def linked_cells(
    table: pa.Table,
    schema: Schema,
    X: Matrix,
    histories: Histories,
    k: int,
    method: str = "auto",
    seed: Seed = None,
    *,
    models: Sequence[Model] = (),
    threads: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Cells:
    """Split persons into cells of at least `k` with similar histories, and other records into cells of `k` persons.

    Parameters
    ----------
    table : pyarrow.Table
        Prepared records, all of which are published.
    schema : Schema
        Names the column that is linked and the strata.
    X : ndarray of shape (n_records, n_dims)
        The records in the space.
    histories : Histories
        Those of the records.
    k, method, seed, models, threads, progress, **options
        As in `shoal.constraints.constrained_cells.group`.

    Raises
    ------
    GuaranteeError
        If a model cannot be satisfied by the persons of a pattern, or by the records without the link.
    """
    guards, total = Guards.of(models, schema, table), OneTotal(progress, len(X))
    first = np.flatnonzero(histories.places == 0)
    first = first[np.argsort(histories.persons[first])]

    def cut(_: Matrix, threads: int, progress: Progress | None, persons: Labels) -> Labels:
        records = histories.records_of(persons)
        wide = np.ascontiguousarray(X[records].reshape(len(persons), -1))
        labels = partition(wide, k, method, seed, threads=threads, progress=progress, **options)
        if not guards.records:
            return labels
        excess, one = guards.excess(records), np.zeros(len(persons), dtype=np.int64)
        if excess(np.arange(len(persons)), one).any():
            raise _impossible(guards, len(persons), records.shape[1])
        with kernels.using(threads=threads):
            # Single persons are moved first, at less loss; what counts a person several times is left to whole cells.
            labels = enforce(wide, labels, k, guards.of_persons(records))
            return joined_until(wide, labels, one, excess)

    with kernels.using(threads=threads):
        everyone = np.arange(len(first))
        cells = within(X[first], histories.patterns, cut, total.part(0.0, 0.9), others=[everyone])
        labels = np.zeros(len(X), dtype=np.int64)
        linked = np.flatnonzero(histories.persons != UNLINKED)
        n_places = int(histories.places.max()) + 1
        labels[linked] = renumbered(cells[histories.persons[linked]] * n_places + histories.places[linked])
        others = np.flatnonzero(histories.persons == UNLINKED)
        if len(others):
            part = total.part(0.9, 1.0)

            def cut_records(X: Matrix, threads: int, progress: Progress | None) -> Labels:
                return partition(X, k, method, seed, threads=threads, progress=progress, **options)

            labels[others] = labels.max() + 1 + _cells_of_others(table, schema, X, others, k, guards, cut_records, part)
    total.finish()
    return Cells(labels)


def _cells_of_others(
    table: pa.Table,
    schema: Schema,
    X: Matrix,
    others: Labels,
    k: int,
    guards: Guards,
    cut: Cut,
    progress: Progress | None,
) -> Labels:
    """Return cells of the records without the link, each with records of k persons."""
    assert schema.link is not None
    alone = table.take(pa.array(others))
    strata, _ = strata_of(alone, schema, k)
    subject = k_subjects(identity_codes(alone[schema.link.name]), strata, k, schema.link.name)
    enforced = [subject, *guards.of_records(others)]
    refuse_impossible(enforced, strata)
    points = np.ascontiguousarray(X[others])
    return enforce(points, within(points, strata, cut, progress), k, enforced, strata=strata)


def _impossible(guards: Guards, n_persons: int, n_records: int) -> GuaranteeError:
    asked = " and ".join(str(each.model) for each in guards.records)
    return GuaranteeError(
        f"{asked} cannot be satisfied by linked records: all {n_persons:,} persons with {n_records:,} records violate "
        "it together, at some place of their histories or as persons. Ask for less, or do without the link."
    )
