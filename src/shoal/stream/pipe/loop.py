"""Loop: read, push, write, until the input ends, a signal comes, or nobody reads any more.

With a checkpoint the pipe goes on where it was stopped: a file is read on from there, and what was written to files
after the last checkpoint is cut off and written again.
"""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import combinations
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.errors import FileError, ParameterError, SchemaError
from shoal.files import is_same_file
from shoal.stream import Stream, Summary
from shoal.stream.flow import TupleError
from shoal.stream.pipe.lines import Bad, Form, Read, Reader, Reading, Writer
from shoal.stream.pipe.sink import Sink, is_packed
from shoal.stream.pipe.source import Source

STATE = "stream.state"
LONGEST = 1 << 24
"""A line of more bytes than this is none: without a bound a missing line break would fill the memory."""

Watching = Callable[[Summary], None]


class Ending(StrEnum):
    """How a pipe ended."""

    DONE = "done"
    STOPPED = "stopped"
    CLOSED = "closed"


@dataclass(frozen=True)
class Ends:
    """Where lines come from and go to; None is stdin or stdout."""

    input: str | None = None
    output: str | None = None
    side: str | None = None
    checkpoint: Path | None = None
    every: int = 1_000_000
    """How many tuples between two checkpoints."""


class Pipe:
    """Lines through a stream."""

    def __init__(self, stream: Stream, reading: Reading, ends: Ends, watching: Watching | None = None) -> None:
        if ends.checkpoint is not None and (is_packed(ends.output) or is_packed(ends.side)):
            raise ParameterError("A packed file cannot be cut and written on; with a checkpoint, write plain files.")
        _refuse_shared(ends)
        self.reading = reading
        self.ends = ends
        self._watching = watching or (lambda summary: None)
        self._stopping = False
        self._writer: Writer | None = None
        self.stream = self._resumed(stream)
        self.stream.on_side = self._to_side
        notes = self.stream.notes
        self._source = Source(ends.input, notes.get("bytes", 0) if ends.input is not None else 0)
        self._out = Sink(ends.output, notes.get("output"))
        self._side = None if ends.side is None else Sink(ends.side, notes.get("side"), private=True)
        self._reader = Reader(reading, notes.get("columns"))
        self._n_bytes, self._n_lines = notes.get("bytes", 0), notes.get("lines", 0)
        self._n_saved = self.stream.summary().n_in

    def _resumed(self, stream: Stream) -> Stream:
        """Return the stream of the checkpoint, if there is one and it is of the same rules."""
        if self.ends.checkpoint is None:
            return stream
        self.ends.checkpoint.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self._state.exists():
            return stream
        found = Stream.load(self._state, clock=stream.clock)
        if _plain(found) != _plain(stream) or found.notes.get("form") != self.reading.form:
            raise ParameterError(
                "The checkpoint was made with other options than these. Use the same, or another folder."
            )
        return found

    @property
    def _state(self) -> Path:
        assert self.ends.checkpoint is not None
        return self.ends.checkpoint / STATE

    def run(self) -> Ending:
        """Go on until the end; say which one it was."""
        try:
            with _signals(self._stop):
                return self._run()
        except BrokenPipeError:
            return Ending.CLOSED
        finally:
            self._source.close()
            for sink in (self._out, self._side):
                if sink is not None:
                    sink.let_go()

    def _stop(self) -> None:
        self._stopping = True

    def _run(self) -> Ending:
        age = self.stream.rules.max_age
        patience = 0.2 if age is None else min(0.2, age / 4)
        rest = b""
        while not self._stopping:
            piece = self._source.take(patience)
            if piece == b"":
                self._let_time_go_by()
            else:
                rest = self._lines(rest + (piece or b""), piece is None)
                if len(rest) > LONGEST:
                    raise FileError(f"Line {self._n_lines + 1} of {self._source.name} is longer than {LONGEST} bytes.")
            self._watching(self.stream.summary())
            if piece is None:
                return self._end(Ending.DONE)
        return self._end(Ending.STOPPED)

    def _let_time_go_by(self) -> None:
        if self.stream.rules.max_age is not None and len(self.stream):
            self._write(self.stream.advance(self.stream.clock()))
            self._out.flush()

    def _lines(self, text: bytes, is_end: bool) -> bytes:
        """Take the whole lines of a text; return the rest."""
        if self._reader.columns is None:
            used = self._reader.header(text, is_end)
            if not used:
                return text
            self._n_bytes, self._n_lines, text = self._n_bytes + used, self._n_lines + 1, text[used:]
        read = self._reader.read(text, is_end, self._n_lines)
        self._refuse(read.bad)
        self._push(read)
        self._n_bytes, self._n_lines = self._n_bytes + read.n_bytes, self._n_lines + read.n_lines
        self._out.flush()
        if self.ends.checkpoint is not None and self.stream.summary().n_in - self._n_saved >= self.ends.every:
            self._save()
        return text[read.n_bytes :]

    def _push(self, read: Read) -> None:
        if read.table.num_rows == 0:
            return
        try:
            self._write(self.stream.push(read.table))
        except TupleError as error:
            raise SchemaError(
                f"Line {read.numbers[error.row]} of {self._source.name}: column {error.column!r}, {error.reason}. Mend "
                "it, or let such lines go to the side output (--on-error side)."
            ) from None

    def _refuse(self, bad: list[Bad]) -> None:
        """Fail for a line that is no tuple, or send it to the side output."""
        if not bad:
            return
        if self.stream.rules.on_error == "fail":
            first = min(bad)
            raise SchemaError(
                f"Line {first.number} of {self._source.name} cannot be used: {first.reason}. Mend it, or let such "
                "lines go to the side output (--on-error side)."
            )
        self.stream.count_side([str(line.reason) for line in bad])
        if self._side is not None:
            for line in bad:
                self._say_aside(line.reason, {"line": line.number, "text": line.content.decode(errors="replace")})

    def _to_side(self, table: pa.Table, reasons: list[str]) -> None:
        if self._side is not None:
            for row, reason in zip(table.to_pylist(), reasons, strict=True):
                self._say_aside(reason, {"tuple": {name: _as_json(v, self.reading.form) for name, v in row.items()}})

    def _say_aside(self, reason: str, what: dict[str, Any]) -> None:
        assert self._side is not None
        self._side.write(json.dumps({"reason": reason, **what}, ensure_ascii=False).encode() + b"\n")

    def _write(self, released: pa.Table) -> None:
        if self._writer is None:
            self._writer = Writer(self.reading.form, released.column_names, self.reading.separator)
            if "output" not in self.stream.notes:
                self._out.write(self._writer.header())
        self._out.write(self._writer.write(released))

    def _end(self, ending: Ending) -> Ending:
        """Save where that was asked for and more is to come; else release everything."""
        if ending is Ending.STOPPED and self.ends.checkpoint is not None:
            self._save()
        else:
            if len(self.stream):
                self._write(self.stream.flush())
            self._out.flush(to_disk=True)
            if self.ends.checkpoint is not None:
                self._state.unlink(missing_ok=True)
        self._watching(self.stream.summary())
        for sink in (self._out, self._side):
            if sink is not None:
                sink.finish()
        return ending

    def _save(self) -> None:
        """Write a checkpoint, after everything that it says was written is on the disk."""
        self._out.flush(to_disk=True)
        notes = {"form": self.reading.form, "bytes": self._n_bytes, "lines": self._n_lines}
        notes |= {"columns": self._reader.columns, "output": self._out.n_bytes}
        if self._side is not None:
            self._side.flush(to_disk=True)
            notes["side"] = self._side.n_bytes
        self.stream.notes = notes
        self.stream.save(self._state)
        self._n_saved = self.stream.summary().n_in


