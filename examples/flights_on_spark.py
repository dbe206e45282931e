"""Departures on Spark: flights arrive as files, two shards make them k-anonymous, and an audit counts what left.

The subject is the aircraft (tailnum), as in flights_stream.py: all its flights are in one shard, and a cell has flights
of ten aircraft. The query is stopped and started again in between, and at the end what still waits is released. The
data are the flights of nycflights13 (SHOAL_DATA names their folder); without them the example uses made-up data and
says so.

    python examples/flights_on_spark.py [FOLDER]

writes flights/in, flights/safe and flights/checkpoint into the folder. It needs `pip install 'shoal-privacy[spark]'`
and Java 17 or newer.
"""

import os
import sys
from pathlib import Path

import pandas as pd
from stand_ins import flights_like, where

import shoal

K = 10
QUASI = ["dep_time", "dep_delay", "air_time", "distance"]
TYPES = (
    "dep_time double, dep_delay double, air_time double, distance double, tailnum string, carrier string, dest string"
)
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def flights(n):
    """Return the first flights of the year without missing values."""
    path = where("nycflights13_flights.csv.gz")
    if path is None:
        print("The flights were not found (SHOAL_DATA names the data folder); made-up data are used instead.")
        table = flights_like(n)
    else:
        columns = [*QUASI, "tailnum", "carrier", "dest"]
        table = pd.read_csv(path, usecols=columns, nrows=2 * n).dropna()[columns].head(n)
    return table.astype(dict.fromkeys(QUASI, "float64"))


def arrive(table, folder, n_files):
    """Write flights as files, one after the other."""
    folder.mkdir(parents=True, exist_ok=True)
    size = -(-len(table) // n_files)
    for begin in range(0, len(table), size):
        number = len(list(folder.iterdir()))
        table[begin : begin + size].to_parquet(folder / f"{number:04}.parquet", index=False)


def run(spark, folder):
    """Let a query read the files that have arrived, and end."""
    events = spark.readStream.schema(TYPES).option("maxFilesPerTrigger", 1).parquet(f"{folder}/in")
    released = shoal.spark.stream(
        events,
        k=K,
        quasi_identifiers=QUASI,
        confidential=["carrier", "dest"],
        subject="tailnum",
        delay=1000,
        shards=2,
    )
    writer = released.writeStream.format("parquet").option("path", f"{folder}/safe")
    query = writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start()
    query.awaitTermination()
    return [progress["observedMetrics"]["shoal"] for progress in query.recentProgress]


def main(spark, folder, n=20_000):
    """Stream the flights in two runs, end the stream, and audit what left."""
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    table = flights(n)
    figures = []
    for half in (table[: len(table) // 2], table[len(table) // 2 :]):
        arrive(half, Path(folder) / "in", n_files=2)
        figures += run(spark, folder)
    rest = shoal.spark.finish(f"{folder}/checkpoint").toArrow()
    safe = spark.read.parquet(f"{folder}/safe").toArrow()
    verdict = shoal.audit(safe, k=K, quasi_identifiers=QUASI, confidential=["carrier", "dest"])
    print(verdict)
    print(
        f"{len(table):,} flights: {len(safe):,} released while they arrived, {len(rest):,} at the end, "
        f"{sum(each['n_side'] for each in figures):,} set aside"
    )
    return verdict, safe, rest


if __name__ == "__main__":
    from pyspark.sql import SparkSession

    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".") / "flights"
    builder = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", 2)
    main(builder.getOrCreate(), folder, int(os.environ.get("SHOAL_EXAMPLE_SIZE", "20000")))
