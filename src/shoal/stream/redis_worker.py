"""Worker: a k-anonymous stream between two Redis Streams, which a crash neither loses nor doubles.

Every step reads some entries as a member of a consumer group and then commits, in one MULTI/EXEC: what was released,
the state of the stream, and the acknowledgement of the entries. Whatever happens before the EXEC has not happened;
after it, everything has. Needs the extra ``redis``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shoal.errors import GuaranteeError, ParameterError, SchemaError
from shoal.stream import Stream
from shoal.stream.pipe.lines import Form, Reader, Reading, Writer

if TYPE_CHECKING:
    from redis import Redis

ID = "shoal:id"
"""The column that holds the id of the entry of a tuple. It comes back on the side output only."""

FIELD = b"data"
"""The field of an entry that holds a tuple, as one JSON object."""


@dataclass(frozen=True)
class Names:
    """What the worker's things are called in Redis."""

    source: str
    target: str
    side: str | None = None
    group: str = "shoal"
    consumer: str = "worker"

    @property
    def state(self) -> str:
        """Where the state is kept: one for each group on a stream."""
        return f"{self.source}:{self.group}:state"


class Worker:
    """Moves tuples from one Redis stream to another, k-anonymous.

    Parameters
    ----------
    redis : redis.Redis
        A connection that returns bytes.
    stream : Stream
        What to do with the tuples. A state in Redis takes its place, if it has the same rules.
    names : Names
        The streams, the consumer group, and this member of it.
    dates : sequence of str
        Quasi-identifiers that are dates.
    batch : int
        How many entries a step takes at most.
    """

    def __init__(
        self, redis: "Redis", stream: Stream, names: Names, *, dates: Sequence[str] = (), batch: int = 1000
    ) -> None:
        self.redis = redis
        self.names = names
        self._batch = batch
        self._dates = tuple(dates)
        self._fresh = stream
        self._aside: list[tuple[str, bytes]] = []
        self._make_group()
        self.resume()

    def _make_group(self) -> None:
        from redis.exceptions import ResponseError

        try:
            self.redis.xgroup_create(self.names.source, self.names.group, id="0", mkstream=True)
        except ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise

    def resume(self) -> None:
        """Begin from what was committed last; entries that were read since come again."""
        content: Any = self.redis.get(self.names.state)
        self._committed = content
        self.stream = self._fresh if content is None else Stream.restore(content, clock=self._fresh.clock)
        if content is not None and self.stream.rules != self._fresh.rules:
            raise ParameterError(f"The state {self.names.state!r} in Redis was made with other rules than these.")
        if content is None:
            self.stream = Stream.restore(self._fresh.dump(), clock=self._fresh.clock)
        self.stream.on_side = self._set_aside
        self._reader = Reader(Reading(self.stream.rules, self._dates, Form.NDJSON))
        self._writer: Writer | None = None
        self._pending_from: bytes | None = b"0"

    def step(self, wait: float = 1.0) -> int:
        """Take some entries, or wait for some so many seconds, and commit; return how many were taken."""
        entries = self._take(wait)
        lines = [fields.get(FIELD, b"") for _, fields in entries]
        released = self._push([line.replace(b"\n", b" ") for line in lines])
        if entries or released:
            self._commit([number for number, _ in entries], released)
        return len(entries)

    def run(self, wait: float = 1.0) -> None:
        """Work until stopped from outside; a lost connection is no end."""
        from redis.exceptions import ConnectionError as Lost

        while True:
            try:
                self.step(wait)
            except Lost:
                self._wait_for_redis()
                self.resume()

    def finish(self) -> None:
        """End the stream: release everything, and forget the state."""
        released = self._lines(self.stream.flush()) if len(self.stream) else []
        self._commit([], released, is_end=True)

    def _take(self, wait: float) -> list[tuple[bytes, dict[bytes, bytes]]]:
        """Return entries that were read before but not committed, then new ones."""
        while True:
            since = self._pending_from
            found: Any = self.redis.xreadgroup(
                self.names.group,
                self.names.consumer,
                {self.names.source: b">" if since is None else since},
                count=self._batch,
                block=None if since is not None else max(1, int(wait * 1000)),
            )
            entries = found[0][1] if found else []
            if since is None:
                return list(entries)
            if entries:
                self._pending_from = entries[-1][0]
                return list(entries)
            self._pending_from = None

    def _push(self, lines: list[bytes]) -> list[bytes]:
        """Return the lines that are released for these."""
        if not lines:
            due = self.stream.rules.max_age is not None and len(self.stream) > 0
            return self._lines(self.stream.advance(self.stream.clock())) if due else []
        # An empty entry has to be a line of its own, and no tuple.
        read = self._reader.read(b"".join((line.strip() or b"?") + b"\n" for line in lines), True, 0)
        if read.bad and self.stream.rules.on_error == "fail":
            first = min(read.bad)
            raise SchemaError(
                f"Entry {first.number} of a batch from {self.names.source} cannot be used: {first.reason}."
            )
        self.stream.count_side([str(bad.reason) for bad in read.bad])
        self._aside += [(str(bad.reason), bad.content) for bad in read.bad]
        return self._lines(self.stream.push(read.table)) if read.table.num_rows else []

    def _lines(self, released: Any) -> list[bytes]:
        if self._writer is None:
            self._writer = Writer(Form.NDJSON, released.column_names)
        return self._writer.write(released).splitlines()

    def _set_aside(self, table: Any, reasons: list[str]) -> None:
        lines = Writer(Form.NDJSON, table.column_names).write(table).splitlines()
        self._aside += zip(reasons, lines, strict=True)

    def _commit(self, numbers: list[bytes], released: list[bytes], is_end: bool = False) -> None:
        """Hand over what was released, the state and the acknowledgement, all or nothing."""
        from redis.exceptions import WatchError

        state = self.stream.dump()
        transaction: Any
        with self.redis.pipeline(transaction=True) as transaction:
            transaction.watch(self.names.state)
            if transaction.get(self.names.state) != self._committed:
                raise GuaranteeError(_ANOTHER.format(self.names.state))
            transaction.multi()
            for line in released:
                transaction.xadd(self.names.target, {FIELD: line})
            if self.names.side is not None:
                for reason, line in self._aside:
                    transaction.xadd(self.names.side, {b"reason": reason, FIELD: line})
            if is_end:
                transaction.delete(self.names.state)
            else:
                transaction.set(self.names.state, state)
            if numbers:
                transaction.xack(self.names.source, self.names.group, *numbers)
            try:
                transaction.execute()
            except WatchError:
                raise GuaranteeError(_ANOTHER.format(self.names.state)) from None
        self._committed = None if is_end else state
        self._aside = []

    def _wait_for_redis(self) -> None:
        from time import sleep

        from redis.exceptions import ConnectionError as Lost

        pause = 0.05
        while True:
            try:
                self.redis.ping()
                return
            except Lost:
                sleep(pause)
                pause = min(2 * pause, 2.0)


_ANOTHER = (
    "The state {!r} in Redis was changed by another worker. One worker serves a group; nothing was committed, and the "
    "entries come again."
)
