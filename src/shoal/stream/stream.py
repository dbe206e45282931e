"""Stream: push batches in, get k-anonymous ones back.

The window (`shoal.kernels.Window`) decides which tuples form a cell; this file holds the rows that wait, publishes one
value per cell and column, and recounts every guarantee on the tuples to be released.
"""

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import wraps
from itertools import pairwise
from numbers import Real
from pathlib import Path
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from shoal import kernels
from shoal.arrays import check_seed
from shoal.columns.schema import Kind
from shoal.errors import InputError, ParameterError, RecountError
from shoal.kernels import Departures, Window
from shoal.spelling import setting
from shoal.stream import state
from shoal.stream.batches import Back, as_arrow, floats_of, is_plain, no_rows, one_batch, together
from shoal.stream.cell_values import Encoded, publish
from shoal.stream.clock import Clock
from shoal.stream.keys import MISSING, Keys, keys_of, tags_of
from shoal.stream.rules import Rules, as_rules
from shoal.stream.stream_columns import Layout
from shoal.stream.summary import Summary
from shoal.stream.unit_ranges import EPOCH
from shoal.stream.waiting import Waiting
from shoal.typing import Labels, Seed, Vector

OnSide = Callable[[Any, list[str]], None]


class Reason(StrEnum):
    """Why a tuple went to the side output."""

    TOO_FEW_TUPLES = "too-few-tuples"
    TOO_FEW_SUBJECTS = "too-few-subjects"
    TOO_FEW_VALUES = "too-few-values"
    MISSING = "missing-value"
    INFINITE = "infinite-value"
    UNKNOWN_LEVEL = "unknown-level"
    LATE = "late"


class TupleError(InputError):
    """A tuple that cannot be used: its row in the batch, the column, and why."""

    def __init__(self, message: str, row: int, column: str, reason: Reason) -> None:
        super().__init__(message)
        self.row, self.column, self.reason = row, column, reason


class _Batch(NamedTuple):
    """Tuples that may enter the window."""

    rows: pa.RecordBatch
    times: Vector
    read: dict[str, Encoded] | None = None
    """The quasi-identifiers, if they have been read."""

    def cut(self, begin: int, end: int) -> "_Batch":
        return _Batch(self.rows.slice(begin, end - begin), self.times[begin:end])


P = ParamSpec("P")
T = TypeVar("T")


def _one_at_a_time(method: Callable[Concatenate["Stream", P], T]) -> Callable[Concatenate["Stream", P], T]:
    """Serialize calls of threads that share a stream, since rows and window have to change together."""

    @wraps(method)
    def alone(stream: "Stream", /, *args: P.args, **options: P.kwargs) -> T:
        with stream._lock:
            return method(stream, *args, **options)

    return alone


