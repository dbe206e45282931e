"""Engine: the stages of `shoal.blocks` on a Spark DataFrame.

    fit -> assign -> solve -> border and refine -> publish -> recount

Records stay on the executors. The driver gets statistics, a sample, the number of records of each leaf, and what was
measured on each block. A frame that is used twice is persisted first.
"""

import pickle
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from shoal.auditing import Verdict, recount
from shoal.blocks.blueprint import BORDER_ROUNDS, Blueprint, Summary
from shoal.blocks.border import SETTLED, destinations
from shoal.blocks.publish import Measured, publish
from shoal.blocks.records import ALONE, CELL, SUBJECT, travelling
from shoal.blocks.recount import merged_verdicts
from shoal.blocks.solve import refine_cells, solve
from shoal.cells.aggregate import Cells, aggregate
from shoal.columns.schema import Role, Schema
from shoal.errors import ParameterError
from shoal.extras import versions
from shoal.job import Job
from shoal.spark.frames import Frame, counted, gathered, grouped, looked_up, mapped, types_of
from shoal.table.published_order import record_hashes

LEAF, BLOCK, PART = "_shoal_leaf", "_shoal_block", "_shoal_part"
MEASURED = "_shoal_measured"
ORDER = ("_shoal_order_1", "_shoal_order_2")
"""Columns of a hash of the published values, which gives the order of the records that are written."""


class Made(NamedTuple):
    """Published records, and what was measured on them."""

    published: Frame
    """Persisted: the published columns, those of `ORDER`, and a hash of the subject if there is a subject column."""

    measured: list[Measured]


def fitted(frame: Frame, job: Job, schema: Schema) -> Blueprint:
    """Summarize all records and fix the cuts."""
    seed, ours = job.seed, versions()["shoal"]
    assert seed is not None

    def measure(batch: pa.Table) -> tuple[frozenset[str], Summary]:
        return frozenset([versions()["shoal"]]), Summary.of(batch, schema, seed)

    def merge(parts: list[tuple[frozenset[str], Summary]]) -> tuple[frozenset[str], Summary]:
        return frozenset().union(*(part[0] for part in parts)), Summary.merged([part[1] for part in parts])

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
    """Make cells of all records, and publish them."""
    records = _assigned(frame, blueprint).persist()
    types = types_of(records)
    in_cells = types.append(pa.field(ALONE, pa.bool_())).append(pa.field(CELL, pa.int64()))

    def solve_block(block: int, group: pa.Table) -> pa.Table:
        return _sent(solve(group.drop([LEAF, BLOCK]), blueprint, block), blueprint, 1)

    cells = grouped(_in_blocks(records, blueprint, 0), BLOCK, solve_block, in_cells).persist()
    held = [records, cells]
    for border_round in range(1, BORDER_ROUNDS):
        ...
    return Made(published, measured)


def _assigned(frame: Frame, blueprint: Blueprint) -> Frame:
    """Return the records as they travel, each with its leaf."""

    def assign(batch: pa.Table) -> pa.Table:
        records = travelling(batch, blueprint.schema)
        return records.append_column(LEAF, pa.array(blueprint.assign(records)))

    types = travelling(types_of(frame).empty_table(), blueprint.schema).schema
    return mapped(frame, assign, types.append(pa.field(LEAF, pa.int64())))
