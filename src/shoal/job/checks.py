"""Job checks: a job is validated against its table, once, before the partition."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.aggregate import check_random_aggregation
from shoal.arrays import as_cell_size
from shoal.columns.categories import coded
from shoal.columns.coarse.layout import check_intervals
from shoal.columns.coarse.schema import with_coarse_values
from shoal.columns.prepare import NumberOf, from_one, n_with_named_values, prepare, refuse_without_effect
from shoal.columns.schema import POSITIONS, Column, Kind, Role, Schema, is_text, natural_kind, value_type
from shoal.columns.sharing import Sharing, unchanged_columns
from shoal.constraints.ncp_cells import check_objective
from shoal.constraints.steering import check_steering, check_values
from shoal.errors import ParameterError, SchemaError, listed
from shoal.findings import ColumnView, Finding, ask, check_accepted, findings_of
from shoal.findings.finding import Remedy
from shoal.findings.metadata import described_schema
from shoal.findings.numbers import codes_at
from shoal.findings.roles import published_identifier
from shoal.findings.rows import HEADINGS, record_findings, table_doubles
from shoal.job import Job
from shoal.job.engine_facts import ENGINES, LIMITED
from shoal.models.table_columns import check_models
from shoal.sources import Source, Table
from shoal.sources.clean import nulled
from shoal.spelling import named, setting
from shoal.typing import Labels, Vector


class Prepared(NamedTuple):
    """Schema, prepared records, survey weights and findings of a table."""

    schema: Schema
    original: pa.Table
    weights: Vector | None
    """Survey weights, if there are any."""
    findings: list[Finding]
    """Findings that are accepted or need no answer."""
    views: dict[str, ColumnView]
    """The quasi-identifiers as they were examined."""
    unchanged: dict[str, Sharing]
    """How many records share the values of each column that is published unchanged."""

    def part(self, records: Labels) -> "Prepared":
        """Return the same for some of the records."""
        if len(records) == self.original.num_rows:
            return self
        weights = None if self.weights is None else self.weights[records]
        return self._replace(original=self.original.take(pa.array(records)), weights=weights)


def prepared(job: Job, table: Table) -> Prepared:
    """Prepare a table for the partition; raise on everything that can be checked before it."""
    check_stream(job)
    if ENGINES[job.chosen_engine].in_blocks:
        raise ParameterError(
            f"{setting('engine', job.chosen_engine)} makes whole releases only, and this needs all records in memory. "
            "Leave out the engine and its limit of memory."
        )
    check_memory(job)
    check_index(job, table)
    schema = described_schema(table.types, job.roles, job.columns, table.labels, table.load, job.truthful)
    check_job(job, schema)
    as_cell_size(job.k, table.n_records)
    of_records = record_findings(table, _looked_through(schema))
    # Without its headings a column has another type, so that nothing else can be asked before.
    ask((finding for finding in of_records if finding.name == HEADINGS), job.accept)
    needed = dict.fromkeys([*schema.needed, *(model.column for model in job.models), *job.steer])
    given = table.load(list(needed))
    schema = with_found_codes(schema, given)
    original = prepare(given, schema, job.missing, table.receipt.number_of)
    refuse_without_effect(n_with_named_values(given, original, schema))
    original = coded(original, schema)
    schema = with_coarse_values(schema, original, job.k)
    check_values(original, schema, job.steer, job.missing)
    weights = survey_weights(original, schema, table.receipt.number_of)
    views = column_views(schema, original, table)
    unchanged = published_unchanged(schema, table.load)
    findings = [*of_records, *column_findings(schema, views), *role_findings(schema, unchanged, job.k)]
    beside = {c.name: ColumnView.of(table, c.name, table.column(c.name)) for c in schema.having(Role.CONFIDENTIAL)}
    findings += confidential_findings(schema, beside, job)
    if schema.roles.counted is None:  # else a person counts once, however often
        findings += table_doubles(table)
    ask(findings, job.accept, job.strict)
    return Prepared(schema, original, weights, findings, views, unchanged)


def check_index(job: Job, table: Table) -> None:
    """Raise where the index of a data frame has no role, or where a role names an index that is no column."""
    if table.kind != "pandas":
        return
    named = {name for names in job.roles.named().values() for name in names} | set(job.roles.helpers())
    without = [name for name in table.index if name not in named]
    if without:
        raise SchemaError(
            f"The index of the data frame is read as a column, {listed(without)}, and has no role. Give it one, as "
            "every column, or drop it: frame.reset_index(drop=True)."
        )
    if "index" in named and "index" not in table.names:
        raise SchemaError(
            "Column 'index' is not in the table: the index of the data frame only counts its records. To make it a "
            "column: frame.reset_index()."
        )


def with_found_codes(schema: Schema, given: pa.Table) -> Schema:
    """Return the schema with values in place of missing codes that are named by their position."""
    columns = [
        _with_found_codes(column, given[column.name]) if column.names_positions else column for column in schema.columns
    ]
    return replace(schema, columns=tuple(columns))


def _with_found_codes(column: Column, values: pa.ChunkedArray) -> Column:
    apart = codes_at(ColumnView(column.name, values))
    codes: list[Any] = []
    for entry in column.settings.missing_codes:
        if entry not in POSITIONS:
            codes.append(entry)
        elif entry not in apart:
            raise SchemaError(
                f"The {entry} value of column {column.name!r} is to be a missing code, but it does not lie apart from "
                "the others, so that it may be a value like them. Give the code itself, or leave the setting out."
            )
        elif column.kind is Kind.DATE:
            codes.append(str(pc.min_max(values)["min" if entry == POSITIONS[0] else "max"].as_py()))
        else:
            codes += [int(value) if value == int(value) else float(value) for value in apart[entry]]
    return replace(column, settings=column.settings.model_copy(update={"missing_codes": tuple(codes)}))


def check_memory(job: Job) -> None:
    """Raise if memory is limited for an engine that takes no limit."""
    if job.memory is not None and not ENGINES[job.chosen_engine].takes_memory:
        raise ParameterError(
            f"A limit of memory applies to {setting('engine', LIMITED)}, but {setting('engine', job.chosen_engine)} is "
            "asked for. Leave one of them out."
        )


def check_stream(job: Job) -> None:
    """Raise if a job is one of a stream."""
    if job.stream is not None:
        raise ParameterError(
            "The job has a table [stream], so it is one for `shoal stream`, `shoal worker` or shoal.spark.stream."
        )


def check_late(job: Job) -> None:
    """Raise if a job is one of a stream, or has settings for late records, where it is not that of a collection."""
    check_stream(job)
    if job.late is not None:
        raise ParameterError(
            "The job has settings for late records (late), which apply only to a collection. Remove them, or begin a "
            "collection with the job: shoal collect begin."
        )


def check_job(job: Job, schema: Schema) -> None:
    """Raise on settings that contradict each other or the columns, whatever the records are."""
    check_accepted(job.accept, [column.name for column in schema.columns])
    check_intervals(job.intervals, schema)
    if job.rho and job.models:
        raise ParameterError(
            "Random aggregation (rho) cannot be combined with privacy models: every record gets different values, so "
            "there are no equivalence classes for a model to apply to. Leave one of them out."
        )
    if job.rho:
        check_random_aggregation(schema)
    if job.output is not None and job.output.bound is not None:
        check_bound(job, schema)
    check_series(job, schema)
    check_models(job.models, schema)
    check_link(job)
    check_steering(job.steer, schema, job.models)
    check_objective(job.objective, job.method, schema, job.models, job.steer, job.rho)


def check_link(job: Job) -> None:
    """Raise on settings that do not work on linked records, or would have no effect."""
    if job.roles.keep_link is None:
        if job.tables:
            raise ParameterError(
                "The job has further tables ([[tables]]), but no records stay linked, so that nothing would say which "
                f"records belong to whom. Say it: {setting('keep_link', 'subject')}; or remove the tables."
            )
        if job.rare_patterns != Job.model_fields["rare_patterns"].default:
            raise ParameterError(
                f"{setting('rare_patterns', job.rare_patterns)} is given, but no records stay linked. Leave it out, or "
                f"say whose records do: {setting('keep_link', 'subject')}."
            )
        return
    if job.tables and job.intervals != "text":
        raise ParameterError(
            f"Further tables ([[tables]]) are written with intervals as text. Leave out "
            f"{setting('intervals', job.intervals)}, or the tables."
        )
    reasons = {
        "random aggregation (rho): linked records are published with equal values, or they could be told apart": (
            bool(job.rho)
        ),
        "steering columns, which group single records": bool(job.steer),
        "a model with a weight, which groups single records": not all(model.promised for model in job.models),
        f"{setting('objective', job.objective)}, which groups single records": job.objective != "sse",
    }
    for reason, is_asked in reasons.items():
        if is_asked:
            raise ParameterError(f"Linked records cannot be combined with {reason}. Leave one of them out.")


def refuse_link(job: Job, what: str) -> None:
    """Raise if records are to stay linked where whole histories are not grouped."""
    if job.roles.keep_link is not None:
        raise ParameterError(
            f"{setting('keep_link', job.roles.keep_link)} is given, but {what}. Leave it out, or make a release of the "
            "whole table."
        )


def check_series(job: Job, schema: Schema) -> None:
    """Raise if settings of a series contradict each other, or something is asked for that a series cannot have."""
    roles = job.roles
    if not job.after and (job.may_withhold or job.leavers != "withhold"):
        raise ParameterError(
            f"{named('may_withhold', 'leavers')} say what becomes of people because of earlier releases, and none is "
            f"given. Name them, {setting('after', ['RELEASE.cells'])}, or leave this out."
        )
    if job.reserve is not None and not job.is_of_series:
        raise ParameterError(
            "A reserve is for people who leave before a later release, and nothing says who is who then. Name the "
            f"column that does, {setting('key', 'id')}, or leave the reserve out."
        )
    if not job.is_of_series:
        return
    if roles.key is not None and schema[roles.key].role is not Role.IDENTIFIER:
        raise SchemaError(
            f"Column {roles.key!r} is the key of the series and would be published as "
            f"{schema[roles.key].role}, which tells who is who in every release. Leave its other role out."
        )
    why = {
        "random aggregation (rho) publishes other values each time": bool(job.rho),
        "whole histories of linked records (keep_link) are grouped anew": roles.keep_link is not None,
        "members of a household are grouped together, but leave alone": roles.household is not None,
        "the key already says whose record it is": roles.subject not in (None, roles.key),
        "steering is not guaranteed, and people who stay are not grouped again": bool(job.steer and job.after),
    }
    for reason, holds in why.items():
        if holds:
            raise ParameterError(
                f"A series of releases (key, after) cannot be combined with this: {reason}. Leave one of them out."
            )


def column_views(schema: Schema, original: pa.Table, source: Source | None = None) -> dict[str, ColumnView]:
    """Return the prepared quasi-identifiers as they are examined, with what their source says of them."""
    names = [column.name for column in schema.quasi]
    if source is None:
        return {name: ColumnView(name, original[name], is_typed=True) for name in names}
    return {name: ColumnView.of(source, name, original[name]) for name in names}


def column_findings(schema: Schema, views: Mapping[str, ColumnView]) -> list[Finding]:
    """Return the findings about the prepared quasi-identifiers, except those that their settings resolve."""
    found = []
    for column in schema.quasi:
        view = views[column.name]
        about = [finding for finding in findings_of(view) if not _is_settled(finding, column)]
        if column.name == schema.roles.weights:  # of strata sampled at different rates
            about = [finding for finding in about if finding.name != "two-scales"]
        if column.settings.keep_zeros and any(finding.name in _OF_ZEROS for finding in about):
            rest = replace(view, values=nulled(view.values, pc.equal(view.values, 0)))
            again = {finding.name for finding in findings_of(rest)}
            about = [finding for finding in about if finding.name not in _OF_ZEROS or finding.name in again]
        found += about
    return found


def confidential_findings(schema: Schema, views: Mapping[str, ColumnView], job: Job) -> list[Finding]:
    """Return the findings about confidential columns that may be misread: questions only where a model counts on them.

    They are published unchanged, so that nothing is averaged; but a model compares and counts their values.
    """
    modelled = {model.column for model in job.models} | set(job.steer)
    found = []
    for name, view in views.items():
        column = schema[name]
        is_used = name in modelled
        why = _COUNTED if is_used else "It is published as it was read"
        for finding in findings_of(view):
            is_about = finding.name in _MISREAD or (is_used and finding.name in _SAID_TWICE)
            if not is_about or _is_settled(finding, column):
                continue
            accept = Remedy("accept", name, {"accept": [f"{name}={finding.name}"]})
            taken = tuple(remedy for remedy in finding.remedies if remedy.place in ("field", "rows"))
            found.append(replace(finding, why=why, remedies=(*taken, accept), question=finding.question and is_used))
    return found


_COUNTED = (
    "A model refers to it, and compares and counts its values as they were read: what says the same in two ways counts "
    "as two"
)

_MISREAD = (
    *("mixed-types", "numbers-as-text", "numbers-with-unit", "dates-as-text"),
    *("thousands-as-decimals", "two-scales", "missing-code"),
)
"""Findings that matter where nothing is averaged."""

_SAID_TWICE = ("two-forms", "other-forms", "spelling-variants")
"""Findings that matter where values are counted."""

_OF_ZEROS = ("zeros", "missing-code")
"""Findings that zeros which are kept apart may give rise to."""


def _looked_through(schema: Schema) -> list[str]:
    """Return the columns that tell what a record is; a text that is dropped may name a total, too."""
    columns = schema.columns
    return [c.name for c in columns if c.role is not Role.IDENTIFIER or is_text(value_type(c.type))]


def published_unchanged(schema: Schema, load: Callable[[list[str]], pa.Table]) -> dict[str, Sharing]:
    """Count how many records share the values of each column that is published unchanged."""
    return {column.name: Sharing.of(load([column.name])[column.name]) for column in unchanged_columns(schema)}


def role_findings(schema: Schema, unchanged: Mapping[str, Sharing], k: int) -> list[Finding]:
    """Return the findings about columns that are published unchanged and look like identifiers."""
    counted = ((shared, shared.facts(name, schema[name].type)) for name, shared in unchanged.items())
    found = (published_identifier(facts, shared.below(k)) for shared, facts in counted)
    return [finding for finding in found if finding is not None]


def _is_settled(finding: Finding, column: Column) -> bool:
    """Return whether the settings of a column resolve a finding."""
    if finding.name in ("mixed-types", "numbers-as-text", "numbers-with-unit", "dates-as-text"):
        return column.settings.kind is not None or pa.types.is_dictionary(column.type)
    if finding.name in ("two-forms", "other-forms"):
        return column.settings.kind is not None
    if finding.name in ("codes", "perhaps-codes", "dates-as-numbers", "labelled-values"):
        # Nothing is averaged.
        return column.settings.kind is not None or column.settings.is_true or column.settings.hierarchy is not None
    return finding.name == "near-unique-text" and column.aggregate == "withhold"


def check_bound(job: Job, schema: Schema) -> None:
    """Raise if a bound on the loss is requested where none has been proven."""
    nominal = [column.name for column in schema.quasi if column.kind is Kind.NOMINAL]
    why = {
        f"nominal columns are among the quasi-identifiers: {', '.join(map(repr, nominal))}": bool(nominal),
        "columns that households share are grouped differently from the rest": schema.roles.household is not None,
        "random aggregation does not publish means": bool(job.rho),
        "what is published is true of every record, not close to it": any(column.is_true for column in schema.quasi),
    }
    for reason, holds in why.items():
        if holds:
            raise ParameterError(
                "A bound on the loss is proven for groups that are published as means of numbers, ranks and dates, but "
                f"{reason}. Leave the bound out."
            )


def survey_weights(table: pa.Table, schema: Schema, number_of: NumberOf = from_one) -> Vector | None:
    """Return the validated survey weights, or None if there are none; `number_of` as in `prepare`."""
    name = schema.roles.weights
    if name is None:
        return None
    column = schema[name]
    if natural_kind(column.type) is not Kind.NUMERIC:
        raise SchemaError(f"The survey weights in column {name!r} must be numbers; the column holds {column.type}.")
    weights = np.asarray(table[name].cast(pa.float64(), safe=False).fill_null(np.nan))
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        where = "" if number_of is None else f", the first in record {number_of(int(bad.argmax()))}"
        raise SchemaError(
            f"The survey weights in column {name!r} must be finite and not negative; {bad.sum():,} are not{where}."
        )
    return weights
