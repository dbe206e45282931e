"""In memory: the published records of a release that fit into memory, and what is measured on all of them."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal import kernels
from shoal.aggregate import Cells, aggregate
from shoal.aggregate.contributors import Contribution, contributions
from shoal.auditing.attacks import Attack, attacks_on
from shoal.columns.coarse.layout import gathered, written_names
from shoal.columns.schema import Column, Kind, Role, Roles, Schema
from shoal.constraints.constrained_cells import group
from shoal.constraints.linked_histories import Linking
from shoal.errors import GuaranteeError
from shoal.job import Job, Order
from shoal.measures.bound import Bound, lower_bound
from shoal.measures.ncp import Ncp, ncp
from shoal.measures.quality import Compared, Quality, table_quality
from shoal.measures.recount import Verdict, recount
from shoal.measures.table_loss import TableLoss, table_loss
from shoal.measures.table_risk import Risk, published_classes, table_risk, table_utility
from shoal.measures.utility import Utility
from shoal.models.table_columns import categories_of
from shoal.output.destination import Destination
from shoal.output.places import Published, TableOfOneMachine, begun
from shoal.output.published_order import Alike, published_order
from shoal.output.release import Written
from shoal.output.tables_of_persons import WithPersons, begun_with_persons, without_tables
from shoal.output.writing import require_as_many, require_of_written
from shoal.series.part_of_series import PartOfSeries
from shoal.sources import Table
from shoal.sources.clean import publishable
from shoal.sources.joined import OfPersons
from shoal.space.space import Space
from shoal.typing import BoundEffort, Labels, Matrix, Vector

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class RecordsInMemory:
    """The published records, in the order of the input; see `shoal.output.release.Records`.

    `original` are the prepared columns of the input; what is done with the records takes up to so many threads.
    """

    job: Job
    original: pa.Table
    columns: Published
    cells: Cells
    verdict: Verdict
    threads: int | None
    series: PartOfSeries | None = None
    engine: str = "memory"
    is_counted: bool = True
    others: tuple[OfPersons, ...] = ()
    """Further tables, whose columns are joined to those of the records, and which are written to files of their own."""

    @property
    def source(self) -> Table:
        """The input."""
        return self.columns.source

    @property
    def _own(self) -> list[str]:
        """The names of the published columns without those of further tables."""
        return without_tables(self.columns, self.others).names

    @property
    def arrow(self) -> pa.Table:
        """The published columns, in the order of the input, without hidden data in their buffers."""
        return publishable(self.columns.laid_out())

    @property
    def table(self) -> Any:
        """The published table, as the same kind of frame as the input and in its order."""
        return self.source.like(self.arrow)

    def batches(self) -> Iterator[pa.Table]:
        """Yield the published records, all of them at once, in the order in which they are written."""
        yield publishable(self.columns.laid_out(self.rows("shuffle")))

    def rows(self, order: Order) -> NDArray[np.int64] | None:
        """Return the record number of each row of the written table; None for the order of the input."""
        if order == "keep":
            return None
        columns = (self.columns[name] for name in self._own)
        return published_order(columns, self.verdict.n_records, self._alike())

    def _alike(self) -> Alike | None:
        """Return the cells, and the places of the columns in which the records of a cell are published with one value.

        None if the values of a cell differ, after random aggregation.
        """
        if self.job.rho:
            return None
        cells = self.cells
        same = {column.name for column in self.columns.schema.quasi if cells.of(column) is cells.labels}
        return Alike(cells.labels, frozenset(place for place, name in enumerate(self._own) if name in same))

    def begun(self, destination: Destination) -> AbstractContextManager[tuple[TableOfOneMachine, dict[Path, Path]]]:
        """Yield the table to write and the temporary path of each file."""
        found = begun(destination, self.source, self.job.files)
        return begun_with_persons(found, self.others) if self.others else found

    def write(self, table: TableOfOneMachine, rows: NDArray[np.int64] | None) -> None:
        """Write the published table."""
        table.write(self.columns, rows)

    def recount(self, table: TableOfOneMachine, rows: NDArray[np.int64] | None) -> Written:
        """Recount the guarantees on what was written, with the subjects in the order of its rows."""
        schema = self._counted()
        names = [column.name for column in schema.columns]
        wanted = written_names(names, schema, self.job.intervals, self.columns.replaced)
        coded = [column.name for column in schema.quasi if not column.is_true]
        written = gathered(table.read_back(wanted, coded), names)
        require_as_many(written.num_rows, self.verdict.n_records)
        subject = self.columns.schema.roles.counted
        needed = [*(column.name for column in schema.quasi if column.is_true), *([subject] if subject else [])]
        own = self.original.select(list(dict.fromkeys(needed)))
        original = own if rows is None else own.take(pa.array(rows))
        asked = None if self.verdict.withdrawn else self.job.k
        subjects = original[subject] if subject else None
        found = recount(written, schema, asked, subjects, self.job.models, original=original)
        require_of_written(found, self.job)
        if self.series is not None:
            self.series.recount(written.select(self.columns.schema.quasi_names), rows)
        return Written(table.sha256(), table.sha256_of_persons() if isinstance(table, WithPersons) else None)

    def _counted(self) -> Schema:
        """Return the columns that are recounted, with explicit orders, since a file may not store them."""
        schema = self.columns.schema
        link = [] if schema.link is None else [schema.link.name]
        wanted = {*schema.quasi_names, *link, *(model.column for model in self.job.models)}
        return Schema(tuple(self._with_order(column) for column in schema.columns if column.name in wanted), Roles())

    def _with_order(self, column: Column) -> Column:
        if column.kind is not Kind.ORDINAL or column.role is not Role.CONFIDENTIAL:
            return column
        order = categories_of(self.columns[column.name], column).drop_null()
        return replace(column, settings=column.settings.model_copy(update={"categories": tuple(order.to_pylist())}))

    def at_work(self, work: Callable[[], T]) -> T:
        """Return what some work returns, done with the threads of the release."""
        with kernels.using(self.threads):
            return work()

    def close(self) -> None:
        """Do nothing: what is in memory is freed with the release."""


@dataclass(frozen=True, eq=False)
class TableMeasures:
    """What is measured on all records, most of it on demand; see `shoal.output.release.Measures`.

    Of `plain_columns`, intervals, sets, ancestors and periods are their middle.
    """

    job: Job
    schema: Schema
    space: Space
    original: pa.Table
    weights: Vector | None
    points: Matrix
    columns: Published
    plain_columns: Published
    cells: Cells
    loss: TableLoss
    threads: int | None
    linking: Linking | None = None
    _bounds: dict[tuple[str, float], Bound] = field(default_factory=dict)

    @property
    def replaced(self) -> pa.Table:
        """The published quasi-identifiers."""
        return self.columns.replaced

    @cached_property
    def certainty(self) -> Ncp | None:
        """Certainty penalty of the exact ranges and sets, if cells are made for it or show them."""
        made_for_it = self.job.objective == "ncp" or any(column.is_true for column in self.schema.quasi)
        labels_of = {column.name: self.cells.of(column) for column in self.schema.quasi}
        return ncp(self.original, self.schema, labels_of) if made_for_it else None

    @cached_property
    def loss_without_link(self) -> float | None:
        """Information loss of the same records grouped one by one; None if none are linked."""
        if self.linking is None:
            return None
        alone = self.schema.roles.model_copy(update={"keep_link": None, "household": None, "link_order": ()})
        schema, job = replace(self.schema, roles=alone), self.job
        settings = {"models": job.models, "threads": self.threads, **job.options}
        cells = group(self.original, schema, self.space, self.points, job.k, job.method, job.seed, **settings)
        sums = kernels.cell_spread(self.points, cells.labels, int(cells.labels.max()) + 1).sum()
        return float(sums / kernels.cell_spread(self.points, np.zeros_like(cells.labels), 1).sum())

    @cached_property
    def contributions(self) -> list[Contribution]:
        """Columns with published values that depend on a single record; empty for random aggregation."""
        if self.job.rho:
            return []
        return contributions(self.original, self.replaced, self.schema, self.cells, self.weights)

    @cached_property
    def risk(self) -> Risk:
        """Reidentification risk against an intruder who holds the original values."""
        alike: Labels | None = None if self.job.rho else self.cells.labels
        tables = (self.original, self.replaced, self.plain_columns.replaced)
        with kernels.using(self.threads):
            return table_risk(*tables, self.schema, self.space, self.points, alike, self.weights)

    @cached_property
    def utility(self) -> Utility:
        """Data utility: changes of means, variances, correlations and categories."""
        with kernels.using(self.threads):
            return table_utility(self.original, self.plain_columns.replaced, self.schema, self.weights)

    @cached_property
    def quality(self) -> dict[str, Quality] | None:
        """The measures of other tools; None for random aggregation, after which there are no classes."""
        if self.job.rho:
            return None
        classes = published_classes(self.original, self.replaced, self.schema, self.cells.labels)
        cells_of = {column.name: self.cells.of(column) for column in self.schema.quasi}
        return table_quality(Compared(self.original, self.replaced, self.schema, cells_of, classes))

    @cached_property
    def attacks(self) -> list[Attack]:
        """Attribute disclosure without reidentification: from k - 1 known records, and from the groups."""
        with kernels.using(self.threads):
            return attacks_on(
                self.original,
                self.columns,
                self.schema,
                self.space,
                self.points,
                self.cells.labels,
                self.job.rho or 0.0,
            )

    @cached_property
    def loss_without_history(self) -> float | None:
        """Information loss that the same release had without others of the same people; None if it cannot be made."""
        job, table, schema = self.job, self.original, self.schema
        options = {"models": job.models, "objective": job.objective, "threads": self.threads, **job.options}
        try:
            cells = group(table, schema, self.space, self.points, job.k, job.method, job.seed, **options)
        except GuaranteeError:
            return None
        alike: dict[str, Labels | None] = {column.name: cells.of(column) for column in schema.quasi}
        replaced = pa.table(aggregate(table, schema, cells, self.weights))
        return table_loss(self.space, table, replaced, alike).il

    def bound(self, effort: BoundEffort, seconds: float) -> Bound:
        """Return a lower bound on the loss of any release."""
        if (effort, seconds) not in self._bounds:
            self._bounds[effort, seconds] = lower_bound(self.points, self.job.k, effort=effort, seconds=seconds)
        return self._bounds[effort, seconds]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "loss": self.loss.to_dict(),
            **({} if self.certainty is None else {"certainty": self.certainty.to_dict()}),
            "risk": self.risk.to_dict(),
            "utility": self.utility.to_dict(),
            "attacks": [attack.to_dict() for attack in self.attacks],
            "quality": self.quality and {name: one.to_dict() for name, one in self.quality.items()},
            **(
                {}
                if self.linking is None
                else {"linking": {**self.linking.to_dict(), "il_without_link": self.loss_without_link}}
            ),
        }