class Stream:
    """A k-anonymous stream: each tuple leaves within the delay, in a cell of at least k that look the same.

    Parameters
    ----------
    k : int
        Smallest cell, at least 2: k tuples, and of k different subjects where `subject` is given.
    quasi_identifiers : sequence of str, optional
        Columns that are replaced by one value per cell. By default all that have no other role.
    delay : int, optional
        A tuple is released before more than this number of others have arrived after it; at least ``k - 1``.
    max_age : float, optional
        Maximum age of a tuple in seconds. Time advances with `push` and `advance` only.
    order_weight : float
        Weight of one position in the stream, in distances where every column has range 1. With 0 tuples change places
        freely within the delay; from ``sqrt(m / (2 * k - 1))`` on, with m columns, the order is kept.
    subject : str, optional
        The column that identifies the person a tuple is about. It is not released unless it has another role too.
    max_cell : int, optional
        Maximum size to which a cell may grow by adding tuples that are close to it. By default cells have k tuples, and
        more only where a tuple could not be released otherwise.
    ranges : mapping of str to pair, optional
        Declared lowest and highest values; one unit of distance is a range. Columns that are not named learn theirs
        from the tuples that wait when the first one is due.
    adapt : float
        Share by which learned ranges move, every 10,000 tuples, towards the range of those. 0 freezes them.
    columns : mapping of str to mapping, optional
        Settings of single columns, as in `shoal.anonymize`: ``kind``, ``order`` (levels, lowest first) and ``weight``.
    confidential, other, identifiers : sequence of str
        Columns published unchanged (confidential and other), and columns that are dropped.
    models : LDiversity or sequence of such, optional
        Minimum number of different values of a confidential column in each cell (distinct l-diversity).
    missing : {"error", "own-value"}
        How missing quasi-identifiers are treated.
    on_error : {"fail", "side"}
        Whether a tuple that cannot be used makes the push fail as a whole, or goes to the side output.
    tracked : sequence of str
        Columns that give the origin of a tuple, such as its line number; they appear in the side output only.
    on_side : callable, optional
        Called with tuples that could not be released, in the kind of frame that was pushed, and their reasons. They
        are unprotected. Without it they are counted only.
    clock : callable
        The source of the time where `push` is called without `now`. Where it is set back, time goes on from the latest
        reading.
    seed : int, optional
        Accepted as everywhere in shoal; nothing here is random.

    Attributes
    ----------
    notes : dict
        Data of the caller, in plain values, which `save` and `load` keep.

    Examples
    --------
    >>> import numpy as np
    >>> stream = Stream(2, delay=3, ranges=[(0, 10)])
    >>> stream.push(np.array([[1.0], [9.0], [2.0], [8.0]])).tolist()
    [[1.5], [1.5]]
    >>> stream.flush().tolist()
    [[8.5], [8.5]]
    >>> summary = stream.summary()
    >>> summary.n_in, summary.n_released, summary.n_side, summary.n_buffered
    (4, 4, 0, 0)
    """

    def __init__(
        self,
        k: int,
        *,
        quasi_identifiers: Sequence[str] | None = None,
        delay: int | None = None,
        max_age: float | None = None,
        order_weight: float = 0.0,
        subject: str | int | None = None,
        max_cell: int | None = None,
        ranges: Mapping[str, Sequence[Any]] | Sequence[Sequence[Any]] | None = None,
        adapt: float = 0.0,
        columns: Mapping[str, Any] | None = None,
        confidential: Sequence[str] = (),
        other: Sequence[str] = (),
        identifiers: Sequence[str] = (),
        models: Any = (),
        missing: str = "error",
        on_error: str = "fail",
        tracked: Sequence[str] = (),
        on_side: OnSide | None = None,
        clock: Callable[[], float] = time.time,
        seed: Seed = None,
        **unknown: Any,
    ) -> None:
        check_seed(seed)
        given = {name: value for name, value in locals().items() if name in Rules.model_fields and name != "k"}
        self._begin(as_rules(k, **given, **unknown), on_side, clock)

    def _begin(self, rules: Rules, on_side: OnSide | None, clock: Callable[[], float]) -> None:
        self._lock = threading.RLock()
        self.rules = rules
        self.on_side = on_side
        self.clock = clock if isinstance(clock, Clock) else Clock(clock)
        self.notes: dict[str, Any] = {}
        self._back: Back = lambda table: table
        self._n_in = 0
        self._reasons: Counter[str] = Counter()
        self._smallest: int | None = None
        self._early = np.empty(0)
        self._layout: Layout | None = None

    def _settle(self, layout: Layout) -> None:
        """Set up what depends on the columns, once they are known."""
        self._layout = layout
        self._ranges = layout.ranges()
        self._window = Window(
            len(layout.placed),
            self.rules.k,
            delay=self.rules.delay,
            max_age=self.rules.max_age,
            order_weight=self.rules.order_weight,
            max_cell=self.rules.max_cell or 0,
            code_weights=layout.code_weights,
            least=tuple(layout.tags.values()),
        )
        self._outside = np.zeros(len(layout.placed), dtype=np.int64)
        self._n_entered = 0
        # The rows that wait: in the window or, until the ranges are known, to enter it.
        self._waiting = Waiting(no_rows(layout.schema))
        self._early = np.empty(0)

    @_one_at_a_time
    def push(self, batch: Any, now: ArrayLike | None = None) -> Any:
        """Take in tuples and return those that are released.

        Parameters
        ----------
        batch : matrix, Arrow table or batch, pandas or polars frame
            Tuples in order of arrival, with the columns of the first batch.
        now : float or array_like of shape (n_tuples,), optional
            Time of arrival, in seconds. By default the clock is read, where `max_age` needs it.

        Returns
        -------
        released : same kind as `batch`
            Cell after cell, in order of arrival within each.

        Raises
        ------
        SchemaError
            If a column is missing, new, of another type, or holds an unusable value. The batch is not taken in.
        """
        table, self._back = as_arrow(batch)
        return self._back(_as_table(self.push_rows(one_batch(table), now)))

    @_one_at_a_time
    def push_rows(self, rows: pa.RecordBatch, now: ArrayLike | None = None) -> pa.RecordBatch:
        """Take in the tuples of an Arrow batch and return those that are released, without conversion of frames."""
        layout = self._layout or Layout.of(rows.schema, self.rules)
        rows = layout.conform(rows)
        if self._layout is not None:
            layout.refuse_other_orders(rows, self._waiting.newest)
        times = self._times(now, rows.num_rows)
        read = layout.read(rows)
        faults = _faults(layout, read, self.rules)
        self._refuse(faults)
        if self._layout is None:
            self._settle(layout)
        self._n_in += rows.num_rows
        if faults:
            return self._take_in_the_usable(rows, times, faults)
        return self._take_in(_Batch(rows, times, read))

    @_one_at_a_time
    def advance(self, now: float) -> Any:
        """Advance the time and return the tuples due by then, in the kind of frame that was pushed last."""
        if self._layout is None:
            raise ParameterError("Nothing has been pushed yet, so nothing can be due.")
        if not isinstance(now, Real) or not math.isfinite(now):
            raise ParameterError("now is a finite number of seconds.")
        return self._back(_as_table(self._let_time_go_by(float(now))))

    @_one_at_a_time
    def rows_due(self) -> pa.RecordBatch | None:
        """Advance the time to that of the clock and return the tuples due by then; None where none grows old."""
        if self.rules.max_age is None or not len(self):
            return None
        return self._let_time_go_by(self.clock())

    @_one_at_a_time
    def flush(self) -> Any:
        """End the stream: release everything that can be, and return it."""
        return self._back(_as_table(self.flush_rows()))

    @_one_at_a_time
    def flush_rows(self) -> pa.RecordBatch:
        """End the stream and return what can be released, without conversion of frames."""
        if self._layout is None:
            raise ParameterError("Nothing has been pushed yet, so there is nothing to flush.")
        released = [self._learn(len(self))] if self._learning else []
        return together([*released, self._leave(self._window.flush())])

    @_one_at_a_time
    def count_side(self, reasons: Sequence[str]) -> None:
        """Count input that could not be parsed as tuples and that the caller has sent to the side output."""
        self._n_in += len(reasons)
        self._reasons.update(reasons)

    @property
    def n_in(self) -> int:
        """Number of tuples received."""
        return self._n_in

    @property
    @_one_at_a_time
    def oldest(self) -> float | None:
        """Arrival time of the tuple that has waited longest; None if none waits."""
        times = self.positions()[1]
        return float(times[0]) if len(times) else None

    def __len__(self) -> int:
        """Return the number of tuples that wait."""
        return 0 if self._layout is None else len(self._waiting)

    @_one_at_a_time
    def summary(self) -> Summary:
        """Return what the stream has done so far."""
        if self._layout is None:
            return Summary.of(Window(0, self.rules.k).tally(), self._n_in, 0, dict(self._reasons), {}, None)
        names = [column.name for column in self._layout.placed]
        outside = {name: int(n) for name, n in zip(names, self._outside, strict=True) if n}
        return Summary.of(self._window.tally(), self._n_in, len(self), dict(self._reasons), outside, self._smallest)

    @_one_at_a_time
    def dump(self) -> bytes:
        """Return everything needed to resume, as bytes, `notes` included; see `save`."""
        positions, times = self.positions()
        kept = {"rules": self.rules.plain(), "notes": self.notes, **self.progress()}
        kept |= {"positions": positions.tolist(), "times": times.tolist()}
        return state.pack(kept, pa.table({}) if self._layout is None else _as_table(self._waiting.all()))

    def progress(self) -> dict[str, Any]:
        """Return counts, measures and learned ranges in plain values: the whole state but the rows that wait."""
        kept: dict[str, Any] = {"n_in": self._n_in, "reasons": dict(self._reasons), "smallest": self._smallest}
        if self._layout is not None:
            kept |= {
                "n_entered": self._n_entered,
                "outside": self._outside.tolist(),
                "ranges": self._ranges.as_lists(),
                "tally": self._window.tally(),
            }
        return kept

    def positions(self) -> tuple[Labels, Vector]:
        """Return the numbers of the tuples that wait, counted among usable tuples, and their arrival times."""
        if self._layout is None or self._learning:
            # As long as the ranges are unknown no tuple is released.
            return np.arange(len(self)), self._early
        return self._window.waiting()

    @property
    def waiting(self) -> Waiting | None:
        """The rows that wait, in order of arrival; None before the first batch."""
        return None if self._layout is None else self._waiting

    @classmethod
    def restore(
        cls, content: bytes, *, on_side: OnSide | None = None, clock: Callable[[], float] = time.time
    ) -> "Stream":
        """Resume from the bytes that `dump` returned."""
        kept, waiting = state.unpack(content)
        stream = cls.__new__(cls)
        stream._begin(as_rules(**kept["rules"]), on_side, clock)
        stream.notes = kept["notes"]
        stream.resume(kept, waiting, np.array(kept["positions"], dtype=np.int64), np.array(kept["times"], dtype=float))
        return stream

    def resume(self, progress: dict[str, Any], waiting: pa.Table, positions: Labels, times: Vector) -> None:
        """Take over the state of another stream with the same rules: its `progress`, `waiting` and `positions`."""
        self._n_in = progress["n_in"]
        self._reasons.update(progress["reasons"])
        self._smallest = progress["smallest"]
        if "tally" not in progress:
            return
        self._settle(Layout(self.rules, waiting.schema))
        assert self._layout is not None
        self._n_entered = progress["n_entered"]
        self._outside[:] = progress["outside"]
        self._ranges.take_lists(progress["ranges"])
        self.clock.resume(max([progress["tally"]["clock"], *times]))
        rows = one_batch(waiting)
        self._waiting = Waiting(rows)
        if self._learning:
            self._early, rows, positions, times = times, rows.slice(0, 0), positions[:0], times[:0]
        tuples = self._layout.tuples(rows, self._ranges, times)
        self._window.restore(tuples, positions, progress["tally"])

    def save(self, path: str | Path) -> None:
        """Write everything needed to resume into a file, atomically."""
        state.write(Path(path), self.dump())

    @classmethod
    def load(
        cls, path: str | Path, *, on_side: OnSide | None = None, clock: Callable[[], float] = time.time
    ) -> "Stream":
        """Resume a saved stream where it stopped."""
        return cls.restore(state.read(Path(path)), on_side=on_side, clock=clock)

    def _times(self, now: ArrayLike | None, n_tuples: int) -> Vector:
        """Return the arrival time of each tuple; the clock is read only if `max_age` is set."""
        if now is None:
            now = self.clock() if self.rules.max_age is not None else 0.0
        if isinstance(now, float) and math.isfinite(now):
            return np.full(n_tuples, now)
        try:
            times = np.asarray(now, dtype=np.float64)
        except (TypeError, ValueError):
            times = np.empty((0, 0))
        if times.shape not in ((), (n_tuples,)) or not np.isfinite(times).all():
            raise ParameterError(f"now is a finite number of seconds, or one for each of the {n_tuples} tuples.")
        return np.ascontiguousarray(np.broadcast_to(times, (n_tuples,)))

    def _refuse(self, faults: "list[_Fault]") -> None:
        """Raise if there are tuples that cannot be used and `on_error` is "fail"."""
        if faults and self.rules.on_error == "fail":
            said = "; ".join(str(fault) for fault in faults)
            first = min(faults, key=lambda fault: fault.first)
            raise TupleError(
                f"Tuples that cannot be used: {said}. Nothing of this batch was taken in. Correct them, or let such "
                f"tuples go to the side output ({setting('on_error', 'side')}).",
                first.first,
                first.name,
                first.reason,
            )

    def _take_in_the_usable(self, rows: pa.RecordBatch, times: Vector, faults: "list[_Fault]") -> pa.RecordBatch:
        """Send tuples that cannot be used to the side output, and take in the others; time goes by with all of them."""
        reasons = np.full(rows.num_rows, "", dtype=object)
        for fault in reversed(faults):
            reasons[fault.where] = str(fault.reason)
        unfit = reasons != ""
        self._to_side(rows.filter(pa.array(unfit)), list(reasons[unfit]))
        if self.rules.max_age is None:
            return self._take_in(_Batch(rows.filter(pa.array(~unfit)), times[~unfit]))
        whole, released = _Batch(rows, times), []
        for begin, end in pairwise([0, *(np.flatnonzero(np.diff(unfit)) + 1), len(times)]):
            part = whole.cut(begin, end)
            released.append(self._let_time_go_by(float(part.times.max())) if unfit[begin] else self._take_in(part))
        return together(released)

    def _let_time_go_by(self, now: float) -> pa.RecordBatch:
        """Advance the time and return the tuples due by then."""
        assert self._layout is not None
        released = [self._layout.nothing]
        if self._learning and len(self) and _is_old(self._early[0], self.rules.max_age, now):
            released.append(self._learn(len(self)))
        if not self._learning:
            released.append(self._leave(self._window.advance(now)))
        return together(released)

    def _to_side(self, rows: pa.RecordBatch, reasons: list[str]) -> None:
        if reasons:
            self._reasons.update(reasons)
            if self.on_side is not None:
                self.on_side(self._back(_as_table(rows)), reasons)

    @property
    def _learning(self) -> bool:
        return not self._ranges.known

    def _take_in(self, batch: _Batch) -> pa.RecordBatch:
        """Add tuples to the window; as long as the ranges are unknown, they wait outside."""
        assert self._layout is not None
        if not self._learning:
            return self._enter(batch)
        self._waiting.add(batch.rows)
        self._early = np.maximum.accumulate(np.concatenate([self._early, batch.times]))
        first = self._first_due()
        return self._layout.nothing if first is None else self._learn(first + 1)

    def _first_due(self) -> int | None:
        """Return the number of the tuple whose arrival makes the first one due, if it has arrived."""
        due = []
        if self.rules.delay is not None and len(self) > self.rules.delay:
            due.append(self.rules.delay)
        if (
            self.rules.max_age is not None
            and len(self)
            and _is_old(self._early[0], self.rules.max_age, self._early[-1])
        ):
            due.append(int(np.searchsorted(self._early, self._early[0] + self.rules.max_age)))
        return min(due, default=None)

    def _learn(self, n_tuples: int) -> pa.RecordBatch:
        """Learn the ranges from the first `n_tuples` tuples, and add all waiting tuples to the window."""
        assert self._layout is not None
        rows = self._waiting.all()
        self._ranges.learn(self._layout.values(self._layout.read(rows.slice(0, n_tuples))))
        batch = _Batch(rows, self._early)
        self._waiting, self._early = Waiting(no_rows(self._layout.schema)), np.empty(0)
        return self._enter(batch)

    def _enter(self, batch: _Batch) -> pa.RecordBatch:
        """Add tuples to the window; ranges that adapt are updated between epochs."""
        assert self._layout is not None
        if not self.rules.adapt:
            return self._enter_together(batch)
        epoch = max(EPOCH, (self.rules.delay or 0) + 1)
        released, begin = [self._layout.nothing], 0
        while begin < len(batch.times):
            end = min(len(batch.times), begin + epoch - self._n_entered % epoch)
            released.append(self._enter_together(batch.cut(begin, end)))
            if self._n_entered % epoch == 0:
                self._ranges.move()
                values = self._layout.values(self._layout.read(self._waiting.all()))
                self._window.recode(self._layout.coordinates(values, len(self), self._ranges)[0])
            begin = end
        return together(released)

    def _enter_together(self, batch: _Batch) -> pa.RecordBatch:
        layout = self._layout
        assert layout is not None
        read, n = batch.read or layout.read(batch.rows), batch.rows.num_rows
        values = layout.values(read)
        X, outside = layout.coordinates(values, n, self._ranges)
        self._outside += outside
        self._ranges.note(values)
        self._n_entered += n
        tuples = kernels.Tuples(X, layout.codes(read, n), layout.keys(batch.rows), batch.times)
        self._waiting.add(batch.rows)
        return self._leave(self._window.push(tuples))

    def _leave(self, gone: Departures) -> pa.RecordBatch:
        """Keep the rows that wait, send some to the side output, and return the cells, aggregated and recounted."""
        assert self._layout is not None
        if len(gone.side):
            reasons = [Reason.TOO_FEW_TUPLES, *(self._reason(name) for name in self._layout.tags)]
            self._to_side(self._waiting.take(gone.side), [str(reasons[reason]) for reason in gone.reasons])
        released = self._layout.nothing
        if len(gone.sizes):
            released = _publish(self._layout, self._waiting.take(gone.rows), gone.sizes)
            self._smallest = min(int(gone.sizes.min()), self._smallest or int(gone.sizes.min()))
        self._waiting.keep(gone.kept)
        return released

    def _reason(self, name: str) -> Reason:
        return Reason.TOO_FEW_SUBJECTS if name == self.rules.subject else Reason.TOO_FEW_VALUES


