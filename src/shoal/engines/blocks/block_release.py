"""Block release: a release made in blocks, whichever engine made it.

It has the attributes of `shoal.release.Release` that do not need all records in memory; `original` and `columns` are
those of a sample.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from shoal.aggregate.contributors import Contribution, single_value_findings
from shoal.columns.schema import Schema
from shoal.engines.blocks.blueprint import Blueprint
from shoal.engines.blocks.measure import Measures
from shoal.engines.blocks.publish import Measured
from shoal.findings import SINGLE_VALUES, Finding, ask
from shoal.job import Job
from shoal.measures.recount import Verdict
from shoal.measures.table_loss import TableLoss
from shoal.measures.table_risk import Risk
from shoal.output.release_warnings import accepted_columns, warnings_of
from shoal.output.report.codebook import codebook
from shoal.space.space import Space


class BlockRelease(ABC):
    """A release made in blocks. An engine adds the published records, their recount, and how they are written."""

    def __init__(self, blueprint: Blueprint, measured: Sequence[Measured]) -> None:
        self._blueprint, self._measured = blueprint, measured

    @property
    @abstractmethod
    def verdict(self) -> Verdict:
        """The recounted guarantees."""

    @property
    def job(self) -> Job:
        """The settings, with the seed that reproduces the release."""
        return self._blueprint.job

    @property
    def schema(self) -> Schema:
        """The columns with their roles."""
        return self._blueprint.schema

    @property
    def space(self) -> Space:
        """The space in which distances were measured."""
        return self._blueprint.space

    @cached_property
    def _measures(self) -> Measures:
        return Measures(self._blueprint, self._measured, self.verdict)

    @cached_property
    def _before_verdict(self) -> Measures:
        """Measures that do not depend on the verdict."""
        return Measures(self._blueprint, self._measured)

    @property
    def loss(self) -> TableLoss:
        """Information loss of all records."""
        return self._before_verdict.loss

    @property
    def risk(self) -> Risk:
        """Reidentification risk; see `sampled` for what is measured on a sample."""
        return self._measures.risk

    @property
    def utility(self) -> dict[str, Any]:
        """Data utility in the sample."""
        return self._measures.utility

    @property
    def sampled(self) -> dict[str, Any]:
        """What was measured on a sample, and how large it is."""
        return self._measures.sampled

    @cached_property
    def measures(self) -> dict[str, Any]:
        """Loss, risk and utility as plain values, and what was sampled; internal, as they describe the original too."""
        return self._measures.to_dict()

    @property
    def original(self) -> pa.Table:
        """The prepared records of the sample."""
        return self._before_verdict.original

    @property
    def columns(self) -> pa.Table:
        """The published columns of the sample."""
        return self._before_verdict.replaced

    @property
    def plain_columns(self) -> pa.Table:
        """The published columns of the sample; none holds intervals or sets."""
        return self.columns

    @property
    def replaced(self) -> pa.Table:
        """The published quasi-identifiers of the sample."""
        return self.columns

    @property
    def certainty(self) -> None:
        """Nothing: the certainty penalty is not measured in blocks."""
        return

    @property
    def said(self) -> tuple[str, ...]:
        """Notes of the reader on the input: none."""
        return ()

    @property
    def findings(self) -> Sequence[Finding]:
        """Findings about the quasi-identifiers in the sample."""
        return self._blueprint.findings

    @property
    def contributions(self) -> list[Contribution]:
        """Columns with published values that depend on a single record."""
        return self._before_verdict.contributions

    @cached_property
    def codebook(self) -> list[dict[str, Any]]:
        """Name, kind and treatment of each published column."""
        return codebook(self.schema, None, self.columns.select([]), False)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Warnings to review before publishing."""
        return tuple(warnings_of(self))

    def review(self) -> None:
        """Raise if cells would publish a text that one record has alone, unless that is accepted."""
        near_unique = {
            f"{name}={SINGLE_VALUES}" for name in accepted_columns(self.job, "near-unique-text", self.schema)
        }
        ask(single_value_findings(self.contributions, self.schema), (*self.job.accept, *near_unique))
