"""Worker: reads entries, pushes them through the stream, commits; waits out temporary failures and reports others."""

import os
import random
import re
import secrets
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from logging import getLogger
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from redis.crc import key_slot

from shoal.errors import InputError, OutageError, ParameterError, ShoalError
from shoal.job import RedisSettings
from shoal.stream import Stream
from shoal.stream.batches import as_binary, one_batch
from shoal.stream.monitor import Monitor, Status
from shoal.stream.pipe.lines import Bad, LineForm, LineReading, LineReason, Read, Reader, Writer
from shoal.stream.pipe.loop import LONGEST
from shoal.stream.redis_worker import scripts
from shoal.stream.redis_worker.redis_keys import ID, STEP_BYTES, RedisKeys
from shoal.stream.redis_worker.replies import ChangedError, FencedError, redis_errors
from shoal.stream.redis_worker.source import StreamCounts, after, as_pair
from shoal.stream.state_fields import StateFields, Store
from shoal.stream.stream import TupleError

if TYPE_CHECKING:
    from redis import Redis

log = getLogger("shoal.stream.worker")

OLDEST_REDIS = (7, 0)
_SCRIPTS = ("ACQUIRE", "RELEASE", "STAGE", "STEP")
_FIRST = "0-0"
_TOO_LONG = b"?too long"  # what the script returns of an entry of more than LONGEST bytes


class Taken(NamedTuple):
    """Entries of the source: their ids, and their tuples as lines."""

    ids: list[bytes]
    lines: bytes


NOTHING = Taken([], b"")

REDIS = Store(
    "Redis",
    "End that stream with that one (--until-empty), and go on in the same group.",
    "Use the same. For new ones, end the stream with the old ones first (shoal worker --finish releases what waits), "
    "and go on in the same group; another group would release every tuple a second time.",
    "Restore it from a copy; or remove it, and the worker says where it can go on (--begin). Another group would "
    "release every tuple a second time.",
)
"""Where the state of a worker is."""


