"""Turn: what a shard does with a batch of tuples, or with a timer: state in, changes of the state and tuples out.

Everything that a turn depends on is in its arguments. So a task that is repeated, on any machine, publishes the same
bytes.
"""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from shoal.errors import ParameterError, SchemaError
from shoal.spelling import setting
from shoal.stream.batches import no_rows, one_batch, together
from shoal.stream.rules import Rules
from shoal.stream.spark_query.plan import Plan, in_published_order
from shoal.stream.state_fields import Fields, StateFields, Store
from shoal.stream.stream import Reason, Stream, TupleError
from shoal.stream.summary import Summary

STORE = Store(
    "the checkpoint of the query",
    "End that stream with that one (shoal.spark.finish), and begin a new checkpoint.",
    "Use the same. For new ones, let each shard end its old stream first, and go on in the same checkpoint: "
    f"{setting('new_rules', 'finish')}; or release what waits (shoal.spark.finish), and begin a new checkpoint.",
    "Restore the checkpoint from a copy; a new one would release tuples a second time that were released before.",
)
"""Where the state of a shard is."""

SMALLEST = "smallest_cell"
_COUNTS = ("n_in", "n_released", "n_side", "n_buffered", "n_cells")
_REASONS = {reason: f"n_{reason.replace('-', '_')}" for reason in map(str, Reason)}
FIGURES = (*_COUNTS, *_REASONS.values(), SMALLEST)
"""What a turn has changed: numbers of tuples and cells, and by reason those in the side output; the size of the
smallest cell that the shard has released so far."""

REASON = "reason"
"""The column of the side output that says why a tuple is there."""


class Now(NamedTuple):
    """The time of a batch, in milliseconds: Spark's clock when it began, and its watermark; -1 where there is none."""

    processing: int
    watermark: int


class Turn(NamedTuple):
    """What came of a turn."""

    changed: Fields
    gone: list[str]
    released: pa.RecordBatch
    side: pa.RecordBatch
    figures: dict[str, int | None]
    """By the names of `FIGURES`."""

    due: int | None
    """When the oldest tuple grows too old, in milliseconds of the clock that counts its age; None if none does."""


def take_turn(plan: Plan, fields: Fields, batches: list[pa.RecordBatch], now: Now) -> Turn:
    """Take in the tuples of a batch, or let the time go by if there are none."""
    return _Shard(plan, now).turn(fields, batches)


def last_turn(plan: Plan, fields: Fields) -> Turn:
    """End the stream of a shard: release everything that can be, by the rules with which it began."""
    return _Shard(plan, Now(-1, -1)).last_turn(fields)


