"""Operator: a streaming DataFrame in, a streaming DataFrame of released tuples out.

rows -> tuples of a shard, as bytes -> the turn of each shard, with its state -> figures -> rows
"""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from shoal import kernels
from shoal.distribution import install, optional, versions
from shoal.engines.spark.sessions import check_versions, speaking, this_interpreter
from shoal.engines.spark.spark_frames import Frame, check_names, spark_schema, tables, types_of
from shoal.errors import ParameterError, SchemaError, did_you_mean, without_values
from shoal.job import SparkSettings
from shoal.spelling import setting
from shoal.stream.rules import Rules
from shoal.stream.spark_query.plan import Plan, packed, unpacked
from shoal.stream.spark_query.turn import FIGURES, SMALLEST, Turn, side_schema
from shoal.stream.stream_columns import Layout

METRICS = "shoal"
"""Name of the observed metrics in the progress of a query."""

WHERE, RELEASED, SIDE = "belongs_to", "released", "side"
"""Columns of an output with side output: where a row belongs, and the tuple as a struct in the column of that name."""

STATE = "stream"
"""Name of the state: a map of the fields of a shard."""

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"

TURNED = pa.schema(
    [("shard", pa.string()), (RELEASED, pa.binary()), (SIDE, pa.binary()), *((name, pa.int64()) for name in FIGURES)]
)
"""What comes of the turn of a shard."""

_DEALT = "shard string, tuples binary"


def released_of(frame: Frame, rules: Rules, split: SparkSettings) -> Frame:
    """Return the streaming DataFrame of what the streams of all shards release."""
    _check_frame(frame)
    plan = _plan(frame, rules, split)
    _check_spark(frame)
    with speaking(), this_interpreter(frame.sparkSession):
        dealt = frame.mapInArrow(_Dealing(plan), _DEALT)
        turned = dealt.groupBy("shard").transformWithState(
            _processor(plan), spark_schema(TURNED), "append", _time_mode(plan)
        )
        return unpacked_rows(_observed(turned), plan)


def unpacked_rows(turned: Frame, plan: Plan) -> Frame:
    """Return the rows in what the turns of shards returned."""
    return turned.select(RELEASED, SIDE).mapInArrow(_Unpacking(plan), spark_schema(output_schema(plan)))


def row_of(shard: str, turn: Turn, plan: Plan) -> dict[str, Any]:
    """Return what came of a turn, by the columns of `TURNED`."""
    has_side = plan.split.side and turn.side.num_rows
    released = packed(turn.released) if turn.released.num_rows else None
    return {"shard": shard, RELEASED: released, SIDE: packed(turn.side) if has_side else None, **turn.figures}


def output_schema(plan: Plan) -> pa.Schema:
    """Return the columns of the output."""
    if not plan.split.side:
        return plan.layout.released
    parts = {RELEASED: plan.layout.released, SIDE: side_schema(plan)}
    return pa.schema([(WHERE, pa.string()), *((name, pa.struct(list(part))) for name, part in parts.items())])


def _plan(frame: Frame, rules: Rules, split: SparkSettings) -> Plan:
    """Return the plan, or raise if the rules do not fit the columns of the DataFrame."""
    try:
        with speaking():
            types = types_of(frame.sparkSession.createDataFrame([], frame.schema))
    except Exception as error:
        raise SchemaError(f"A column has a type that Spark cannot pass to Python: {error}") from None
    _check_split(frame, rules, split)
    named = [split.shard, *split.order_by, split.event_time]
    roles = {*rules.confidential, *rules.other, *rules.identifiers, *rules.tracked, rules.subject}
    if rules.quasi_identifiers is not None:
        roles |= set(rules.quasi_identifiers)
    origins = [name for name in dict.fromkeys(named) if name is not None and name not in roles]
    rules = rules.model_copy(update={"tracked": (*rules.tracked, *origins)})
    layout = Layout.of(types, rules)
    assert layout.released is not None
    return Plan(rules, split, layout.schema, versions()["shoal"])


def _check_frame(frame: Any) -> None:
    if not hasattr(frame, "mapInArrow"):
        raise ParameterError(
            f"shoal.spark.stream takes a streaming DataFrame of Spark; got {type(frame).__name__}. Use shoal.Stream "
            "for batches in Python, or spark.readStream."
        )
    if not frame.isStreaming:
        raise ParameterError(
            "A DataFrame of a batch was given, but a stream needs one that spark.readStream returned. Use "
            "shoal.spark.anonymize for records that are all there: it sees all of them at once, and loses less."
        )
    check_names(frame)


