"""A differentially private release: the published table and its public manifest."""

import os
import platform
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from shoal.distribution import versions
from shoal.dp.budget import Spent, total
from shoal.files import replacing_all, sha256, write_text
from shoal.sources import Table, output_format_of, write_into

NOTES = (
    "Two tables with the same number of records that differ in one record, in any of its values, give any outcome of "
    "this release with probabilities that differ by a factor of at most e to the power of epsilon.",
    "Public, and assumed to be known: the number of records, the names of the columns, and the bounds and categories "
    "declared here, which determine types and spellings.",
    "Values outside the bounds count as the bound, missing numbers as the midpoint of the bounds, undeclared "
    "categories as missing; whether there were any is not published.",
    "Rows are in random order and correspond to no person. Nothing else of the original is published: no loss, no "
    "risk, no chart, no hash.",
)
"""The notes of every release, independent of the records."""


@dataclass(frozen=True, eq=False)
class DpRelease:
    """A table that may be published, with its epsilon.

    Attributes
    ----------
    published : pyarrow.Table
        The records: generated from noisy numbers, in random order.
    mechanism : str
        The mechanism, in a sentence.
    epsilon : float
        The budget.
    spent : dict of str to dict of str to float
        Cost of each column (``columns``) and of each step that found the cells (``cells``), as stated by OpenDP; the
        sum is at most epsilon.
    settings : dict
        Other public settings of the columns and of the mechanism.
    """

    source: Table = field(repr=False)
    published: pa.Table = field(repr=False)
    mechanism: str
    epsilon: float
    spent: Spent
    settings: dict[str, Any] = field(repr=False)

    @property
    def total_spent(self) -> float:
        """Total cost of all steps: at most epsilon."""
        return float(total(self.spent))

    @property
    def table(self) -> Any:
        """The published table: the same kind of frame as the input, with types from the declaration alone."""
        return self.source.like(self.published, own_types=False)

    @property
    def manifest(self) -> dict[str, Any]:
        """The public manifest; the same for every table with these public settings."""
        return {
            "guarantee": "epsilon-differential privacy, replace-one neighbours, public number of records",
            "epsilon": self.epsilon,
            "spent": self.spent,
            "mechanism": self.mechanism,
            "records": self.published.num_rows,
            **self.settings,
            "notes": list(NOTES),
            "versions": versions("opendp", "numpy", "pyarrow") | {"python": platform.python_version()},
        }

    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> list[Path]:
        """Write the table and ``PATH.public.json``: both or neither. There is no internal manifest.

        Parameters
        ----------
        path : path
            A file in one of the formats of `shoal.sources.FORMATS`.
        force : bool
            Replace existing files.
        """
        import json

        path = Path(path)
        output_format_of(path)
        targets = [path, path.with_name(f"{path.name}.public.json")]
        with replacing_all(targets, force, inputs=self.source.inputs) as (table, manifest):
            write_into(self.published, table)
            content = {**self.manifest, "output_sha256": sha256(table)}
            write_text(manifest, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
        return targets
