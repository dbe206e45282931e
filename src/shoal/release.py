"""Release: the whole flow, from any table to a table that may be published.

    table -> schema -> space -> cells -> aggregate -> audit + loss -> release

If the recount does not confirm a guarantee, an error is raised and nothing is released.
"""

import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from inspect import signature
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from shoal import kernels
from shoal.aggregate import Cells, RandomAggregation, aggregate
from shoal.columns.coarse import stand_ins
from shoal.columns.prepare import Missing
from shoal.columns.schema import Link, Role, Schema, as_names, as_settings
from shoal.constraints.constrained_cells import group
from shoal.constraints.constraints import constraints_of
from shoal.constraints.joined_classes import joined_where_alike
from shoal.constraints.linked_cells import Guards, linked_cells
from shoal.constraints.linked_histories import Histories, Linking, Plan, RarePatterns, plan_of
from shoal.constraints.strata import strata_of
from shoal.constraints.whole_classes import group_classes
from shoal.engines.disk.disk_records import check_disk_job, execute_on_disk
from shoal.engines.spark.spark_records import execute_on_spark, planned
from shoal.errors import ParameterError, SchemaError
from shoal.findings import ColumnView
from shoal.findings.column_receipt import receipts_of
from shoal.in_memory import RecordsInMemory, TableMeasures
from shoal.job import Job
from shoal.job.checks import Prepared, check_late, check_link, prepared
from shoal.job.job import IntervalForm, Leavers, Objective
from shoal.measures.recount import recount
from shoal.measures.series_risk import OUT
from shoal.measures.table_loss import table_loss
from shoal.measures.unchanged import nearly_identifying
from shoal.methods.auto import SMALL
from shoal.models import Model
from shoal.models.table_columns import distribution_of
from shoal.output.destination import Destination
from shoal.output.new_identifiers import new_identifiers
from shoal.output.places import Published
from shoal.output.release import Release
from shoal.progress import OneTotal
from shoal.series.cells_file import CellsOfRelease
from shoal.series.continuing import repeated
from shoal.series.part_of_series import IN_PYTHON, PartOfSeries, Start, begun
from shoal.series.reserve import cell_size
from shoal.settings import ALIASES
from shoal.sources import Table, read
from shoal.sources.batches import open_batches
from shoal.sources.clean import with_columns
from shoal.sources.joined import OfPersons, joined
from shoal.sources.reading import as_reading
from shoal.sources.source_stamps import sha256_of_records
from shoal.space.axes import Scaling
from shoal.space.space import Space
from shoal.spelling import setting, word_of
from shoal.typing import Engine, KindName, Labels, Matrix, Method, Names, Progress, Seed

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
    keep_link: Link | None = None,
    link_order: Names = (),
    weights: str | None = None,
    columns: Mapping[str, Any] | None = None,
    codes: Names = (),
    numbers: Names = (),
    kinds: Mapping[str, KindName] | str | os.PathLike[str] | None = None,
    hierarchies: str | os.PathLike[str] | None = None,
    models: Sequence[Model] | Model = (),
    accept: Names = (),
    strict: bool = False,
    scaling: Scaling = "zscore",
    missing: Missing = "error",
    method: Method = "auto",
    objective: Objective = "sse",
    rho: float | Literal["song"] | None = None,
    rare_patterns: RarePatterns = "cut",
    steer: Mapping[str, float] | None = None,
    truthful: bool = False,
    intervals: IntervalForm = "text",
    seed: Seed = None,
    threads: int | None = None,
    progress: Progress | None = None,
    reading: Mapping[str, Any] | None = None,
    key: str | None = None,
    after: Any = (),
    may_withhold: float = 0.0,
    leavers: Leavers = "withhold",
    reserve: float | None = None,
    engine: Engine | None = None,
    memory: str | None = None,
    keyVars: Names = (),
    numVars: Names = (),
    strataVar: Names = (),
    weightVar: str | None = None,
    hhId: str | None = None,
    **options: Any,
) -> Release:
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
        Columns that an intruder could know about a person. They are microaggregated. Also `keyVars` and
        `numVars`.
    identifiers : sequence of str
        Columns that are dropped.
    confidential : sequence of str
        Sensitive columns, published unchanged, that must not be attributed to a person.
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
    keep_link : {"subject", "household"}, optional
        Publish a new identifier, the same for all records of a person or household, in place of that column, and count
        k on whole histories: ``docs/linked.md``.
    link_order : sequence of str
        Columns that put the linked records of a person in order, the first one first.
    weights : str, optional
        Column of survey weights: means are weighted, so weighted totals are preserved. Also `weightVar`.
    columns : dict of str to dict, optional
        Settings of single columns: kind, order, missing_codes, fold, weight, aggregate, round, top, bottom,
        keep_zeros, hierarchy, outside, level, distance, step, precision; see `shoal.columns.schema.ColumnSettings`.
    codes, numbers : sequence of str
        Columns whose numbers are codes of categories, and columns whose numbers count or measure: the same as the kind
        nominal or numeric of each.
    kinds : dict of str to str, or path, optional
        The kinds of many columns, or a data dictionary that holds them: a table whose first column has the names of the
        columns and whose column ``kind`` their kinds, or a job file. Other settings go before it.
    hierarchies : path, optional
        Folder with hierarchy files of quasi-identifiers, each with the name of its column: ``age.csv``, or
        ``adult_hierarchy_age.csv``, as ARX calls it. `columns` go before it.
    models : sequence of Model
        Privacy models for confidential columns in addition to k, such as ``shoal.TCloseness("salary", t=0.1)`` or
        ``shoal.LDiversity("diagnosis", l=3)``; see ``docs/models.md``. If a model cannot be satisfied exactly, an
        error is raised.
    accept : sequence of str
        Findings to accept, by name, for all columns or as ``"COLUMN=NAME"`` for one; see
        `shoal.findings.FINDINGS`.
    strict : bool
        Refuse the release for every finding that is not accepted, also those that are only notes by default.
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
    rare_patterns : {"cut", "unlink", "withhold"}
        What becomes of linked records whose pattern fewer than k persons share: the longest beginning that k share
        stays linked, and the rest is withheld ("cut") or published without the link ("unlink"); or all records of the
        person are withheld.
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
    key : str, optional
        Column that names the person of each record in all releases of a series: ``docs/series.md``. Dropped. The
        release keeps what later ones need.
    after : sequence of Release or path
        All earlier releases of the same people, or their cells files.
    may_withhold : float
        Largest share of people who may be withheld because of them; an error is raised if more have to be.
    leavers : {"withhold", "state"}
        Where fewer than k people have left a class: withhold the rest of it, or publish it and state in the report that
        subtraction tells of those who left.
    reserve : float, optional
        Share of people expected to leave before later releases; cells get so many more people that k stay.
    engine : {"memory", "disk", "spark"}, optional
        What makes the release: "memory" with all records in memory, "disk" with a part of them at a time, from a file
        or a folder of Parquet files that may be larger than memory (``docs/howto/larger_than_memory.md``), "spark" a
        Spark cluster, from Parquet or a Spark DataFrame (``docs/spark.md``).
    memory : str, optional
        How much memory the engine "disk" may use, such as ``"2GB"``; it chooses that engine, and 1GB is its default.
    keyVars, numVars, strataVar, weightVar, hhId
        The same roles under the names of sdcMicro. The quasi-identifiers of `keyVars` are also `codes`, those of
        `numVars` also `numbers`, unless `columns` says their kind.
    **options
        Options of the method, such as ``effort="best", seconds=60``. An unknown option is an error.

    Returns
    -------
    Release
        The published table with its verdict, loss and risk. That of the engine "disk" stays in a scratch folder, that
        of "spark" persisted on the cluster, until the release is closed.

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
        "keep_link": keep_link,
        "link_order": as_names(link_order),
        "weights": weights,
        "key": key,
    }
    aliases = {
        "keyVars": as_names(keyVars),
        "numVars": as_names(numVars),
        "strataVar": as_names(strataVar),
        "weightVar": weightVar,
        "hhId": hhId,
    }
    _refuse_misspelled(options)
    given_codes, given_numbers = as_names(codes), as_names(numbers)
    for alias, listed in ((keyVars, given_codes), (numVars, given_numbers)):
        listed += [name for name in as_names(alias) if not _has_kind(columns, name)]
    releases, names = _earlier(after)
    job = Job.of(
        k=k,
        method=method,
        objective=objective,
        scaling=scaling,
        missing=missing,
        rho=rho,
        rare_patterns=rare_patterns,
        steer=steer or {},
        truthful=truthful,
        intervals=intervals,
        seed=seed,
        roles=_with_aliases(given, aliases),
        columns=columns or {},
        codes=given_codes,
        numbers=given_numbers,
        kinds=kinds,
        hierarchies=hierarchies,
        models=models,
        accept=as_names(accept),
        strict=strict,
        options=options,
        after=names,
        may_withhold=may_withhold,
        leavers=leavers,
        reserve=reserve,
        engine=engine,
        memory=memory,
    )
    return Assignment(job, table, as_reading(reading), releases=releases).carry_out(threads=threads, progress=progress)


