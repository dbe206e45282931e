"""Waiting: the rows of a stream that have not been released yet, in order of arrival.

New rows are appended to one batch; rows that leave stay in it until they are more than those that wait, or take more
memory, so that a small push does not copy the columns of every row.
"""

import numpy as np
import pyarrow as pa

from shoal.stream.batches import as_array, together
from shoal.typing import Labels

_SURPLUS = 1000
"""Number of rows that may stay in the batch after they have left, in addition to as many as wait."""
_SURPLUS_BYTES = 1 << 24
"""Size to which the batch may grow, in addition to twice that of the rows that waited when it was last copied."""


class Waiting:
    """Rows that wait. Rows are numbered from 0, in order of arrival."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        self._batch = rows
        self._size = rows.nbytes  # when it held nothing but rows that wait
        self._places: Labels = np.arange(rows.num_rows)  # in the batch, of each row

    def __len__(self) -> int:
        return len(self._places)

    @property
    def newest(self) -> pa.RecordBatch:
        """The rows that came last, whether they still wait or not."""
        return self._batch

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        return self._batch.schema

    def add(self, rows: pa.RecordBatch) -> None:
        """Append rows."""
        before = self._batch.num_rows
        self._batch = together([self._batch, rows])
        self._places = np.concatenate([self._places, np.arange(before, self._batch.num_rows)])

    def take(self, rows: Labels) -> pa.RecordBatch:
        """Return rows by their numbers."""
        return self._batch.take(as_array(self._places[rows]))

    def keep(self, rows: Labels) -> None:
        """Remove all rows but these; they are renumbered."""
        self._places = self._places[rows]
        n_rows, size = self._batch.num_rows, self._batch.nbytes
        if n_rows > 2 * len(rows) + _SURPLUS or (n_rows > len(rows) and size > 2 * self._size + _SURPLUS_BYTES):
            self._batch = self.all()
            self._size = self._batch.nbytes
            self._places = np.arange(len(rows))

    def last(self, n_rows: int) -> pa.RecordBatch:
        """Return the last rows."""
        places = self._places[len(self) - n_rows :]
        if n_rows and places[-1] - places[0] == n_rows - 1:
            return self._batch.slice(int(places[0]), n_rows)
        return self._batch.take(as_array(places))

    def all(self) -> pa.RecordBatch:
        """Return all rows."""
        return self.last(len(self))
