"""Loop: read, push, write, until the input ends, a signal comes, or the reader of the output is gone.

With a checkpoint the pipe resumes where it was stopped: the input is read on from there, and what was written to files
after the last checkpoint is cut off and written again.
"""

import json
import time
from base64 import b64encode
from codecs import BOM_UTF8
from collections.abc import Callable
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.errors import InputError, ParameterError, ShoalError
from shoal.interrupts import asking
from shoal.stream import Stream, Summary
from shoal.stream.batches import as_array
from shoal.stream.monitor import Monitor, Status
from shoal.stream.pipe.ends import Checkpoint, PipeEnds
from shoal.stream.pipe.lines import LINE, Bad, LineForm, LineReading, LineReason, Read, Reader, Writer
from shoal.stream.pipe.sink import Sink
from shoal.stream.pipe.source import TextSource
from shoal.stream.stream import TupleError

LONGEST = 1 << 24
"""Longer lines are rejected; without a limit a missing line break would fill the memory."""

Watching = Callable[[Summary], None]


class Ending(StrEnum):
    """How a pipe ended."""

    DONE = "done"
    STOPPED = "stopped"
    CLOSED = "closed"


class Pipe:
    """Lines through a stream.

    Attributes
    ----------
    n_cut : int
        Bytes of a line that was not yet complete when the pipe was stopped; they were dropped.
    """

    def __init__(
        self,
        stream: Stream,
        reading: LineReading,
        ends: PipeEnds,
        watching: Watching | None = None,
        monitor: Monitor | None = None,
    ) -> None:
        ends.check()
        self.reading = reading
        self.ends = ends
        self.n_cut = 0
        self._watching = watching or (lambda summary: None)
        self._monitor = monitor or Monitor()
        self._give_up_at: float | None = None
        self._writer: Writer | None = None
        self._overlong = 0
        self._checkpoint = None if ends.checkpoint is None else Checkpoint(ends.checkpoint)
        try:
            self._open(stream)
        except BaseException:
            self._close()
            raise

    def _open(self, stream: Stream) -> None:
        self._source: TextSource | None = None
        self._out: Sink
        self._sinks: list[Sink] = []
        self.stream = self._resumed(stream)
        self.stream.on_side = self._to_side
        notes = self.stream.notes
        self._reader = Reader(self.reading, notes.get("columns"))
        self._source = TextSource(self.ends.input, notes.get("bytes", 0) if self.ends.input is not None else 0)
        self._out = self._sink(self.ends.output, notes.get("output"))
        self._side = None if self.ends.side is None else self._sink(self.ends.side, notes.get("side"), private=True)
        self._n_bytes, self._n_lines = notes.get("bytes", 0), notes.get("lines", 0)
        self._n_saved = self.stream.n_in
        if self._checkpoint is not None and not notes:
            # From now on the output belongs to this run and those that resume it.
            self._save()

    def _sink(self, path: str | None, resume_at: int | None, private: bool = False) -> Sink:
        sink = Sink(path, resume_at, force=self.ends.force, private=private, gives_up=self._gives_up)
        self._sinks.append(sink)
        return sink

    def _gives_up(self) -> bool:
        """Return whether not to wait any longer for a reader; as long as the pipe waits, it is alive."""
        self._monitor.beat(Status.BLOCKED if self._give_up_at is None else Status.STOPPING)
        return self._give_up_at is not None and time.monotonic() >= self._give_up_at

    def _resumed(self, stream: Stream) -> Stream:
        """Return the stream of the checkpoint, if there is one; refuse one with other rules."""
        found = None if self._checkpoint is None else self._checkpoint.load(stream)
        if found is None:
            return stream
        if _plain(found) != _plain(stream) or found.notes.get("form") != self.reading.form:
            raise ParameterError(
                "The checkpoint was made with other options than these. Use the same, or another folder."
            )
        return found

    @property
    def next_line(self) -> int:
        """Number of the first line that was not consumed."""
        return int(self._n_lines) + 1

    def run(self) -> Ending:
        """Run until the end; return how it ended."""
        try:
            with asking(self._stop):
                return self._run()
        except BrokenPipeError:
            return Ending.CLOSED
        except ShoalError as error:
            if self._checkpoint is not None and not self.stream.n_in:
                self._checkpoint.remove()  # nothing was begun: the next run may have other options
            if len(self.stream) and self._checkpoint is None:
                raise type(error)(f"{error} {len(self.stream):,} tuples that waited were not released.") from error
            raise
        finally:
            self._close()

    def _close(self) -> None:
        if self._source is not None:
            self._source.close()
        for sink in self._sinks:
            sink.let_go()
        if self._checkpoint is not None:
            self._checkpoint.close()

    def _stop(self) -> None:
        """End the stream with what has been read; when called again, do not wait for readers."""
        again = self._give_up_at is not None
        self._give_up_at = time.monotonic() + (0 if again else self.ends.drain)

    def _run(self) -> Ending:
        try:
            ending = self._through()
        except InputError:
            # The unusable line ends the stream: what came before it is released, or kept, as at any end.
            if self.stream.n_in:
                self._end(Ending.STOPPED)
            raise
        return self._end(ending)

    def _through(self) -> Ending:
        """Push all input through the stream, but for the tuples that wait in it at the end."""
        assert self._source is not None
        _keep_freed_memory()
        patience = self.stream.rules.patience(0.2)
        rest = b""
        while True:
            if self._give_up_at is not None:
                self._source.stop()
            piece = self._source.take(patience)
            if piece is None:
                self.n_cut = self._finish_text(rest)
                return Ending.STOPPED if self._source.was_cut else Ending.DONE
            begin = time.monotonic()
            if piece:
                rest = self._lines(rest + piece)
            self._let_time_go_by()
            self._turn(time.monotonic() - begin if piece else None)

    def _turn(self, seconds: float | None = None) -> None:
        """Report to the monitor and the log."""
        status = Status.WORKING if self._give_up_at is None else Status.STOPPING
        self._monitor.turn(status, self.stream, seconds)
        self._watching(self.stream.summary())

    def _let_time_go_by(self) -> None:
        released = self.stream.rows_due()
        if released is not None:
            self._write(released)
            self._out.flush()

    def _lines(self, text: bytes) -> bytes:
        """Process the complete lines of a text; return the rest."""
        if not self._n_bytes and text.startswith(BOM_UTF8):
            self._n_bytes, text = len(BOM_UTF8), text[len(BOM_UTF8) :]
        if self._overlong:
            text = self._skip_overlong(text)
        if self._reader.columns is None:
            text = self._header(text, False)
        if self._reader.columns is None:
            return text
        rest = self._records(text, False)
        return self._without_overlong(rest) if len(rest) > LONGEST else rest

    def _header(self, text: bytes, is_end: bool) -> bytes:
        used = self._reader.header(text, is_end)
        self._n_bytes, self._n_lines = self._n_bytes + used, self._n_lines + (used > 0)
        return text[used:]

    def _records(self, text: bytes, is_end: bool) -> bytes:
        """Push the complete records of a text; return the rest."""
        read = self._reader.read(text, is_end, self._n_lines)
        if read.bad and self.stream.rules.on_error == "fail":
            self._fail(read, min(read.bad))
        self._bad(read.bad)
        self._push(read)
        self._used(read.n_bytes, read.n_lines)
        if self._checkpoint is not None and self.stream.n_in - self._n_saved >= self.ends.every:
            self._save()
        return text[read.n_bytes :]

    def _used(self, n_bytes: int, n_lines: int) -> None:
        self._n_bytes, self._n_lines = self._n_bytes + n_bytes, self._n_lines + n_lines
        self._out.flush()

    def _finish_text(self, rest: bytes) -> int:
        """Process the rest at the end of the input; return how many bytes of it are an incomplete line."""
        assert self._source is not None
        if self._overlong:
            self._end_overlong(b"")
            return 0
        if self._source.was_cut:
            return len(rest)
        if self._reader.columns is None:
            rest = self._header(rest, True)
        if self._reader.columns is None:  # an empty input
            return 0
        while rest := self._records(rest, b"\n" not in rest[:-1]):
            # An unclosed quote joins many lines into one: only the line that opens it is rejected.
            rest = self._reject_first_line(rest)
        return 0

    def _reject_first_line(self, text: bytes) -> bytes:
        line, _, rest = text.partition(b"\n")
        self._reject(LineReason.MALFORMED, {"text": line})
        self._used(len(text) - len(rest), 1)
        return rest

    def _without_overlong(self, text: bytes) -> bytes:
        """Reject the beginning of a line that exceeds the maximum length."""
        if b"\n" in text:
            return self._lines(self._reject_first_line(text))
        self._reject(LineReason.TOO_LONG, {"text": text})
        self._overlong = len(text)
        return b""

    def _skip_overlong(self, text: bytes) -> bytes:
        end = text.find(b"\n") + 1
        if not end:
            self._overlong += len(text)
            return b""
        self._end_overlong(text[:end])
        return text[end:]

    def _end_overlong(self, last: bytes) -> None:
        self._used(self._overlong + len(last), 1)
        self._overlong = 0

    def _reject(self, reason: LineReason, what: dict[str, Any]) -> None:
        bad = Bad(self._n_lines + 1, reason, what["text"], 0)
        if self.stream.rules.on_error == "fail":
            raise self._refusal(bad.number, reason)
        self._bad([bad])

    def _fail(self, read: Read, first: Bad) -> None:
        """Push what came before a line that cannot be used, and raise for that line."""
        self._push(read.before(first.number))
        self._used(first.begin, first.number - 1 - self._n_lines)
        raise self._refusal(first.number, first.reason)

    def _refusal(self, number: int, reason: str, column: str | None = None) -> InputError:
        assert self._source is not None
        where = "" if column is None else f"column {column!r}, "
        may_be_csv = number == 1 and reason == LineReason.MALFORMED and self.reading.form is LineForm.NDJSON
        hint = " Lines are read as JSON objects; for CSV add --csv." if may_be_csv else ""
        kept = "is in the checkpoint" if self._checkpoint is not None else "was released"
        return InputError(
            f"Line {number} of {self._source.name} cannot be used: {where}{reason}. The stream ended there; what came "
            f"before {kept}.{hint} Correct the line, or let such lines go to the side output (--on-error side)."
        )

    def _push(self, read: Read) -> None:
        if read.rows.num_rows == 0:
            return
        try:
            rows = read.rows.append_column(LINE, as_array(read.numbers))
            self._write(self.stream.push_rows(rows, self.stream.clock()))
        except TupleError as error:
            number = int(read.numbers[error.row])
            self._push(read.before(number))
            self._used(int(read.begins[error.row]), number - 1 - self._n_lines)
            raise self._refusal(number, error.reason, error.column) from None

    def _bad(self, bad: list[Bad]) -> None:
        """Send lines that are not tuples to the side output."""
        self.stream.count_side([str(line.reason) for line in bad])
        self._say_aside([{"reason": line.reason, "line": line.number, **_text(line.content)} for line in bad])

    def _to_side(self, table: pa.Table, reasons: list[str]) -> None:
        if self._side is not None:
            rows = zip(table.to_pylist(), reasons, strict=True)
            self._say_aside(
                [{"reason": reason, "line": row.pop(LINE), "tuple": self._plain(row)} for row, reason in rows]
            )

    def _plain(self, row: dict[str, Any]) -> dict[str, Any]:
        return {name: _as_json(value, self.reading.form) for name, value in row.items()}

    def _say_aside(self, entries: list[dict[str, Any]]) -> None:
        if self._side is not None:
            self._side.write(b"".join(json.dumps(entry, ensure_ascii=False).encode() + b"\n" for entry in entries))

    def _write(self, released: pa.RecordBatch) -> None:
        if self._writer is None:
            self._writer = Writer(self.reading.form, released.schema.names, self.reading.separator)
            if not self._out.n_bytes:
                self._out.write(self._writer.header())
        self._out.write(self._writer.write(released))

    def _end(self, ending: Ending) -> Ending:
        """Save a checkpoint if there is one and more input may come; otherwise release everything."""
        if ending is Ending.STOPPED and self._checkpoint is not None:
            self._save()
        else:
            if len(self.stream):
                self._write(self.stream.flush_rows())
            self._out.flush(to_disk=True)
            if self._checkpoint is not None:
                self._checkpoint.remove()
        self._turn()
        for sink in self._sinks:
            sink.finish()
        return ending

    def _save(self) -> None:
        """Write a checkpoint, after everything that it records as written is on disk."""
        self._out.flush(to_disk=True)
        notes = {"form": self.reading.form, "bytes": self._n_bytes, "lines": self._n_lines}
        notes |= {"columns": self._reader.columns, "output": self._out.n_bytes}
        if self._side is not None:
            self._side.flush(to_disk=True)
            notes["side"] = self._side.n_bytes
        self.stream.notes = notes
        assert self._checkpoint is not None
        self._checkpoint.save(self.stream)
        self._n_saved = self.stream.n_in


