"""Release: the whole flow, from any table to one that may be published.

    table -> schema -> space -> cells -> aggregate -> audit + loss -> release

A guarantee that the recount does not find raises, and nothing is released.
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

from shoal.attacks import Attack, attacks_on
from shoal.auditing import Verdict, recount
from shoal.cells.aggregate import Cells, RandomAggregation, aggregate
from shoal.cells.alike import joined_where_alike
from shoal.cells.constraints import constraints_of
from shoal.cells.contributors import Contribution, contributions, single_value_findings
from shoal.cells.grouping import group
from shoal.columns.equivalence import value_codes
from shoal.columns.findings import SINGLE_VALUES, Finding, ask
from shoal.columns.schema import ALIASES, Role, Schema, as_names
from shoal.columns.space import Space
from shoal.errors import ParameterError, SchemaError, ShoalWarning
from shoal.files import check_free
from shoal.job import BoundEffort, Job, Order, Output
from shoal.metrics.bound import Bound, lower_bound
from shoal.metrics.risk import Risk
from shoal.metrics.table_loss import TableLoss, table_loss
from shoal.metrics.table_risk import table_risk, table_utility
from shoal.models import Model
from shoal.preparing import Prepared, check_bound, column_findings, prepared
from shoal.progress import OneTotal
from shoal.report.codebook import codebook
from shoal.report.notebook import to_summary
from shoal.table import Table, read
from shoal.table.clean import publishable
from shoal.typing import Labels, Matrix, Progress, Seed, Vector
from shoal.writing import Files, write_release

Names = Sequence[str] | str
Form = Literal["internal", "public"]

_SETTINGS = (
    "columns",
    "models",
    "accept",
    "steer",
    "scaling",
    "missing",
    "method",
    "rho",
    "seed",
    "threads",
    "progress",
    "reading",
)

SMALL_SEED = 2**32
"""Smaller seeds can be tried one after the other."""

WITHDRAWN = (
    "k is not claimed: random aggregation (rho = {rho:g}) gives every record of a group values of its own around the "
    "mean of the group, so that records no longer hide among equals. This is not differential privacy either, whatever "
    "it has been called: the noise is bounded and its range comes from the records themselves, so there is no epsilon. "
    "What it protects from is measured (the risks of the internal report), not guaranteed."
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
    rho: float | Literal["song"] | None = None,
    steer: Mapping[str, float] | None = None,
    seed: Seed = None,
    threads: int | None = None,
    progress: Progress | None = None,
    reading: Mapping[str, Any] | None = None,
    **options: Any,
) -> "Release":
    """Make a table k-anonymous by microaggregation.

    Parameters
    ----------
    table : path or frame
        A file in one of the formats of `shoal.table.FORMATS`; a pandas, polars or pyarrow table; a DuckDB relation.
        Not changed.
    k : int
        Every published combination of quasi-identifiers belongs to at least so many records.
    quasi_identifiers : sequence of str
        Columns that somebody could know about a person. They are grouped and replaced. Users of other tools may say
        `qi`, `keyVars` or `numVars`.
    identifiers : sequence of str
        Columns that are dropped.
    confidential : sequence of str
        Columns that are published as they are and that nobody should learn about a person; also `sensitive`.
    other : sequence of str
        Columns that are published as they are.
    by : sequence of str
        Quasi-identifiers that no cell mixes, so that they are published as they are; also `strataVar`.
    subject : str, optional
        A column that tells which records belong to one person: then k counts different persons, and models also
        hold with each person counted once for each value (``docs/models.md``). Dropped unless it has another role.
    household, household_level : str and sequence of str, optional
        A column that tells which records form a household, and the quasi-identifiers that stay equal within it; by
        default those that are equal within every household. Also `hhId`.
    weights : str, optional
        A column of survey weights: means are weighted, so weighted totals are kept. Also `weightVar`.
    columns : dict of str to dict, optional
        Settings of single columns: kind, order, missing_codes, fold, weight, aggregate, round, top, bottom,
        keep_zeros; see
        `shoal.columns.schema.ColumnSettings`.
    models : sequence of Model
        What to promise about confidential columns beyond k, such as ``shoal.TCloseness("salary", t=0.1)`` or
        ``shoal.LDiversity("diagnosis", l=3)``; see ``docs/models.md``. Kept to the letter, or refused.
    accept : sequence of str
        Findings that are known and accepted, by name, for all columns or as ``"COLUMN=NAME"`` for one; see
        `shoal.columns.findings.FINDINGS`.
    scaling : {"zscore", "minmax", "none"}
        What makes columns comparable.
    missing : {"error", "own-value"}
        What to do with missing quasi-identifiers.
    method : str
        One of `shoal.partition.ALGORITHMS`.
    rho : float or "song", optional
        Random aggregation, from 0 (the mean of the cell) to 1 (anywhere in its range; "song" is another name for it).
        For numbers only. Above 0 the release is **not** k-anonymous, and the verdict says so: ``docs/random.md``.
    steer : dict of str to float, optional
        Columns that lead the grouping, whatever their role, and their weights: positive to keep equal values together,
        negative to spread them over cells. Nothing is promised, and k is kept all the same: ``docs/steering.md``.
    seed : int, optional
        Repeats the release. By default a random one, kept in ``release.job``. With `rho` it should not be guessed.
    threads : int, optional
        How many threads may work; all cores by default. The release does not depend on it.
    progress : callable, optional
        Called now and then as ``progress(done, n_records)``: first with 0, always with the same total.
    reading : dict, optional
        How to read a file; see `shoal.table.read`.
    **options
        What the method itself takes, such as ``effort="best", seconds=60``. An option it does not know is an error.

    Returns
    -------
    Release
        The published table with its verdict, loss and risk.

    Raises
    ------
    SchemaError
        If columns and roles do not fit the table, a quasi-identifier has values that cannot be used, or the column of a
        model is not confidential.
    QuestionError
        A `SchemaError`: if the likely reading of a quasi-identifier would publish single persons' values or averages of
        codes, and nothing says how it is meant. It holds the findings, each with the settings that settle it.
    ParameterError
        If a setting cannot be used.
    GuaranteeError
        If there are too few records or subjects, in the table or in a stratum, or a model cannot be kept.

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
        scaling=scaling,
        missing=missing,
        rho=rho,
        steer=dict(steer or {}),
        seed=seed,
        roles=_without_aliases(given, options),
        columns=dict(columns or {}),
        models=models,
        accept=as_names(accept),
        options=options,
    )
    return execute_job(job, read(table, **(reading or {})), threads=threads, progress=progress)


