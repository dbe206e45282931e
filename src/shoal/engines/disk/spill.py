"""Spill: records on disk in pieces, each a checked file whose parts are ordered by destination.

A folder holds only complete pieces, so that a stage that was killed is continued with those that are missing.
"""

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from shoal.engines.disk.checked_files import CheckedFile, CheckedWriter, DamagedError, open_checked
from shoal.system import system
from shoal.typing import Labels

_SUFFIX = ".piece"


class _SpilledBatch(NamedTuple):
    piece: str
    number: int
    n_records: int


class _Note(NamedTuple):
    """What is kept of a piece beside its records."""

    sizes: list[tuple[int, int]]
    """Destination and number of records of each part."""

    found: Any


class Spill:
    """A folder of pieces.

    Parameters
    ----------
    folder : Path
        Made if it does not exist; pieces that are there are read.

    Raises
    ------
    DamagedError
        Here, or when records are read: a piece is not what was written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._batches: dict[int, list[_SpilledBatch]] = {}
        self._pieces: dict[str, CheckedFile] = {}
        self._lock = Lock()
        try:
            system.make_private_folder(folder, exist_ok=True)
        except FileExistsError:
            raise DamagedError(folder) from None
        for path in sorted(folder.glob(f"*{_SUFFIX}")):
            self._index(open_checked(path))

    def clear(self) -> None:
        """Remove all pieces."""
        shutil.rmtree(self.folder)
        system.make_private_folder(self.folder)
        self._batches, self._pieces = {}, {}

    @property
    def names(self) -> list[str]:
        """The names of the complete pieces, sorted."""
        return sorted(self._pieces)

    def has(self, name: str) -> bool:
        """Return whether a piece is complete."""
        return name in self._pieces

    def found(self, name: str) -> Any:
        """Return what was found out about the records of a piece."""
        return self._pieces[name].note.found

    def add(self, name: str, records: pa.Table, destinations: Labels, found: Any = None) -> None:
        """Write a piece: records, where each goes, and what was found out about them."""
        order = np.argsort(destinations, kind="stable")
        ordered = destinations[order]
        starts = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1)).tolist()
        sorted_records = records.take(pa.array(order)).replace_schema_metadata(None).combine_chunks()
        note = _Note([], found)
        path = self.folder / f"{name}{_SUFFIX}"
        with CheckedWriter(path, note) as writer:
            for start, end in zip(starts, [*starts[1:], len(ordered)], strict=True):
                for batch in sorted_records.slice(start, end - start).to_batches():
                    writer.add(batch)
                    note.sizes.append((int(ordered[start]), batch.num_rows))
        with self._lock:
            self._index(open_checked(path))

    def _index(self, piece: CheckedFile) -> None:
        name = piece.path.stem
        self._pieces[name] = piece
        for number, (destination, size) in enumerate(piece.note.sizes):
            self._batches.setdefault(destination, []).append(_SpilledBatch(name, number, size))

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
                yield self._pieces[batch.piece].read(batch.number)

    def names_with(self, destination: int) -> list[str]:
        """Return the names of the pieces that hold records of a destination, sorted."""
        return sorted({batch.piece for batch in self._batches.get(destination, ())})

    def read_piece(self, name: str, destination: int) -> pa.Table:
        """Return the records of a destination in one piece."""
        batches = sorted(batch for batch in self._batches[destination] if batch.piece == name)
        return pa.concat_tables(self._pieces[name].read(batch.number) for batch in batches)

    @property
    def destinations(self) -> list[int]:
        """The destinations that have records, ascending."""
        return sorted(self._batches)


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