def _earlier(after: Any) -> tuple[dict[str, CellsOfRelease], list[str]]:
    """Return the earlier releases in memory by the names that the job has for them, and the names of all."""
    given = [after] if isinstance(after, str | os.PathLike | Release) else list(after)
    releases: dict[str, CellsOfRelease] = {}
    names = []
    for one in given:
        if isinstance(one, Release):
            if one.series is None:
                raise ParameterError(
                    "An earlier release has no key, so that nothing says who was in it. Make it with one: "
                    f"{setting('key', 'id')}."
                )
            cells = one.series.cells
            releases[IN_PYTHON + cells.identity] = cells.in_order(None, sha256_of_records(one.published))
            names.append(IN_PYTHON + cells.identity)
        else:
            names.append(os.fspath(one))
    return releases, names


def _has_kind(columns: Mapping[str, Any] | None, name: str) -> bool:
    """Return whether the settings of a column say its kind, or the order of its categories."""
    return any(
        as_settings({name: (columns or {}).get(name, {})})[name].model_dump(include={"kind", "categories"}).values()
    )


def _refuse_misspelled(options: Iterable[str]) -> None:
    """Raise on options of the method that look like arguments of `anonymize`."""
    known = [name for name, about in signature(anonymize).parameters.items() if about.kind is about.KEYWORD_ONLY]
    for name in options:
        if ours := word_of(name):
            raise ParameterError(f"Unknown argument {name!r}.{ours}")
        near = get_close_matches(name, known, n=1, cutoff=0.8)
        if near:
            raise ParameterError(f"Unknown argument {name!r}. Did you mean {near[0]!r}?")


