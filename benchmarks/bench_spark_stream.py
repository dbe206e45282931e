"""Measure a stream on Spark beside the object and the worker, in one run: tuples per second, state, loss.

Five numeric columns, k = 10, delay 1,000, batches of 100,000 tuples in two shards, ``local[2]``, Parquet files in and
out. The machine may be busy: CPU seconds of all processes stand beside wall time. The first batches, in which Java
compiles its code, are left out of the rates and given apart.
"""

import json
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench_partition import ROOT, circumstances
from bench_spark import Cpu
from bench_stream import measure_worker
from shoal.stream import Stream
from shoal.stream.state_fields import StateFields

RESULTS = ROOT / "benchmarks" / "results" / "spark_stream.json"
K, DELAY, BATCH, SHARDS, COLUMNS = 10, 1000, 100_000, 2, "abcde"
WARM = 4
"""Batches that are left out of the rates."""


@click.command()
@click.option("--quick", is_flag=True, help="Few batches, to see that it runs.")
@click.option("--batches", default=24, show_default=True, help="Number of batches.")
@click.option("--output", type=click.Path(path_type=Path), default=RESULTS, show_default=True)
def main(quick: bool, batches: int, output: Path) -> None:
    """Measure a query, then the object on the same tuples in the same shards, then the worker."""
    warnings.simplefilter("ignore")
    n = WARM + 2 if quick else batches
    with tempfile.TemporaryDirectory() as folder:
        write_tuples(Path(folder) / "in", n)
        on_spark = measured_query(Path(folder), n)
        alone = measured_object(Path(folder) / "in", n)
    rows = {"query": on_spark, "object": alone, "worker": measure_worker(1000, 100_000, click.echo)}
    ratios = {
        "query_to_object_cpu": on_spark["per_cpu_second"] / alone["per_cpu_second"],
        "query_to_worker": on_spark["per_cpu_second"] / (rows["worker"]["per_second"] or np.nan),
        "loss_to_object": on_spark["il"] / alone["il"],
        "state_to_arrow": on_spark["state_bytes"] / on_spark["waiting_bytes"],
    }
    about = {"k": K, "delay": DELAY, "batch": BATCH, "shards": SHARDS, "n_batches": n, "n_warm": WARM}
    output.write_text(json.dumps({**circumstances(quick), **about, **rows, "ratios": ratios}, indent=1) + "\n")
    click.echo(json.dumps({"query": on_spark, "object": alone, "ratios": ratios}, indent=1))


def write_tuples(folder: Path, n_batches: int) -> None:
    """Write a file for each batch."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(n_batches):
        columns = {name: rng.random(BATCH) for name in COLUMNS}
        table = pa.table(
            {**columns, "diagnosis": rng.integers(0, 50, BATCH), "number": np.arange(BATCH) + number * BATCH}
        )
        path = folder / f"{number:04}.parquet"
        pq.write_table(table, path)
        os.utime(path, (number, number))  # Spark takes the oldest first


def measured_query(folder: Path, n_batches: int) -> dict[str, Any]:
    """Let a query read all files, and return what its later batches took."""
    from pyspark.sql import SparkSession

    import shoal
    from shoal.stream.spark_query.operator import PROVIDER, ROCKSDB

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    builder = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", SHARDS)
    for name, value in {"spark.driver.memory": "1g", "spark.ui.enabled": "false", PROVIDER: ROCKSDB}.items():
        builder = builder.config(name, value)
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    cpu, marks = Cpu(), {}
    types = ", ".join([*(f"{name} double" for name in COLUMNS), "diagnosis long, number long"])
    source = spark.readStream.schema(types).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    released = shoal.spark.stream(source, **options(), shards=SHARDS)
    writer = released.writeStream.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
    query = writer.format("parquet").option("path", str(folder / "out")).start()
    while not query.awaitTermination(0.05):
        last = query.lastProgress
        if last and last["batchId"] not in marks:
            marks[last["batchId"]] = (time.perf_counter(), cpu.seconds())
    times = {each["batchId"]: each["durationMs"]["triggerExecution"] / 1000 for each in query.recentProgress}
    began, ended = marks[min(mark for mark in marks if mark >= WARM - 1)], marks[max(marks)]
    n = BATCH * (max(marks) - min(mark for mark in marks if mark >= WARM - 1))
    spent = {name: ended[1][name] - began[1].get(name, 0.0) for name in ended[1]}
    found = {
        "n": n,
        "per_second": n / (ended[0] - began[0]),
        "per_second_of_the_fastest_batch": BATCH / min(times.values()),
        "per_cpu_second": n / sum(spent.values()),
        "cpu": spent,
        "first_batches_seconds": [times[number] for number in range(WARM)],
        **state_of(spark, folder / "checkpoint"),
    }
    spark.stop()
    return found


def options() -> dict[str, Any]:
    """Return the options of both streams."""
    ranges = dict.fromkeys(COLUMNS, (0, 1))
    roles = {"quasi_identifiers": list(COLUMNS), "confidential": ["diagnosis"], "subject": "number"}
    return {"k": K, "delay": DELAY, "ranges": ranges, **roles}


def state_of(spark: Any, checkpoint: Path) -> dict[str, Any]:
    """Return the size of the state, that of the tuples which wait as Arrow data, and the loss of all shards."""
    from shoal.stream.spark_query.turn import STORE

    rows = spark.read.format("statestore").option("path", str(checkpoint)).option("stateVarName", "stream").load()
    states: dict[str, dict[str, bytes]] = {}
    for row in rows.selectExpr("key.shard", "user_map_key.name", "user_map_value.content").collect():
        states.setdefault(row.shard, {})[row.name] = bytes(row.content)
    size = sum(len(content) for fields in states.values() for content in fields.values())
    streams = []
    for fields in states.values():
        stream = Stream(**options())
        StateFields(STORE).load(fields, stream)
        streams.append(stream)
    waiting = sum(stream.waiting.all().nbytes for stream in streams)
    return {"state_bytes": size, "waiting_bytes": waiting, "n_waiting": sum(map(len, streams)), "il": il_of(streams)}


def il_of(streams: list[Stream]) -> float:
    """Return the information loss of several streams together, in percent."""
    tallies = [stream.progress()["tally"] for stream in streams]
    return 100 * sum(tally["sse_x"] for tally in tallies) / sum(sum(tally["sst_x"]) for tally in tallies)


def measured_object(source: Path, n_batches: int) -> dict[str, Any]:
    """Push the tuples into a stream for each shard, in the order in which they came; the shards are those of Spark."""
    from shoal.job import SparkSettings
    from shoal.stream.spark_query.plan import Plan
    from shoal.stream.stream_columns import Layout

    streams: dict[str, Stream] = {}
    rules = Stream(**options()).rules
    wall, own = 0.0, 0.0
    for path in sorted(source.iterdir()):
        table = pq.read_table(path)
        plan = Plan(rules, SparkSettings(shards=SHARDS), Layout.of(table.schema, rules).schema, "")
        dealt = list(plan.deal(table))
        began = time.perf_counter(), time.process_time()
        for shard, rows in dealt:
            streams.setdefault(shard, Stream(**options())).push_rows(rows)
        wall, own = wall + time.perf_counter() - began[0], own + time.process_time() - began[1]
    n = n_batches * BATCH
    return {"n": n, "per_second": n / wall, "per_cpu_second": n / own, "il": il_of(list(streams.values()))}


if __name__ == "__main__":
    main()