def _refuse_shared(ends: Ends) -> None:
    """Refuse to write over the file that is read, or two outputs to one file; a device may be both."""
    named = {"input": ends.input, "output": ends.output, "side output": ends.side}
    files = [(what, path) for what, path in named.items() if path is not None and _is_or_becomes_a_file(path)]
    for (what, path), (other, second) in combinations(files, 2):
        if is_same_file(path, second) or os.path.realpath(path) == os.path.realpath(second):
            raise FileError(
                f"{what.capitalize()} {path!r} and {other} {second!r} are the same file. Give each its own."
            )


def _is_or_becomes_a_file(path: str) -> bool:
    return os.path.isfile(path) or not os.path.exists(path)


def _as_json(value: Any, form: Form) -> Any:
    """Return a value as JSON would have it."""
    if isinstance(value, bytes):
        return json.loads(value) if form is Form.NDJSON else value.decode(errors="replace")
    if isinstance(value, float) and not np.isfinite(value):
        return None if np.isnan(value) else str(value)
    return value if isinstance(value, int | float | str | bool | None) else str(value)


def _plain(stream: Stream) -> str:
    return json.dumps(asdict(stream.rules), default=str, sort_keys=True)


@contextmanager
def _signals(stop: Callable[[], None]) -> Iterator[None]:
    """Let SIGTERM and SIGINT ask for an end, for as long as the pipe runs."""
    if current_thread() is not main_thread():
        yield
        return
    before = {number: signal.signal(number, lambda *_: stop()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def watch_every(seconds: float, tell: Callable[[Summary, float], None]) -> Watching:
    """Tell about the stream now and then, with the seconds since the beginning."""
    begin = time.monotonic()
    told = begin

    def watching(summary: Summary) -> None:
        nonlocal told
        now = time.monotonic()
        if now - told >= seconds:
            told = now
            tell(summary, now - begin)

    return watching
