"""Driver: the order of the stages, the same for every engine.

    fit -> assign -> solve -> border round 1 -> publish

An engine is one class of verbs: it knows where the records are, and how a function reaches them. The functions that it
is given are pickled to wherever that is; they hold the blueprint, and no records.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.columns.prepare import NumberOf
from shoal.columns.schema import Schema
from shoal.engines.blocks.block_records import carried, travelling
from shoal.engines.blocks.blueprint import BORDER_ROUNDS, Blueprint, TableSummary
from shoal.engines.blocks.publish import MeasuredCells, Part, publish
from shoal.engines.blocks.sample import Sample
from shoal.engines.blocks.solve import destinations, refine_cells, solve
from shoal.job import Job
from shoal.sources import Source
from shoal.typing import Labels, Vector

FIT, ASSIGN, SOLVE, PUBLISH = "fit", "assign", "solve", "publish"
IN_CELLS = (SOLVE, *(f"border round {number}" for number in range(1, BORDER_ROUNDS)))
"""The stages that leave records in cells; the last border round is a part of `PUBLISH`."""

TOO_LARGE = 2
"""Leaves that are more than this many times the block size are cut further."""

DEEPER = 8
"""Number of times that leaves are cut further, at most."""

Records = TypeVar("Records")
"""Records that an engine holds, each with the leaf that it was sent to: a frame of a cluster, or files."""


class Sent(NamedTuple):
    """Records, and the leaf that each is sent to; what was measured, if they are published."""

    records: pa.Table
    leaves: Labels
    measured: MeasuredCells | None = None


Assign = Callable[[pa.Table], Labels]
"""Returns the leaf of each record."""

Choose = Callable[[pa.Table, Labels], NDArray[np.bool_]]
"""Returns whether a record is chosen, given its leaf."""

Work = Callable[[pa.Table, int], Sent]
"""Takes the records of a block, and its number."""

Publish = Callable[[pa.Table, int | None], Part]
"""Takes the records of a block, and its number; no number with whole cells that are `SETTLED`."""


class Engine(Protocol[Records]):
    """Where the records are, and how a function reaches them.

    What is given to `reassign`, `deal` or `by_block` is not used again.
    """

    def stage(self, name: str, make: Callable[[], tuple[Records, Any]]) -> tuple[Records, Any]:
        """Make a stage: its records, and what was found out. An engine may keep both, and make them again."""

    def summarize(self, summary: Callable[..., TableSummary]) -> TableSummary:
        """Merge the summaries of all batches; ``summary(batch)`` also takes `number_of` and `highest_key`."""

    def assign(self, blueprint: Blueprint, send: Callable[..., Sent]) -> Records:
        """Send all records to leaves; ``send(batch)`` also takes `number_of`."""

    def count(self, records: Records, n_leaves: int) -> Labels:
        """Return the number of records of each leaf, shape (n_leaves,)."""

    def sample(self, records: Records, leaf: int, draw: Callable[[pa.Table], Sample]) -> Sample:
        """Return the merged samples of the records of a leaf."""

    def reassign(self, records: Records, leaves: list[int], assign: Assign) -> Records:
        """Send the records of some leaves to others; all other records would be assigned to the leaf that they have."""

    def deal(self, records: Records, parts: dict[int, range], choose: Choose) -> Records:
        """Deal chosen records of leaves, as `dealt` does, to all their parts but the last; send the others to that."""

    def by_block(self, records: Records, blueprint: Blueprint, blocks: Labels, work: Work) -> Records:
        """Work on each block, given the block of each leaf; records that are `SETTLED` stay as they are."""

    def publish(self, records: Records, blueprint: Blueprint, blocks: Labels, work: Publish) -> Records:
        """Publish each block, and the cells that are `SETTLED`."""

    def measured(self, published: Records) -> list[MeasuredCells]:
        """Return what was measured on published records, in an order that is always the same."""


class Outcome(NamedTuple, Generic[Records]):
    """What the stages leave."""

    blueprint: Blueprint
    published: Records
    measured: list[MeasuredCells]


def make(engine: Engine[Records], job: Job, schema: Schema, source: Source | None = None) -> Outcome[Records]:
    """Run all stages of a job that was checked against the schema and has a seed; `source` as in `Blueprint.of`."""

    def fit() -> tuple[Any, Blueprint]:
        summary = engine.summarize(partial(TableSummary.of, schema=schema, seed=_seed(job)))
        return None, Blueprint.of(job, schema, summary, source)

    _, fitted = engine.stage(FIT, fit)
    records, blueprint = engine.stage(ASSIGN, lambda: _in_leaves(engine, fitted))
    for number, stage in enumerate((*IN_CELLS, PUBLISH)):
        records, _ = engine.stage(stage, partial(_in_blocks, engine, records, blueprint, number))
    return Outcome(blueprint, records, engine.measured(records))


def _seed(job: Job) -> int:
    assert job.seed is not None
    return job.seed


def _in_leaves(engine: Engine[Records], blueprint: Blueprint) -> tuple[Records, Blueprint]:
    """Send records to leaves, none of which is too large: they are cut further, or scattered if they are one point."""
    records = engine.assign(blueprint, partial(_sent, blueprint))
    points: dict[int, Vector] = {}
    n_parts: dict[int, int] = {}
    for _ in range(DEEPER):
        counts = engine.count(records, blueprint.n_leaves())
        counts[[*blueprint.moved, *points]] = 0
        large = np.flatnonzero(counts > TOO_LARGE * blueprint.size).tolist()
        if not large:
            break
        before = blueprint
        for leaf in large:
            sample = _sampled(engine, records, blueprint, leaf)
            deeper = blueprint.deepened(leaf, sample, int(counts[leaf]))
            if deeper is blueprint:
                points[leaf] = blueprint.points(sample.records.slice(0, 1))[0]
                n_parts[leaf] = -(-int(counts[leaf]) // blueprint.size) + 1
            blueprint = deeper
        if blueprint is not before:
            records = engine.reassign(records, [leaf for leaf in large if leaf not in points], blueprint.assign)
    parts: dict[int, range] = {}
    for leaf in sorted(points):
        begin = blueprint.n_leaves()
        blueprint = blueprint.scattering(leaf, n_parts[leaf])
        parts[leaf] = range(begin, blueprint.n_leaves())
    if parts:
        records = engine.deal(records, parts, partial(_at_points, blueprint, points))
    return records, blueprint


def _sent(blueprint: Blueprint, batch: pa.Table, number_of: NumberOf = None) -> Sent:
    records = travelling(batch, blueprint.schema, number_of)
    return Sent(records, blueprint.assign(records))


def _sampled(engine: Engine[Records], records: Records, blueprint: Blueprint, leaf: int) -> Sample:
    """Draw a sample from the records of a leaf."""
    names = [name for name in carried(blueprint.schema) if name in blueprint.schema.quasi_names]
    return engine.sample(records, leaf, partial(Sample.of, names=names, seed=_seed(blueprint.job)))


def _at_points(blueprint: Blueprint, points: dict[int, Vector], records: pa.Table, leaves: Labels) -> NDArray[np.bool_]:
    """Return whether records are at the points of their leaves."""
    X, found = blueprint.points(records), np.zeros(len(leaves), dtype=np.bool_)
    for leaf in np.unique(leaves).tolist():
        members = leaves == leaf
        found[members] = (X[members] == points[leaf]).all(axis=1)
    return found


def _in_blocks(engine: Engine[Records], records: Records, blueprint: Blueprint, stage: int) -> tuple[Records, None]:
    """Make the cells of all blocks, refine them, or refine them for the last time and publish them."""
    blocks = blueprint.blocks(engine.count(records, blueprint.n_leaves(stage)), stage)
    if stage < BORDER_ROUNDS:
        return engine.by_block(records, blueprint, blocks, partial(_cells_of_block, blueprint, stage)), None
    return engine.publish(records, blueprint, blocks, partial(_published_part, blueprint)), None


def _cells_of_block(blueprint: Blueprint, stage: int, records: pa.Table, block: int) -> Sent:
    """Return the cells of a block, sent to the leaves of the next stage."""
    cells = (refine_cells if stage else solve)(records, blueprint, _number(stage, block))
    return Sent(cells, destinations(cells, blueprint, stage + 1))


def _published_part(blueprint: Blueprint, cells: pa.Table, block: int | None) -> Part:
    if block is not None:
        cells = refine_cells(cells, blueprint, _number(BORDER_ROUNDS, block))
    return publish(cells, blueprint)


def _number(stage: int, block: int) -> int:
    """Return a number that no block of another stage has."""
    return (stage << 20) + block
