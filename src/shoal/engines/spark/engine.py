"""Engine: the stages of `shoal.engines.blocks` on a Spark DataFrame.

    fit -> assign -> solve -> border and refine -> publish -> recount

Records stay on the executors. The driver gets statistics, a sample, the number of records of each leaf, and what was
measured on each block. A frame that is used twice is persisted first.
"""

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from shoal.aggregate import published_type
from shoal.columns.schema import Role, Schema
from shoal.distribution import versions
from shoal.engines.blocks.block_records import ALONE, CELL, HASHES, SUBJECT, carried, travelling
from shoal.engines.blocks.blueprint import BORDER_ROUNDS, DEEPER, TOO_LARGE, Blueprint, Summary
from shoal.engines.blocks.cell_destinations import SETTLED, destinations
from shoal.engines.blocks.publish import Measured, publish
from shoal.engines.blocks.recount import merged_verdicts
from shoal.engines.blocks.sample import Sample
from shoal.engines.blocks.solve import refine_cells, solve
from shoal.engines.spark.sessions import named
from shoal.engines.spark.spark_frames import (
    Frame,
    Held,
    counted,
    fingerprint,
    gathered,
    grouped,
    hashed,
    looked_up,
    mapped,
    quoted,
    types_of,
)
from shoal.errors import ParameterError
from shoal.job import Job
from shoal.measures.recount import Verdict, recount
from shoal.output.published_order import record_hashes

LEAF, BLOCK, PART = "_shoal_leaf", "_shoal_block", "_shoal_part"
EQUAL, MEASURED = "_shoal_equal", "_shoal_measured"
ORDER = ("_shoal_order_1", "_shoal_order_2")
"""Columns of a hash of the published values, which gives the order of the records that are written."""


_LEAF = pa.field(LEAF, pa.int64())
_IN_CELLS = (pa.field(ALONE, pa.bool_()), pa.field(CELL, pa.int64()), _LEAF)

_TASKS = 2
"""Tasks for each block. Blocks are sent to tasks by a hash: with more tasks, fewer of them have several blocks."""


class Made(NamedTuple):
    """Published records, and what was measured on them."""

    blueprint: Blueprint
    published: Frame
    """Persisted: the published columns, those of `ORDER`, and a hash of the subject if there is a subject column."""

    measured: list[Measured]
    content: tuple[int, ...]
    """Sums of the hashes of all records as they were read, in any order."""


def fitted(frame: Frame, job: Job, schema: Schema) -> Blueprint:
    """Summarize all records and fix the cuts."""
    seed, ours = job.seed, versions()["shoal"]
    assert seed is not None

    def measure(batch: pa.Table) -> tuple[frozenset[str], Summary]:
        return frozenset([versions()["shoal"]]), Summary.of(batch, schema, seed)

    def merge(parts: list[tuple[frozenset[str], Summary]]) -> tuple[frozenset[str], Summary]:
        return frozenset().union(*(part[0] for part in parts)), Summary.merged([part[1] for part in parts])

    with named(frame.sparkSession, "fit"):
        parts = gathered(frame, measure, merge)
    if not parts:
        raise ParameterError("The DataFrame has no records, so there is nothing to release.")
    theirs, summary = merge(parts)
    if theirs != {ours}:
        raise ParameterError(
            f"The driver has shoal {ours}, but Python workers of the cluster have {', '.join(sorted(theirs))}. Install "
            "the same version everywhere, since another version may make other cells."
        )
    return Blueprint.of(job, schema, summary)


def made(frame: Frame, blueprint: Blueprint) -> Made:
    """Make cells of all records, and publish them.

    A frame is freed as soon as the next one is complete: if executors are lost, Spark makes it again.
    """
    spark, types = frame.sparkSession, travelling(types_of(frame).empty_table(), blueprint.schema).schema
    with Held() as held:
        with named(spark, "assign"):
            records, counts, blueprint = _in_leaves(frame, types, blueprint, held)
            content = fingerprint(records, list(HASHES))
        with named(spark, "solve"):
            cells = held(_solved(records, counts, types, blueprint))
            counts = counted(cells, LEAF)
            held.free(records)
        for border_round in range(1, BORDER_ROUNDS):
            with named(spark, f"border round {border_round}"):
                before, cells = cells, held(_refined(cells, counts, types, blueprint, border_round))
                counts = counted(cells, LEAF)
                held.free(before)
        with named(spark, "publish"):
            published = held(_published(cells, counts, types, blueprint))
            packed = published.filter(f"{MEASURED} IS NOT NULL").select(BLOCK, MEASURED).toArrow().sort_by(BLOCK)
            measured = [pickle.loads(each) for each in packed[MEASURED].to_pylist()]
        held.keep(published)
    return Made(blueprint, published, measured, content)