def _publish(layout: Layout, members: pa.RecordBatch, sizes: Labels) -> pa.RecordBatch:
    """Return the tuples of some cells with one value per cell and quasi-identifier."""
    read = layout.read(members)
    columns = {name: members.column(name) for name in layout.released.names}
    for column in layout.quasi:
        columns[column.name] = publish(column, columns[column.name], read[column.name], sizes)
    released = pa.RecordBatch.from_arrays(list(columns.values()), schema=layout.released)
    _recount(layout, members, released, sizes)
    return released


def _recount(layout: Layout, members: pa.RecordBatch, released: pa.RecordBatch, sizes: Labels) -> None:
    """Recount every guarantee on the tuples to be released."""
    wrong = []
    if sizes.min() < layout.rules.k:
        wrong.append(f"a cell has fewer than k={layout.rules.k} tuples")
    wrong += [
        f"a cell has fewer than {least} different values of {name!r}"
        for name, least in layout.tags.items()
        if kernels.least_different(tags_of(members.column(name)), sizes) < least
    ]
    wrong += [
        f"column {column.name!r} differs within a cell"
        for column in layout.quasi
        if kernels.differ_within_cells(_comparable(released.column(column.name)), sizes)
    ]
    if wrong:
        raise RecountError(
            f"The recount disagrees: {'; '.join(wrong)}. This is a fault in shoal; nothing was released."
        )


