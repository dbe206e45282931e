"""A release under differential privacy: the published table, and what may be said of it."""

import os
import platform
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

from shoal.dp.budget import Spent, total
from shoal.files import replacing_all, sha256
from shoal.table import Table, format_of, inputs_of, write_into

NOTES = (
    "Two tables of the same number of records that differ in one record, in all of its values, give any outcome of "
    "this release with probabilities that differ by a factor of at most e to the power of epsilon.",
    "Public, and taken as known: the number of records, the names of the columns, the bounds and the categories "
    "declared here, from which types and spellings come.",
    "Values outside the bounds count as the bound, missing numbers as the middle of the bounds, values that are no "
    "declared category as missing; whether there were any is not said.",
    "Rows are in random order and belong to nobody. Nothing else of the original is published: no loss, no risk, no "
    "picture, no hash.",
)
"""What goes with every release, whatever the records."""


@dataclass(frozen=True, eq=False)
class DpRelease:
    """A table that may be published, with its epsilon.

    Attributes
    ----------
    published : pyarrow.Table
        The records: made up from noisy numbers, in random order.
    mechanism : str
        What was done, in a sentence.
    epsilon : float
        What was allowed.
    spent : dict of str to dict of str to float
        What each column cost (``columns``) and each step that found the cells (``cells``), as OpenDP states it; the sum
        is at most epsilon.
    settings : dict
        What is public besides: of the columns, and of the mechanism.
    """

    source: Table = field(repr=False)
    published: pa.Table = field(repr=False)
    mechanism: str
    epsilon: float
    spent: Spent
    settings: dict[str, Any] = field(repr=False)

    @property
    def total_spent(self) -> float:
        """What all steps cost together: at most epsilon."""
        return float(total(self.spent))

    @property
    def table(self) -> Any:
        """The published table: the kind of frame that came in, with types that come from the declaration alone."""
        return self.source.like(self.published, own_types=False)

    @property
    def manifest(self) -> dict[str, Any]:
        """What may travel with the data; the same for every table with these public settings."""
        return {
            "guarantee": "epsilon-differential privacy, replace-one neighbours, public number of records",
            "epsilon": self.epsilon,
            "spent": self.spent,
            "mechanism": self.mechanism,
            "records": self.published.num_rows,
            **self.settings,
            "notes": list(NOTES),
            "versions": {name: version(name) for name in ("shoal", "opendp", "numpy", "pyarrow")}
            | {"python": platform.python_version()},
        }

    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> list[Path]:
        """Write the table and, beside it, ``PATH.public.json``: both or none. There is no internal manifest.

        Parameters
        ----------
        path : path
            File, in one of the formats of `shoal.table.FORMATS`.
        force : bool
            Replace files that are there already.
        """
        import json

        path = Path(path)
        format_of(path)
        targets = [path, path.with_name(f"{path.name}.public.json")]
        with replacing_all(targets, force, inputs=inputs_of(self.source)) as (table, manifest):
            write_into(self.published, table)
            content = {**self.manifest, "output_sha256": sha256(table)}
            manifest.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return targets