class _Shard:
    """A shard in one turn."""

    def __init__(self, plan: Plan, now: Now) -> None:
        self._plan, self._now = plan, now
        self._keeper = StateFields(STORE)
        self._stream = self._new_stream(plan.rules)
        self._released = [no_rows(plan.layout.released)]
        self._aside = [no_rows(side_schema(plan))]
        self._figures: Counter[str] = Counter()

    def turn(self, fields: Fields, batches: list[pa.RecordBatch]) -> Turn:
        """Take in tuples, or let the time go by."""
        names, is_replaced = set(fields), self._is_to_be_replaced(fields)
        if "head" in fields:
            notes = self._finish(fields) if is_replaced else self._load(fields, self._stream)
            _check_shards(notes["shards"], self._n_shards)
        if is_replaced:
            self._keeper = StateFields(STORE)
        before = self._stream.summary()
        if batches:
            self._take_in(self._plan.in_order(together(batches)))
        elif (due := self._stream.rows_due()) is not None:
            self._released.append(due)
        self._count(before, self._stream.summary())
        changed, gone = self._keeper.changes(self._stream, {"shards": self._n_shards, "ahead": self._ahead})
        return self._done(changed, sorted(names - set(changed)) if is_replaced else gone)

    def last_turn(self, fields: Fields) -> Turn:
        """Release everything that can be, and keep no state."""
        names = sorted(fields)
        self._finish(fields)
        return self._done({}, names)

    def _done(self, changed: Fields, gone: list[str]) -> Turn:
        figures = {**{name: self._figures[name] for name in FIGURES}, SMALLEST: self._stream.summary().smallest_cell}
        released = in_published_order(together(self._released))
        return Turn(changed, gone, released, together(self._aside), figures, self._due())

    def _is_to_be_replaced(self, fields: Fields) -> bool:
        """Return whether a stream with other rules is to end first."""
        if self._plan.split.new_rules != "finish":
            return False
        return (self._keeper.rules_of(fields) or self._plan.rules) != self._plan.rules

    def _load(self, fields: Fields, stream: Stream) -> dict[str, Any]:
        notes = self._keeper.load(fields, stream)
        stream.clock.ahead = notes["ahead"]
        if stream.waiting is not None:
            self._check_columns(stream.waiting.schema)
        return notes

    def _finish(self, fields: Fields) -> dict[str, Any]:
        """End a stream, by the rules with which it began."""
        stream = self._new_stream(self._keeper.rules_of(fields) or self._plan.rules)
        notes = self._load(fields, stream)
        if stream.waiting is None:
            return notes
        before = stream.summary()
        released = stream.flush_rows()
        if released.schema != self._plan.layout.released:
            raise SchemaError(
                "The old rules publish other columns than the new ones. End the old stream (shoal.spark.finish), and "
                "begin a new checkpoint."
            )
        self._released.append(released)
        self._count(before, stream.summary())
        return notes

    def _new_stream(self, rules: Rules) -> Stream:
        return Stream(**rules.plain(), on_side=self._set_aside, clock=self._read)

    def _read(self) -> float:
        """Read the clock: that of Spark or, in event time, the watermark."""
        return (self._now.watermark if self._plan.in_event_time else self._now.processing) / 1000

    @property
    def _n_shards(self) -> int | None:
        split = self._plan.split
        return split.shards if split.shard is None else None

    def _check_columns(self, schema: pa.Schema) -> None:
        """Refuse other columns than those of the tuples that wait."""
        if schema == self._plan.columns:
            return
        was, is_now = ({field.name: field.type for field in each} for each in (schema, self._plan.columns))
        names = sorted(name for name in {*was, *is_now} if was.get(name) != is_now.get(name)) or ["their order"]
        raise SchemaError(
            f"The columns are not those of the tuples that wait in the checkpoint: {', '.join(names)}. Give the query "
            "the columns that it had; for others, end the stream (shoal.spark.finish), and begin a new checkpoint."
        )

    def _take_in(self, rows: pa.RecordBatch) -> None:
        if not self._plan.in_event_time:
            self._released.append(self._stream.push_rows(rows))
            return
        times = self._event_times(rows)
        watermark = self._read() if self._now.watermark > 0 else -np.inf  # there is none before the second batch
        missing, late = np.isnan(times), times < watermark
        if missing.any() and self._plan.rules.on_error == "fail":
            raise TupleError(
                f"Column {self._plan.split.event_time!r} gives the times of tuples, and is missing in "
                f"{int(missing.sum())} of them. Fill it, or let such tuples go to the side output "
                f"({setting('on_error', 'side')}).",
                int(np.argmax(missing)),
                str(self._plan.split.event_time),
                Reason.MISSING,
            )
        for unfit, reason in ((missing, Reason.MISSING), (late, Reason.LATE)):
            if unfit.any():
                reasons = [str(reason)] * int(unfit.sum())
                self._stream.count_side(reasons)
                self._set_aside(pa.Table.from_batches([rows.filter(pa.array(unfit))]), reasons)
        fit = ~(missing | late)
        if fit.any():
            # The earliest event, and not the watermark: after a pause, that is as old as the last event before it.
            now = max(float(times[fit].min()), watermark)
            self._released.append(self._stream.push_rows(rows.filter(pa.array(fit)), now))

    def _event_times(self, rows: pa.RecordBatch) -> Any:
        column = rows.column(self._plan.split.event_time)
        micros = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
        return np.asarray(micros.cast(pa.float64())) / 1e6

    def _due(self) -> int | None:
        """Return the first millisecond at which the oldest tuple is certainly too old."""
        max_age, oldest = self._plan.rules.max_age, self._stream.oldest
        if max_age is None or oldest is None:
            return None
        return int((oldest + max_age - self._ahead) * 1000) + 1

    @property
    def _ahead(self) -> float:
        """By how much the clock of the stream is ahead of Spark's, which was set back; a watermark never is."""
        return 0.0 if self._plan.in_event_time else self._stream.clock.ahead

    def _set_aside(self, tuples: pa.Table, reasons: list[str]) -> None:
        rows = one_batch(tuples)
        arrays = [pa.array(reasons, pa.string()), *rows.columns]
        self._aside.append(pa.RecordBatch.from_arrays(arrays, schema=side_schema(self._plan)))

    def _count(self, before: Summary, after: Summary) -> None:
        self._figures.update({name: getattr(after, name) - getattr(before, name) for name in _COUNTS})
        for reason, n in after.reasons.items():
            self._figures[_REASONS[reason]] += n - before.reasons.get(reason, 0)


def side_schema(plan: Plan) -> pa.Schema:
    """Return the columns of the side output: the reason, and those of the tuples."""
    return pa.schema([pa.field(REASON, pa.string()), *plan.columns])


def _check_shards(was: int | None, is_now: int | None) -> None:
    """Refuse another number of shards, and shards that are named in another way."""
    if was != is_now:
        had, asked = ("shards named by a column" if n is None else f"{n} shards" for n in (was, is_now))
        raise ParameterError(
            f"The checkpoint of the query has {had}, and {asked} are asked for. Tuples that wait would be in shards "
            "that get no others, and those of one person in two shards. Use the number that it had; for another one, "
            "end the stream (shoal.spark.finish), and begin a new checkpoint."
        )
