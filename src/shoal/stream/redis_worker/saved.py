"""Saved: the state of a stream as fields of a Redis hash, of which a step writes only what has changed.

``meta`` holds the rules and the columns and is written once; ``head`` the counts, and which tuples wait; a
``chunk`` the rows that one step added and that waited when it ended. A chunk is removed when none of its rows waits.
"""

import base64
import json
from collections import deque
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa

from shoal.errors import FileError, ParameterError
from shoal.stream import Stream
from shoal.stream.rules import Rules, as_rules
from shoal.stream.waiting import Waiting

FORMAT = "shoal worker, version 2"

Fields = dict[str, bytes]


class Saved:
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
        return Saved().changes(stream, notes)[0], [*(f"chunk:{first}" for first, _ in self._chunks), "meta"]

    def load(self, fields: Fields, stream: Stream) -> dict[str, Any]:
        """Bring a new stream to the saved state; return its notes."""
        head = json.loads(_intact(fields["head"]))
        notes: dict[str, Any] = head.pop("notes")
        if "meta" not in fields:
            return notes
        schema = _schema_of(fields["meta"], stream.rules)
        chunks = sorted((int(name[6:]), _rows(content, schema)) for name, content in _chunks_in(fields).items())
        wanted = _unpacked(head.pop("waiting"))
        positions = np.concatenate([np.empty(0, dtype=np.int64), *(rows[0] for _, rows in chunks)])
        times = np.concatenate([np.empty(0), *(np.full(len(rows[0]), rows[1]) for _, rows in chunks)])
        table = pa.concat_tables([schema.empty_table(), *(rows[2] for _, rows in chunks)]).combine_chunks()
        kept = np.isin(positions, wanted)
        if not np.array_equal(positions[kept], wanted):
            raise _damaged()
        stream.resume(head, table.filter(pa.array(kept)), positions[kept], times[kept])
        self._has_meta = True
        self._n_accepted = int(positions[-1]) + 1 if len(positions) else 0
        self._chunks.extend((int(rows[0][0]), int(rows[0][-1])) for _, rows in chunks)
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


def _chunks_in(fields: Fields) -> Fields:
    return {name: content for name, content in fields.items() if name.startswith("chunk:")}


def _chunk(waiting: Waiting | None, positions: Any, time: float) -> bytes:
    """Return the last rows that wait, with their positions and the time at which they came."""
    assert waiting is not None
    rows = waiting.last(len(positions))
    about = np.array([len(positions)], dtype=np.int64).tobytes() + np.float64(time).tobytes()
    return _checked(about + positions.astype(np.int64).tobytes() + rows.serialize().to_pybytes())


def _rows(content: bytes, schema: pa.Schema) -> tuple[Any, float, pa.Table]:
    content = _intact(content)
    n, time = int(np.frombuffer(content, np.int64, 1)[0]), float(np.frombuffer(content, np.float64, 1, 8)[0])
    positions = np.frombuffer(content, np.int64, n, 16)
    batch = pa.ipc.read_record_batch(pa.py_buffer(content[16 + 8 * n :]), schema)
    return positions, time, pa.Table.from_batches([batch])


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


def _intact(content: bytes) -> bytes:
    if crc32(content[4:]).to_bytes(4, "little") != content[:4]:
        raise _damaged()
    return content[4:]


def _damaged() -> FileError:
    return FileError(
        "The state in Redis is damaged. Restore it from a copy; or remove it, and the worker says where it can go on "
        "(--begin). Another group would release every tuple a second time."
    )
