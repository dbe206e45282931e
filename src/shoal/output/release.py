"""Release: a table that may be published, with its verdict and measures, wherever its records are.

What differs by place are a few verbs: those of its `Records`, and what was measured on all records or on a sample of
them, its `Measures`.
"""

import os
import warnings as python_warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.aggregate import Cells
from shoal.aggregate.contributors import Contribution, single_value_findings
from shoal.columns.schema import Schema, as_names
from shoal.constraints.linked_histories import Linking
from shoal.errors import ShoalWarning
from shoal.findings import SINGLE_VALUES, Finding, ask
from shoal.findings.column_receipt import ColumnReceipt
from shoal.job import Job, Order, Writing
from shoal.job.checks import check_bound
from shoal.job.engine_facts import beyond
from shoal.measures.bound import Bound
from shoal.measures.ncp import Ncp
from shoal.measures.quality import Quality
from shoal.measures.recount import Columns, Verdict
from shoal.measures.table_loss import TableLoss
from shoal.measures.table_risk import Risk
from shoal.measures.utility import Utility
from shoal.output.destination import Destination
from shoal.output.other_releases import warnings_of_others
from shoal.output.places import TableInTheMaking
from shoal.output.release_warnings import accepted_columns, warnings_of
from shoal.output.report import Form
from shoal.output.report.codebook import codebook
from shoal.output.report.notebook import to_summary
from shoal.output.report.plot_files import plot_distribution, plot_sizes
from shoal.output.writing import write_release
from shoal.series.part_of_series import PartOfSeries
from shoal.sources import ValueLabels
from shoal.space.space import Space
from shoal.typing import BoundEffort, Labels, Matrix, Names

T = TypeVar("T")


class Stamped(Protocol):
    """The input of a release."""

    @property
    def sha256(self) -> str:
        """SHA-256 of the file, or of the records."""

    @property
    def n_left_out(self) -> int:
        """Number of records that were left out on request."""

    def check_unchanged(self) -> None:
        """Raise if it has changed since it was read."""


class Written(NamedTuple):
    """What was written, read back and recounted."""

    sha256: str
    files: dict[str, str] | None = None
    """SHA-256 of each of its files, by the path within their folder, if they are several."""


class Records(Protocol):
    """The published records of a release, in memory, in a scratch folder or on a cluster."""

    @property
    def engine(self) -> str:
        """The engine that made them, which holds them."""

    @property
    def source(self) -> Stamped:
        """The input."""

    @property
    def verdict(self) -> Verdict:
        """The guarantees, recounted: by the latest recount, or by one that is made now."""

    @property
    def is_counted(self) -> bool:
        """Whether the verdict is there already."""

    @property
    def table(self) -> Any:
        """All published records as one frame, None if they do not fit into memory."""

    @property
    def arrow(self) -> pa.Table | None:
        """All published records on this machine, None if they do not fit into memory."""

    @property
    def series(self) -> PartOfSeries | None:
        """What the release is in its series, None if it belongs to none."""

    @property
    def cells(self) -> Cells | None:
        """The cell of each record, if records are kept in the order of the input."""

    def batches(self) -> Iterator[pa.Table]:
        """Yield the published records."""

    def rows(self, order: Order) -> NDArray[np.int64] | None:
        """Return the record number of each row of the written table; None for the order of the input, or if unknown."""

    def begun(self, destination: Destination) -> AbstractContextManager[tuple[TableInTheMaking, dict[Path, Path]]]:
        """Yield the table to write and the temporary path of each file; publish all of them at the end, or none."""

    def write(self, table: Any, rows: NDArray[np.int64] | None) -> None:
        """Write the published table."""

    def recount(self, table: Any, rows: NDArray[np.int64] | None) -> Written:
        """Recount the guarantees on the written table; raise if they do not hold."""

    def at_work(self, work: Callable[[], T]) -> T:
        """Return what some work returns, done with the threads or the cluster of these records."""

    def close(self) -> None:
        """Free what holds the records; nothing in memory."""


