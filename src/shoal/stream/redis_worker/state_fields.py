"""State fields: the state of a stream as fields of a Redis hash, of which a step writes only what has changed.

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


class StateFields:
    """Keeps track of which parts of a stream are in Redis."""

    def __init__(self) -> None:
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
        return StateFields().changes(stream, notes)[0], [*(f"chunk:{first}" for first, _ in self._chunks), "meta"]

    def load(self, fields: Fields, stream: Stream) -> dict[str, Any]:
        """Bring a new stream to the saved state; return its notes. The chunks are taken out of the fields."""
        head = json.loads(bytes(_intact(fields["head"])))
        notes: dict[str, Any] = head.pop("notes")
        if "meta" not in fields:
            return notes
        schema = _schema_of(fields["meta"], stream.rules)
        wanted = _unpacked(head.pop("waiting"))
        parts = [_rows(fields.pop(name), schema) for name in _chunks_in(fields)]
        self._chunks.extend((int(part.positions[0]), int(part.positions[-1])) for part in parts)
        parts = [part.only(wanted) for part in parts]
        positions = np.concatenate([np.empty(0, dtype=np.int64), *(part.positions for part in parts)])
        times = np.concatenate([np.empty(0), *(part.times for part in parts)])
        if not np.array_equal(positions, wanted):
            raise _damaged()
        # The rows are still those in Redis: this makes the only copy of them, since large ones fill the memory.
        table = pa.concat_tables([schema.empty_table(), *(part.rows for part in parts)])
        stream.resume(head, table, positions, times)
        self._has_meta = True
        self._n_accepted = int(positions[-1]) + 1 if len(positions) else 0
        return notes


def meta_of(stream: Stream) -> bytes:
    """Return the rules and the columns of a stream."""
    assert stream.waiting is not None
    columns = base64.b64encode(stream.waiting.schema.serialize().to_pybytes()).decode()
    return json.dumps({"format": FORMAT, "rules": stream.rules.plain(), "columns": columns}, default=str).encode()


def _schema_of(meta: bytes, rules: Rules) -> pa.Schema:
    content = json.loads(meta)
    if content["format"] != FORMAT:
        raise ParameterError(
            "The state in Redis was written by another version of shoal. End that stream with that one "
            "(--until-empty), and go on in the same group."
        )
    if as_rules(**content["rules"]) != rules:
        raise ParameterError(
            "The state in Redis was made with other rules than these. Use the same. For new ones, end the stream with "
            "the old ones first (shoal worker --finish releases what waits), and go on in the same group; another "
            "group would release every tuple a second time."
        )
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(content["columns"])))


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


def _rows(chunk: bytes, schema: pa.Schema) -> _Part:
    """Return the rows of a chunk, on its memory."""
    content = _intact(chunk)
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


def _intact(content: bytes) -> memoryview:
    """Return the content behind its checksum, on the same memory."""
    inner = memoryview(content)[4:]
    if crc32(inner).to_bytes(4, "little") != content[:4]:
        raise _damaged()
    return inner


def _damaged() -> FileError:
    return FileError(
        "The state in Redis is damaged. Restore it from a copy; or remove it, and the worker says where it can go on "
        "(--begin). Another group would release every tuple a second time."
    )
