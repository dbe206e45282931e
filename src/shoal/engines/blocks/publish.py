"""Publish: the records of whole cells become published records, and what they lose is measured on the way."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from shoal.aggregate import Cells, aggregate, published_type
from shoal.aggregate.contributors import Contribution, contributions
from shoal.columns.schema import Role
from shoal.engines.blocks.block_records import ALONE, SUBJECT, by_content, labels_of, person_hashes
from shoal.engines.blocks.blueprint import Blueprint
from shoal.engines.blocks.sample import SAMPLE, copy_keys
from shoal.job.checks import survey_weights
from shoal.measures.linkage import Linkage
from shoal.measures.table_loss import TableLoss, table_loss
from shoal.measures.table_risk import table_linkage
from shoal.typing import Labels, Vector

LINKED = 5_000
"""Number of records, about, that are linked to measure the risk."""


class MeasuredCells(NamedTuple):
    """What was measured on the cells of a block; `shoal.engines.blocks.measure` adds it up."""

    n_records: int
    sizes: Labels
    """Number of records of each cell."""

    populations: Vector | None
    """Sum of the survey weights of each cell, each record standing for one person at least."""

    loss: TableLoss
    contributions: list[Contribution]
    n_alone: int
    """Records with unique quasi-identifiers."""

    population_alone: float
    """How many of them are expected to be unique in the population."""

    linkage: Linkage | None
    """Of a sample of the records, among those of the block."""

    original: pa.Table
    replaced: pa.Table
    """The sampled records, before and after."""


class Part(NamedTuple):
    """Published records and what was measured on them."""

    published: pa.Table
    measured: MeasuredCells


def publish(records: pa.Table, blueprint: Blueprint) -> Part:
    """Replace the quasi-identifiers of whole cells.

    Parameters
    ----------
    records : pyarrow.Table
        Whole cells, as `solve` or `refine_cells` returns them.
    blueprint : Blueprint
        What is known of the whole table.

    Returns
    -------
    Part
        The published columns in the order of the table, and a hash of the subject where there is a subject column.
    """
    schema, space = blueprint.schema, blueprint.space
    records = by_content(records)
    labels, weights = labels_of(records), survey_weights(records, schema)
    cells = Cells(labels)
    made = aggregate(records, schema, cells, weights, whole=blueprint.whole)
    # A column without any value in this block has the type that it has in others.
    replaced = pa.table({c.name: made[c.name].cast(published_type(c)) for c in schema.quasi})
    columns = {
        column.name: (replaced if column.role is Role.QUASI else records)[column.name] for column in schema.published
    }
    subject = schema.roles.subject
    if subject is not None:
        columns[SUBJECT] = pa.chunked_array([person_hashes(records[subject])])
    loss = table_loss(space, records, replaced, {column.name: labels for column in schema.quasi})
    alone = np.asarray(records[ALONE])
    persons = None if weights is None else np.maximum(weights, 1.0)
    sampled = pa.array(_sampled(records, blueprint, SAMPLE))
    measured = MeasuredCells(
        n_records=records.num_rows,
        sizes=np.bincount(labels),
        populations=None if persons is None else np.bincount(labels, persons).astype(np.float64),
        loss=loss,
        contributions=contributions(records, replaced, schema, cells, weights, blueprint.whole),
        n_alone=int(np.count_nonzero(alone)),
        population_alone=0.0 if persons is None else float((1 / persons[alone]).sum()),
        linkage=_linkage(records, replaced, labels, blueprint),
        original=records.select(schema.needed).take(sampled),
        replaced=pa.table(columns).select([column.name for column in schema.published]).take(sampled),
    )
    return Part(pa.table(columns), measured)


def _linkage(records: pa.Table, replaced: pa.Table, labels: Labels, blueprint: Blueprint) -> Linkage | None:
    asked = _sampled(records, blueprint, LINKED)
    if not len(asked):
        return None
    X = blueprint.points(records)
    return table_linkage(records, replaced, blueprint.schema, blueprint.space, X, labels, asked)


def _sampled(records: pa.Table, blueprint: Blueprint, n_wanted: int) -> Labels:
    """Return the records, in content order, that are in a sample of about the given size of the whole table."""
    assert blueprint.job.seed is not None
    highest = min(n_wanted * 2**64 // blueprint.n_records, 2**64 - 1)
    return np.flatnonzero(copy_keys(records, blueprint.job.seed) <= np.uint64(highest))