def _check_split(frame: Frame, rules: Rules, split: SparkSettings) -> None:
    """Refuse columns that are not there, and an event time that cannot be used."""
    named = [("shard", split.shard), ("event_time", split.event_time), *(("order_by", name) for name in split.order_by)]
    for name, column in named:
        if column is not None and column not in frame.columns:
            raise SchemaError(
                f"{setting(name, column)} names a column that the DataFrame does not have. Its columns: "
                f"{', '.join(frame.columns)}.{did_you_mean(column, known=frame.columns)}"
            )
        if column is not None and column in rules.identifiers:
            raise ParameterError(
                f"{setting(name, column)} is an identifier, which is dropped before tuples are dealt. Take it out of "
                "the identifiers; a column without a role is used, but not released."
            )
    kinds = dict(frame.dtypes)
    for column in split.order_by:
        if kinds[column].startswith(("array<", "map<", "struct<")):
            raise SchemaError(f"Column {column!r} is nested, and has no order for {setting('order_by')}. Leave it out.")
    if split.event_time is None:
        return
    if rules.max_age is None:
        raise ParameterError(
            f"{setting('event_time', split.event_time)} has no effect without {setting('max_age')}: say how old a "
            f"tuple may become, or name the column in {setting('order_by')} for the order of arrival."
        )
    if not kinds[split.event_time].startswith("timestamp"):
        raise SchemaError(f"Column {split.event_time!r} is {kinds[split.event_time]}; event times are timestamps.")
    if "spark.watermarkDelayMs" not in (frame.schema[split.event_time].metadata or {}):
        raise ParameterError(
            f"Column {split.event_time!r} has no watermark, which is the clock of event time. Say how late events may "
            f"come: events.withWatermark({split.event_time!r}, '10 minutes')."
        )


def _check_spark(frame: Frame) -> None:
    """Refuse a Spark that cannot keep the state of the operator."""
    if not hasattr(frame.groupBy(), "transformWithState"):
        raise ParameterError(
            f"shoal.spark.stream needs the operator transformWithState of PySpark 4.1 or newer: {install('spark')}."
        )
    for module in ("google.protobuf", "pandas"):
        optional(module, f"PySpark needs {module.removeprefix('google.')} for streams with a state", "spark")
    if frame.sparkSession.conf.get(PROVIDER) != ROCKSDB:
        raise ParameterError(
            "The state of a stream needs the RocksDB state store of Spark. Set it before the query starts: "
            f"spark.conf.set({PROVIDER!r}, {ROCKSDB!r})."
        )


def _time_mode(plan: Plan) -> str:
    if plan.rules.max_age is None:
        return "None"
    return "EventTime" if plan.in_event_time else "ProcessingTime"


def _observed(turned: Frame) -> Frame:
    """Return the same frame; its figures are among the observed metrics of the query."""
    from pyspark.sql import functions

    merged = {SMALLEST: functions.min}
    return turned.observe(METRICS, *(merged.get(name, functions.sum)(name).alias(name) for name in FIGURES))


class _Dealing:
    """Deals the rows of a partition to shards."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        check_versions(self._plan.version, [versions()["shoal"]])
        with kernels.using(1):
            for table in tables(batches):
                yield self._dealt(table)

    def _dealt(self, table: pa.Table) -> pa.RecordBatch:
        with without_values():
            parts = list(self._plan.deal(table))
        contents = pa.array([packed(rows) for _, rows in parts], pa.binary())
        return pa.RecordBatch.from_arrays([pa.array([shard for shard, _ in parts]), contents], ["shard", "tuples"])


class _Unpacking:
    """Makes rows of what shards have released."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plan = self._plan
        for batch in batches:
            released, side = (batch.column(name).drop_null() for name in (RELEASED, SIDE))
            for content in released:
                yield self._row(RELEASED, unpacked(content.as_buffer(), plan.layout.released))
            for content in side if plan.split.side else ():
                yield self._row(SIDE, unpacked(content.as_buffer(), side_schema(plan)))

    def _row(self, where: str, rows: pa.RecordBatch) -> pa.RecordBatch:
        if not self._plan.split.side:
            return rows
        n, schema = rows.num_rows, output_schema(self._plan)
        parts = {name: pa.nulls(n, schema.field(name).type) for name in (RELEASED, SIDE)}
        columns = [pa.array([where] * n), *(parts | {where: rows.to_struct_array()}).values()]
        return pa.RecordBatch.from_arrays(columns, schema=schema)


def _processor(plan: Plan) -> Any:
    """Return what Spark calls for each shard; it is made here, since PySpark may not be there."""
    from shoal.stream.spark_query.processor import ShardProcessor

    return ShardProcessor(plan)
