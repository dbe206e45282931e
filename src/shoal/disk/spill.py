"""Spill: records on disk in pieces, each an Arrow file whose batches are ordered by destination.

A piece is written under a temporary name and renamed when it is complete. So a folder holds only complete pieces, and a
stage that was killed is continued with those that are missing.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from shoal.typing import Labels

_DESTINATIONS = b"destinations"
_SUFFIX = ".arrow"


class _Batch(NamedTuple):
    piece: Path
    number: int
    n_records: int


class Spill:
    """A folder of pieces.

    Parameters
    ----------
    folder : Path
        Made if it does not exist; pieces that are there are read.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._batches: dict[int, list[_Batch]] = {}
        self._lock = Lock()
        folder.mkdir(mode=0o700, exist_ok=True)
        for piece in sorted(folder.glob(f"*{_SUFFIX}")):
            self._index(piece)

    def has(self, name: str) -> bool:
        """Return whether a piece is complete."""
        return (self.folder / f"{name}{_SUFFIX}").exists()

    def add(self, name: str, records: pa.Table, destinations: Labels) -> None:
        """Write a piece: records, and where each goes."""
        order = np.argsort(destinations, kind="stable")
        ordered = destinations[order]
        starts = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1)).tolist()
        ends = [*starts[1:], len(ordered)]
        sorted_records = records.take(pa.array(order)).combine_chunks()
        about = {
            "destinations": [int(ordered[start]) for start in starts],
            "sizes": [int(end - start) for start, end in zip(starts, ends, strict=True)],
        }
        schema = sorted_records.schema.with_metadata({_DESTINATIONS: json.dumps(about).encode()})
        piece = self.folder / f"{name}{_SUFFIX}"
        growing = piece.with_suffix(".growing")
        with pa.OSFile(str(growing), "wb") as file, pa.ipc.new_file(file, schema) as writer:
            for start, end in zip(starts, ends, strict=True):
                part = sorted_records.slice(start, end - start).combine_chunks()
                for batch in part.replace_schema_metadata(schema.metadata).to_batches(max_chunksize=end - start):
                    writer.write_batch(batch)
        growing.rename(piece)
        with self._lock:
            self._index(piece, about)

    def _index(self, piece: Path, about: dict[str, list[int]] | None = None) -> None:
        if about is None:
            with pa.OSFile(str(piece)) as file, pa.ipc.open_file(file) as reader:
                about = json.loads(reader.schema.metadata[_DESTINATIONS])
        for number, (destination, size) in enumerate(zip(about["destinations"], about["sizes"], strict=True)):
            self._batches.setdefault(destination, []).append(_Batch(piece, number, size))

    def counts(self, n_destinations: int) -> Labels:
        """Return the number of records of each destination from 0, shape (n_destinations,)."""
        counts = np.zeros(n_destinations, dtype=np.int64)
        for destination, batches in self._batches.items():
            if destination >= 0:
                counts[destination] = sum(batch.n_records for batch in batches)
        return counts

    def read(self, destinations: Iterable[int]) -> pa.Table:
        """Return the records of some destinations."""
        return pa.concat_tables(self.batches(destinations))

    def batches(self, destinations: Iterable[int]) -> Iterator[pa.Table]:
        """Yield the records of some destinations, a batch at a time."""
        for destination in destinations:
            for batch in sorted(self._batches.get(int(destination), ())):
                yield _read(batch)

    def names_with(self, destination: int) -> list[str]:
        """Return the names of the pieces that hold records of a destination, sorted."""
        return [batch.piece.stem for batch in sorted(self._batches.get(destination, ()))]

    def read_piece(self, name: str, destination: int) -> pa.Table:
        """Return the records of a destination in one piece."""
        return next(_read(batch) for batch in self._batches[destination] if batch.piece.stem == name)

    @property
    def destinations(self) -> list[int]:
        """The destinations that have records, ascending."""
        return sorted(self._batches)


def _read(batch: _Batch) -> pa.Table:
    # Not mapped: mapped pages would count as memory of the process.
    with pa.OSFile(str(batch.piece)) as file, pa.ipc.open_file(file) as reader:
        return pa.Table.from_batches([reader.get_batch(batch.number)]).replace_schema_metadata(None)


def release_memory() -> None:
    """Give memory that is no longer used back to the system."""
    pa.default_memory_pool().release_unused()


class Gathering:
    """Gathers records of many batches and writes them as one piece when there are enough.

    Parameters
    ----------
    spill : Spill
        Where the pieces go.
    name : str
        How their names begin.
    most : int
        Number of bytes to gather.
    """

    def __init__(self, spill: Spill, name: str, most: int) -> None:
        self._spill, self._name, self._most = spill, name, most
        self._lock = Lock()
        self._records: list[pa.Table] = []
        self._destinations: list[Labels] = []
        self._n_bytes = self._n_pieces = 0

    def __enter__(self) -> "Gathering":
        return self

    def __exit__(self, failure: object, *rest: object) -> None:
        if failure is None and self._records:
            self._write()

    def add(self, records: pa.Table, destinations: Labels) -> None:
        """Take records, and where each goes."""
        with self._lock:
            self._records.append(records)
            self._destinations.append(destinations)
            self._n_bytes += records.nbytes
            if self._n_bytes >= self._most:
                self._write()

    def _write(self) -> None:
        records, destinations = pa.concat_tables(self._records), np.concatenate(self._destinations)
        self._records, self._destinations, self._n_bytes = [], [], 0
        self._spill.add(f"{self._name}-{self._n_pieces:06}", records, destinations)
        self._n_pieces += 1
        release_memory()