def _in_leaves(
    frame: Frame, types: pa.Schema, blueprint: Blueprint, held: Held
) -> tuple[Frame, dict[int, int], Blueprint]:
    """Return the records, each with its leaf, how many each leaf has, and the blueprint with no leaf too large."""
    records, equal = held(_assigned(frame, types, blueprint)), set[int]()
    for _ in range(DEEPER):
        counts = counted(records, LEAF)
        large = sorted(leaf for leaf, n in counts.items() if n > TOO_LARGE * blueprint.size and leaf not in equal)
        if not large:
            break
        before = blueprint
        for leaf in large:
            deeper = blueprint.deepened(leaf, _sampled(records, blueprint, leaf), counts[leaf])
            if deeper is blueprint:
                equal.add(leaf)
            blueprint = deeper
        if blueprint is not before:
            held.free(records)
            records = held(_assigned(frame, types, blueprint))
    if not equal:
        return records, counts, blueprint
    for leaf in sorted(equal):
        records, blueprint = _scattered(records, types, blueprint, leaf, counts[leaf])
    return held(records), counted(records, LEAF), blueprint


def _sampled(records: Frame, blueprint: Blueprint, leaf: int) -> Sample:
    """Draw a sample from the records of a leaf."""
    names = [name for name in carried(blueprint.schema) if name in blueprint.schema.quasi_names]
    seed = blueprint.job.seed
    assert seed is not None
    here = records.filter(f"{LEAF} = {leaf}").drop(LEAF)
    return Sample.merged(gathered(here, lambda batch: Sample.of(batch, names, seed), Sample.merged))


