"""Repeats: records that a collection has already, found without keeping a second copy of them.

Every record has a key of 64 bits, made with a secret of the collection. A batch is a multiset of keys: the order of its
records, and how their file was written, make no difference.
"""

import hmac
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.stream.batches import whole
from shoal.stream.keys import Keys, keys_of

_ODD = np.uint64(0x9E3779B97F4A7C15)
_SIGMAS = 5.0


class Repeats(NamedTuple):
    """How many records of a batch are in the collection already, and how many chance explains at most."""

    n_records: int
    n_by_chance: int


def record_keys(records: pa.Table, secret: bytes) -> Keys:
    """Return a key for each record, ascending: equal records have equal keys within a collection."""
    start = np.frombuffer(hmac.digest(secret, b"records", "sha256"), dtype=np.uint64)
    keys: Keys = np.full(records.num_rows, start[0], dtype=np.uint64)
    for column in records.columns:
        keys = _mixed(keys * _ODD + _mixed(_keys(column) ^ start[1]))
    return np.sort(keys)


def content_of(keys: Keys, secret: bytes) -> str:
    """Return a hash of the content of a batch: the same for the same records in any order."""
    return hmac.digest(secret, keys.tobytes(), "sha256").hex()


def overlap(late: Keys, there: Keys) -> Repeats:
    """Count the records of a batch that the collection has, and estimate how many chance would bring.

    A record that has nothing to do with the collection meets its equal there about as often as a record of the
    collection does: by the share of those that are not unique.
    """
    found = int(np.isin(late, there).sum())
    _, counts = np.unique(there, return_counts=True)
    share = (int(counts[counts > 1].sum()) + 1) / (len(there) + 1)
    expected = share * len(late)
    return Repeats(found, int(expected + _SIGMAS * np.sqrt(expected) + 1))


def _keys(column: pa.ChunkedArray) -> Keys:
    return np.asarray(keys_of(_plain(whole(column))), dtype=np.uint64)


def _plain(column: pa.Array) -> pa.Array:
    """Return values that have no key of their own, such as lists, as their texts."""
    return pa.array([str(value) for value in column.to_pylist()]) if pa.types.is_nested(column.type) else column


def _mixed(keys: NDArray[Any]) -> Keys:
    """Spread keys over all 64 bits (the finalizer of SplitMix64)."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(keys ^ (keys >> np.uint64(31)))
