"""In process: the stages one after another, on batches in memory. The definition that engines are tested against."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from shoal.columns.schema import Schema
from shoal.engines.blocks.block_records import SUBJECT, travelling
from shoal.engines.blocks.blueprint import BORDER_ROUNDS, Blueprint, Summary
from shoal.engines.blocks.cell_destinations import SETTLED, destinations
from shoal.engines.blocks.forest import leaves_of_blocks
from shoal.engines.blocks.limits import check_limits
from shoal.engines.blocks.measure import Measures
from shoal.engines.blocks.publish import publish
from shoal.engines.blocks.solve import refine_cells, solve
from shoal.job import Job
from shoal.job.checks import check_job
from shoal.measures.recount import Verdict, recount
from shoal.typing import Labels


class InProcess(NamedTuple):
    """The published records, in no particular order, their verdict and measures."""

    published: pa.Table
    verdict: Verdict
    measures: Measures


def in_process(job: Job, batches: Sequence[pa.Table], size: int | None = None) -> InProcess:
    """Make the release of a job from batches of records; `size` is that of the blocks, as in `Blueprint.of`."""
    assert job.seed is not None
    schema = Schema.of(batches[0].schema, job.roles, job.columns)
    check_job(job, schema)
    check_limits(job, schema, "in-process")
    summary = Summary.merged([Summary.of(batch, schema, job.seed) for batch in batches])
    blueprint = Blueprint.of(job, schema, summary, size=size)
    records = pa.concat_tables([travelling(batch, blueprint.schema) for batch in batches])
    blocks = _in_blocks(records, blueprint.assign(records), blueprint, 0)
    cells = pa.concat_tables([solve(block, blueprint, number) for number, block in enumerate(blocks)])
    for border_round in range(1, BORDER_ROUNDS + 1):
        leaves = destinations(cells, blueprint, border_round)
        settled = cells.filter(pa.array(leaves == SETTLED))
        moving = cells.filter(pa.array(leaves != SETTLED))
        blocks = _in_blocks(moving, leaves[leaves != SETTLED], blueprint, border_round)
        first = border_round << 20  # numbers that no block of another round has
        refined = [refine_cells(block, blueprint, first + number) for number, block in enumerate(blocks)]
        cells = pa.concat_tables([settled, *refined])
    part = publish(cells, blueprint)
    subjects = part.published[SUBJECT] if SUBJECT in part.published.column_names else None
    verdict = recount(part.published, blueprint.schema, job.k, subjects, job.models)
    verdict.require()
    published = part.published.select([column.name for column in blueprint.schema.published])
    return InProcess(published, verdict, Measures(blueprint, [part.measured], lambda: verdict))


def _in_blocks(records: pa.Table, leaves: Labels, blueprint: Blueprint, stage: int) -> list[pa.Table]:
    """Return the records of each block."""
    counts = np.bincount(leaves, minlength=blueprint.forests[stage].n_leaves)
    blocks = leaves_of_blocks(blueprint.blocks(counts, stage))
    return [records.filter(pa.array(np.isin(leaves, wanted))) for wanted in blocks]
