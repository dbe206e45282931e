"""Sharing: how many records have the values of a column in common, from one pass in parts and in little memory.

Up to `MOST` different values, all are counted. Of more, those with the lowest hashes are: a sample of the values that
depends neither on the order of the records nor on how they are split, with exact counts.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.columns.column_counts import Facts, are_whole
from shoal.columns.equivalence import value_counts
from shoal.columns.prepare import decoded, one_missing
from shoal.columns.schema import Column, Role, Schema, is_text, natural_kind
from shoal.columns.value_hashes import value_hashes
from shoal.typing import Labels

MOST = 1 << 14
"""Number of different values that are counted, at most."""


@dataclass(frozen=True, eq=False)
class Sharing:
    """How many records have each of some values; missing is none.

    Attributes
    ----------
    hashes : ndarray of uint64
        Hashes of the values, in ascending order.
    counts : ndarray of int64
        Number of records with each.
    highest : int
        Values with hashes up to this one are counted.
    n_records, n_missing : int
    n_letters : int
        Letters of all texts together.
    ends : tuple of float or None
        Lowest and highest value of a column of numbers.
    whole : bool
        Whether all values are whole numbers.
    """

    hashes: NDArray[np.uint64]
    counts: Labels
    highest: int
    n_records: int
    n_missing: int
    n_letters: int = 0
    ends: tuple[float, float] | None = None
    whole: bool = False

    @staticmethod
    def of(values: pa.ChunkedArray) -> "Sharing":
        """Count the values of a column, or of a part of it."""
        plain = one_missing(decoded(values))
        different, counts = value_counts(plain)
        present = np.asarray(different.is_valid())
        hashes = value_hashes(different.filter(pa.array(present)))[1]
        is_number = pa.types.is_integer(plain.type) or pa.types.is_floating(plain.type)
        ends = pc.min_max(different).as_py() if is_number else {"min": None, "max": None}
        texts = is_text(plain.type)
        return _lowest(
            hashes,
            counts[present],
            2**64 - 1,
            n_records=len(values),
            n_missing=int(counts[~present].sum()),
            n_letters=int(pc.sum(pc.utf8_length(plain)).as_py() or 0) if texts else 0,
            ends=None if ends["min"] is None or ends["max"] is None else (ends["min"], ends["max"]),
            whole=are_whole(pa.chunked_array([different])),
        )

    @staticmethod
    def merged(parts: Iterable["Sharing"]) -> "Sharing":
        """Count several parts of a column together, in any order."""
        parts = list(parts)
        ends = [part.ends for part in parts if part.ends is not None]
        return _lowest(
            np.concatenate([part.hashes for part in parts]),
            np.concatenate([part.counts for part in parts]),
            min(part.highest for part in parts),
            n_records=sum(part.n_records for part in parts),
            n_missing=sum(part.n_missing for part in parts),
            n_letters=sum(part.n_letters for part in parts),
            ends=(min(low for low, _ in ends), max(high for _, high in ends)) if ends else None,
            whole=all(part.whole for part in parts),
        )

    def below(self, k: int) -> float:
        """Return the share of the records whose value fewer than k records have."""
        n_counted = int(self.counts.sum())
        if not n_counted:
            return 0.0
        share = float(self.counts[self.counts < k].sum() / n_counted)
        return share * (self.n_records - self.n_missing) / self.n_records

    def facts(self, name: str, type_: pa.DataType) -> Facts:
        """Return the counts as `inspect` has them; of many values, estimates."""
        n_present = self.n_records - self.n_missing
        n_counted = int(self.counts.sum())
        distinct = len(self.hashes)
        if n_counted < n_present:
            distinct = round(distinct * n_present / max(n_counted, 1))
        is_dense = self.whole and self.ends is not None and self.ends[1] - self.ends[0] < 2 * self.n_records
        return Facts(
            name=name,
            type=type_,
            kind=natural_kind(type_),
            n_records=self.n_records,
            missing=self.n_missing,
            distinct=min(distinct, n_present),
            alone=round(self.below(2) * self.n_records),
            length=self.n_letters / max(n_present, 1),
            whole=self.whole,
            dense=is_dense,
        )


def unchanged_columns(schema: Schema) -> list[Column]:
    """Return the columns that are published as they are and have values that can be compared."""
    columns = schema.having(Role.CONFIDENTIAL, Role.OTHER)
    return [column for column in columns if natural_kind(column.type) is not None]


def _lowest(
    hashes: NDArray[np.uint64],
    counts: Labels,
    highest: int,
    *,
    n_records: int,
    n_missing: int,
    **about: Any,
) -> Sharing:
    """Return the values with the lowest hashes, each once."""
    known = hashes <= np.uint64(highest)
    found, places = np.unique(hashes[known], return_inverse=True)
    summed = np.zeros(len(found), dtype=np.int64)
    np.add.at(summed, places, counts[known])
    if len(found) > MOST:
        found, summed = found[:MOST], summed[:MOST]
        highest = int(found[-1])
    return Sharing(found, summed, highest, n_records, n_missing, **about)
