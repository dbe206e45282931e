"""Release: the whole flow, from any table to a table that may be published.

    table -> schema -> space -> cells -> aggregate -> audit + loss -> release

If the recount does not confirm a guarantee, an error is raised and nothing is released.
"""

import os
import secrets
import warnings as python_warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal import kernels
from shoal.aggregate import Cells, RandomAggregation, aggregate
from shoal.aggregate.contributors import Contribution, contributions, single_value_findings
from shoal.auditing.attacks import Attack, attacks_on
from shoal.columns.coarse import stand_ins
from shoal.columns.coarse.layout import laid_out
from shoal.columns.schema import Role, Schema, as_names
from shoal.constraints.constrained_cells import group
from shoal.constraints.constraints import constraints_of
from shoal.constraints.joined_classes import joined_where_alike
from shoal.engines.disk.disk_release import DiskRelease, check_parts, execute_on_disk
from shoal.engines.spark.jobs import execute_on_spark, run_on_spark
from shoal.engines.spark.spark_release import SparkRelease
from shoal.errors import ParameterError, SchemaError, ShoalWarning
from shoal.findings import SINGLE_VALUES, Finding, ask
from shoal.job import BoundEffort, Job, Order, Output
from shoal.job.checks import Prepared, check_bound, check_late, prepared
from shoal.measures.bound import Bound, lower_bound
from shoal.measures.ncp import Ncp, ncp
from shoal.measures.recount import Verdict, recount
from shoal.measures.table_loss import TableLoss, table_loss
from shoal.measures.table_risk import Risk, table_risk, table_utility
from shoal.models import Model
from shoal.output.places import Files, TableInTheMaking, check_free_files, check_reports
from shoal.output.release_warnings import accepted_columns, warnings_of
from shoal.output.report.codebook import codebook
from shoal.output.report.notebook import to_summary
from shoal.output.writing import recount_table, write_release, written_order
from shoal.progress import OneTotal
from shoal.settings import ALIASES
from shoal.sources import Table, read
from shoal.sources.batches import open_batches
from shoal.sources.clean import has_column, publishable, with_columns
from shoal.space.space import Space
from shoal.typing import Labels, Matrix, Names, Progress, Seed, Vector

Form = Literal["internal", "public"]

_SETTINGS = (
    "columns",
    "models",
    "accept",
    "steer",
    "scaling",
    "missing",
    "method",
    "objective",
    "rho",
    "truthful",
    "intervals",
    "seed",
    "threads",
    "progress",
    "reading",
    "engine",
    "memory",
)

WITHDRAWN = (
    "k is not claimed: random aggregation (rho = {rho:g}) gives every record of a group different values around the "
    "mean of the group, so that records no longer share their values. This is not differential privacy either, "
    "although it has been called so: the noise is bounded and its range depends on the records, so there is no "
    "epsilon. Its protection is measured (the risks in the internal report), not guaranteed."
)
"""Why a release by random aggregation is not k-anonymous."""


