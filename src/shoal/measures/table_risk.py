"""Risk and utility of a released table, by the array metrics of `shoal.measures`.

The intruder holds the original values. Some measures use distances (`linkage`, `matching`), some a single column
(`interval_disclosure`), some only the equivalence classes (`class_risk`, `uniqueness`). ``docs/risk.md`` describes the
intruder of each.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.columns.coarse import read_coarse
from shoal.columns.equivalence import class_ids, value_codes
from shoal.columns.numbers import date_units
from shoal.columns.prepare import decoded
from shoal.columns.schema import Kind, Role, Schema
from shoal.kernels.parallel_calls import column_by_column
from shoal.measures.class_risk import ClassRisk, Uniqueness, class_risk, uniqueness
from shoal.measures.containment import coarse_linkage, without_coarse
from shoal.measures.interval import Interval, interval_of
from shoal.measures.linkage import Linkage, cell_linkage
from shoal.measures.matching import Matching
from shoal.measures.pairs import one_of_each
from shoal.measures.utility import NominalChange, Utility, coded_change, numeric_utility
from shoal.sources.clean import has_column
from shoal.space.space import Space
from shoal.typing import Labels, Matrix, Vector
from shoal.views import Frame, as_frame, as_row

MOST_NUMBERS = 4_000_000
"""Maximum size of the matrix for which all records are linked, which then takes about two seconds of CPU at most."""

SAMPLE = 5_000
"""Number of records linked in larger tables. The standard error of a share of 0.1 is then 0.004."""


@dataclass(frozen=True, eq=False)
class Risk:
    """The risks of a release that were measured.

    Attributes
    ----------
    linkage : Linkage
        By distance, in both directions.
    classes : ClassRisk
        Prosecutor, journalist and marketer, on the released table.
    uniqueness : Uniqueness or None
        Of the original table, if its classes were given.
    intervals : dict of str to Interval
        For each column that was given before and after.
    matching : Matching or None
        In blocks, if requested.
    """

    linkage: Linkage
    classes: ClassRisk
    uniqueness: Uniqueness | None = None
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    matching: Matching | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain dicts of numbers and words, for a report."""
        return {
            "linkage": self.linkage.to_dict(),
            "classes": self.classes.to_dict(),
            "uniqueness": self.uniqueness.to_dict() if self.uniqueness else None,
            "intervals": {name: interval._asdict() for name, interval in self.intervals.items()},
            "matching": self.matching.to_dict() if self.matching else None,
        }

    def to_frame(self) -> Frame:
        """Return all numbers in one row, named by their path, such as ``linkage.dld``."""
        return as_frame([as_row(self.to_dict())])


def table_risk(
    original: pa.Table,
    replaced: pa.Table,
    measured: pa.Table,
    schema: Schema,
    space: Space,
    X: Matrix,
    labels: Labels | None,
    weights: Vector | None,
) -> Risk:
    """Measure how well an intruder who holds the original values re-identifies people in the release.

    Parameters
    ----------
    original, replaced : pyarrow.Table
        The prepared records, and the published values of their quasi-identifiers, in the same order.
    measured : pyarrow.Table
        The published values with plain ones in place of coarse ones.
    schema, space : Schema and Space
        Roles and kinds of the columns, and the space in which distances are measured.
    X : ndarray of shape (n_records, n_dims)
        The prepared records in the space.
    labels : ndarray of shape (n_records,), optional
        Cell number of each record, if all records of a cell are published with the same values.
    weights : ndarray of shape (n_records,), optional
        Survey weights.
    """
    if weights is not None:
        weights = np.maximum(weights, 1.0)  # a record represents at least one person
    return Risk(
        linkage=table_linkage(original, replaced, schema, space, X, labels),
        classes=class_risk(published_classes(original, replaced, schema, labels), weights),
        uniqueness=uniqueness(class_ids(original.select(schema.quasi_names)), weights),
        intervals=table_intervals(original, measured, schema, labels),
    )


