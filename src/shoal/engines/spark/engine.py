"""Engine: a Spark DataFrame, on which `shoal.engines.blocks.driver` runs its stages.

Records stay on the executors. The driver gets statistics, a sample, the number of records of each leaf, and what was
measured on each block. A frame that is used twice is persisted first, and freed as soon as the next one is complete: if
executors are lost, Spark makes it again.
"""

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from shoal.aggregate import published_type
from shoal.columns.schema import Role, Schema
from shoal.columns.value_hashes import record_hashes
from shoal.distribution import versions
from shoal.engines.blocks import driver
from shoal.engines.blocks.block_records import ALONE, CELL, HASHES, SUBJECT
from shoal.engines.blocks.blueprint import Blueprint, TableSummary
from shoal.engines.blocks.driver import Assign, Choose, Publish, Sent, Work
from shoal.engines.blocks.publish import MeasuredCells
from shoal.engines.blocks.recount import merged_verdicts, recount_part
from shoal.engines.blocks.sample import Sample
from shoal.engines.blocks.solve import SETTLED
from shoal.engines.spark.sessions import check_versions, named
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
from shoal.job import Job
from shoal.measures.recount import Verdict
from shoal.typing import Labels, Progress

LEAF, BLOCK, PART = "_shoal_leaf", "_shoal_block", "_shoal_part"
DEALT, MEASURED = "_shoal_dealt", "_shoal_measured"
ORDER = ("_shoal_order_1", "_shoal_order_2")
"""Columns of a hash of the published values, which gives the order of the records that are written."""


_LEAF = pa.field(LEAF, pa.int64())
_IN_CELLS = (pa.field(ALONE, pa.bool_()), pa.field(CELL, pa.int64()))

_TASKS = 2
"""Tasks for each block. Blocks are sent to tasks by a hash: with more tasks, fewer of them have several blocks."""


class Made(NamedTuple):
    """Published records, and what was measured on them."""

    blueprint: Blueprint
    published: Frame
    """Persisted: the published columns, those of `ORDER`, and a hash of the subject if there is a subject column."""

    measured: list[MeasuredCells]
    content: tuple[int, ...]
    """Sums of the hashes of all records as they were read, in any order."""


def make(job: Job, frame: Frame, schema: Schema, progress: Progress | None = None) -> Made:
    """Make cells of all records, and publish them; progress is reported once all records were counted."""
    with Held() as held:
        engine = _SparkEngine(frame, held, progress)
        blueprint, published, measured = driver.make(engine, job, schema)
        held.keep(published.frame)
    return Made(blueprint, published.frame, measured, engine.content)


class _Leaves(NamedTuple):
    """A persisted frame with a column `LEAF`, and the number of records of each leaf; published records have none."""

    frame: Frame
    counts: dict[int, int]