def _with_aliases(given: dict[str, Any], aliases: Mapping[str, Any]) -> dict[str, Any]:
    """Return the roles with those given under the names of sdcMicro."""
    roles = dict(given)
    for alias, value in aliases.items():
        name = ALIASES[alias]
        if isinstance(roles[name], list):
            roles[name] = [*roles[name], *value]
        elif value is not None and roles[name] is not None:
            raise SchemaError(f"{name!r} and its alias {alias!r} are both given. Give only one of them.")
        else:
            roles[name] = value if roles[name] is None else roles[name]
    return roles


def execute_job(
    job: Job,
    table: Table,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    releases: Mapping[str, CellsOfRelease] | None = None,
) -> Release:
    """Make the release that a job describes from a table in memory; `releases` are the earlier ones in memory."""
    check_late(job)
    table, others, n_without = with_further_tables(job, table)
    if job.seed is None:
        job = job.model_copy(update={"seed": secrets.randbits(63)})
    whole = OneTotal(progress, table.n_records)
    made = prepared(job, table.seal())
    plan = None if made.schema.link is None else _linked(job, table, made)
    if plan is not None and len(plan.rows) < table.n_records:
        table = table.of_rows(plan.rows)
        made = prepared(job, table)
    part = whole.part(0.05, 0.9)
    start = begun(job, table, made, releases or {})
    if start is not None:
        release = continue_series(job, table, made, start, threads=threads, progress=part)
        whole.finish()
        return release
    schema, original = made.schema, made.original
    space = Space.fit(original, schema, job.scaling)
    X = space.encode(original)
    settings = {"models": job.models, "threads": threads, "progress": part, **job.options}
    with kernels.using(threads):
        if plan is not None:
            cells = linked_cells(original, schema, X, plan.histories, job.k, job.method, job.seed, **settings)
            plan = plan._replace(linking=plan.linking._replace(n_without=n_without))
            release = conclude(job, table, made, space, X, cells, threads, plan, others)
        else:
            settings |= {"steering": job.steer, "objective": job.objective}
            cells = group(original, schema, space, X, job.k, job.method, job.seed, **settings)
            if schema.roles.subject is not None and schema.roles.household is None and job.models:
                cells = _kept_by_classes(job, made, X, cells)
            release = conclude(job, table, made, space, X, cells, threads)
    whole.finish()
    return release


