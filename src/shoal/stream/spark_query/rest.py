"""Rest: the end of a stream whose query has stopped. What waits in its checkpoint is released, or set aside.

Spark's reader of states reaches every shard, also those that get no tuples any more.
"""

import base64
import json
import re
from functools import partial
from typing import Any

import pyarrow as pa

from shoal.distribution import versions
from shoal.engines.spark.sessions import speaking, this_interpreter
from shoal.engines.spark.spark_frames import Frame, grouped
from shoal.errors import FileError, ParameterError, without_values
from shoal.job import SparkSettings
from shoal.stream.rules import as_rules
from shoal.stream.spark_query.operator import STATE, TURNED, row_of, unpacked_rows
from shoal.stream.spark_query.plan import Plan
from shoal.stream.spark_query.turn import last_turn

_FIELDS = ("key.shard AS shard", "user_map_key.name AS name", "user_map_value.content AS content")


def rest_of(spark: Any, checkpoint: str, side: bool, operator: int) -> Frame:
    """Return the DataFrame of what is released, or set aside, at the end of a stream."""
    from pyspark.errors import AnalysisException

    with speaking(), this_interpreter(spark):
        _check_complete(spark, checkpoint)
        try:
            reader = spark.read.format("statestore").option("path", checkpoint).option("operatorId", operator)
            fields = reader.option("stateVarName", STATE).load().selectExpr(*_FIELDS)
        except AnalysisException as error:
            raise _none_there(checkpoint) from error
        plan = _plan(fields, checkpoint, side)
        n_tasks = int(spark.conf.get("spark.sql.shuffle.partitions"))
        return unpacked_rows(grouped(fields, "shard", partial(_ended, plan), TURNED, n_tasks), plan)


def _check_complete(spark: Any, checkpoint: str) -> None:
    """Refuse a query that stopped in the middle of a batch: what waited may be in its output."""
    begun, done = (_numbers(spark, checkpoint, log) for log in ("offsets", "commits"))
    if not begun:
        raise _none_there(checkpoint)
    if begun != done:
        raise ParameterError(
            f"The query stopped in the middle of batch {begun - 1}, whose tuples may have been released. Let it "
            "complete that batch: start it as it was, with trigger(availableNow=True), and wait for its end."
        )


def _numbers(spark: Any, checkpoint: str, log: str) -> int:
    """Return the number of the last batch in a log of the checkpoint, plus one; 0 if there is none."""
    from pyspark.errors import AnalysisException

    try:
        files = spark.read.format("binaryFile").load(f"{checkpoint.rstrip('/')}/{log}").select("path").collect()
    except AnalysisException:
        return 0
    found = [re.fullmatch(r".*/(\d+)", row.path) for row in files]
    return max((1 + int(match[1]) for match in found if match), default=0)


def _none_there(checkpoint: str) -> FileError:
    return FileError(
        f"{checkpoint!r} is not the checkpoint of a query with shoal.spark.stream. Give the folder that was its "
        "checkpointLocation, and the number of the operator if the query has other states before this one (operator=1)."
    )


def _ended(plan: Plan, shard: str, rows: pa.Table) -> pa.Table:
    """End the stream of a shard, whose fields are the rows of a table."""
    fields = dict(zip(rows["name"].to_pylist(), rows["content"].to_pylist(), strict=True))
    with without_values():
        turn = last_turn(plan, fields)
    return pa.Table.from_pylist([row_of(shard, turn, plan)], schema=TURNED)


def _plan(fields: Frame, checkpoint: str, side: bool) -> Plan:
    """Return the plan of a stream that ends. Its shards have the same columns, whatever their rules are."""
    found = fields.where("name = 'meta'").select("content").limit(1).collect()
    if not found:
        raise _none_there(checkpoint)
    meta = json.loads(bytes(found[0].content))
    columns = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(meta["columns"])))
    return Plan(as_rules(**meta["rules"]), SparkSettings(side=side), columns, versions()["shoal"])
