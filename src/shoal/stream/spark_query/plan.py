"""Plan: what the tasks of a query have to know, and in what form tuples travel between them.

Two things decide which cells are made, and neither may depend on how Spark splits, orders or repeats the work: the
shard of a tuple, and its place among those that reach the shard in the same batch. Both follow from the tuple alone.
Neither depends on a confidential value: a cell, and the file that it is in, would tell about the values of its members.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.columns.value_hashes import mixed, record_hashes
from shoal.errors import InputError
from shoal.job import SparkSettings
from shoal.output.published_order import published_order
from shoal.stream.batches import as_array, one_batch
from shoal.stream.keys import Keys, tags_of
from shoal.stream.rules import Rules
from shoal.stream.stream_columns import Layout
from shoal.typing import Labels

MOST_BYTES = 1 << 24
"""About the largest size of the tuples that travel in one row."""


@dataclass(frozen=True)
class Plan:
    """The rules of the streams, how tuples are dealt to them, and their columns."""

    rules: Rules
    split: SparkSettings
    columns: pa.Schema
    """Columns of the tuples on their way to a shard: all but the identifiers."""

    version: str
    """Version of shoal on the driver."""

    @cached_property
    def layout(self) -> Layout:
        """The columns of the streams."""
        return Layout(self.rules, self.columns)

    @cached_property
    def known(self) -> tuple[str, ...]:
        """The columns that somebody who looks for a person may know: all but the confidential ones, and others."""
        hidden = {*self.rules.confidential, *self.rules.other}
        return tuple(name for name in self.columns.names if name not in hidden)

    @property
    def in_event_time(self) -> bool:
        """Whether ages are counted by a watermark."""
        return self.split.event_time is not None

    def deal(self, tuples: pa.Table) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Split tuples, identifiers included, into the shards that they belong to, in any order."""
        shards, names = self._shards(tuples)
        order = np.argsort(shards, kind="stable")
        rows = one_batch(tuples.select(self.columns.names).cast(self.columns)).take(as_array(order))
        n_pieces = 1 + rows.nbytes // MOST_BYTES
        bounds = np.flatnonzero(np.diff(shards[order], prepend=-1, append=-1))
        for begin, end in pairwise(bounds.tolist()):
            step = -(-(end - begin) // n_pieces)
            for at in range(begin, end, step):
                yield names[shards[order[begin]]], rows.slice(at, min(step, end - at))

    def _shards(self, tuples: pa.Table) -> tuple[Labels, list[str]]:
        """Return the number of the shard of each tuple, and the names of the shards."""
        if self.split.shard is not None:
            coded = one_batch(tuples.select([self.split.shard])).column(0).cast(pa.string()).dictionary_encode()
            if coded.null_count:
                raise InputError(
                    f"Column {self.split.shard!r} names the shard of a tuple, and is missing in {coded.null_count} "
                    "tuples. Fill it before the stream, for instance with coalesce."
                )
            return np.asarray(coded.indices.cast(pa.int64())), coded.dictionary.to_pylist()
        n_shards = self.split.shards
        numbers = (mixed(self._dealing_keys(tuples)) % np.uint64(n_shards)).astype(np.int64)
        return numbers, [str(number) for number in range(n_shards)]

    def _dealing_keys(self, tuples: pa.Table) -> Keys:
        """Return a key for each tuple: of its subject, of its place in the source, or of all that is known of it."""
        if self.rules.subject is not None:
            return tags_of(one_batch(tuples.select([self.rules.subject])).column(0))
        there = [name for name in self.rules.identifiers if name in tuples.column_names]
        names = self.split.order_by or [*self.known, *there]
        keys: Keys = record_hashes((tuples[name] for name in names), tuples.num_rows)[1]
        return keys

    def in_order(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the tuples of a batch in order of arrival.

        That is the order of the columns that the user named, then that of a hash of what is known of a tuple. Tuples
        that agree in all of that are in order of the rest, which then belongs to none of them in particular.
        """
        rest = [name for name in rows.schema.names if name not in self.known]
        keys = [*_hashes(rows, rest)[::-1], *_hashes(rows, self.known)[::-1]]
        named = [name for name in (self.split.event_time, *self.split.order_by) if name is not None]
        keys += [np.asarray(pc.rank(rows.column(name), tiebreaker="dense")) for name in reversed(named)]
        return rows.take(as_array(np.lexsort(keys)))


def _hashes(rows: pa.RecordBatch, names: Iterable[str]) -> np.ndarray:
    return record_hashes((pa.chunked_array([rows.column(name)]) for name in names), rows.num_rows)


def in_published_order(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return released tuples in an order that follows from the published values alone.

    The order of arrival would tell which tuple is whose: it follows from what is known of each.
    """
    return rows.take(as_array(published_order((pa.chunked_array([each]) for each in rows.columns), rows.num_rows)))


def packed(rows: pa.RecordBatch) -> bytes:
    """Return tuples as bytes, without their schema."""
    content: bytes = rows.serialize().to_pybytes()
    return content


def unpacked(content: bytes, schema: pa.Schema) -> pa.RecordBatch:
    """Return the tuples of `packed`."""
    return pa.ipc.read_record_batch(pa.py_buffer(content), schema)
