"""Blueprint: everything that is fixed before records are sent to blocks, from one pass over all of them.

    batches -> Summary.of, Summary.merged -> Blueprint.of

It is small (statistics, a sample and trees of cuts), can be pickled, and is all that a stage needs to know about the
rest of the table.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from shoal.arrays import as_cell_size
from shoal.columns.distribution import Distributions
from shoal.columns.prepare import NumberOf, refuse_missing, refuse_without_effect
from shoal.columns.schema import Column, Kind, Role, Schema, is_text
from shoal.constraints.strata import refuse_small_strata, strata_in_words
from shoal.engines.blocks.block_records import carried, plain_schema, travelling
from shoal.engines.blocks.forest import Forest, join_neighbours
from shoal.engines.blocks.limits import taken_in_blocks
from shoal.engines.blocks.sample import Sample
from shoal.engines.blocks.statistics import Statistics, Strata
from shoal.errors import ParameterError, listed
from shoal.findings import ColumnView, Finding, ask
from shoal.findings.column_receipt import ColumnReceipt, receipts_of
from shoal.findings.rows import empty_findings, heading_findings, total_findings
from shoal.job import Job
from shoal.job.checks import column_findings, column_views, confidential_findings, role_findings, survey_weights
from shoal.measures.recount import Verdict
from shoal.measures.unchanged import nearly_identifying
from shoal.models.table_columns import refuse_impossible_in_whole
from shoal.sources import Source
from shoal.space.space import Space
from shoal.typing import Labels, Matrix

BLOCK_RECORDS = 1 << 17
BLOCK_NUMBERS = 1 << 22
BLOCK_BYTES = 1 << 28
"""Largest block, in records, in coordinates and in bytes of its values. It does not depend on memory, threads or
engine: the release does not either."""

CUTS = ((0, 0.5), (1, 0.36), (2, 0.64))
"""Cuts of the first blocks and of those of each border round: across which direction the first one goes, and the share
below each. No two forests cut in the same places (benchmarks/bench_disk.py)."""

BORDER_ROUNDS = len(CUTS) - 1
"""How often cells at the borders of blocks are refined in blocks that are cut elsewhere."""


class TableSummary(NamedTuple):
    """What is kept of the records after the first pass: statistics and a sample."""

    statistics: Statistics
    sample: Sample

    @staticmethod
    def of(
        batch: pa.Table,
        schema: Schema,
        seed: int,
        number_of: NumberOf = None,
        highest_key: int = 2**64 - 1,
    ) -> "TableSummary":
        """Summarize a batch, as it was read; raise on values that cannot be used.

        Records with sampling keys above `highest_key` are known not to be in the sample of the whole.
        """
        records = travelling(batch, schema, number_of)
        survey_weights(records, schema, number_of)
        names = [name for name in carried(schema) if name in schema.quasi_names]
        return TableSummary(Statistics.of(batch, records, schema), Sample.of(records, names, seed, highest_key))

    @staticmethod
    def merged(parts: Sequence["TableSummary"]) -> "TableSummary":
        """Summarize several parts of the table together; their order does not matter."""
        return TableSummary(
            Statistics.merged(part.statistics for part in parts), Sample.merged([part.sample for part in parts])
        )


@dataclass(frozen=True)
class Blueprint:
    """The space, the strata, the distributions and the cuts of the whole table.

    Attributes
    ----------
    job : Job
        The settings, with a seed.
    schema : Schema
        The columns as they travel, with explicit orders.
    n_records, n_bytes : int
        Number of records of the table, and their size in memory.
    space : Space
        The space of the whole table.
    strata : Strata
        The strata and their sizes.
    whole : mapping of str to Distribution
        Counted columns of the whole table.
    size : int
        Number of records that a block should have at most.
    forests : tuple of Forest
        The cuts of the blocks, and those of the blocks of each border round.
    scattered : dict of int to int
        Leaves of the first forest whose records are nearly all equal, and the number of parts that each is split into;
        their leaves follow those of the forest.
    findings : tuple of Finding
        What was found, about texts in all records and about numbers in the sample; accepted, or in no need of an
        answer.
    notes : tuple of str
        What was looked for in the sample alone.
    receipts : tuple of ColumnReceipt
        How each column was read; different values are not counted.
    """

    job: Job
    schema: Schema
    n_records: int
    n_bytes: int
    space: Space
    statistics: Statistics
    strata: Strata
    whole: Distributions
    size: int
    forests: tuple[Forest, ...]
    findings: tuple[Finding, ...]
    receipts: tuple[ColumnReceipt, ...]
    notes: tuple[str, ...] = ()
    scattered: dict[int, int] = field(default_factory=dict)

    @staticmethod
    def of(job: Job, schema: Schema, summary: TableSummary, source: Source | None = None) -> "Blueprint":
        """Fix everything, or raise if the job cannot be done.

        Parameters
        ----------
        job : Job
            With a seed; checked by `shoal.job.checks.check_job` and `shoal.engines.blocks.limits.check_limits`.
        schema : Schema
            As for `TableSummary.of`.
        summary : TableSummary
            Of all records.
        source : Source, optional
            Where the records were read, and how.
        """
        statistics, sample = summary
        if statistics.n_records == 0:
            raise ParameterError("The table has no records, so there is nothing to release.")
        as_cell_size(job.k, statistics.n_records)
        if job.missing == "error":
            refuse_missing(statistics.missing, statistics.n_records, schema)
        refuse_without_effect(statistics.named)
        schema = statistics.settled(plain_schema(schema))
        strata = Strata.of(statistics)
        refuse_small_strata(strata.sizes, strata_in_words(schema), job.k)
        whole = statistics.distributions(schema)
        records = sample.repeated()
        views = {name: _of_all(view, whole) for name, view in column_views(schema, records, source).items()}
        findings = _findings(job, schema, statistics, whole, views, records, source)
        ask(findings, job.accept, job.strict)
        refuse_impossible_in_whole(job.models, schema, whole, statistics.n_records)
        space = statistics.space(schema, job.scaling)
        size = block_size(sum(axis.n_dims for axis in space.axes), job.k, statistics.bytes_of_record)
        points, codes = space.encode(sample.records), strata.codes(sample.records, schema)
        forests = tuple(
            Forest.grown(points, sample.counts.astype(np.float64), codes, strata.sizes, size, first, share)
            for first, share in CUTS
        )
        return Blueprint(
            job=job,
            schema=schema,
            n_records=statistics.n_records,
            n_bytes=statistics.n_bytes,
            space=space,
            statistics=statistics,
            strata=strata,
            whole=whole,
            size=size,
            forests=forests,
            findings=tuple(findings),
            receipts=tuple(_receipts(job, schema, views, statistics, source)),
            notes=_not_seen(schema, statistics.n_records, records.num_rows),
        )

    def described(self, verdict: Verdict) -> Verdict:
        """Return a verdict that names the columns that are published unchanged and nearly identify."""
        return replace(verdict, unchanged=nearly_identifying(self.statistics.unchanged, self.job.k))

    @property
    def least(self) -> int:
        """Smallest block: leaves with fewer records are joined with their neighbours."""
        return max(8 * self.job.k, self.size // 16)

    def points(self, records: pa.Table) -> Matrix:
        """Return the points of records in the space, shape (n_records, n_dims)."""
        return self.space.encode(records)

    def assign(self, records: pa.Table) -> Labels:
        """Return the leaf of each record in the first forest, shape (n_records,)."""
        return self.forests[0].assign(self.points(records), self.strata.codes(records, self.schema))

    def n_leaves(self, stage: int = 0) -> int:
        """Return the number of leaves of a forest, with those of `scattered` after it."""
        return self.forests[stage].n_leaves + (sum(self.scattered.values()) if stage == 0 else 0)

    def blocks(self, counts: Labels, stage: int = 0) -> Labels:
        """Return the block of each leaf of a forest, from the number of records in each; see `Forest.blocks`."""
        forest = self.forests[stage]
        if stage == 0:
            counts = counts.copy()
            counts[self.moved] = 0
        found = forest.blocks(counts[: forest.n_leaves], self.least)
        for begin, n_parts in self._scattered_leaves() if stage == 0 else ():
            parts = join_neighbours(counts[begin : begin + n_parts], self.least) + found.max(initial=-1) + 1
            found = np.concatenate([found, np.where(counts[begin : begin + n_parts] > 0, parts, -1)])
        return found if stage else self._large_enough(found, counts)

    def _large_enough(self, blocks: Labels, counts: Labels) -> Labels:
        """Join fewer than k records, which a tree has left where others were sent on, with its largest block."""
        forest, used = self.forests[0], blocks >= 0
        trees = np.repeat(np.arange(len(forest.trees)), [tree.n_leaves for tree in forest.trees])
        for leaf, number in forest.deeper.items():
            trees[trees == number] = trees[leaf]
        trees = np.concatenate([trees, *(np.full(n_parts, trees[leaf]) for leaf, n_parts in self.scattered.items())])
        sizes = np.bincount(blocks[used], counts[used])
        for block in np.flatnonzero(sizes < self.job.k):
            beside = np.unique(blocks[used & (trees == trees[blocks == block][0])])
            blocks = np.where(blocks == block, beside[np.argmax(sizes[beside])], blocks)
        blocks[used] = np.unique(blocks[used], return_inverse=True)[1]
        return blocks

    @property
    def moved(self) -> list[int]:
        """Leaves of the first forest whose records were sent on to others."""
        return [*self.forests[0].deeper, *self.scattered]

    def _scattered_leaves(self) -> Iterator[tuple[int, int]]:
        begin = self.forests[0].n_leaves
        for n_parts in self.scattered.values():
            yield begin, n_parts
            begin += n_parts

    def deepened(self, leaf: int, sample: Sample, n_records: int) -> "Blueprint":
        """Return the blueprint with a leaf of the first forest cut further, by a sample of its records.

        If all sampled records are at the same point, this blueprint is returned.
        """
        weights = sample.counts * (n_records / sample.counts.sum())
        deeper = self.forests[0].deepened(leaf, self.points(sample.records), weights, self.size)
        return self if deeper is self.forests[0] else replace(self, forests=(deeper, *self.forests[1:]))

    def scattering(self, leaf: int, n_parts: int) -> "Blueprint":
        """Return the blueprint with a leaf of equal records split into parts, whose leaves are the last ones."""
        return replace(self, scattered={**self.scattered, leaf: n_parts})


def _of_all(view: ColumnView, whole: Distributions) -> ColumnView:
    """Return a view with the texts of all records, where these were counted."""
    if not view.is_text or view.name not in whole:
        return view
    values, counts = whole[view.name]
    return replace(view, counted=(values, counts))


def _findings(
    job: Job,
    schema: Schema,
    statistics: Statistics,
    whole: Distributions,
    views: Mapping[str, ColumnView],
    records: pa.Table,
    source: Source | None,
) -> list[Finding]:
    """Return what was found, with remedies that blocks take; `records` are those of the sample."""
    confidential = {column.name: _view_of_counts(column, whole, source) for column in schema.having(Role.CONFIDENTIAL)}
    totals = statistics.with_grand_total(schema)
    found = [
        *heading_findings(whole, statistics.n_records),
        *total_findings(whole, statistics.n_records, totals),
        *empty_findings(schema.quasi_names, lambda name: records[name], records.num_rows),
        *column_findings(schema, views),
        *role_findings(schema, statistics.unchanged, job.k),
        *confidential_findings(schema, confidential, job),
    ]
    return list(map(taken_in_blocks, found))


def _view_of_counts(column: Column, whole: Distributions, source: Source | None) -> ColumnView:
    values, counts = whole[column.name]
    if not is_text(values.type):
        values = values.take(pa.array(np.repeat(np.arange(len(values)), np.minimum(counts, _MOST_REPEATED))))
    view = ColumnView(column.name, pa.chunked_array([values]), is_typed=True)
    view = view if source is None else ColumnView.of(source, column.name, view.values)
    return _of_all(view, whole)


_MOST_REPEATED = 1000
"""How often a number of a confidential column is repeated where it is looked at."""


def _not_seen(schema: Schema, n_records: int, n_sampled: int) -> tuple[str, ...]:
    """Return what a release in blocks does not look for in all records."""
    if n_sampled == n_records:
        return ()
    names = [column.name for column in schema.quasi if column.kind in (Kind.NUMERIC, Kind.DATE)]
    about = f"what may be misread in {listed(names)}, and " if names else ""
    return (
        f"The records were looked through in a sample of {n_sampled:,} of {n_records:,} for {about}records that lack "
        "most values. What only a few records have may be missed there; `shoal inspect` looks at all of them.",
    )


def _receipts(
    job: Job, schema: Schema, views: Mapping[str, ColumnView], statistics: Statistics, source: Source | None
) -> list[ColumnReceipt]:
    """Return how each column was read, by its type alone if it is not in the sample."""

    def view_of(name: str) -> ColumnView:
        values = pa.chunked_array([], schema[name].type)
        return ColumnView(name, values, is_typed=True) if source is None else ColumnView.of(source, name, values)

    found = receipts_of(schema, job.columns, views, view_of)
    return [replace(each, n_missing=statistics.missing.get(each.name), n_different=None) for each in found]


def block_size(n_dims: int, k: int, bytes_of_record: int) -> int:
    """Return the number of records that a block should have at most."""
    return max(min(BLOCK_RECORDS, BLOCK_NUMBERS // n_dims, BLOCK_BYTES // max(bytes_of_record, 1)), 64 * k)
