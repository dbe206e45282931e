"""Column counts: facts about one column that show none of its values."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.columns.equivalence import value_codes
from shoal.columns.prepare import decoded, one_missing
from shoal.columns.schema import Kind, is_text, natural_kind
from shoal.typing import Labels


@dataclass(frozen=True)
class Facts:
    """Counts about one column.

    Attributes
    ----------
    name : str
    type : pyarrow.DataType
    kind : Kind or None
        Kind of the values; None if they have no distance.
    n_records, missing, distinct : int
        Records, those without a value, and different values among the others.
    alone : int
        Records that are the only ones with their value, where missing counts as a value.
    length : float
        Mean length of a text; 0 if the column holds none.
    whole : bool
        Whether the values are whole numbers, stored as such or, as where some are missing, with decimals.
    dense : bool
        Whether they also have few gaps, as record numbers have.
    """

    name: str
    type: pa.DataType
    kind: Kind | None
    n_records: int
    missing: int
    distinct: int
    alone: int
    length: float = 0.0
    whole: bool = False
    dense: bool = False

    @property
    def present(self) -> int:
        """Records with a value."""
        return self.n_records - self.missing

    @property
    def variety(self) -> float:
        """Different values per record that has one."""
        return self.distinct / self.present if self.present else 0.0

    @property
    def unique(self) -> float:
        """Share of the records that this column alone makes unique."""
        return self.alone / self.n_records if self.n_records else 0.0


def count(name: str, values: pa.ChunkedArray) -> tuple[Facts, Labels | None]:
    """Count a column; return the codes of its values too, or None if they cannot be compared."""
    kind = natural_kind(values.type)
    n = len(values)
    if kind is None:
        return Facts(name, values.type, None, n, values.null_count, 0, 0), None
    codes = value_codes(one_missing(decoded(values)))
    counts = np.bincount(codes, minlength=1)
    missing = one_missing(values).null_count
    facts = Facts(
        name=name,
        type=values.type,
        kind=kind,
        n_records=n,
        missing=missing,
        distinct=int(np.count_nonzero(counts)) - (missing > 0),
        alone=int(np.count_nonzero(counts == 1)),
        length=_mean_length(values),
        whole=(whole := are_whole(values)),
        dense=whole and _are_dense(values),
    )
    return facts, codes


def _mean_length(values: pa.ChunkedArray) -> float:
    return float(pc.mean(pc.utf8_length(values)).as_py() or 0) if is_text(values.type) else 0.0


def are_whole(values: pa.ChunkedArray) -> bool:
    """Return whether numbers are whole; the first few rule out most columns."""
    if pa.types.is_integer(values.type):
        return True
    if not pa.types.is_floating(values.type):
        return False
    parts = (decoded(part).drop_null() for part in (values.slice(0, 1000), values))
    return all(pc.all(pc.equal(part, pc.floor(part)), min_count=0).as_py() for part in parts)


def _are_dense(values: pa.ChunkedArray) -> bool:
    ends = pc.min_max(values)
    if not ends["min"].is_valid:
        return False
    return bool(ends["max"].as_py() - ends["min"].as_py() < 2 * len(values))