class Further(NamedTuple):
    """A table with what further tables say about its persons."""

    table: Table
    others: tuple[OfPersons, ...] = ()
    n_without: int = 0
    """Persons of the further tables who have no record."""


def with_further_tables(job: Job, table: Table) -> Further:
    """Return the table with the columns of the further tables of a job."""
    if not job.tables:
        return Further(table)
    check_link(job)
    link = job.roles.link
    if link is None or link not in table.names:
        raise SchemaError(f"The job has further tables, but {table!r} has no column {link!r} that links them.")
    others = tuple(
        OfPersons(read(each.input.path, **each.input.reading()), each.key or link, each.output) for each in job.tables
    )
    for other in others:
        other.table.seal()
    whole, n_without = joined(table, link, others)
    return Further(whole, others, n_without)


class Outlook(NamedTuple):
    """What is known of a release before cells are made."""

    schema: Schema
    n_groups: int
    """Number of strata or, of linked records, of patterns: what no cell mixes."""

    linking: Linking | None
    start: Start | None = None


def outlook(job: Job, table: Table) -> Outlook:
    """Return what is known of a release; raise on everything that can be refused before cells are made."""
    table, _, n_without = with_further_tables(job, table)
    made = prepared(job, table)
    if made.schema.link is not None:
        linking = _linked(job, table, made).linking._replace(n_without=n_without)
        return Outlook(made.schema, linking.n_patterns, linking)
    start = begun(job, table, made, {})
    original = made.original if start is None else made.part(start.plan.records).original
    bounds = constraints_of(original, made.schema, job.k, job.models)
    return Outlook(made.schema, int(bounds.strata.max()) + 1, None, start)


def _linked(job: Job, table: Table, made: Prepared) -> Plan:
    """Return which records stay linked, and which are published at all."""
    guards = Guards.of(job.models, made.schema, made.original)
    return plan_of(table, made.original, made.schema, job.k, job.rare_patterns, guards)