def _keep_freed_memory() -> None:
    """Let the allocator keep what is freed after each piece, so that the next one causes no page faults.

    glibc returns free memory beyond twice the largest block that was freed so far. Freeing a large one that was never
    written to raises that limit (mallopt(3), M_MMAP_THRESHOLD); elsewhere it has no effect.
    """
    bytes(LONGEST)


def _as_json(value: Any, form: LineForm) -> Any:
    """Return a value as JSON would have it."""
    if isinstance(value, bytes):
        return json.loads(value) if form is LineForm.NDJSON else value.decode()
    if isinstance(value, float) and not np.isfinite(value):
        return None if np.isnan(value) else str(value)
    return value if isinstance(value, int | float | str | bool | None) else str(value)


def _text(content: bytes) -> dict[str, str]:
    """Return a line as text for JSON, whatever its bytes are."""
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        return {"base64": b64encode(content).decode()}


def _plain(stream: Stream) -> str:
    return json.dumps(stream.rules.plain(), default=str, sort_keys=True)


def watch_every(seconds: float, tell: Callable[[Summary, float], None]) -> Watching:
    """Report on the stream at intervals, with the seconds since the beginning."""
    begin = time.monotonic()
    latest = begin

    def watching(summary: Summary) -> None:
        nonlocal latest
        now = time.monotonic()
        if now - latest >= seconds:
            latest = now
            tell(summary, now - begin)

    return watching
