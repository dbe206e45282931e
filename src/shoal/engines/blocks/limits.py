"""Limits: what a release made block by block cannot do, in one list; everything else works as in memory.

An engine checks a job against it before it reads a record.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from shoal.columns.aggregates import AGGREGATES
from shoal.columns.schema import POSITIONS, Role, Schema
from shoal.engines.blocks.block_records import check_column_names
from shoal.findings.finding import HIDDEN, Finding, Remedy
from shoal.job import Job
from shoal.job.checks import check_job, check_late, check_memory
from shoal.job.engine_facts import beyond
from shoal.methods import ALGORITHMS, algorithm_of
from shoal.models import TCloseness


class Limit(NamedTuple):
    """Something that is refused: what it is, why, and whether a job asks for it."""

    what: str
    why: str
    is_asked: Callable[[Job, Schema], bool]


LIMITS = (
    Limit(
        "a household column",
        "households are grouped as a whole, and their members lie in different blocks",
        lambda job, schema: schema.roles.household is not None,
    ),
    Limit(
        "linked records (`keep_link`)",
        "whole histories are compared, and the records of a person lie in different blocks",
        lambda job, schema: schema.link is not None,
    ),
    Limit(
        "random aggregation (`rho`)",
        "its noise follows the order of the records, which blocks do not have",
        lambda job, schema: bool(job.rho),
    ),
    Limit(
        "steering columns",
        "their weights refer to all records at once",
        lambda job, schema: (
            bool(job.steer) or any(isinstance(m, TCloseness) and m.weight is not None for m in job.models)
        ),
    ),
    Limit(
        "a subject column together with models of frequencies, such as t-closeness or entropy l-diversity",
        "these models then count each person once in the whole table, and a person has records in several blocks",
        lambda job, schema: schema.roles.subject is not None and any(model.by_frequency for model in job.models),
    ),
    Limit(
        "folded texts (`fold`)",
        "the most frequent spelling is known only after all records",
        lambda job, schema: any(column.settings.fold for column in schema.quasi),
    ),
    Limit(
        "missing codes by their position (smallest, largest)",
        "which values lie apart is known only after all records; name the values",
        lambda job, schema: any(column.names_positions for column in schema.quasi),
    ),
    Limit(
        "values that are true of every record (intervals, sets, ancestors, periods) and hierarchies",
        "their grids and trees are made from all records at once",
        lambda job, schema: (
            job.truthful or any(c.is_true or c.settings.hierarchy is not None for c in schema.having(Role.QUASI))
        ),
    ),
    Limit(
        "an aggregate of whole tables",
        "its values are made from all records at once",
        lambda job, schema: any(not AGGREGATES[column.aggregate].by_blocks for column in schema.quasi),
    ),
    Limit(
        "another objective than the sum of squares",
        "blocks are cut for the sum of squares",
        lambda job, schema: job.objective != "sse",
    ),
    Limit(
        f"another method than {' or '.join(name for name, method in ALGORITHMS.items() if method.in_blocks)}",
        "cells are refined across blocks, so that they are no longer those of the method",
        lambda job, schema: not algorithm_of(job.method, {}).in_blocks,
    ),
    Limit(
        "a series of releases (key, after)",
        "the history of every person is compared with that of all others",
        lambda job, schema: schema.roles.key is not None or bool(job.after),
    ),
    Limit("options of the method", "their budget is one of a whole table", lambda job, schema: bool(job.options)),
)
"""Everything that is refused; `shoal.output.destination` says where a release can go. What is added to a job without
being in this list must work in blocks."""


def taken_in_blocks(finding: Finding) -> Finding:
    """Return a finding with the remedies that blocks take: codes by their value, not by their position."""
    remedies = tuple(_by_value(remedy) for remedy in finding.remedies if not _REFUSED.intersection(remedy.settings))
    accept = Remedy("accept", finding.column, {"accept": [f"{finding.column}={finding.name}"]})
    return replace(finding, remedies=remedies or (accept,))


_REFUSED = {"fold", "household", "skip_rows"}


def _by_value(remedy: Remedy) -> Remedy:
    codes = [HIDDEN if code in POSITIONS else code for code in remedy.settings.get("missing_codes", ())]
    return replace(remedy, settings={**remedy.settings, "missing_codes": codes}) if codes else remedy


def check_limits(job: Job, schema: Schema, engine: str) -> None:
    """Raise if a job asks for something that blocks cannot do.

    Parameters
    ----------
    job, schema : Job and Schema
        What is asked for.
    engine : str
        The engine, for the message.
    """
    for limit in LIMITS:
        if limit.is_asked(job, schema):
            raise beyond(engine, limit.what, limit.why)


def schema_in_blocks(job: Job, types: pa.Schema, engine: str) -> Schema:
    """Return the schema of a table, or raise if the job cannot be done on it in blocks, whatever its records are."""
    check_memory(job)
    check_late(job)
    check_column_names(types.names)
    schema = Schema.of(types, job.roles, job.columns)
    check_job(job, schema)
    check_limits(job, schema, engine)
    return schema
