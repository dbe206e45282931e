"""Processor: what Spark calls for each shard of a batch; it brings state and time to a turn, and writes what changed.

This file imports PySpark; nothing else here does before a query is made.
"""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor

from shoal import kernels
from shoal.errors import without_values
from shoal.stream.spark_query.operator import STATE, row_of
from shoal.stream.spark_query.plan import Plan, unpacked
from shoal.stream.spark_query.turn import Now, take_turn


class ShardProcessor(StatefulProcessor):  # type: ignore[misc]
    """Takes the turns of the shards that a task has."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def init(self, handle: Any) -> None:
        """Take the handle of the state."""
        self._handle = handle
        self._state = handle.getMapState(STATE, "name string", "content binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802
        """Take in the tuples of a batch."""
        return self._turn(key[0], [bytes(row.tuples) for row in rows], timerValues)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802
        """Release what has grown too old."""
        return self._turn(key[0], [], timerValues, expiredTimerInfo.getExpiryTimeInMs())

    def close(self) -> None:
        """Nothing is to be closed."""

    def _turn(self, shard: str, contents: list[bytes], time: Any, expired: int | None = None) -> Iterator[Any]:
        now = Now(time.getCurrentProcessingTimeInMs(), time.getCurrentWatermarkInMs())
        with kernels.using(1), without_values():
            batches = [unpacked(content, self._plan.columns) for content in contents]
            fields = {name[0]: bytes(content[0]) for name, content in self._state.iterator()}
            turn = take_turn(self._plan, fields, batches, now)
            row = Row(**row_of(shard, turn, self._plan))
        for name, content in turn.changed.items():
            self._state.updateValue((name,), (content,))
        for name in turn.gone:
            self._state.removeKey((name,))
        if self._plan.rules.max_age is not None:
            self._set_timer(turn.due, expired)
        yield row

    def _set_timer(self, due: int | None, expired: int | None) -> None:
        """Keep one timer; Spark itself deletes the one that has expired."""
        there = set(self._handle.listTimers()) - {expired}
        for time in there - {due}:
            self._handle.deleteTimer(time)
        if due is not None and due not in there:
            self._handle.registerTimer(due)
