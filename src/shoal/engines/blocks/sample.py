"""Sample: the different records with the lowest keys, and how often each occurs in the whole table.

The key of a record is a hash of its content and the seed. So the sample depends neither on the order of the records nor
on how they are split, and samples of parts can be merged. A record that occurs many times takes one place.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.columns.value_hashes import mixed
from shoal.engines.blocks.block_records import HASHES, hashes_of
from shoal.typing import Labels

SAMPLE = 100_000
"""Number of different records in a sample, at most."""

_COUNT = "_shoal_count"
_COPIES = 4
"""Number of equal records that a sample of a large table repeats, at most."""


def sampling_keys(records: pa.Table, seed: int) -> NDArray[np.uint64]:
    """Return the key of each record, shape (n_records,)."""
    first, second = hashes_of(records)
    return mixed(mixed(first ^ np.uint64(seed)) + second)


def copy_keys(records: pa.Table, seed: int) -> NDArray[np.uint64]:
    """Return a key for each of the records in content order; equal ones have different keys, shape (n_records,)."""
    keys = sampling_keys(records, seed)
    starts = np.flatnonzero(np.diff(keys, prepend=~keys[:1]))
    copies = np.arange(len(keys)) - np.repeat(starts, np.diff(starts, append=len(keys)))
    return mixed(keys + copies.astype(np.uint64))


@dataclass(frozen=True)
class Sample:
    """Different records in ascending order of their keys.

    Attributes
    ----------
    records : pyarrow.Table
        Their quasi-identifiers and hashes, and how often each record occurs.
    seed : int
        The seed of the keys.
    """

    records: pa.Table
    seed: int

    @staticmethod
    def of(records: pa.Table, names: Sequence[str], seed: int, highest_key: int = 2**64 - 1) -> "Sample":
        """Draw from the records of a batch with keys up to `highest_key`; `names` are the columns to keep."""
        kept = records.select([*names, *HASHES])
        kept = kept.filter(pa.array(sampling_keys(kept, seed) <= np.uint64(highest_key)))
        return _lowest(kept.append_column(_COUNT, pa.array(np.ones(kept.num_rows, dtype=np.int64))), seed)

    @staticmethod
    def merged(parts: Sequence["Sample"]) -> "Sample":
        """Return the sample of several parts of a table together; the order of `parts` does not matter."""
        return _lowest(pa.concat_tables([part.records for part in parts]), parts[0].seed)

    @property
    def counts(self) -> Labels:
        """How often each record occurs in the table, shape (n_sampled,)."""
        return np.asarray(self.records[_COUNT])

    def repeated(self) -> pa.Table:
        """Return each record as often as it occurs; four times at most if that would be more than four samples."""
        counts = self.counts
        if counts.sum() > _COPIES * SAMPLE:
            counts = np.minimum(counts, _COPIES)
        return self.records.take(pa.array(np.repeat(np.arange(len(counts)), counts)))

    @property
    def highest_key(self) -> int:
        """The records with keys up to here are the sample."""
        keys = sampling_keys(self.records, self.seed)
        return int(keys[-1]) if len(keys) == SAMPLE else 2**64 - 1


def _lowest(records: pa.Table, seed: int) -> Sample:
    """Return the records with the lowest keys, equal ones once and with the sum of their counts."""
    keys = sampling_keys(records, seed)
    order = np.argsort(keys, kind="stable")
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = keys[order[1:]] != keys[order[:-1]]
    starts = np.flatnonzero(is_new)
    counts = np.add.reduceat(np.asarray(records[_COUNT])[order], starts) if len(starts) else np.empty(0, np.int64)
    kept = records.take(pa.array(order[starts[:SAMPLE]])).combine_chunks()
    place = kept.schema.get_field_index(_COUNT)
    return Sample(kept.set_column(place, _COUNT, pa.array(counts[:SAMPLE])), seed)