def anonymize(
    table: Any,
    *,
    k: int,
    quasi_identifiers: Names = (),
    identifiers: Names = (),
    confidential: Names = (),
    other: Names = (),
    by: Names = (),
    subject: str | None = None,
    household: str | None = None,
    household_level: Names | None = None,
    weights: str | None = None,
    columns: Mapping[str, Any] | None = None,
    models: Sequence[Model] | Model = (),
    accept: Names = (),
    scaling: str = "zscore",
    missing: str = "error",
    method: str = "auto",
    objective: Literal["sse", "ncp"] = "sse",
    rho: float | Literal["song"] | None = None,
    steer: Mapping[str, float] | None = None,
    truthful: bool = False,
    intervals: str = "text",
    seed: Seed = None,
    threads: int | None = None,
    progress: Progress | None = None,
    reading: Mapping[str, Any] | None = None,
    engine: str | None = None,
    memory: str | None = None,
    **options: Any,
) -> "Release | DiskRelease | SparkRelease":
    """Make a table k-anonymous by microaggregation.

    Parameters
    ----------
    table : path, address, frame or connection
        A file in one of the formats of `shoal.sources.FORMATS`; a pandas, polars or pyarrow table; a DuckDB relation; a
        database, by its address or an ADBC or DuckDB connection, with ``reading={"table": ...}`` or
        ``reading={"query": ...}``. Not changed.
    k : int
        Smallest equivalence class: minimum number of records per published combination of quasi-identifiers.
    quasi_identifiers : sequence of str
        Columns that an intruder could know about a person. They are microaggregated. Also accepted under the names
        `qi`, `keyVars` and `numVars` of other tools.
    identifiers : sequence of str
        Columns that are dropped.
    confidential : sequence of str
        Sensitive columns, published unchanged, that must not be attributed to a person; also `sensitive`.
    other : sequence of str
        Columns that are published unchanged.
    by : sequence of str
        Stratification columns: quasi-identifiers that are constant within each cell and published unchanged; also
        `strataVar`.
    subject : str, optional
        Column that identifies the person of each record: then k counts distinct persons, and models also hold with
        each person counted once for each value (``docs/models.md``). Dropped unless it has another role.
    household, household_level : str and sequence of str, optional
        Column that identifies households, and the quasi-identifiers that stay equal within a household; by default
        those that are equal within every household. Also `hhId`.
    weights : str, optional
        Column of survey weights: means are weighted, so weighted totals are preserved. Also `weightVar`.
    columns : dict of str to dict, optional
        Settings of single columns: kind, order, missing_codes, fold, weight, aggregate, round, top, bottom,
        keep_zeros, hierarchy, outside, level, distance, step, precision; see `shoal.columns.schema.ColumnSettings`.
    models : sequence of Model
        Privacy models for confidential columns in addition to k, such as ``shoal.TCloseness("salary", t=0.1)`` or
        ``shoal.LDiversity("diagnosis", l=3)``; see ``docs/models.md``. If a model cannot be satisfied exactly, an
        error is raised.
    accept : sequence of str
        Findings to accept, by name, for all columns or as ``"COLUMN=NAME"`` for one; see
        `shoal.findings.FINDINGS`.
    scaling : {"zscore", "minmax", "none"}
        Scaling of the columns.
    missing : {"error", "own-value"}
        Treatment of missing quasi-identifiers.
    method : str
        One of the methods listed in ``docs/methods.md``.
    objective : {"sse", "ncp"}
        What cells are made for: "sse" keeps the means near, "ncp" keeps ranges narrow, sets small and ancestors low.
        Method "auto" has both: ``docs/ncp.md``.
    rho : float or "song", optional
        Random aggregation, from 0 (the mean of the cell) to 1 (anywhere in its range; "song" is another name for it).
        For numbers only. Above 0 the release is **not** k-anonymous, and the verdict says so: ``docs/random.md``.
    steer : dict of str to float, optional
        Columns that steer the partition, whatever their role, and their weights: positive to keep equal values
        together, negative to distribute them over cells. Only k is guaranteed: ``docs/steering.md``.
    truthful : bool
        Publish only values that are true of every record of their class: numbers as intervals, dates as periods,
        columns with a hierarchy as the common ancestor, others as sets: ``docs/truthful.md``.
    intervals : {"text", "columns", "struct"}
        How intervals are published: as text such as ``[30, 39]``, in two columns ``age.low`` and ``age.high``, or as a
        struct, which Parquet and Arrow can hold.
    seed : int, optional
        Seed that reproduces the release. By default random, stored in ``release.job``. With `rho` it must be hard to
        guess.
    threads : int, optional
        Maximum number of threads; all cores by default. The release does not depend on it.
    progress : callable, optional
        Called repeatedly as ``progress(done, n_records)``: first with 0, always with the same total.
    reading : dict, optional
        Options for reading a file; see `shoal.sources.read`.
    engine : {"memory", "disk", "spark"}, optional
        What makes the release: "memory" with all records in memory, "disk" with a part of them at a time, from a file
        or a folder of Parquet files that may be larger than memory (``docs/howto/larger_than_memory.md``), "spark" a
        Spark cluster, from Parquet or a Spark DataFrame (``docs/spark.md``).
    memory : str, optional
        How much memory the engine "disk" may use, such as ``"2GB"``; it chooses that engine, and 1GB is its default.
    **options
        Options of the method, such as ``effort="best", seconds=60``. An unknown option is an error.

    Returns
    -------
    Release
        The published table with its verdict, loss and risk. Of the engine "disk" a
        `shoal.engines.disk.disk_release.DiskRelease`, whose records stay in a scratch folder until it is written and
        closed; of the engine "spark" a `shoal.engines.spark.spark_release.SparkRelease`.

    Raises
    ------
    SchemaError
        If columns and roles do not match the table, a quasi-identifier has values that cannot be used, or the column of
        a model is not confidential.
    QuestionError
        A `SchemaError`: if the default interpretation of a quasi-identifier would publish single persons' values or
        averages of codes, and no setting resolves it. It holds the findings, each with the settings that resolve it.
    ParameterError
        If a setting is invalid.
    GuaranteeError
        If there are too few records or subjects, in the table or in a stratum, or a model cannot be satisfied.

    Notes
    -----
    Everything but the partition takes O(n log n) time in records.

    Examples
    --------
    >>> people = pa.table({"age": [20, 21, 40, 44], "disease": ["flu", "cold", "flu", "cold"]})
    >>> release = anonymize(people, k=2, quasi_identifiers=["age"], confidential=["disease"])
    >>> release.table["age"].to_pylist()
    [20.5, 20.5, 42.0, 42.0]
    >>> release.verdict.holds, release.verdict.smallest
    (True, 2)
    """
    given = {
        "quasi_identifiers": as_names(quasi_identifiers),
        "identifiers": as_names(identifiers),
        "confidential": as_names(confidential),
        "other": as_names(other),
        "by": as_names(by),
        "subject": subject,
        "household": household,
        "household_level": None if household_level is None else as_names(household_level),
        "weights": weights,
    }
    job = Job.of(
        k=k,
        method=method,
        objective=objective,
        scaling=scaling,
        missing=missing,
        rho=rho,
        steer=dict(steer or {}),
        truthful=truthful,
        intervals=intervals,
        seed=seed,
        roles=_without_aliases(given, options),
        columns=dict(columns or {}),
        models=models,
        accept=as_names(accept),
        options=options,
        engine=engine,
        memory=memory,
    )
    if job.chosen_engine == "disk":
        return execute_on_disk(job, open_batches(table, **(reading or {})), threads=threads, progress=progress)
    if job.chosen_engine == "spark":
        return execute_on_spark(job, table, reading or {}, threads=threads, progress=progress)
    return execute_job(job, read(table, **(reading or {})), threads=threads, progress=progress)