def table_intervals(
    original: pa.Table, replaced: pa.Table, schema: Schema, labels: Labels | None = None
) -> dict[str, Interval]:
    """Measure the interval disclosure of the numeric quasi-identifiers; `labels` as in `table_risk`."""
    if labels is None:
        labels = np.arange(original.num_rows)  # every record has published values of its own
    own, first = labels, one_of_each(labels)

    def measured(name: str) -> Interval:
        return interval_of(as_floats(original[name]), as_floats(replaced[name])[first], own)

    names = numeric_columns(schema)
    return dict(zip(names, column_by_column(measured, names, len(own)), strict=True))


def published_classes(original: pa.Table, replaced: pa.Table, schema: Schema, labels: Labels | None) -> Labels:
    """Return the class of each record in the release, from one record of each cell where its records are alike."""
    published = pa.table(
        {name: (replaced if has_column(replaced, name) else original)[name] for name in schema.quasi_names}
    )
    if labels is None:
        return class_ids(published)
    first = one_of_each(labels)
    return class_ids(published.take(pa.array(first)))[labels]


def table_linkage(
    original: pa.Table,
    replaced: pa.Table,
    schema: Schema,
    space: Space,
    X: Matrix,
    labels: Labels | None,
    asked: Labels | None = None,
) -> Linkage:
    """Link all records of a small table, a fixed sample of a large one, or the records `asked` for.

    Columns of `by` are published unchanged, so an intruder searches only the records of the right stratum. Intervals,
    sets, ancestors and periods in `replaced` are linked by what they hold.
    """
    if labels is None:
        labels = np.arange(original.num_rows)  # every record has published values of its own
    first = one_of_each(labels)
    shown = replaced.take(pa.array(first))
    coarse = {c.name: read_coarse(shown[c.name], c.form, c.hierarchy) for c in schema.quasi if c.form is not None}
    if coarse:
        space = without_coarse(space, coarse)
        X = space.encode(original)
    points = space.encode(shown)
    by = [column.name for column in schema.having(Role.BY)]
    if by:
        strata = class_ids(original.select(by))
        # An extra coordinate, in which strata are farther apart than any two records in all others.
        far = 2 * np.sqrt(X.shape[1]) * (1 + np.abs(X).max(initial=0.0))
        X, points = (np.column_stack([Z, far * s]) for Z, s in ((X, strata), (points, strata[first])))
    if coarse:
        return coarse_linkage(original, X, coarse, points, labels)
    sample = None if X.size <= MOST_NUMBERS else SAMPLE
    return cell_linkage(X, points, labels, sample=sample, seed=0, asked=asked)


def table_utility(original: pa.Table, replaced: pa.Table, schema: Schema, weights: Vector | None) -> Utility:
    """Measure changes of means, variances and correlations, and of the distributions of categories.

    Dates count as numbers, since their means and differences are what is analysed.
    """
    numeric = [column.name for column in schema.quasi if column.kind in (Kind.NUMERIC, Kind.DATE)]
    others = [column.name for column in schema.quasi if column.name not in numeric]
    changes, coded = None, None
    if numeric:
        before, after = ({name: as_floats(table[name]) for name in numeric} for table in (original, replaced))
        changes = numeric_utility(before, after, weights)
    if others:

        def compared(name: str) -> NominalChange:
            return coded_change(*_codes(original[name], replaced[name]), weights)

        coded = dict(zip(others, column_by_column(compared, others, original.num_rows), strict=True))
    return Utility(changes, coded)


def numeric_columns(schema: Schema) -> list[str]:
    """Return the names of the numeric quasi-identifiers."""
    return [column.name for column in schema.quasi if column.kind is Kind.NUMERIC]


def as_floats(values: pa.ChunkedArray) -> Vector:
    """Return a column of numbers or dates as floats, NaN where values are missing."""
    if not pa.types.is_temporal(values.type):
        floats = values.cast(pa.float64(), safe=False)
        return np.asarray(floats.fill_null(np.nan) if floats.null_count else floats)
    found = np.full(len(values), np.nan)
    found[np.asarray(values.is_valid())] = date_units(values.drop_null())
    return found


def _codes(before: pa.ChunkedArray, after: pa.ChunkedArray) -> tuple[Labels, Labels]:
    """Return two columns as numbers that are equal where the values are, together from 0 without gaps."""
    if before.type != after.type:
        before = decoded(before)
        after = decoded(after).cast(before.type)
    codes = value_codes(pa.chunked_array([*before.chunks, *after.chunks], before.type))
    return codes[: len(before)], codes[len(before) :]
