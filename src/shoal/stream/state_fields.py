"""State fields: the state of a stream as fields of a store, of which a step writes only what has changed.

``meta`` holds the rules and the columns and is written once; ``head`` the counts, and which tuples wait; a
``chunk`` the rows that one step added and that waited when it ended. A chunk is removed when none of its rows waits.
"""

import base64
import json
from collections import deque
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa

from shoal.errors import FileError, ParameterError
from shoal.stream import Stream
from shoal.stream.rules import Rules, as_rules
from shoal.stream.waiting import Waiting
from shoal.typing import Labels, Vector

FORMAT = "shoal worker, version 2"

Fields = dict[str, bytes]


class Store(NamedTuple):
    """The store that has the fields, and what to do with a state that cannot be used, for messages."""

    name: str
    other_version: str
    other_rules: str
    damaged: str


class StateFields:
    """Keeps track of which parts of a stream are in a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._has_meta = False
        self._n_accepted = 0
        self._chunks: deque[tuple[int, int]] = deque()  # first and last row of each chunk

    def changes(self, stream: Stream, notes: dict[str, Any]) -> tuple[Fields, list[str]]:
        """Return the fields to write since the last time, and those to remove."""
        positions, times = stream.positions()
        head = json.dumps({**stream.progress(), "notes": notes, "waiting": _packed(positions)}).encode()
        changed = {"head": _checked(head)}
        if not self._has_meta and stream.waiting is not None:
            changed["meta"] = meta_of(stream)
            self._has_meta = True
        new = int(np.searchsorted(positions, self._n_accepted))
        if new < len(positions):
            first, last = int(positions[new]), int(positions[-1])
            changed[f"chunk:{first}"] = _chunk(stream.waiting, positions[new:], float(times[-1]))
            self._chunks.append((first, last))
            self._n_accepted = last + 1
        oldest = int(positions[0]) if len(positions) else self._n_accepted
        gone = []
        while self._chunks and self._chunks[0][1] < oldest:
            gone.append(f"chunk:{self._chunks.popleft()[0]}")
        return changed, gone

    def end(self, stream: Stream, notes: dict[str, Any]) -> tuple[Fields, list[str]]:
        """Return the fields to write and to remove when a stream has ended and `stream` is the next one."""
        changed, _ = StateFields(self._store).changes(stream, notes)
        return changed, [*(f"chunk:{first}" for first, _ in self._chunks), "meta"]

    def load(self, fields: Fields, stream: Stream) -> dict[str, Any]:
        """Bring a new stream to the saved state; return its notes. The chunks are taken out of the fields."""
        head = json.loads(bytes(self._intact(fields["head"])))
        notes: dict[str, Any] = head.pop("notes")
        if "meta" not in fields:
            return notes
        schema = self._schema_of(fields["meta"], stream.rules)
        wanted = _unpacked(head.pop("waiting"))
        parts = [_rows(self._intact(fields.pop(name)), schema) for name in _chunks_in(fields)]
        self._chunks.extend((int(part.positions[0]), int(part.positions[-1])) for part in parts)
        parts = [part.only(wanted) for part in parts]
        positions = np.concatenate([np.empty(0, dtype=np.int64), *(part.positions for part in parts)])
        times = np.concatenate([np.empty(0), *(part.times for part in parts)])
        if not np.array_equal(positions, wanted):
            raise self._damaged()
        # The rows are still those in the store: this makes the only copy of them, since large ones fill the memory.
        table = pa.concat_tables([schema.empty_table(), *(part.rows for part in parts)])
        stream.resume(head, table, positions, times)
        self._has_meta = True
        self._n_accepted = int(positions[-1]) + 1 if len(positions) else 0
        return notes

    def rules_of(self, fields: Fields) -> Rules | None:
        """Return the rules with which a saved state was made; None before the first tuple."""
        return as_rules(**self._meta(fields["meta"])["rules"]) if "meta" in fields else None

    def _schema_of(self, meta: bytes, rules: Rules) -> pa.Schema:
        content = self._meta(meta)
        if as_rules(**content["rules"]) != rules:
            raise ParameterError(
                f"The state in {self._store.name} was made with other rules than these. {self._store.other_rules}"
            )
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(content["columns"])))

    def _meta(self, meta: bytes) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(meta)
        if content["format"] != FORMAT:
            raise ParameterError(
                f"The state in {self._store.name} was written by another version of shoal. {self._store.other_version}"
            )
        return content

    def _intact(self, content: bytes) -> memoryview:
        """Return the content behind its checksum, on the same memory."""
        inner = memoryview(content)[4:]
        if crc32(inner).to_bytes(4, "little") != content[:4]:
            raise self._damaged()
        return inner

    def _damaged(self) -> FileError:
        return FileError(f"The state in {self._store.name} is damaged. {self._store.damaged}")


def meta_of(stream: Stream) -> bytes:
    """Return the rules and the columns of a stream."""
    assert stream.waiting is not None
    columns = base64.b64encode(stream.waiting.schema.serialize().to_pybytes()).decode()
    return json.dumps({"format": FORMAT, "rules": stream.rules.plain(), "columns": columns}, default=str).encode()


def _chunks_in(fields: Fields) -> list[str]:
    """Return the names of the chunks, in order of their rows."""
    return sorted((name for name in fields if name.startswith("chunk:")), key=lambda name: int(name[6:]))


def _chunk(waiting: Waiting | None, positions: Any, time: float) -> bytes:
    """Return the last rows that wait, with their positions and the time at which they came."""
    assert waiting is not None
    rows = waiting.last(len(positions))
    about = np.array([len(positions)], dtype=np.int64).tobytes() + np.float64(time).tobytes()
    return _checked(about + positions.astype(np.int64).tobytes() + rows.serialize().to_pybytes())


class _Part(NamedTuple):
    """Rows of a chunk, with their positions and the times at which they came."""

    positions: Labels
    times: Vector
    rows: pa.Table

    def only(self, wanted: Labels) -> "_Part":
        """Return the rows at these positions; if they are all, without a copy."""
        kept = np.isin(self.positions, wanted)
        if kept.all():
            return self
        return _Part(self.positions[kept], self.times[kept], self.rows.filter(pa.array(kept)))


def _rows(content: memoryview, schema: pa.Schema) -> _Part:
    """Return the rows of a chunk, on its memory."""
    n, time = int(np.frombuffer(content, np.int64, 1)[0]), float(np.frombuffer(content, np.float64, 1, 8)[0])
    positions = np.frombuffer(content, np.int64, n, 16)
    batch = pa.ipc.read_record_batch(pa.py_buffer(content).slice(16 + 8 * n), schema)
    return _Part(positions, np.full(n, time), pa.Table.from_batches([batch]))


def _packed(positions: Any) -> list[Any]:
    """Return ascending numbers as the first one and a bit for each that may follow."""
    if not len(positions):
        return [0, ""]
    bits = np.zeros(int(positions[-1] - positions[0]) + 1, dtype=bool)
    bits[positions - positions[0]] = True
    return [int(positions[0]), base64.b64encode(np.packbits(bits).tobytes()).decode()]


def _unpacked(packed: list[Any]) -> Any:
    bits = np.unpackbits(np.frombuffer(base64.b64decode(packed[1]), dtype=np.uint8))
    return np.flatnonzero(bits) + packed[0]


def _checked(content: bytes) -> bytes:
    return crc32(content).to_bytes(4, "little") + content