def _comparable(column: pa.Array) -> Vector | Keys:
    """Return a column as numbers that are equal where its values are."""
    return floats_of(column) if is_plain(column) else keys_of(column)


def _as_table(rows: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([rows])


class _Fault(NamedTuple):
    """Tuples of a batch that cannot be used."""

    name: str
    reason: Reason
    where: NDArray[np.bool_]

    @property
    def first(self) -> int:
        return int(np.argmax(self.where))

    def __str__(self) -> str:
        times = int(self.where.sum())
        return f"column {self.name!r}, {self.reason}, {times} times, the first in tuple {self.first} of the batch"


def _faults(layout: Layout, read: dict[str, Encoded], rules: Rules) -> list[_Fault]:
    """Find the tuples of a batch that cannot be used."""
    found = []
    all_finite = kernels.all_finite(layout.values(read))
    for column in layout.quasi:
        encoded = read[column.name]
        if encoded.values is None:
            found.append(_Fault(column.name, Reason.MISSING, np.asarray(encoded.keys == MISSING)))
        elif not all_finite:
            found.append(_Fault(column.name, Reason.MISSING, np.isnan(encoded.values)))
            infinite = Reason.UNKNOWN_LEVEL if column.kind is Kind.ORDINAL else Reason.INFINITE
            found.append(_Fault(column.name, infinite, np.isinf(encoded.values)))
    allowed = {Reason.MISSING} if rules.missing == "own-value" else set()
    return [fault for fault in found if fault.reason not in allowed and fault.where.any()]


def _is_old(time_of: float, max_age: float | None, now: float) -> bool:
    return max_age is not None and time_of + max_age <= now