def continue_series(
    job: Job,
    table: Table,
    made: Prepared,
    start: Start,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Release:
    """Make a release of a series: of those who are published, in the cells of before and in new ones."""
    if not start.plan.is_whole:
        table, made = table.of_rows(start.plan.records), made.part(start.plan.records)
    space = Space.fit(made.original, made.schema, job.scaling, start.plan.repeats)
    X = space.encode(made.original)
    settings = {"models": job.models, "threads": threads, "progress": progress, **job.options}
    with kernels.using(threads):
        cells = _cells_of_series(job, made, space, X, start, settings)
        return conclude(job, table, made, space, X, cells, threads, start=start)


def _cells_of_series(
    job: Job, made: Prepared, space: Space, X: Matrix, start: Start, settings: Mapping[str, Any]
) -> Cells:
    """Return the cells of a release of a series: those of people who stay as they were, and new ones for the others."""
    schema, original, *_ = made
    labels = np.unique(start.plan.unit, return_inverse=True)[1].reshape(-1) - bool((start.plan.unit == OUT).any())
    new = np.flatnonzero(start.plan.unit == OUT)
    if not len(new):
        return Cells(labels)
    part = original.take(pa.array(new))
    if job.method == "auto" and made.original.num_rows > SMALL >= len(new):
        settings = {"effort": "quick", **settings}  # as for a table of this size, of which these are a part
    whole = {model.column: distribution_of(original[model.column], schema[model.column]) for model in job.models}
    of_new = np.ascontiguousarray(X[new])
    size = job.k if job.reserve is None else cell_size(job.k, job.reserve, job.may_withhold)
    smallest = min(int(np.bincount(strata_of(part, schema, job.k)[0]).min()), len(new))
    size = min(size, smallest)  # no reserve where a stratum has none
    if start.groups is not None:
        classes = np.unique(start.groups[new], return_inverse=True)[1].reshape(-1)
        given = {name: value for name, value in settings.items() if name not in ("steering", "objective")}
        cells = group_classes(part, schema, of_new, size, classes, job.method, job.seed, whole=whole, **given)
    else:
        cells = group(part, schema, space, of_new, size, job.method, job.seed, whole=whole, **settings)
    labels[new] = int(labels.max(initial=-1)) + 1 + cells.labels
    return Cells(labels)


def _kept_by_classes(job: Job, made: Prepared, X: Matrix, cells: Cells) -> Cells:
    """Return cells whose equivalence classes also satisfy every model with each person counted once."""
    schema, original, weights = made.schema, made.original, made.weights
    bounds = constraints_of(original, schema, job.k, job.models)
    strata = {column.name: original[column.name] for column in schema.having(Role.BY)}

    def published(labels: Labels) -> pa.Table:
        return pa.table({**strata, **aggregate(original, schema, Cells(labels), weights)})

    return Cells(joined_where_alike(X, cells.labels, bounds.strata, bounds.models, published))


def conclude(
    job: Job,
    table: Table,
    made: Prepared,
    space: Space,
    X: Matrix,
    cells: Cells,
    threads: int | None = None,
    plan: Plan | None = None,
    others: tuple[OfPersons, ...] = (),
    start: Start | None = None,
) -> Release:
    """Make the release from the cells; raise if the recount does not confirm the guarantees."""
    schema, original, weights, findings, views, unchanged = made
    strata = {column.name: original[column.name] for column in schema.having(Role.BY)}
    randomized = RandomAggregation(job.rho, job.seed or 0) if job.rho else None  # rho = 0 is microaggregation
    replaced = pa.table({**strata, **aggregate(original, schema, cells, weights, randomized)})
    if start is not None:
        replaced = repeated(replaced, start.plan, schema)
    published = Published(table, schema, replaced, job.intervals)
    if plan is not None:
        assert schema.link is not None
        table, published = _with_new_identifiers(published, schema.link.name, plan.histories, job.seed or 0)
    subject = schema.roles.counted
    verdict = recount(published, schema, job.k, original[subject] if subject else None, job.models, original)
    if randomized is not None:
        verdict = replace(verdict, withdrawn=WITHDRAWN.format(rho=randomized.rho))
    verdict = replace(verdict, unchanged=nearly_identifying(unchanged, job.k))
    verdict.require()
    series = None if start is None else PartOfSeries.of(job, start, published, schema, table.sha256)
    alike = {column.name: None if randomized else cells.of(column) for column in schema.quasi}
    plain = replace(published, replaced=_middles(replaced, schema, original))
    loss = table_loss(space, original, plain.replaced, alike)
    linking = None if plan is None else plan.linking
    measures = TableMeasures(job, schema, space, original, weights, X, published, plain, cells, loss, threads, linking)
    records = RecordsInMemory(job, original, published, cells, verdict, threads, series, others=others)
    notes, labels = table.receipt.notes, table.labels

    def view_of(name: str) -> ColumnView:
        return ColumnView.of(table, name, table.load([name])[name])

    receipts = receipts_of(schema, job.columns, views, view_of)
    return Release(job, schema, space, findings, measures, records, notes, labels, linking, receipts).reviewed()


def _with_new_identifiers(published: Published, link: str, histories: Histories, seed: int) -> tuple[Table, Published]:
    """Return the input and its published columns with new identifiers, without the labels of the old ones."""
    others = (published[name] for name in published.names if name != link)
    numbers = new_identifiers(others, histories.persons, seed)
    labels = published.source.labels
    source = published.source if labels is None else replace(published.source, labels=labels.without(link))
    replaced = published.replaced.append_column(link, pa.chunked_array([numbers]))
    return source, replace(published, source=source, replaced=replaced)


def _middles(replaced: pa.Table, schema: Schema, original: pa.Table) -> pa.Table:
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
) -> Release:
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
    return Assignment.of(job, table, save_job=save_job, force=force).carry_out(threads=threads, progress=progress)


class DryRun(NamedTuple):
    """What would be done: the schema, in words what is read and where cells are made, what is left out or linked."""

    schema: Schema
    table: str
    cells: str
    n_left_out: int = 0
    linking: Linking | None = None
    n_withheld: int = 0