def _without_aliases(given: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """Move what goes by a name of other tools from the options to the roles; refuse a role that is misspelled."""
    roles = dict(given)
    for name in options:
        near = get_close_matches(name, [*roles, *_SETTINGS, *ALIASES], n=1, cutoff=0.8)
        if near and name not in ALIASES:
            raise ParameterError(f"There is no argument {name!r}. Did you mean {near[0]!r}?")
    for alias in [name for name in options if name in ALIASES]:
        name, value = ALIASES[alias], options.pop(alias)
        if isinstance(roles[name], list):
            roles[name] = [*roles[name], *as_names(value)]
        elif roles[name] is None:
            roles[name] = value
        else:
            raise SchemaError(f"{name!r} and its other name {alias!r} are both given. Say it once.")
    return roles


def execute_job(job: Job, table: Table, *, threads: int | None = None, progress: Progress | None = None) -> "Release":
    """Make the release that a job describes from a table that has been read."""
    if job.late is not None:
        raise ParameterError(
            "The job says how late records join (late), which only a collection has. Leave it out, or begin a "
            "collection with the job: shoal collect begin."
        )
    if job.seed is None:
        job = job.model_copy(update={"seed": secrets.randbits(63)})
    whole = OneTotal(progress, table.n_records)
    made = prepared(job, table.seal())
    schema, original = made.schema, made.original
    space = Space.fit(original, schema, job.scaling)
    X = space.encode(original)
    part = whole.part(0.05, 0.9)
    settings = {"models": job.models, "steering": job.steer, "threads": threads, "progress": part, **job.options}
    cells = group(original, schema, space, X, job.k, job.method, job.seed, **settings)
    if schema.roles.subject is not None and schema.roles.household is None and job.models:
        cells = _kept_by_classes(job, made, X, cells)
    release = conclude(job, table, made, space, X, cells)
    whole.finish()
    return release


def _kept_by_classes(job: Job, made: Prepared, X: Matrix, cells: Cells) -> Cells:
    """Return cells whose classes keep every model too, where persons count once."""
    schema, original, weights = made
    bounds = constraints_of(original, schema, job.k, job.models)
    strata = {column.name: original[column.name] for column in schema.having(Role.BY)}

    def published(labels: Labels) -> pa.Table:
        return pa.table({**strata, **aggregate(original, schema, Cells(labels), weights)})

    return Cells(joined_where_alike(X, cells.labels, bounds.strata, bounds.kept, published))


def conclude(job: Job, table: Table, made: Prepared, space: Space, X: Matrix, cells: Cells) -> "Release":
    """Make the release of records whose cells are known, or raise if the recount does not find what was asked for."""
    schema, original, weights = made
    strata = {column.name: original[column.name] for column in schema.having(Role.BY)}
    randomized = RandomAggregation(job.rho, job.seed or 0) if job.rho else None  # rho = 0 is microaggregation
    replaced = pa.table({**strata, **aggregate(original, schema, cells, weights, randomized)})
    published = Published(table, schema, replaced)
    verdict = recount(published, schema, job.k, _subjects(original, schema), job.models)
    if randomized is not None:
        verdict = replace(verdict, withdrawn=WITHDRAWN.format(rho=randomized.rho))
    verdict.require()
    alike = {column.name: None if randomized else cells.of(column) for column in schema.quasi}
    loss = table_loss(space, original, replaced, alike)
    release = Release(job, table, schema, space, original, weights, X, replaced, cells, verdict, loss)
    near_unique = {f"{column}={SINGLE_VALUES}" for column in _accepted_columns(job, "near-unique-text", schema)}
    ask(single_value_findings(release.contributions, schema), (*job.accept, *near_unique))
    for text in release.warnings:
        python_warnings.warn(text, ShoalWarning, stacklevel=4)
    return release


def _accepted_columns(job: Job, name: str, schema: Schema) -> list[str]:
    """Return the quasi-identifiers for which a finding is accepted."""
    return [column for column in schema.quasi_names if {name, f"{column}={name}"} & set(job.accept)]


def run(
    job: Job | str | os.PathLike[str],
    table: Any = None,
    *,
    force: bool = False,
    save_job: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> "Release":
    """Make the release that a job describes, and write it where the job says.

    Parameters
    ----------
    job : Job or path
        The job, or the TOML file that holds it. Its paths are relative to the current folder.
    table : path or frame, optional
        What to anonymize, in place of the job's input.
    force : bool
        Replace files that are there already.
    save_job : path, optional
        TOML file for the job with the seed that was used, written together with the release.
    threads, progress
        As in `anonymize`.

    Returns
    -------
    Release
        The same as `anonymize` makes with the same settings; with the same seed, the same bytes.

    Examples
    --------
    >>> people = pa.table({"age": [20, 21, 40, 44]})
    >>> job = Job.of(k=2, roles={"quasi_identifiers": ["age"]}, seed=1)
    >>> run(job, people).table["age"].to_pylist()
    [20.5, 20.5, 42.0, 42.0]
    """
    if not isinstance(job, Job):
        job = Job.load(job)
    if table is None and job.input is None:
        raise ParameterError("The job names no input. Give it a path in [input], or hand over a table.")
    if save_job is not None and job.output is None:
        raise ParameterError("The job is to be saved beside its release, but it names no output. Give it a path.")
    given = job.input.path if table is None and job.input is not None else table
    if job.output is not None:
        inputs = [given] if isinstance(given, str | os.PathLike) else []
        check_free(output_files(job.output, save_job).paths, force, inputs)
    source = read(given, **(job.input.reading() if job.input is not None else {}))
    release = execute_job(job, source, threads=threads, progress=progress)
    if job.output is not None:
        out = job.output
        release.write(
            out.path,
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


def output_files(output: Output, save_job: str | os.PathLike[str] | None = None) -> Files:
    """Name the files that a job writes."""
    return Files.of(output.path, output.report, output.json_file, save_job, output.form)


@dataclass(frozen=True)
class Published:
    """The columns of a release: those replaced are in memory, the others are loaded when they are looked at."""

    source: Table
    schema: Schema
    replaced: pa.Table

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        return (self.replaced if name in self.replaced.column_names else self.source.load([name]))[name]

    def select(self, names: Sequence[str]) -> pa.Table:
        """Return some columns."""
        return pa.table({name: self[name] for name in names})


def _subjects(table: pa.Table, schema: Schema) -> pa.ChunkedArray | None:
    return None if schema.roles.subject is None else table[schema.roles.subject]


@dataclass(frozen=True, eq=False)
class Release:
    """A table that may be published, and what there is to say about it.

    Attributes
    ----------
    job : Job
        What was asked for, with the seed that repeats it.
    X : ndarray of shape (n_records, n_dims)
        The original records in the space where distances are measured.
    verdict : Verdict
        What the published table keeps, recounted.
    loss : TableLoss
        What was lost.
    """

    job: Job
    source: Table = field(repr=False)
    schema: Schema = field(repr=False)
    space: Space = field(repr=False)
    original: pa.Table = field(repr=False)
    weights: Vector | None = field(repr=False)
    X: Matrix = field(repr=False)
    replaced: pa.Table = field(repr=False)
    cells: Cells = field(repr=False)
    verdict: Verdict
    loss: TableLoss

    def __repr__(self) -> str:
        verdict = self.verdict
        holds = "k is not claimed" if verdict.withdrawn else "holds" if verdict.holds else "does not hold"
        return (
            f"Release(k={self.job.k}, {holds}: {verdict.n_records:,} records x {len(self.schema.published)} columns in "
            f"{verdict.n_classes:,} classes of at least {verdict.smallest:,}, information loss {self.loss.il:.4g} %)"
        )

    @property
    def published(self) -> pa.Table:
        """The published columns, in the order of the input, with nothing in memory that no record has."""
        return publishable(self.columns.select([column.name for column in self.schema.published]))

    @property
    def columns(self) -> Published:
        """The published columns, each loaded when it is looked at."""
        return Published(self.source, self.schema, self.replaced)

    @property
    def table(self) -> Any:
        """The published table: the kind of frame that came in, in the order of the input."""
        return self.source.like(self.published)

    @property
    def labels(self) -> Labels:
        """Cell number of each record, in the order of the input; not published."""
        return self.cells.labels

    @cached_property
    def risk(self) -> Risk:
        """How well an intruder who holds the original values finds people in the release."""
        alike = None if self.verdict.withdrawn else self.labels
        return table_risk(self.original, self.replaced, self.schema, self.space, self.X, alike, self.weights)

    @cached_property
    def findings(self) -> list[Finding]:
        """What was found about the quasi-identifiers and is accepted, or needs no answer."""
        return column_findings(self.source, self.schema, self.original)

    @cached_property
    def codebook(self) -> list[dict[str, Any]]:
        """What each published column is called, holds and went through."""
        labels = self.source.labels
        described = {*labels.variables, *labels.values} if labels is not None else set()
        needed = self.columns.select([column.name for column in self.schema.published if column.name in described])
        return codebook(self.schema, labels, needed, bool(self.job.rho))

    @cached_property
    def contributions(self) -> list[Contribution]:
        """The columns of which some published values rest on one record; none where every record has its own."""
        if self.job.rho:
            return []
        return contributions(self.original, self.replaced, self.schema, self.cells, self.weights)

    @cached_property
    def utility(self) -> dict[str, Any]:
        """What analysts still find: changes of means, variances, correlations, and of categories."""
        return table_utility(self.original, self.replaced, self.schema, self.weights)

    @cached_property
    def attacks(self) -> list[Attack]:
        """What an intruder learns without finding a record: from k - 1 known records, and from the groups."""
        rho = self.job.rho or 0.0
        return attacks_on(self.original, self.columns, self.schema, self.space, self.X, self.labels, rho)

    def bound(self, effort: BoundEffort = "cheap", seconds: float = 60.0) -> Bound:
        """Return what no release of these records with this k can lose less than; see `shoal.metrics.lower_bound`.

        It holds for groups of any shape, also without the strata, subjects and models that were asked for, each
        published as its mean, and for squared distances as this release measures them.

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
    def measures(self) -> dict[str, Any]:
        """Loss, risk, utility and attacks as plain values; they describe the original too, so they are not for all."""
        return {
            "loss": self.loss.to_dict(),
            "risk": self.risk.to_dict(),
            "utility": self.utility,
            "attacks": [attack.to_dict() for attack in self.attacks],
        }

    def write(
        self,
        path: str | os.PathLike[str],
        *,
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
        """Write the release, its two manifests and, if asked for, its report: all of them or none.

        Parameters
        ----------
        path : path
            File, in one of the formats of `shoal.table.FORMATS`, for the published table. Beside it appear
            ``PATH.public.json``, which may travel with the data, and ``PATH.internal.json``, which repeats the release
            and stays with you.
        report : path, optional
            HTML file for the report.
        form : {"internal", "public"}
            Of the report: the public one tells nothing of the original beyond what the release tells.
        json : path, optional
            JSON file with what the report says.
        bound : {"cheap", "strong"}, optional
            Say in the internal report what no release can lose less than, and look for it so hard: "cheap" for any
            number of records, "strong" for some thousands, within a minute.
        title, author, date : str, optional
            What stands on the first page of the report. The date is never taken from the clock, so that the same
            release gives the same bytes.
        order : {"shuffle", "keep"}
            Of the records. The order of the input can tell who is who, so it is given up unless asked for: shuffled
            records are sorted by a hash of what is published, which has no secret to be guessed.
        save_job : path, optional
            TOML file for the job, with its seed.
        force : bool
            Replace files that are there already.
        before_publishing : callable, optional
            Called when all files are complete and before they get their names; if it raises, none does.

        Returns
        -------
        list of Path
            The files, the table first.

        Raises
        ------
        FileError
            If a file exists, cannot be written or is the one that was read, or if that one has changed since. Nothing
            half-written stays.
        GuaranteeError
            If the file, read back, does not keep what the verdict says.
        """
        files = Files.of(path, report, json, save_job, form)
        if bound is not None and (form == "public" or not files.reports):
            raise ParameterError("The bound on the loss stands in the internal report. Ask for one, or leave it out.")
        said: dict[str, Any] = {} if bound is None else {"bound": self.bound(bound).il}
        said |= {"title": title, "author": author, "date": date}
        write_release(self, files, order, force=force, said=said, before_publishing=before_publishing)
        return files.paths

    def _repr_html_(self) -> str:
        """Return a summary for notebooks; it measures the risk, as `write` does."""
        return to_summary(self.verdict, self.measures, self.warnings)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What somebody should look at before publishing."""
        return tuple(_warnings(self))


def _warnings(release: Release) -> list[str]:
    found = (
        []
        if release.verdict.withdrawn is None
        else ["Random aggregation was asked for, so the release is not k-anonymous; the verdict says what that means."]
    )
    if release.job.rho and (release.job.seed or 0) < SMALL_SEED:
        found.append(
            f"The seed is below {SMALL_SEED:,}, so that all such seeds can be tried: whoever finds it knows the random "
            "part of every published value. Leave the seed out, and one of 63 bits is drawn and kept for you."
        )
    found += [
        f"Column {name!r} has the same value in all records: it carries no distance." for name in release.space.constant
    ]
    found += [finding.sentence for finding in release.findings if finding.name != "constant"]
    found += [one.sentence for one in release.contributions if one.is_telling]
    found += _gone(release)
    found += [each.note for each in release.verdict.models if each.note]
    weights = release.schema.roles.weights
    for column in release.schema.having(Role.CONFIDENTIAL, Role.OTHER):
        counts = np.bincount(value_codes(release.columns[column.name]))
        alone = np.count_nonzero(counts == 1)
        if 2 * alone > release.verdict.n_records:
            found.append(
                f"Column {column.name!r} is published as it is, and {alone / release.verdict.n_records:.0%} of the "
                "records are the only ones with their value in it: whoever knows the value knows the record."
            )
        if column.name == weights:
            found.append(
                f"The survey weights in column {column.name!r} are published: they can tell rare groups apart."
            )
    return found


def _gone(release: Release) -> list[str]:
    """Name the columns of which nothing, or less than half, is left."""
    was_there = [column.name for column in release.schema.quasi if column.name not in release.space.constant]
    wiped = [name for name in was_there if release.replaced[name].null_count == release.verdict.n_records]
    most = [name for name in was_there if release.loss.columns[name].il > 50 and name not in wiped]
    told = ", ".join(f"{name!r} ({release.loss.columns[name].il:.0f} %)" for name in most)
    found = [f"Nothing of column {name!r} is published: most records of every cell miss it." for name in wiped]
    return found + ([f"More than half of the differences between records are gone in {told}."] if most else [])