def _without_aliases(given: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """Move roles given under the names of other tools from the options to the roles; raise on misspelled arguments."""
    roles = dict(given)
    for name in options:
        near = get_close_matches(name, [*roles, *_SETTINGS, *ALIASES], n=1, cutoff=0.8)
        if near and name not in ALIASES:
            raise ParameterError(f"Unknown argument {name!r}. Did you mean {near[0]!r}?")
    for alias in [name for name in options if name in ALIASES]:
        name, value = ALIASES[alias], options.pop(alias)
        if isinstance(roles[name], list):
            roles[name] = [*roles[name], *as_names(value)]
        elif roles[name] is None:
            roles[name] = value
        else:
            raise SchemaError(f"{name!r} and its alias {alias!r} are both given. Give only one of them.")
    return roles


def execute_job(job: Job, table: Table, *, threads: int | None = None, progress: Progress | None = None) -> "Release":
    """Make the release that a job describes from a table."""
    check_late(job)
    if job.seed is None:
        job = job.model_copy(update={"seed": secrets.randbits(63)})
    whole = OneTotal(progress, table.n_records)
    made = prepared(job, table.seal())
    schema, original = made.schema, made.original
    space = Space.fit(original, schema, job.scaling)
    X = space.encode(original)
    part = whole.part(0.05, 0.9)
    settings = {
        "models": job.models,
        "steering": job.steer,
        "objective": job.objective,
        "threads": threads,
        "progress": part,
        **job.options,
    }
    with kernels.using(threads):
        cells = group(original, schema, space, X, job.k, job.method, job.seed, **settings)
        if schema.roles.subject is not None and schema.roles.household is None and job.models:
            cells = _kept_by_classes(job, made, X, cells)
        release = conclude(job, table, made, space, X, cells, threads)
    whole.finish()
    return release


def _kept_by_classes(job: Job, made: Prepared, X: Matrix, cells: Cells) -> Cells:
    """Return cells whose equivalence classes also satisfy every model with each person counted once."""
    schema, original, weights, _ = made
    bounds = constraints_of(original, schema, job.k, job.models)
    strata = {column.name: original[column.name] for column in schema.having(Role.BY)}

    def published(labels: Labels) -> pa.Table:
        return pa.table({**strata, **aggregate(original, schema, Cells(labels), weights)})

    return Cells(joined_where_alike(X, cells.labels, bounds.strata, bounds.kept, published))


def conclude(
    job: Job, table: Table, made: Prepared, space: Space, X: Matrix, cells: Cells, threads: int | None = None
) -> "Release":
    """Make the release from the cells; raise if the recount does not confirm the guarantees."""
    schema, original, weights, findings = made
    strata = {column.name: original[column.name] for column in schema.having(Role.BY)}
    randomized = RandomAggregation(job.rho, job.seed or 0) if job.rho else None  # rho = 0 is microaggregation
    replaced = pa.table({**strata, **aggregate(original, schema, cells, weights, randomized)})
    published = Published(table, schema, replaced)
    verdict = recount(published, schema, job.k, _subjects(original, schema), job.models, original)
    if randomized is not None:
        verdict = replace(verdict, withdrawn=WITHDRAWN.format(rho=randomized.rho))
    verdict.require()
    alike = {column.name: None if randomized else cells.of(column) for column in schema.quasi}
    measured = _measured(replaced, schema, original)
    loss = table_loss(space, original, measured, alike)
    values = (space, original, weights, X, replaced, measured, cells)
    release = Release(job, table, schema, *values, findings, verdict, loss, threads)
    near_unique = {f"{column}={SINGLE_VALUES}" for column in accepted_columns(job, "near-unique-text", schema)}
    ask(single_value_findings(release.contributions, schema), (*job.accept, *near_unique))
    for text in release.warnings:
        python_warnings.warn(text, ShoalWarning, stacklevel=4)
    return release


def _measured(replaced: pa.Table, schema: Schema, original: pa.Table) -> pa.Table:
    """Return the published quasi-identifiers as plain values, intervals by their middle (`stand_ins`)."""
    coarse = [column for column in schema.quasi if column.is_true]
    return with_columns(
        replaced, {column.name: stand_ins(replaced[column.name], column, original[column.name]) for column in coarse}
    )


def run(
    job: Job | str | os.PathLike[str],
    table: Any = None,
    *,
    force: bool = False,
    save_job: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> "Release | DiskRelease | SparkRelease":
    """Make the release that a job describes, and write it where the job says.

    Parameters
    ----------
    job : Job or path
        The job, or the TOML file that holds it. Its paths are relative to the current folder.
    table : path or frame, optional
        Table to anonymize instead of the job's input.
    force : bool
        Overwrite existing files.
    save_job : path, optional
        TOML file for the job with the seed that was used, written together with the release.
    threads, progress
        As in `anonymize`.

    Returns
    -------
    Release
        The same as from `anonymize` with the same settings; with the same seed, the same bytes.

    Examples
    --------
    >>> people = pa.table({"age": [20, 21, 40, 44]})
    >>> job = Job.of(k=2, roles={"quasi_identifiers": ["age"]}, seed=1)
    >>> run(job, people).table["age"].to_pylist()
    [20.5, 20.5, 42.0, 42.0]
    """
    read_too = [] if isinstance(job, Job) else [job]
    if not isinstance(job, Job):
        job = Job.load(job)
    if table is None and job.input is None:
        raise ParameterError("The job has no input. Set a path in [input], or pass a table.")
    if save_job is not None and job.output is None:
        raise ParameterError("The job is to be saved beside its release, but it has no output. Set a path in [output].")
    given = job.input.path if table is None and job.input is not None else table
    reading = job.input.reading() if job.input is not None else {}
    if job.chosen_engine == "spark":
        return run_on_spark(job, given, reading, save_job=save_job, force=force, threads=threads, progress=progress)
    if job.output is not None:
        inputs = [*read_too, *job.files, *([given] if isinstance(given, str | os.PathLike) else [])]
        check_free_files(output_files(job.output, save_job), force, inputs)
    if job.chosen_engine == "disk":
        return _run_on_disk(job, given, reading, save_job, force, threads, progress)
    release = execute_job(job, read(given, **reading), threads=threads, progress=progress)
    if job.output is not None:
        out = job.output
        release.write(
            out.path,
            to_table=out.to_table,
            manifest=out.manifest,
            to_format=out.to_format,
            report=out.report,
            form=out.form,
            json=out.json_file,
            bound=out.bound,
            **out.said(),
            order=out.order,
            save_job=save_job,
            force=force,
        )
    return release


def _run_on_disk(
    job: Job,
    given: Any,
    reading: dict[str, Any],
    save_job: str | os.PathLike[str] | None,
    force: bool,
    threads: int | None,
    progress: Progress | None,
) -> DiskRelease:
    """Make a release in blocks, write it where the job says, and remove the scratch folder."""
    out = job.output
    files = None if out is None else output_files(out, save_job)
    if files is not None:
        check_parts(files)
    target = Path(os.path.realpath(files.table)) if files is not None and isinstance(files.table, Path) else None
    release = execute_on_disk(job, open_batches(given, **reading), threads=threads, progress=progress, target=target)
    if out is not None and files is not None:
        with release:
            release.write_files(files, order=out.order, force=force, said=out.said())
    return release


def output_files(output: Output, save_job: str | os.PathLike[str] | None = None) -> Files:
    """Return the files that a job writes."""
    check_reports(output.report, output.json_file, output.form, output.bound, **output.said())
    files = (output.report, output.json_file, save_job)
    return Files.of(output.path, *files, output.form, output.to_table, output.manifest, output.to_format)


@dataclass(frozen=True)
class Published:
    """The columns of a release: replaced columns are in memory, the others are loaded on access."""

    source: Table
    schema: Schema
    replaced: pa.Table

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        return (self.replaced if has_column(self.replaced, name) else self.source.load([name]))[name]

    def select(self, names: Sequence[str]) -> pa.Table:
        """Return some columns."""
        return pa.table({name: self[name] for name in names})


def _subjects(table: pa.Table, schema: Schema) -> pa.ChunkedArray | None:
    return None if schema.roles.subject is None else table[schema.roles.subject]


@dataclass(frozen=True, eq=False)
class Release:
    """A table that may be published, with its verdict and measures.

    Attributes
    ----------
    job : Job
        The settings, with the seed that reproduces the release.
    X : ndarray of shape (n_records, n_dims)
        The original records in the space where distances are measured.
    findings : list of Finding
        Findings about the quasi-identifiers that are accepted or need no answer.
    verdict : Verdict
        The guarantees of the published table, recounted.
    loss : TableLoss
        Information loss.
    threads : int or None
        Maximum number of threads of what is measured on demand; all cores by default.
    """

    job: Job
    source: Table = field(repr=False)
    schema: Schema = field(repr=False)
    space: Space = field(repr=False)
    original: pa.Table = field(repr=False)
    weights: Vector | None = field(repr=False)
    X: Matrix = field(repr=False)
    replaced: pa.Table = field(repr=False)
    measured: pa.Table = field(repr=False)
    cells: Cells = field(repr=False)
    findings: list[Finding] = field(repr=False)
    verdict: Verdict
    loss: TableLoss
    threads: int | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        verdict = self.verdict
        holds = "k is not claimed" if verdict.withdrawn else "holds" if verdict.holds else "does not hold"
        return (
            f"Release(k={self.job.k}, {holds}: {verdict.n_records:,} records x {len(self.schema.published)} columns in "
            f"{verdict.n_classes:,} classes of at least {verdict.smallest:,}, information loss {self.loss.il:.4g} %)"
        )

    @property
    def published(self) -> pa.Table:
        """The published columns, in the order of the input, without hidden data in their buffers."""
        published = self.columns.select([column.name for column in self.schema.published])
        return publishable(laid_out(published, self.schema, self.job.intervals))

    @property
    def columns(self) -> Published:
        """The published columns, each loaded on access."""
        return Published(self.source, self.schema, self.replaced)

    @property
    def plain_columns(self) -> Published:
        """The same with the middle of each interval, set, ancestor and period in its place, for measures and plots."""
        return Published(self.source, self.schema, self.measured)

    @property
    def table(self) -> Any:
        """The published table, as the same kind of frame as the input and in its order."""
        return self.source.like(self.published)

    @property
    def labels(self) -> Labels:
        """Cell number of each record, in the order of the input; not published."""
        return self.cells.labels

    def rows(self, order: Order) -> NDArray[np.int64] | None:
        """Return the record number of each row of the written table; None for the order of the input."""
        return written_order(self, order)

    def write_table(self, table: TableInTheMaking, rows: NDArray[np.int64] | None) -> None:
        """Write the published table; used by `write`."""
        table.write(self, rows)

    def recount_table(self, table: TableInTheMaking, rows: NDArray[np.int64] | None) -> None:
        """Recount the guarantees on a written table; raise if they do not hold."""
        recount_table(self, table, rows)

    @cached_property
    def risk(self) -> Risk:
        """Reidentification risk against an intruder who holds the original values."""
        alike = None if self.verdict.withdrawn else self.labels
        with kernels.using(self.threads):
            tables = (self.original, self.replaced, self.measured)
            return table_risk(*tables, self.schema, self.space, self.X, alike, self.weights)

    @property
    def said(self) -> tuple[str, ...]:
        """Notes of the reader on what the records do not show, such as hidden rows."""
        return self.source.receipt.said

    @cached_property
    def codebook(self) -> list[dict[str, Any]]:
        """Name, labels, kind and treatment of each published column."""
        labels = self.source.labels
        described = {*labels.variables, *labels.values} if labels is not None else set()
        needed = self.columns.select([column.name for column in self.schema.published if column.name in described])
        return codebook(self.schema, labels, needed, bool(self.job.rho))

    @cached_property
    def contributions(self) -> list[Contribution]:
        """Columns with published values that depend on a single record; empty for random aggregation."""
        if self.job.rho:
            return []
        return contributions(self.original, self.replaced, self.schema, self.cells, self.weights)

    @cached_property
    def utility(self) -> dict[str, Any]:
        """Data utility: changes of means, variances, correlations and categories."""
        with kernels.using(self.threads):
            return table_utility(self.original, self.measured, self.schema, self.weights)

    @cached_property
    def attacks(self) -> list[Attack]:
        """Attribute disclosure without reidentification: from k - 1 known records, and from the groups."""
        rho = self.job.rho or 0.0
        with kernels.using(self.threads):
            return attacks_on(self.original, self.columns, self.schema, self.space, self.X, self.labels, rho)

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
        if (effort, seconds) not in self._bounds:
            self._bounds[effort, seconds] = lower_bound(self.X, self.job.k, effort=effort, seconds=seconds)
        return self._bounds[effort, seconds]

    @cached_property
    def _bounds(self) -> dict[tuple[str, float], Bound]:
        return {}

    @cached_property
    def certainty(self) -> Ncp | None:
        """Certainty penalty of the exact ranges and sets, if cells are made for it or show them."""
        made_for_it = self.job.objective == "ncp" or any(column.is_true for column in self.schema.quasi)
        labels_of = {column.name: self.cells.of(column) for column in self.schema.quasi}
        return ncp(self.original, self.schema, labels_of) if made_for_it else None

    @cached_property
    def measures(self) -> dict[str, Any]:
        """Loss, risk, utility and attacks as plain values; they describe the original too, so they are internal."""
        return {
            "loss": self.loss.to_dict(),
            **({} if self.certainty is None else {"certainty": self.certainty.to_dict()}),
            "risk": self.risk.to_dict(),
            "utility": self.utility,
            "attacks": [attack.to_dict() for attack in self.attacks],
        }

    def write(
        self,
        path: str | os.PathLike[str],
        *,
        to_table: str | None = None,
        manifest: str | os.PathLike[str] | None = None,
        to_format: str | None = None,
        report: str | os.PathLike[str] | None = None,
        form: Form = "internal",
        json: str | os.PathLike[str] | None = None,
        bound: BoundEffort | None = None,
        title: str | None = None,
        author: str | None = None,
        date: str | None = None,
        order: Order = "shuffle",
        save_job: str | os.PathLike[str] | None = None,
        force: bool = False,
        before_publishing: Callable[[], None] | None = None,
    ) -> list[Path]:
        """Write the release, its two manifests and, optionally, its report: all of them or none.

        Parameters
        ----------
        path : path
            File for the published table, in one of the formats of `shoal.sources.FORMATS`. Written beside it are
            ``PATH.public.json``, which may be published with the data, and ``PATH.internal.json``, which reproduces
            the release and must be kept private. Or the address or file of a database; its table ``shoal_manifest``
            then holds the public manifest. Or ``"-"``, standard output.
        to_table : str, optional
            New table of the database, as NAME or SCHEMA.NAME. It is written, read back, recounted and committed in one
            transaction. With `force` it replaces an older table, but never one that was read.
        manifest : path, optional
            File for the internal manifest; by default beside the file, for a server ``TABLE.internal.json`` in the
            current folder. Standard output requires it, and the public manifest is written beside it.
        to_format : str, optional
            Format on standard output, by its extension without the dot, such as ``"csv"``; by default that of the
            input file.
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
        save_job : path, optional
            TOML file for the job, with its seed.
        force : bool
            Overwrite existing files.
        before_publishing : callable, optional
            Called when all files are complete and before they are renamed; if it raises, no file appears.

        Returns
        -------
        list of Path
            The files, the table first unless it is in a database.

        Raises
        ------
        FileError
            If a file exists, cannot be written or is the input file, or if the input file has changed. No partial files
            remain.
        GuaranteeError
            If the file, read back, does not satisfy the guarantees of the verdict.
        """
        check_reports(report, json, form, bound, title=title, author=author, date=date)
        files = Files.of(path, report, json, save_job, form, to_table, manifest, to_format)
        said: dict[str, Any] = {} if bound is None else {"bound": self.bound(bound).il}
        said |= {"title": title, "author": author, "date": date}
        with kernels.using(self.threads):
            write_release(self, files, order, force=force, said=said, before_publishing=before_publishing)
        return files.paths

    def _repr_html_(self) -> str:
        """Return a summary for notebooks; it measures the risk, as `write` does."""
        return to_summary(self.verdict, self.measures, self.warnings)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Warnings to review before publishing."""
        return tuple(warnings_of(self))