class _SparkEngine:
    """Implements `shoal.engines.blocks.driver.Engine` with records in `_Leaves`."""

    def __init__(self, frame: Frame, held: Held, progress: Progress | None) -> None:
        self._source, self._held, self._progress = frame, held, progress
        self._types: pa.Schema
        """Types of the records as they travel, without a leaf."""

        self.content: tuple[int, ...]

    def stage(self, name: str, make: Callable[[], tuple[_Leaves, Any]]) -> tuple[_Leaves, Any]:
        """Name the jobs of a stage."""
        with named(self._source.sparkSession, name):
            return make()

    def summarize(self, summary: Callable[..., TableSummary]) -> TableSummary:
        """Summarize batches where they are; raise unless all workers have the same version of shoal."""

        def measure(batch: pa.Table) -> tuple[frozenset[str], TableSummary]:
            return frozenset([versions()["shoal"]]), summary(batch)

        def merge(parts: list[tuple[frozenset[str], TableSummary]]) -> tuple[frozenset[str], TableSummary]:
            return frozenset().union(*(part[0] for part in parts)), TableSummary.merged([part[1] for part in parts])

        ours = versions()["shoal"]
        theirs, found = merge(gathered(self._source, measure, merge) or [measure(types_of(self._source).empty_table())])
        check_versions(ours, theirs)
        return found

    def assign(self, blueprint: Blueprint, send: Callable[..., Sent]) -> _Leaves:
        """Return the records as they travel, each with its leaf."""
        if self._progress is not None:
            self._progress(0, blueprint.n_records)
        self._types = send(types_of(self._source).empty_table()).records.schema
        records = self._leaves(mapped(self._source, lambda batch: _with_leaf(send(batch)), self._types.append(_LEAF)))
        self.content = fingerprint(records.frame, list(HASHES))
        return records

    def _leaves(self, frame: Frame, before: _Leaves | None = None) -> _Leaves:
        """Persist a frame, count its leaves, and free the frame that it was made of."""
        frame = self._held(frame)
        counts = counted(frame, LEAF)
        if before is not None:
            self._held.free(before.frame)
        return _Leaves(frame, counts)

    def count(self, records: _Leaves, n_leaves: int) -> Labels:
        """Return the numbers that are known."""
        counts = np.zeros(n_leaves, dtype=np.int64)
        for leaf, n_records in records.counts.items():
            if leaf != SETTLED:
                counts[leaf] = n_records
        return counts

    def sample(self, records: _Leaves, leaf: int, draw: Callable[[pa.Table], Sample]) -> Sample:
        """Draw where the records are."""
        here = records.frame.filter(f"{LEAF} = {leaf}").drop(LEAF)
        return Sample.merged(gathered(here, draw, Sample.merged))

    def reassign(self, records: _Leaves, leaves: list[int], assign: Assign) -> _Leaves:
        """Send all records once more: a union of these and others would double the number of partitions."""

        def again(batch: pa.Table) -> pa.Table:
            batch = batch.drop([LEAF])
            return _with_leaf(Sent(batch, assign(batch)))

        return self._leaves(mapped(records.frame, again, self._types.append(_LEAF)), records)

    def deal(self, records: _Leaves, parts: dict[int, range], choose: Choose) -> _Leaves:
        """Deal as `shoal.engines.blocks.block_records.dealt` does; one task has all chosen records of a leaf."""
        from pyspark.sql.functions import expr

        def flag(batch: pa.Table) -> pa.Table:
            return batch.append_column(DEALT, pa.array(choose(batch, np.asarray(batch[LEAF]))))

        here = f"{LEAF} IN ({', '.join(map(str, parts))})"
        types = self._types.append(_LEAF).append(pa.field(DEALT, pa.bool_()))
        place = f"row_number() OVER (PARTITION BY {LEAF}, {DEALT} ORDER BY {', '.join(HASHES)}) - 1"
        of_leaves = [parts.get(leaf, range(1)) for leaf in range(max(parts) + 1)]
        begin, last = (looked_up(LEAF, [each[at] for each in of_leaves]) for at in (0, -1))
        part = f"IF({DEALT}, {begin} + ({place}) % ({last} - {begin}), {last})"
        dealt = mapped(records.frame.filter(here), flag, types).withColumn(LEAF, expr(part)).drop(DEALT)
        return self._leaves(records.frame.filter(f"NOT {here}").unionByName(dealt), records)

    def by_block(self, records: _Leaves, blueprint: Blueprint, blocks: Labels, work: Work) -> _Leaves:
        """Group the records of each block in one place."""

        def of_block(block: int, group: pa.Table) -> pa.Table:
            return _with_leaf(work(group.drop([LEAF, BLOCK]), block))

        moving = records.frame.filter(f"{LEAF} <> {SETTLED}")
        made = _each_block(moving, blocks, "NULL", of_block, pa.schema([*self._types, *_IN_CELLS, _LEAF]))
        # Without settled cells, a union would only read all others once more.
        if SETTLED in records.counts:
            made = made.unionByName(records.frame.filter(f"{LEAF} = {SETTLED}"))
        return self._leaves(made, records)

    def publish(self, records: _Leaves, blueprint: Blueprint, blocks: Labels, work: Publish) -> _Leaves:
        """Settled cells stay in the block where they are, which has a negative number here.

        The first record of a block carries what was measured.
        """

        def of_block(block: int, group: pa.Table) -> pa.Table:
            part = work(group.drop([LEAF, BLOCK]), None if block < 0 else block)
            measured = pa.array([pickle.dumps(part.measured), *[None] * (len(group) - 1)], pa.binary())
            return (
                _ordered(part.published, blueprint)
                .append_column(MEASURED, measured)
                .append_column(BLOCK, pa.array(np.full(len(group), block)))
            )

        ours = [(name, pa.int64()) for name in ORDER] + [(MEASURED, pa.binary()), (BLOCK, pa.int64())]
        types = pa.schema([*_published_types(self._types, blueprint.schema), *ours])
        published = _each_block(records.frame, blocks, f"-1 - shiftright({CELL}, 32)", of_block, types)
        return _Leaves(self._held(published), {})

    def measured(self, published: _Leaves) -> list[MeasuredCells]:
        """Return what was measured, in the order of the blocks."""
        with named(self._source.sparkSession, driver.PUBLISH):
            carrying = published.frame.filter(f"{MEASURED} IS NOT NULL").select(BLOCK, MEASURED)
            packed = carrying.toArrow().sort_by(BLOCK)
        return [pickle.loads(each) for each in packed[MEASURED].to_pylist()]


def _with_leaf(sent: Sent) -> pa.Table:
    return sent.records.append_column(LEAF, pa.array(sent.leaves))


def _each_block(
    records: Frame, blocks: Labels, stays: str, of_block: Callable[[int, pa.Table], pa.Table], types: pa.Schema
) -> Frame:
    """Send records to the blocks of their leaves; return what a function makes of each block, given its number.

    `stays` is an expression of the block of those whose leaf has none.
    """
    from pyspark.sql.functions import expr

    moving = looked_up(LEAF, blocks.tolist())
    placed = records.withColumn(BLOCK, expr(f"coalesce({moving}, {stays})"))
    return grouped(placed, BLOCK, of_block, types, _TASKS * (int(blocks.max(initial=0)) + 1))


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
        found = recount_part(group, schema, job.k, job.models, blueprint.whole)
        return pa.table({"verdict": pa.array([pickle.dumps(found)], pa.binary())})

    n_parts = 1 + blueprint.n_records // blueprint.size
    parts = hashed(published.select(*map(quoted, dict.fromkeys(wanted))), schema.quasi_names, n_parts, PART)
    with named(published.sparkSession, "recount"):
        found = grouped(parts, PART, of_part, pa.schema([pa.field("verdict", pa.binary())]), n_parts).toArrow()
    verdict = merged_verdicts([pickle.loads(each) for each in found["verdict"].to_pylist()])
    return blueprint.described(verdict)