@dataclass(frozen=True)
class Assignment:
    """A job with its table, how that is read, and the destination of its release, checked before any work."""

    job: Job
    table: Any
    reading: Mapping[str, Any]
    destination: Destination | None = None
    releases: Mapping[str, CellsOfRelease] = field(default_factory=dict)
    """The earlier releases in memory that the job names."""

    @staticmethod
    def of(
        job: Job | str | os.PathLike[str],
        table: Any = None,
        *,
        save_job: str | os.PathLike[str] | None = None,
        force: bool = False,
    ) -> "Assignment":
        """Return the assignment, or raise if the job lacks a table or its release cannot go where the job says."""
        read_too = [] if isinstance(job, Job) else [job]
        if not isinstance(job, Job):
            if not isinstance(job, str | os.PathLike):
                raise ParameterError(f"A job is a shoal.job.Job or the path of its file, not {type(job).__name__}.")
            job = Job.load(job)
        if table is None and job.input is None:
            raise ParameterError("The job has no input. Set a path in [input], or pass a table.")
        if save_job is not None and job.output is None:
            raise ParameterError(
                "The job is to be saved beside its release, but it has no output. Set a path in [output]."
            )
        given = job.input.path if table is None and job.input is not None else table
        reading = {} if job.input is None else job.input.reading()
        if job.output is None:
            return Assignment(job, given, reading)
        how: dict[str, Any] = {"tables": [table.output for table in job.tables], "has_cells": job.is_of_series}
        destination = Destination.of(job.output, job.chosen_engine, save_job=save_job, force=force, **how)
        destination.check_free([*read_too, *job.files, *([given] if isinstance(given, str | os.PathLike) else [])])
        return Assignment(job, given, reading, destination)

    def carry_out(self, *, threads: int | None = None, progress: Progress | None = None) -> Release:
        """Make the release by the engine that the job chooses; write it where the job says, and close it then."""
        release = _MAKERS[self.job.chosen_engine].make(self, threads, progress)
        if self.destination is not None:
            with release:
                release.write_to(self.destination)
        return release

    def plan(self) -> DryRun:
        """Return what would be done, or raise what can be found wrong before cells are made."""
        return _MAKERS[self.job.chosen_engine].plan(self)


def _make_in_memory(asked: Assignment, threads: int | None, progress: Progress | None) -> Release:
    table = read(asked.table, **asked.reading)
    return execute_job(asked.job, table, threads=threads, progress=progress, releases=asked.releases)


def _plan_in_memory(asked: Assignment) -> DryRun:
    table = read(asked.table, **asked.reading)
    schema, n_groups, linking, start = outlook(asked.job, table)
    what = f"{table.n_records:,} records, {len(table.names)} columns"
    n_withheld = 0 if start is None else start.plan.n_withheld_in_all
    one, many = ("stratum", "strata") if linking is None else ("pattern", "patterns")
    return DryRun(
        schema, what, f"in {n_groups:,} {one if n_groups == 1 else many}", table.n_left_out, linking, n_withheld
    )


def _make_on_disk(asked: Assignment, threads: int | None, progress: Progress | None) -> Release:
    place = None if asked.destination is None else asked.destination.table
    target = Path(os.path.realpath(place)) if isinstance(place, Path) else None
    source = open_batches(asked.table, **asked.reading)
    return execute_on_disk(asked.job, source, threads=threads, progress=progress, target=target)


def _plan_on_disk(asked: Assignment) -> DryRun:
    source = open_batches(asked.table, **asked.reading)
    schema = check_disk_job(asked.job, source)
    what = f"{source.n_records:,} records, {len(source.names)} columns, in batches"
    return DryRun(schema, what, "in blocks on disk; the records have not been checked", source.n_left_out)


def _make_on_spark(asked: Assignment, threads: int | None, progress: Progress | None) -> Release:
    return execute_on_spark(asked.job, asked.table, asked.reading, threads=threads, progress=progress)


def _plan_on_spark(asked: Assignment) -> DryRun:
    schema, frame = planned(asked.job, asked.table, asked.reading)
    what = f"{len(frame.columns)} columns, on Spark"
    return DryRun(schema, what, "in blocks on Spark; the records have not been checked")


class _Maker(NamedTuple):
    """What makes a release, and what says beforehand how."""

    make: Callable[[Assignment, int | None, Progress | None], Release]
    plan: Callable[[Assignment], DryRun]


_MAKERS = {
    "memory": _Maker(_make_in_memory, _plan_in_memory),
    "disk": _Maker(_make_on_disk, _plan_on_disk),
    "spark": _Maker(_make_on_spark, _plan_on_spark),
}
"""The makers of releases, by the name of the engine in `shoal.job.engine_facts`."""