class Worker:
    """Moves tuples from one Redis stream to another, k-anonymous.

    Parameters
    ----------
    redis : redis.Redis
        A connection that returns bytes and does not retry by itself.
    stream : Stream
        The stream, with ``tracked=[ID]``. A state in Redis replaces it, if it has the same rules.
    settings : RedisSettings
        The streams and the consumer group, sizes of batches and streams, and waiting times.
    begin : str, optional
        Where to begin if Redis has no state, but a group that has read entries: at the ``"first"`` entry, where the
        ``"group"`` is, or at an id. By default that is refused: the state was lost, and with it the waiting tuples.
    monitor : Monitor, optional
        Where figures of the loop go.

    Attributes
    ----------
    name : str
        Unique name of this worker.
    n_lost : int
        Entries that were removed from the source before they were read.
    """

    def __init__(
        self,
        redis: "Redis",
        stream: Stream,
        settings: RedisSettings,
        *,
        begin: str | None = None,
        monitor: Monitor | None = None,
    ) -> None:
        if begin is not None and not re.fullmatch(r"first|group|\d+(-\d+)?", begin):
            raise ParameterError(
                f"A worker begins at 'first', 'group' or the id of an entry (--begin), not at {begin!r}."
            )
        if ID not in stream.rules.tracked:
            raise ParameterError(f"The stream of a worker tracks the ids of entries: tracked=[{ID!r}].")
        self.redis = redis
        self.settings = settings
        self.keys = RedisKeys.of(settings)
        self.name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
        self.stream = stream
        self.n_lost = 0
        self.lag = 0
        self._begin = begin
        self._monitor = monitor or Monitor()
        self._fresh = stream.dump()
        self._reader = Reader(LineReading(stream.rules, LineForm.NDJSON))
        self._writer: Writer | None = None
        self._scripts = {name: redis.register_script(getattr(scripts, name)) for name in _SCRIPTS}
        self._token: int | None = None
        self._next: Taken | None = None
        self._stopping = False

    # The lease.

    def acquire(self) -> str | None:
        """Take the lease and begin from the last commit; if another worker has it, return its name."""
        self._check()
        with redis_errors():
            taken, who = self._scripts["ACQUIRE"](self.keys, [self.name, self._milliseconds])
        if not taken:
            return str(who.decode())
        self._token = int(who)
        try:
            self.resume()
        except Exception:
            self.release()
            raise
        return None

    def release(self) -> None:
        """Give the lease back, so that the next worker can start at once."""
        if self._token is not None:
            self._token = None
            with redis_errors():
                self._scripts["RELEASE"](self.keys, [self.name])

    @property
    def _milliseconds(self) -> int:
        return max(1, int(1000 * self.settings.lease))

    def _check(self) -> None:
        """Refuse a Redis that is too old, and keys that hold something else."""
        with redis_errors():
            server: Any = self.redis.info("server")
            version = str(server["redis_version"])
            self._check_slots(server.get("redis_mode"))
            kinds = {key: _text(self.redis.type(key)) for key in self.keys}
        if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_REDIS:
            raise ParameterError(f"Redis is of version {version}; the worker needs {OLDEST_REDIS[0]} or newer.")
        expected = dict.fromkeys(self.keys, "stream") | {self.keys.state: "hash", self.keys.lease: "string"}
        for key, kind in kinds.items():
            if kind not in ("none", expected[key]):
                older = " It may be of an older shoal." if key == self.keys.state else ""
                raise ParameterError(
                    f"The key {key!r} in Redis is a {kind}, but a {expected[key]} is needed. Choose another name, or "
                    f"remove the key.{older}"
                )
        if len(set(self.keys[2:])) < 2 + (self.settings.side is not None):
            raise ParameterError("Source, target and side output are different streams. Give each a name of its own.")

    def _check_slots(self, mode: str | None) -> None:
        """Refuse a cluster that may keep the keys on several nodes, since no script can use them together."""
        if mode == "cluster" and len({key_slot(key.encode()) for key in self.keys}) > 1:
            tag = self.keys.source.replace("{", "").replace("}", "")
            raise ParameterError(
                f"Redis is a cluster, where a worker commits to several keys at once only if they are in the same "
                f"slot; {', '.join(self.keys)} are not. Give the names of the streams the same tag in braces, as "
                f"in {{{tag}}} and {{{tag}}}-safe."
            )

    # The state.

    def resume(self) -> None:
        """Begin from the last commit; entries read since then are read again."""
        # What was in memory goes before the state comes; until then nothing can be committed.
        self.stream = Stream.restore(self._fresh, clock=self.stream.clock)
        self.stream.on_side = self._set_aside
        self._fields = StateFields(REDIS)
        self._aside: list[bytes] = []
        self._next = None
        self._step = -1
        fields = self._state()
        self._is_ahead = False  # of what was committed: then the next step begins from that
        self._n_added = 0  # to the source, when it was read last
        self._step = int(fields.get("step", b"0"))
        self._staged = [name for name in fields if name.startswith(("released:", "aside:"))]
        for name in self._staged:
            del fields[name]  # as large as what waits, and never read
        if "head" in fields:
            notes = self._fields.load(fields, self.stream)
            self._last, self._n_read, self.n_lost = notes["last"], notes["n_read"], notes["n_lost"]
        else:
            self._last, self._n_read = self._where_to_begin()
        log.info("resumed", extra={"facts": {"last_id": self._last, "waiting": len(self.stream)}})

    def _state(self) -> dict[str, bytes]:
        """Return the fields of the state."""
        with redis_errors():
            found: Any = self.redis.hgetall(self.keys.state)
        return {name.decode(): content for name, content in found.items()}

    def _where_to_begin(self) -> tuple[str, int]:
        """Return after which entry a new stream begins, and how many were added up to there."""
        with redis_errors():
            groups: Any = self.redis.xinfo_groups(self.keys.source) if self.redis.exists(self.keys.source) else []
        ours = next((group for group in groups if _text(group["name"]) == self.settings.group), None)
        stands = _FIRST if ours is None else _text(ours["last-delivered-id"])
        if self._begin is None and stands != _FIRST:
            raise ParameterError(
                f"The group {self.settings.group!r} of {self.keys.source!r} has read up to {stands}, but Redis has no "
                f"state under {self.keys.state!r}: the tuples that waited are not known. Restore the state; or say "
                f"where to begin: --begin first takes all entries again, --begin group goes on after {stands}."
            )
        if self._begin is None:
            self._refuse_second_release([_text(group["name"]) for group in groups])
        last = {None: _FIRST, "first": _FIRST, "group": stands}.get(self._begin, self._begin or _FIRST)
        with redis_errors():
            about: Any = self.redis.xinfo_stream(self.keys.source) if self.redis.exists(self.keys.source) else {}
            if not about:
                return last, 0
            newest = _text(about["last-generated-id"])
            if as_pair(last) > as_pair(newest):
                raise ParameterError(
                    f"The worker was to begin after {last} (--begin), but the newest entry of {self.keys.source!r} is "
                    f"{newest}, and those that follow it would not be read. Use --begin {newest}."
                )
            n_after = about["length"] if last == _FIRST else self._n_after(last)
        return last, int(about["entries-added"]) - n_after

    def _n_after(self, since: str) -> int:
        """Count the entries after an id, some megabytes at a time."""
        n, count = 0, 16
        while page := self._page(since, count):
            n, since = n + len(page), _text(page[-1][0])
            size = sum(len(content) for _, fields in page for content in fields.values())
            count = min(10_000, max(1, STEP_BYTES * len(page) // max(1, size)))
        return n

    def _page(self, since: str, count: int) -> Any:
        return self.redis.xrange(self.keys.source, f"({since}", count=count)

    def _refuse_second_release(self, groups: list[str]) -> None:
        """Refuse to begin where the worker of another group has released the tuples of this source before."""
        for group in groups:
            state = RedisKeys.of(self.settings.model_copy(update={"group": group})).state
            with redis_errors():
                is_another = group != self.settings.group and self.redis.hexists(state, "head")
            if is_another:
                raise ParameterError(
                    f"A worker of the group {group!r} has released tuples of {self.keys.source!r} before, and another "
                    f"group would release them a second time; two releases of a tuple can be intersected. For new "
                    f"rules, end the stream with the old ones (shoal worker --finish), and go on in the same group. Or "
                    f"say where {self.settings.group!r} begins: --begin first takes all entries again, --begin ID "
                    "those after an id."
                )

    # A step.

    def step(self, wait: float = 1.0) -> int:
        """Process some entries, waiting up to this number of seconds for them, and commit; return their number."""
        if self._token is None and (holder := self.acquire()) is not None:
            raise FencedError(f"The worker {holder} has the lease.")
        if self._is_ahead:
            self.resume()
        taken = self._next or self._take(wait)
        self._next, self._is_ahead = None, True
        released = self._push(taken) if taken.ids else None
        if not released:
            released = self.stream.rows_due()
        if taken.ids or released or self._aside:
            self._commit(taken, released)
        self._is_ahead = False
        if len(taken.lines) > STEP_BYTES // 2:
            pa.default_memory_pool().release_unused()  # else Arrow keeps several times what large entries take
        return len(taken.ids)

    def _take(self, wait: float) -> Taken:
        taken = self._ask([])
        if taken.ids or wait <= 0:
            return taken
        wait = self.stream.rules.patience(wait)
        with redis_errors():
            found = self.redis.xread({self.keys.source: self._last}, count=1, block=max(1, int(1000 * wait)))
        return self._ask([]) if found else NOTHING

    def _ask(self, committed: list[Any]) -> Taken:
        """Run the script of a step; count entries that are gone; return those that are there."""
        where = [self.settings.group, self._last, self._n_read, self.settings.batch, STEP_BYTES, LONGEST]
        lengths = [self.settings.target_length or "", self.settings.side_length or ""]
        trim = after(self._last) if self.settings.trim_source and self._last != _FIRST else ""
        found = self._run("STEP", *where, *lengths, trim, *committed)
        added, length, first, newest, at_end, ids, lines = found
        taken = Taken(ids.split(b"\n"), lines) if ids else NOTHING
        source = StreamCounts(added, length, as_pair(first.decode()), as_pair(newest.decode()), bool(at_end))
        if source.is_other(as_pair(self._last), self._n_read, len(taken.ids)) and not self._go_on_in(source):
            return NOTHING
        self._lose(source.n_gone(as_pair(self._last), self._n_read, len(taken.ids)))
        self._n_added = source.n_added
        self.lag = max(0, source.n_added - self._n_read)
        return taken

    def _run(self, script: str, *rest: Any) -> Any:
        """Run a script as the holder of the lease."""
        assert self._token is not None
        who: list[Any] = [self.name, self._milliseconds, self._token, self._step]
        with redis_errors():
            return self._scripts[script](self.keys, [*who, *rest])

    def _go_on_in(self, source: StreamCounts) -> bool:
        """Go on in a source that was deleted and filled again; return whether at the entries that were just read."""
        if source.is_after(as_pair(self._last)):
            log.warning("source-replaced", extra={"facts": {"source": self.keys.source}})
            self._lose(self._n_added - self._n_read)
            self._n_read = 0
            return True
        if self._begin is None:
            here = min(self._last, "-".join(map(str, source.newest)), key=as_pair)
            raise ParameterError(
                f"The source {self.keys.source!r} was deleted and filled again, or restored from a copy: entries up "
                f"to {self._last}, where the worker is, may not have been read. None was used. Say where to go on: "
                f"--begin first takes all entries of the source (if some were released before, they are released "
                f"again), --begin {here} those after {here}."
            )
        self._last, self._n_read = self._where_to_begin()
        self._begin = None
        return False

    def _lose(self, n_entries: int) -> None:
        """Count entries that were removed before they were read."""
        if n_entries > 0:
            self.n_lost += n_entries
            self._n_read += n_entries
            facts = {"source": self.keys.source, "entries": n_entries, "after_id": self._last}
            log.error("entries-lost", extra={"facts": facts})

    def _push(self, taken: Taken) -> pa.RecordBatch | None:
        """Return the tuples released after these entries."""
        read = self._reader.read(taken.lines + b"\n", True, 0)
        read = read._replace(bad=[_named(bad) for bad in read.bad])
        if read.bad and self.stream.rules.on_error == "fail":
            first = min(read.bad)
            raise self._refusal(taken.ids[first.number - 1], first.reason)
        self.stream.count_side([str(bad.reason) for bad in read.bad])
        for bad in read.bad:
            self._aside.append(b"%s %s %s\n" % (bad.reason.encode(), taken.ids[bad.number - 1], bad.content))
        return self._push_tuples(read, taken.ids) if read.rows.num_rows else None

    def _push_tuples(self, read: Read, ids: list[bytes]) -> pa.RecordBatch:
        if len(read.numbers) < len(ids):
            ids = [ids[number - 1] for number in read.numbers]
        try:
            return self.stream.push_rows(read.rows.append_column(ID, as_binary(ids)), self.stream.clock())
        except TupleError as error:
            raise self._refusal(ids[error.row], f"column {error.column!r}, {error.reason}") from None

    def _refusal(self, number: bytes, reason: str) -> InputError:
        return InputError(
            f"Entry {number.decode()} of {self.keys.source} cannot be used: {reason}. Nothing of its batch was "
            "committed. Remove it (XDEL), or let such entries go to the side output (--on-error side)."
        )

    def _lines(self, released: pa.RecordBatch | None) -> Iterator[bytes]:
        """Yield tuples as lines, in pieces: the text of all would take as much memory again."""
        if released is None:
            return
        if self._writer is None:
            self._writer = Writer(LineForm.NDJSON, released.schema.names)
        n_rows = max(1, released.num_rows // (1 + released.nbytes // STEP_BYTES))
        for begin in range(0, released.num_rows, n_rows):
            yield from _pieces(self._writer.write(released.slice(begin, n_rows)))

    def _set_aside(self, table: pa.Table, reasons: list[str]) -> None:
        names = [name for name in table.column_names if name != ID]
        lines = Writer(LineForm.NDJSON, names).write(one_batch(table.select(names))).split(b"\n")
        ids = table.column(ID).to_pylist()
        self._aside += [b"%s %s %s\n" % (r.encode(), i, s) for r, i, s in zip(reasons, ids, lines, strict=False)]

    def _commit(self, taken: Taken, released: pa.RecordBatch | None, is_end: bool = False) -> None:
        """Commit released tuples, side output and changed state, all or nothing; return the next entries."""
        before = self._last, self._n_read
        if taken.ids:
            self._last, self._n_read = taken.ids[-1].decode(), self._n_read + len(taken.ids)
        notes = {"last": self._last, "n_read": self._n_read, "n_lost": self.n_lost}
        if is_end:
            changed, gone = self._fields.end(Stream.restore(self._fresh), notes)
        else:
            changed, gone = self._fields.changes(self.stream, notes)
        fields = [part for pair in changed.items() for part in pair]
        aside = b"".join(self._aside) if self.settings.side is not None else b""
        try:
            n_released, last_released = self._stage("released", self._lines(released))
            n_aside, last_aside = self._stage("aside", _pieces(aside))
            written = [n_released, n_aside, last_released, last_aside, len(fields), *fields]
            following = self._ask([*written, *gone, *self._staged])
        except BaseException:
            self._last, self._n_read = before
            raise
        self._step += 1
        self._aside, self._staged = [], []
        self._next = following if following.ids else None

    def _stage(self, name: str, pieces: Iterable[bytes]) -> tuple[int, bytes]:
        """Bring all pieces of some lines but the last to Redis, beside the state; return their number, and the last.

        A commit then takes less time, and shorter arguments, than Redis allows, however much is released at once.
        """
        last, n = b"", 0
        for piece in pieces:
            if last:
                n += 1
                self._run("STAGE", f"{name}:{n}", last)
                self._staged.append(f"{name}:{n}")
            last = piece
        return n, last

    # The loop.

    def finish(self) -> None:
        """End the stream: release everything, and keep only the position, where the next stream begins."""
        released = self.stream.flush_rows() if len(self.stream) else None
        self._commit(NOTHING, released, is_end=True)
        self.release()

    def stop(self) -> None:
        """Make `run` end after the current step."""
        self._stopping = True

    def run(self, wait: float = 1.0, until_empty: bool = False, finish: bool = False) -> None:
        """Work until stopped, or until nothing is left; temporary failures are waited out.

        With `finish` nothing more is read: what waits is released, and the next worker begins there, with any rules.

        Raises
        ------
        OutageError
            If Redis does not answer, or does not accept writes, for longer than ``settings.patience`` seconds.
        """
        since: float | None = None
        while not self._stopping:
            try:
                is_at_work = self._token is not None or self._stand_by()
                if is_at_work and finish and not self._step:
                    raise ParameterError(
                        f"There is nothing to finish: Redis has no stream under {self.keys.state!r}. Name the source "
                        "and the group that the worker had."
                    )
                if is_at_work and (finish or (not self._turn(0.2 if until_empty else wait) and until_empty)):
                    self.finish()
                    break
                if since is not None:
                    log.info("outage-over", extra={"facts": {"seconds": round(time.monotonic() - since, 1)}})
                since = None
            except FencedError:
                log.warning("lease-lost", extra={"facts": {"worker": self.name}})
                self._token = None
            except ChangedError:
                self._token = None
            except OutageError as error:
                since = self._wait_out(error, since)
            except ShoalError:
                with suppress(ShoalError):  # the next worker need not wait for the lease to end
                    self.release()
                raise
        has_stood_by = self._monitor.figures.status in (Status.STANDING_BY, Status.OUTAGE)
        self._monitor.turn(Status.STOPPING, None if has_stood_by else self.stream, **self._gauges())
        if since is None:
            self.release()
        log.info("stopped", extra={"facts": self._monitor.figures.to_dict()})

    def _turn(self, wait: float) -> int:
        """Do a step, and report it."""
        begin = time.monotonic()
        n = self.step(wait)
        self._monitor.turn(Status.WORKING, self.stream, time.monotonic() - begin if n else None, **self._gauges())
        return n

    def _gauges(self) -> dict[str, int]:
        pending = 0 if self._next is None else len(self._next.ids)
        return {"lag_entries": self.lag, "pending_entries": pending, "lost_entries_total": self.n_lost}

    def _stand_by(self) -> bool:
        """Try to get the lease; wait a moment if another worker has it."""
        holder = self.acquire()
        if holder is None:
            return True
        if self._monitor.figures.status is not Status.STANDING_BY:
            log.info("standing-by", extra={"facts": {"holder": holder}})
        self._monitor.turn(Status.STANDING_BY, None)
        self._sleep(min(self.settings.lease / 4, 1.0))
        return False

    def _wait_out(self, error: OutageError, since: float | None) -> float:
        """Wait, longer each time; give up after `patience`. Whether a commit went through is found out afterwards."""
        now = time.monotonic()
        self._monitor.turn(Status.OUTAGE, None)
        if since is None:
            log.warning("outage", extra={"facts": {"reason": str(error)}})
            self._pause = 0.05
            since = now
        if now - since >= self.settings.patience:
            raise OutageError(
                f"{error} This has lasted for {now - since:,.0f} seconds (--patience). Nothing is lost: started again, "
                "the worker goes on from what was committed."
            )
        self._token = None
        # The address may lead to another master by now.
        self.redis.connection_pool.disconnect()
        self._sleep(self._pause * (0.5 + random.random()))
        self._pause = min(2 * self._pause, 5.0)
        return since

    def _sleep(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not self._stopping and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, 0.1))


def _text(found: Any) -> str:
    return found.decode() if isinstance(found, bytes) else str(found)


def _named(bad: Bad) -> Bad:
    """Return a line that is no tuple with its reason, if that is the script's."""
    return bad._replace(reason=LineReason.TOO_LONG) if bad.content == _TOO_LONG else bad


def _pieces(lines: bytes) -> Iterator[bytes]:
    """Cut lines into pieces of about `STEP_BYTES`."""
    begin = 0
    while begin < len(lines):
        end = len(lines)
        if end - begin > STEP_BYTES:
            end = lines.rfind(b"\n", begin, begin + STEP_BYTES) + 1 or lines.index(b"\n", begin + STEP_BYTES) + 1
        yield lines[begin:end]
        begin = end