def _scattered(
    records: Frame, types: pa.Schema, blueprint: Blueprint, leaf: int, n_records: int
) -> tuple[Frame, Blueprint]:
    """Split a leaf of equal points as `shoal.engines.blocks.block_records.dealt` does; others are the last part."""
    from pyspark.sql.functions import expr

    first = blueprint.points(_sampled(records, blueprint, leaf).records.slice(0, 1))[0]
    begin, n_parts = blueprint.n_leaves(), -(-n_records // blueprint.size) + 1

    def compare(batch: pa.Table) -> pa.Table:
        return batch.append_column(EQUAL, pa.array((blueprint.points(batch) == first).all(axis=1)))

    here = records.filter(f"{LEAF} = {leaf}")
    flagged = mapped(here, compare, types.append(_LEAF).append(pa.field(EQUAL, pa.bool_())))
    place = f"row_number() OVER (PARTITION BY {EQUAL} ORDER BY {', '.join(HASHES)}) - 1"
    part = f"{begin} + IF({EQUAL}, ({place}) % {n_parts - 1}, {n_parts - 1})"
    parts = flagged.withColumn(LEAF, expr(f"CAST({part} AS BIGINT)")).drop(EQUAL)
    return records.filter(f"{LEAF} <> {leaf}").unionByName(parts), blueprint.scattering(leaf, n_parts)


def _assigned(frame: Frame, types: pa.Schema, blueprint: Blueprint) -> Frame:
    """Return the records as they travel, each with its leaf."""

    def assign(batch: pa.Table) -> pa.Table:
        records = travelling(batch, blueprint.schema)
        return records.append_column(LEAF, pa.array(blueprint.assign(records)))

    return mapped(frame, assign, types.append(_LEAF))


def _solved(records: Frame, counts: dict[int, int], types: pa.Schema, blueprint: Blueprint) -> Frame:
    """Return the records in cells, each with the leaf that its cell is sent to."""

    def of_block(block: int, group: pa.Table) -> pa.Table:
        return _sent(solve(group.drop([LEAF, BLOCK]), blueprint, block), blueprint, 1)

    return _each_block(records, counts, blueprint, 0, of_block, pa.schema([*types, *_IN_CELLS]))


def _refined(cells: Frame, counts: dict[int, int], types: pa.Schema, blueprint: Blueprint, border_round: int) -> Frame:
    """Return the records after a border round that is not the last."""

    def of_block(block: int, group: pa.Table) -> pa.Table:
        return _sent(refine_cells(group.drop([LEAF, BLOCK]), blueprint, block), blueprint, border_round + 1)

    moving = cells.filter(f"{LEAF} <> {SETTLED}")
    refined = _each_block(moving, counts, blueprint, border_round, of_block, pa.schema([*types, *_IN_CELLS]))
    # Without settled cells, a union would only read all others once more.
    return refined.unionByName(cells.filter(f"{LEAF} = {SETTLED}")) if SETTLED in counts else refined


def _published(cells: Frame, counts: dict[int, int], types: pa.Schema, blueprint: Blueprint) -> Frame:
    """Return what is published after the last border round; the first record of a block carries what was measured."""

    def of_block(block: int, group: pa.Table) -> pa.Table:
        records = group.drop([LEAF, BLOCK])
        part = publish(records if block < 0 else refine_cells(records, blueprint, block), blueprint)
        measured = pa.array([pickle.dumps(part.measured), *[None] * (len(records) - 1)], pa.binary())
        return (
            _ordered(part.published, blueprint)
            .append_column(MEASURED, measured)
            .append_column(BLOCK, pa.array(np.full(len(records), block)))
        )

    ours = [(name, pa.int64()) for name in ORDER] + [(MEASURED, pa.binary()), (BLOCK, pa.int64())]
    made = pa.schema([*_published_types(types, blueprint.schema), *ours])
    return _each_block(cells, counts, blueprint, BORDER_ROUNDS, of_block, made)


def _each_block(
    records: Frame,
    leaves: dict[int, int],
    blueprint: Blueprint,
    stage: int,
    of_block: Callable[[int, pa.Table], pa.Table],
    types: pa.Schema,
) -> Frame:
    """Send records to the blocks of a stage; return what a function makes of each block, given its number.

    The blocks follow from the number of records of each leaf. Settled
    cells stay in the block where they are, which has a negative number.
    """
    from pyspark.sql.functions import expr

    counts = np.zeros(blueprint.n_leaves(stage), dtype=np.int64)
    for leaf, n_records in leaves.items():
        if leaf != SETTLED:
            counts[leaf] = n_records
    blocks = blueprint.blocks(counts, stage)
    first = stage << 20  # numbers that no block of another stage has
    moving = looked_up(LEAF, [first + block for block in blocks.tolist()])
    stays = "NULL" if stage == 0 else f"-1 - shiftright({CELL}, 32)"
    placed = records.withColumn(BLOCK, expr(f"coalesce({moving}, {stays})"))
    return grouped(placed, BLOCK, of_block, types, _TASKS * (int(blocks.max(initial=0)) + 1))


def _sent(records: pa.Table, blueprint: Blueprint, border_round: int) -> pa.Table:
    """Return records in cells with the leaf that each cell is sent to."""
    return records.append_column(LEAF, pa.array(destinations(records, blueprint, border_round)))


def _ordered(published: pa.Table, blueprint: Blueprint) -> pa.Table:
    """Return published records with the hash that gives their order."""
    columns = (published[column.name] for column in blueprint.schema.published)
    hashes = record_hashes(columns, published.num_rows).view(np.int64)
    for name, values in zip(ORDER, hashes, strict=True):
        published = published.append_column(name, pa.array(values))
    return published


def _published_types(types: pa.Schema, schema: Schema) -> pa.Schema:
    """Return the types of what `shoal.engines.blocks.publish.publish` returns, of records with these types."""
    quasi = {column.name: published_type(column) for column in schema.quasi}
    fields = [(c.name, quasi.get(c.name, types.field(c.name).type)) for c in schema.published]
    return pa.schema([*fields, *([] if schema.roles.subject is None else [(SUBJECT, pa.int64())])])


def recounted(published: Frame, blueprint: Blueprint) -> Verdict:
    """Recount every guarantee; records that agree in all quasi-identifiers are counted in the same part.

    Without the hashes of the subjects, as in written files, persons are not counted.
    """
    job, schema = blueprint.job, blueprint.schema
    wanted = [*schema.quasi_names, *(column.name for column in schema.having(Role.CONFIDENTIAL))]
    if SUBJECT in published.columns:
        wanted.append(SUBJECT)
    else:
        schema = replace(schema, roles=schema.roles.model_copy(update={"subject": None}))

    def of_part(_: int, group: pa.Table) -> pa.Table:
        subjects = group[SUBJECT] if SUBJECT in group.column_names else None
        found = recount(group, schema, job.k, subjects, job.models, whole=blueprint.whole)
        return pa.table({"verdict": pa.array([pickle.dumps(found)], pa.binary())})

    n_parts = 1 + blueprint.n_records // blueprint.size
    parts = hashed(published.select(*map(quoted, dict.fromkeys(wanted))), schema.quasi_names, n_parts, PART)
    with named(published.sparkSession, "recount"):
        found = grouped(parts, PART, of_part, pa.schema([pa.field("verdict", pa.binary())]), n_parts).toArrow()
    return merged_verdicts([pickle.loads(each) for each in found["verdict"].to_pylist()])