class Measures(Protocol):
    """What was measured on a release: on all records or, of a release made in blocks, partly on a sample of them."""

    @property
    def original(self) -> pa.Table:
        """The prepared records."""

    @property
    def replaced(self) -> pa.Table:
        """The published quasi-identifiers of the same records."""

    @property
    def columns(self) -> Columns:
        """All published columns of the same records."""

    @property
    def plain_columns(self) -> Columns:
        """The same, with the middle of each interval, set, ancestor and period in its place."""

    @property
    def points(self) -> Matrix | None:
        """The original records in the space where distances are measured, if all are in memory."""

    @property
    def loss(self) -> TableLoss:
        """Information loss."""

    @property
    def certainty(self) -> Ncp | None:
        """Certainty penalty of the exact ranges and sets, if cells are made for it or show them."""

    @property
    def contributions(self) -> list[Contribution]:
        """Columns with published values that depend on a single record."""

    @property
    def risk(self) -> Risk:
        """Reidentification risk against an intruder who holds the original values."""

    @property
    def utility(self) -> Utility:
        """Changes of means, variances, correlations and categories."""

    @property
    def quality(self) -> dict[str, Quality] | None:
        """The measures of other tools; None in blocks and for random aggregation."""

    @property
    def attacks(self) -> Sequence[Any]:
        """Attribute disclosure without reidentification; none were tried in blocks."""

    @property
    def loss_without_history(self) -> float | None:
        """Information loss that the same release had without others of the same people; None in blocks."""

    def bound(self, effort: BoundEffort, seconds: float) -> Bound | None:
        """Return a lower bound on the loss of any release; None if not all records are in memory."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""


@dataclass(frozen=True, eq=False)
class Release:
    """A table that may be published, with its verdict and measures. A context manager, which closes it.

    Attributes
    ----------
    job : Job
        The settings, with the seed that reproduces the release.
    schema : Schema
        The columns with their roles.
    space : Space
        Where distances were measured.
    findings : list of Finding
        Findings about the quasi-identifiers that are accepted or need no answer, and about confidential columns.
    measured : Measures
        What was measured. Of a release made in blocks, `original`, `columns` and what is measured on them are those of
        a sample; loss, classes and uniqueness are those of all records.
    records : Records
        The published records.
    notes : tuple of str
        Notes of the reader on what the records do not show, such as hidden rows.
    value_labels : ValueLabels or None
        Labels that the original file gives to columns and values.
    linking : Linking or None
        What became of the persons and their records, if these stay linked.
    receipts : sequence of ColumnReceipt
        How each column was read.
    """

    job: Job
    schema: Schema
    space: Space
    findings: Sequence[Finding]
    measured: Measures
    records: Records
    notes: tuple[str, ...] = ()
    value_labels: ValueLabels | None = None
    linking: Linking | None = None
    receipts: Sequence[ColumnReceipt] = ()

    def __repr__(self) -> str:
        verdict = self.verdict
        holds = "k is not claimed" if verdict.withdrawn else "holds" if verdict.holds else "does not hold"
        return (
            f"Release(k={self.job.k}, {holds}: {verdict.n_records:,} records x {len(self.schema.published)} columns in "
            f"{verdict.n_classes:,} classes of at least {verdict.smallest:,}, "
            f"information loss {100 * self.loss.il:.4g} %)"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the scratch folder of the engine "disk", or free what the engine "spark" has persisted."""
        self.records.close()

    @property
    def table(self) -> Any:
        """The published table: the same kind of frame as the input and in its order, or a DataFrame of Spark.

        The engine "disk" has `batches` in its place.
        """
        return self._whole(self.records.table, "all published records in one table")

    @property
    def published(self) -> pa.Table:
        """The published table as an Arrow table, in the order of the input, without hidden data in its buffers."""
        return self._whole(self.records.arrow, "all published records in memory")

    def batches(self) -> Iterator[pa.Table]:
        """Yield the published records in parts, in the order in which they are written; in memory, all of them."""
        return self.records.batches()

    @property
    def labels(self) -> Labels:
        """Cell number of each record, in the order of the input; not published."""
        return self._whole(self.records.cells, "the cell of each record").labels

    @property
    def X(self) -> Matrix:  # noqa: N802 - as the literature calls it
        """The original records in the space where distances are measured, shape (n_records, n_dims)."""
        return self._whole(self.measured.points, "the coordinates of all records")

    def bound(self, effort: BoundEffort = "cheap", seconds: float = 60.0) -> Bound:
        """Return a lower bound on the loss of any release of these records with this k (`shoal.measures.lower_bound`).

        It holds for arbitrary groups of at least k records published as their means, even without the strata, subjects
        and models of this release, and for squared distances in the space of this release.

        Raises
        ------
        ParameterError
            If a quasi-identifier is nominal, there are households, or the aggregation is random.
        """
        check_bound(self.job, self.schema)
        return self._whole(self.measured.bound(effort, seconds), "a bound on the loss")

    def _whole(self, found: T | None, what: str) -> T:
        """Return what is there if all records are in memory; otherwise say which engine has it."""
        if found is None:
            raise beyond(self.records.engine, what, "its records are not in memory together")
        return found

    @property
    def verdict(self) -> Verdict:
        """The guarantees of the published table, recounted."""
        return self.records.verdict

    @property
    def series(self) -> PartOfSeries | None:
        """Who was withheld and what was recounted because of other releases of the same people; not published."""
        return self.records.series

    @property
    def loss(self) -> TableLoss:
        """Information loss."""
        return self.measured.loss

    @property
    def certainty(self) -> Ncp | None:
        """Certainty penalty of the exact ranges and sets, if cells are made for it or show them."""
        return self.measured.certainty

    @property
    def risk(self) -> Risk:
        """Reidentification risk against an intruder who holds the original values."""
        return self.measured.risk

    @property
    def utility(self) -> Utility:
        """Data utility: changes of means, variances, correlations and categories."""
        return self.measured.utility

    @property
    def quality(self) -> dict[str, Quality] | None:
        """Discernibility, average class size, granularity and non-uniform entropy, as ARX measures them.

        None if not all records are in memory, and for random aggregation, after which there are no classes.
        """
        return self.measured.quality

    @property
    def attacks(self) -> Sequence[Any]:
        """Attribute disclosure without reidentification: from k - 1 known records, and from the groups."""
        return self.measured.attacks

    @property
    def contributions(self) -> list[Contribution]:
        """Columns with published values that depend on a single record; empty for random aggregation."""
        return self.measured.contributions

    @cached_property
    def measures(self) -> dict[str, Any]:
        """Loss, risk, utility and attacks as plain values; they describe the original too, so they are internal."""
        return {"reading": [receipt.to_dict() for receipt in self.receipts], **self.measured.to_dict()}

    @property
    def original(self) -> pa.Table:
        """The prepared input, or a sample of it."""
        return self.measured.original

    @property
    def replaced(self) -> pa.Table:
        """The published quasi-identifiers, or those of the sample."""
        return self.measured.replaced

    @property
    def columns(self) -> Columns:
        """The published columns, or those of the sample."""
        return self.measured.columns

    @property
    def plain_columns(self) -> Columns:
        """The same with the middle of each interval, set, ancestor and period in its place, for measures and plots."""
        return self.measured.plain_columns

    @cached_property
    def codebook(self) -> list[dict[str, Any]]:
        """Name, labels, kind and treatment of each published column."""
        labels = self.value_labels
        described = set() if labels is None else {*labels.variables, *labels.values}
        needed = [column.name for column in self.schema.published if column.name in described]
        book = codebook(self.schema, labels, self.columns.select(needed), bool(self.job.rho))
        read = {receipt.name: receipt.public for receipt in self.receipts}
        return [{**entry, "read": read.get(entry["name"])} for entry in book]

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Warnings to review before publishing."""
        return tuple(warnings_of(self))

    def _repr_html_(self) -> str:
        """Return a summary for notebooks; it measures the risk, as `write` does."""
        return to_summary(self.verdict, self.measures, self.warnings)

    def reviewed(self) -> Self:
        """Return the release, or raise if cells would publish a text that one record has alone and nobody accepts."""
        near_unique = {
            f"{column}={SINGLE_VALUES}" for column in accepted_columns(self.job, "near-unique-text", self.schema)
        }
        found = single_value_findings(self.contributions, self.schema)
        ask(found, (*self.job.accept, *near_unique), self.job.strict)
        if self.records.is_counted:
            self._warn()
        return self

    def _warn(self) -> None:
        for text in self.warnings:
            python_warnings.warn(text, ShoalWarning, stacklevel=8)  # where `shoal.anonymize` was called

    def plot(
        self,
        path: str | os.PathLike[str],
        column: str | None = None,
        *,
        form: Form = "internal",
        force: bool = False,
    ) -> None:
        """Draw the sizes of the classes, or the values of a published column, into a file.

        Parameters
        ----------
        path : path
            A file that ends in .svg or, with matplotlib (the extra `plots`), in .png or .pdf. Readable by its owner.
        column : str, optional
            The column to draw.
        form : {"internal", "public"}
            The internal form draws the original values of a column too, in groups of at least k records.
        force : bool
            Overwrite an existing file.
        """
        if column is None:
            plot_sizes(self.verdict, path, force)
        else:
            plot_distribution(self, column, path, form, force)

    def write(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        to_table: str | None = None,
        manifest: str | os.PathLike[str] | None = None,
        to_format: str | None = None,
        partition_by: Names = (),
        report: str | os.PathLike[str] | None = None,
        form: Form = "internal",
        json: str | os.PathLike[str] | None = None,
        bound: BoundEffort | None = None,
        title: str | None = None,
        author: str | None = None,
        date: str | None = None,
        order: Order = "shuffle",
        releases: str | os.PathLike[str] | None = None,
        save_job: str | os.PathLike[str] | None = None,
        force: bool = False,
        before_publishing: Callable[[], None] | None = None,
    ) -> list[Path | str]:
        """Write the release, its two manifests and, optionally, its report: all of them or none.

        Parameters
        ----------
        path : path
            File for the published table, in one of the formats of `shoal.sources.FORMATS`. Written beside it are
            ``PATH.public.json``, which may be published with the data, and ``PATH.internal.json``, which reproduces
            the release and must be kept private, as must ``PATH.cells`` of a release with a key. Or the address or file
            of a database; its table ``shoal_manifest`` then holds the public manifest. Or ``"-"``, standard output. The
            engine "disk" writes CSV, Parquet and Arrow files; the engine "spark" a folder of Parquet files, on any file
            system that Spark can write to.
        to_table : str, optional
            New table of the database, as NAME or SCHEMA.NAME. It is written, read back, recounted and committed in one
            transaction. With `force` it replaces an older table, but never one that was read. On Spark, in place of a
            path, a new table of its catalogue, such as ``"db.people"``, whose property ``shoal.output.manifest`` holds
            the public manifest.
        manifest : path, optional
            File for the internal manifest; by default beside the file, for a server ``TABLE.internal.json`` in the
            current folder. Standard output requires it, and the public manifest is written beside it.
        to_format : str, optional
            Format on standard output, by its extension without the dot, such as ``"csv"``; by default that of the
            input file.
        partition_by : sequence of str
            On Spark, published columns that split the folder or the table.
        report : path, optional
            HTML file for the report.
        form : {"internal", "public"}
            Form of the report: the public one reveals nothing about the original beyond the release itself.
        json : path, optional
            JSON file with the content of the report.
        bound : {"cheap", "strong"}, optional
            Show a lower bound on the loss in the internal report: "cheap" for any number of records, "strong" for some
            thousands, within a minute.
        title, author, date : str, optional
            Shown on the first page of the report. The date is never taken from the clock, so that the same release
            gives the same bytes.
        order : {"shuffle", "keep"}
            Order of the records. The order of the input can reveal identities, so by default records are sorted by a
            hash of their published values, which involves no secret.
        releases : path, optional
            Folder of earlier releases: a warning names those that hold people of the table, as it does of those beside
            the release (``docs/series.md``).
        save_job : path, optional
            TOML file for the job, with its seed.
        force : bool
            Overwrite existing files. Spark removes a folder before it writes; a table is replaced at the end.
        before_publishing : callable, optional
            Called when all files are complete and before they are renamed; if it raises, no file appears.

        Returns
        -------
        list of Path
            The files, the table first unless it is in a database; texts for what Spark writes.

        Raises
        ------
        FileError, DatabaseError
            If something exists, cannot be written or is the input, or if the input file has changed. No partial files
            remain.
        GuaranteeError
            If what was written, read back, does not satisfy the guarantees of the verdict.
        ParameterError
            If the engine cannot write as asked.
        """
        asked = Writing.of(
            path=path,
            to_table=to_table,
            manifest=manifest,
            to_format=to_format,
            order=order,
            releases=releases,
            report=report,
            form=form,
            json=json,
            bound=bound,
            title=title,
            author=author,
            date=date,
        )
        split = as_names(partition_by)
        engine = self.records.engine
        tables, has_cells = [table.output for table in self.job.tables], self.series is not None
        how: dict[str, Any] = {"partition_by": split, "tables": tables, "has_cells": has_cells}
        destination = Destination.of(asked, engine, save_job=save_job, force=force, **how)
        return self.write_to(destination, before_publishing)

    def write_to(
        self, destination: Destination, before_publishing: Callable[[], None] | None = None
    ) -> list[Path | str]:
        """Write the release to a destination that has been checked; see `write`."""
        late = not self.records.is_counted
        for text in warnings_of_others(self, destination):
            python_warnings.warn(text, ShoalWarning, stacklevel=3)  # before anything is written
        self.records.at_work(lambda: write_release(self, destination, before_publishing))
        if late:
            self._warn()
        return [*destination.on_spark, *destination.paths]
