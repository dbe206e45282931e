"""Measure: what was measured block by block, added up for the whole table.

Loss, class sizes, uniqueness and contributions are those of all records. Linkage is that of a sample, each record among
those of its block; utility and intervals are measured on a sample. Samples are drawn by content and the seed.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.aggregate.contributors import Contribution
from shoal.engines.blocks.blueprint import Blueprint
from shoal.engines.blocks.publish import MeasuredCells
from shoal.job.checks import survey_weights
from shoal.measures.class_risk import Uniqueness, risk_of_sizes
from shoal.measures.linkage import Linkage
from shoal.measures.recount import Verdict
from shoal.measures.table_loss import ColumnLoss, TableLoss
from shoal.measures.table_risk import Risk, table_intervals, table_utility
from shoal.measures.utility import Utility
from shoal.output.release import Records, Release
from shoal.space.axes import NominalAxis, NumberAxis
from shoal.typing import BoundEffort


class BlockMeasures:
    """The measures of a release that was made block by block.

    Parameters
    ----------
    blueprint : Blueprint
    parts : sequence of MeasuredCells
        Of all blocks, in the order of their numbers.
    verdict : callable
        Returns the recount of what was written, which `risk` needs.
    """

    points = certainty = None

    def __init__(self, blueprint: Blueprint, parts: Sequence[MeasuredCells], verdict: Callable[[], Verdict]) -> None:
        self._blueprint, self._parts, self._verdict = blueprint, parts, verdict

    @cached_property
    def original(self) -> pa.Table:
        """The sampled records, prepared."""
        return pa.concat_tables([part.original for part in self._parts])

    @cached_property
    def replaced(self) -> pa.Table:
        """What is published for the sampled records."""
        return pa.concat_tables([part.replaced for part in self._parts])

    @property
    def columns(self) -> pa.Table:
        """The same: it holds all published columns."""
        return self.replaced

    @property
    def plain_columns(self) -> pa.Table:
        """The same: no column holds intervals or sets."""
        return self.replaced

    @property
    def attacks(self) -> list[Any]:
        """Nothing: attacks are not tried in blocks."""
        return []

    loss_without_history = None
    quality = None

    def bound(self, effort: BoundEffort, seconds: float) -> None:
        """Return nothing: a bound is computed from all records at once."""

    @cached_property
    def loss(self) -> TableLoss:
        """The information loss of all records."""
        blueprint, losses = self._blueprint, [part.loss for part in self._parts]
        sizes = [part.n_records for part in self._parts]
        n = sum(sizes)
        columns = {}
        for axis in blueprint.space.axes:
            name = axis.column.name
            found = [loss.columns[name] for loss in losses]
            sse, sst = math.fsum(one.sse for one in found), total_spread(axis, blueprint)
            columns[name] = ColumnLoss(
                il=sse / sst if sst > 0 else 0.0,
                sse=sse,
                sst=sst,
                mse=math.fsum(one.mse * size for one, size in zip(found, sizes, strict=True)) / n,
                changed=math.fsum(one.changed * size for one, size in zip(found, sizes, strict=True)) / n,
            )
        sse, sst = (math.fsum(getattr(column, side) for column in columns.values()) for side in ("sse", "sst"))
        return TableLoss(
            il=sse / sst if sst > 0 else 0.0,
            sse=sse,
            sst=sst,
            mse=math.fsum(loss.mse * size for loss, size in zip(losses, sizes, strict=True)) / n,
            mae=math.fsum(loss.mae * size for loss, size in zip(losses, sizes, strict=True)) / n,
            columns=columns,
        )

    @cached_property
    def contributions(self) -> list[Contribution]:
        """Columns with published values that depend on a single record."""
        found: dict[str, Contribution] = {}
        for one in (one for part in self._parts for one in part.contributions):
            before = found.get(one.column)
            found[one.column] = one if before is None else _both(before, one)
        n_cells = sum(len(part.sizes) for part in self._parts)
        return [replace(one, n_cells=n_cells) for one in found.values()]

    @cached_property
    def risk(self) -> Risk:
        """Reidentification risk against an intruder who holds the original values."""
        parts, verdict = self._parts, self._verdict()
        n = verdict.n_records
        has_weights = parts[0].populations is not None
        if has_weights:
            populations = np.concatenate([part.populations for part in parts if part.populations is not None])
            classes = risk_of_sizes(np.concatenate([part.sizes for part in parts]), populations)
        else:
            sizes, numbers = (np.array(list(side), dtype=np.int64) for side in zip(*verdict.sizes.items(), strict=True))
            classes = risk_of_sizes(np.repeat(sizes, numbers))
        population = math.fsum(part.population_alone for part in parts) / n if has_weights else None
        return Risk(
            linkage=_linked([part.linkage for part in parts if part.linkage is not None]),
            classes=classes,
            uniqueness=Uniqueness(sum(part.n_alone for part in parts) / n, population),
            intervals=table_intervals(self.original, self.replaced, self._blueprint.schema),
        )

    @cached_property
    def utility(self) -> Utility:
        """Changes of means, variances, correlations and categories, in the sample."""
        schema = self._blueprint.schema
        return table_utility(self.original, self.replaced, schema, survey_weights(self.original, schema))

    @property
    def sampled(self) -> dict[str, Any]:
        """What was measured on a sample, and how large it is."""
        return {
            "records": self.original.num_rows,
            "linked": self.risk.linkage.n_ranked,
            "of": self._blueprint.n_records,
            "note": "Loss, classes and uniqueness are those of all records. Utility, intervals, distributions and "
            "correlations are those of a sample, and so is linkage, with each record among those of its block. Attacks "
            "were not tried.",
        }

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "loss": self.loss.to_dict(),
            "risk": self.risk.to_dict(),
            "utility": self.utility.to_dict(),
            "attacks": [],
            "quality": self.quality,
            "sampled": self.sampled,
        }


def release_in_blocks(blueprint: Blueprint, parts: Sequence[MeasuredCells], records: Records) -> Release:
    """Return the release of records that were published block by block, or close them if it may not be published."""
    measures = BlockMeasures(blueprint, parts, lambda: records.verdict)
    try:
        release = Release(blueprint.job, blueprint.schema, blueprint.space, blueprint.findings, measures, records)
        return replace(release, receipts=blueprint.receipts, notes=blueprint.notes).reviewed()
    except BaseException:
        records.close()
        raise


def total_spread(axis: NumberAxis | NominalAxis, blueprint: Blueprint) -> float:
    """Return the sum of squared distances of all values of a column from their mean, on its axis."""
    statistics, name, weight = blueprint.statistics, axis.column.name, axis.column.settings.weight
    n = statistics.n_records
    if isinstance(axis, NominalAxis):
        counts = statistics.distribution(axis.column).counts
        unlike = n - math.fsum(int(count) ** 2 / n for count in counts)
        return (axis.apart * weight) ** 2 / 2 * unlike
    moments, n_missing = statistics.moments(axis.column), statistics.missing[name]
    unit = Fraction(axis.spread) * Fraction(2) ** axis.exponent  # not a float, which its square may exceed
    within = float(moments.variance / unit**2 * (n - n_missing)) if unit else 0.0
    return weight**2 * (within + axis.apart**2 * n_missing * (n - n_missing) / n)


def _both(one: Contribution, other: Contribution) -> Contribution:
    return replace(one, single=one.single + other.single, of_one_person=one.of_one_person + other.of_one_person)


def _linked(parts: Sequence[Linkage]) -> Linkage:
    """Return the linkage of all ranked records; the ranks are those within the blocks."""
    counts = np.array([part.n_ranked for part in parts])
    n = int(counts.sum())

    def mean(shares: list[float]) -> float:
        return math.fsum(share * count for share, count in zip(shares, counts.tolist(), strict=True)) / n

    nearer, as_near = (np.concatenate([getattr(part, side) for part in parts]) for side in ("nearer", "as_near"))
    common = sorted(set.intersection(*(set(part.within) for part in parts)))
    return Linkage(
        dld=mean([part.dld for part in parts]),
        dld_within_2=mean([part.dld_within_2 for part in parts]),
        linked=mean([part.linked for part in parts]),
        within={rank: mean([part.within[rank] for part in parts]) for rank in common},
        median_rank=float(np.median(nearer + (as_near + 1) / 2)),
        n_ranked=n,
        nearer=nearer,
        as_near=as_near,
    )
