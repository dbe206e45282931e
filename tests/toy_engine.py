"""A toy engine: tables in a list. It shows that the verbs suffice, and other engines are compared with it."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from shoal.columns.schema import Schema
from shoal.engines.blocks import driver
from shoal.engines.blocks.block_records import carried, dealt, hashes_of
from shoal.engines.blocks.blueprint import TableSummary
from shoal.engines.blocks.driver import Sent
from shoal.engines.blocks.forest import leaves_of_blocks
from shoal.engines.blocks.limits import check_limits
from shoal.engines.blocks.measure import BlockMeasures
from shoal.engines.blocks.recount import recount_part
from shoal.engines.blocks.sample import Sample
from shoal.engines.blocks.solve import SETTLED
from shoal.job.checks import check_job
from shoal.measures.recount import Verdict


class ToyEngine:
    """Records are lists of `Sent`; published ones are lists of `Part`."""

    def __init__(self, batches):
        self.batches = batches

    def stage(self, name, make):
        return make()

    def summarize(self, summary):
        return TableSummary.merged(list(map(summary, self.batches)))

    def assign(self, blueprint, send):
        return list(map(send, self.batches))

    def count(self, records, n_leaves):
        leaves = np.concatenate([each.leaves for each in records])
        return np.bincount(leaves[leaves != SETTLED], minlength=n_leaves)

    def sample(self, records, leaf, draw):
        return Sample.merged([draw(in_leaves(each, [leaf])) for each in records])

    def reassign(self, records, leaves, assign):
        return [Sent(each.records, assign(each.records)) for each in records]

    def deal(self, records, parts, choose):
        whole = pa.concat_tables([each.records for each in records])
        leaves = np.concatenate([each.leaves for each in records])
        for leaf, (*dealing, last) in parts.items():
            here = np.flatnonzero(leaves == leaf)
            chosen = here[choose(whole.take(pa.array(here)), leaves[here])]
            leaves[here] = last
            leaves[chosen] = dealing[0] + dealt(hashes_of(whole.take(pa.array(chosen))), len(dealing))
        return [Sent(whole, leaves)]

    def by_block(self, records, blueprint, blocks, work):
        made = [work(block, number) for number, block in enumerate(in_blocks(records, blocks))]
        return [*made, *(Sent(settled, np.full(len(settled), SETTLED)) for settled in in_blocks(records, None))]

    def publish(self, records, blueprint, blocks, work):
        made = [work(block, number) for number, block in enumerate(in_blocks(records, blocks))]
        return [*made, *(work(settled, None) for settled in in_blocks(records, None))]

    def measured(self, published):
        return [part.measured for part in published]


def in_leaves(sent, leaves):
    return sent.records.filter(pa.array(np.isin(sent.leaves, leaves)))


def in_blocks(records, blocks):
    """Return the records of each block, or those that are settled if there are any."""
    wanted = [[SETTLED]] if blocks is None else leaves_of_blocks(blocks)
    found = [pa.concat_tables([in_leaves(each, leaves) for each in records]) for leaves in wanted]
    return [table for table in found if len(table)]


class Toy(NamedTuple):
    """The published records, in no particular order, their verdict and measures."""

    published: pa.Table
    verdict: Verdict
    measures: BlockMeasures


def toy_release(job, batches, size=None):
    """Make the release of a job from batches of records, in blocks of another size if one is given."""
    schema = Schema.of(batches[0].schema, job.roles, job.columns)
    check_job(job, schema)
    check_limits(job, schema, "toy")
    plain = [batch.select(carried(schema)) for batch in batches]
    with pytest.MonkeyPatch.context() as patch:
        if size is not None:
            patch.setattr("shoal.engines.blocks.blueprint.block_size", lambda *_: size)
        blueprint, parts, measured = driver.make(ToyEngine(plain), job, schema)
    published = pa.concat_tables([part.published for part in parts])
    verdict = recount_part(published, blueprint.schema, job.k, job.models, blueprint.whole)
    verdict.require()
    published = published.select([column.name for column in blueprint.schema.published])
    return Toy(published, verdict, BlockMeasures(blueprint, measured, lambda: verdict))
