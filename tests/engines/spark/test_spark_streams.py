"""Streams on Spark Structured Streaming: files and rates in, files and batches out, stopped and started again."""

import importlib
import os
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal import Job, LDiversity
from shoal.errors import FileError, ParameterError, SchemaError
from shoal.stream import Stream
from shoal.stream.from_job import stream_of

EXAMPLES = Path(__file__).parents[3] / "examples"
OPTIONS = {
    "k": 3,
    "delay": 20,
    "quasi_identifiers": ["age", "income"],
    "confidential": ["diagnosis"],
    "other": ["number"],
    "subject": "person",
    "models": [LDiversity("diagnosis", l=2)],
    "on_error": "side",
    "shards": 2,
    "side": True,
}
TYPES = "number long, age int, income double, diagnosis string, person string, codes array<int>, at timestamp"
N = 120


def tuples(n=N, seed=0):
    rng = np.random.default_rng(seed)
    numbers = np.arange(n) + n * seed
    return pa.table(
        {
            "number": numbers,
            "age": pa.array(rng.integers(0, 90, n), pa.int32()),
            "income": rng.normal(size=n),
            "diagnosis": rng.choice(["flu", "asthma", "gout"], n),
            "person": [f"p{each}" for each in rng.integers(0, 40, n)],
            "codes": pa.array([[each, 1] for each in numbers.tolist()], pa.list_(pa.int32())),
            "at": pa.array(1_700_000_000 + numbers, pa.timestamp("s", "UTC")).cast(pa.timestamp("us", "UTC")),
        }
    )


@pytest.fixture(scope="module")
def streaming(spark):
    from shoal.stream.spark_query.operator import PROVIDER, ROCKSDB

    spark.conf.set(PROVIDER, ROCKSDB)
    return spark


@pytest.fixture
def source(tmp_path):
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


def add(source, *tables):
    for table in tables:
        number = len(list(source.iterdir()))
        pq.write_table(table, source / f"{number:04}.parquet")
        os.utime(source / f"{number:04}.parquet", (number, number))  # Spark takes the oldest first


def events(spark, source):
    return spark.readStream.schema(TYPES).option("maxFilesPerTrigger", 1).parquet(str(source))


def run(released, folder, write=None):
    """Run a query until there is nothing new; write to files, or by a function of the batch and its number."""
    writer = released.writeStream.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True)
    writer = writer.format("parquet").option("path", f"{folder}/out") if write is None else writer.foreachBatch(write)
    query = writer.start()
    try:
        assert query.awaitTermination(600)
        return [progress["observedMetrics"]["shoal"].asDict() for progress in query.recentProgress]
    finally:
        query.stop()


def parts(frame):
    """Return the released rows, and those of the side output, of an output that has both."""
    rows = frame.toArrow().to_pylist()
    assert Counter(row["belongs_to"] for row in rows) == Counter(
        "released" if row["side"] is None else "side" for row in rows
    )
    return [row["released"] for row in rows if row["released"]], [row["side"] for row in rows if row["side"]]


def recount(released, persons, diagnoses=2, k=3):
    """Check that each cell has k persons and two diagnoses."""
    cells = {}
    for row in released:
        cells.setdefault((row["age"], row["income"]), []).append(row)
    assert min(len({persons[row["number"]] for row in cell}) for cell in cells.values()) >= k
    assert min(len({row["diagnosis"] for row in cell}) for cell in cells.values()) >= diagnoses


def test_every_tuple_leaves_once_over_restarts_and_at_the_end(streaming, source, tmp_path):
    tables = [tuples(seed=seed) for seed in range(3)]
    bad = tuples(5, seed=900).set_column(2, "income", pa.array([None] * 5, pa.float64()))
    persons = dict(
        zip(*(pa.concat_tables([*tables, bad])[name].to_pylist() for name in ("number", "person")), strict=True)
    )
    add(source, *tables[:2])

    def released():
        return shoal.spark.stream(events(streaming, source).drop("at"), **OPTIONS, tracked=["codes"])

    figures = run(released(), tmp_path)
    add(source, tables[2], bad)
    figures += run(released(), tmp_path)
    cells, side = parts(streaming.read.parquet(f"{tmp_path}/out"))
    rest, withheld = parts(shoal.spark.finish(f"{tmp_path}/checkpoint", side=True))

    leaving = [row["number"] for row in [*cells, *side, *rest, *withheld]]
    assert sorted(leaving) == sorted(persons)
    recount(cells, persons)
    recount(rest, persons)
    assert Counter(row["reason"] for row in side)["missing-value"] == 5
    assert all("person" not in row and "codes" not in row for row in cells)
    assert all(
        row["codes"] == [row["number"], 1] and row["person"] == persons[row["number"]] for row in [*side, *withheld]
    )
    totals = {name: sum(each[name] or 0 for each in figures) for name in figures[0]}
    assert totals["n_in"] == 3 * N + 5
    assert totals["n_released"] == len(cells)
    assert totals["n_missing_value"] == 5
    assert totals["n_side"] == len(side)
    assert totals["n_buffered"] == len(rest) + len(withheld)
    assert min(each["smallest_cell"] for each in figures) >= 3


def test_a_batch_that_is_repeated_has_the_same_bytes(streaming, source, tmp_path):
    add(source, *(tuples(seed=seed) for seed in range(2)))
    delivered = []

    def deliver(batch, number):
        delivered.append((number, batch.toArrow()))
        if len(delivered) == 2:
            raise RuntimeError("the sink fails")

    def released(n_partitions):
        frame = events(streaming, source).drop("codes", "at").repartition(n_partitions)
        return shoal.spark.stream(frame, **OPTIONS)

    with pytest.raises(Exception, match="the sink fails"):
        run(released(2), tmp_path, deliver)
    run(released(3), tmp_path, deliver)

    (first, once), (number, again) = delivered[1:3]
    assert first == number == 1
    assert len(once) > 50
    assert again.equals(once)


def test_tuples_leave_by_age_while_nothing_arrives(streaming, tmp_path):
    frame = streaming.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load().where("value < 40")
    frame = frame.selectExpr("value AS number", "CAST(value AS double) AS age")
    released = shoal.spark.stream(frame, k=3, max_age=1.5, quasi_identifiers=["age"], other=["number"], shards=1)
    seen = []
    writer = released.writeStream.option("checkpointLocation", f"{tmp_path}/checkpoint")
    query = writer.foreachBatch(lambda batch, number: seen.extend(batch.toArrow().to_pylist())).start()
    try:
        for _ in range(3000):
            if len(seen) >= 40 or not query.isActive:
                break
            query.awaitTermination(0.1)
    finally:
        query.stop()

    assert sorted(row["number"] for row in seen) == list(range(40))
    assert min(Counter(row["age"] for row in seen).values()) >= 3


def test_tuples_leave_by_event_time_and_late_ones_are_set_aside(streaming, source, tmp_path):
    tables = [tuples(seed=seed) for seed in (0, 20, 1, 30)]  # the third is late
    add(source, *tables)
    frame = events(streaming, source).drop("codes").withWatermark("at", "10 seconds")
    options = {**OPTIONS, "delay": None, "max_age": 60.0, "event_time": "at"}
    figures = run(shoal.spark.stream(frame, **options), tmp_path)
    cells, side = parts(streaming.read.parquet(f"{tmp_path}/out"))

    late = [row["number"] for row in side if row["reason"] == "late"]
    assert sorted(late) == tables[2]["number"].to_pylist()
    assert sum(each["n_late"] or 0 for each in figures) == N
    assert set(tables[0]["number"].to_pylist()) <= {row["number"] for row in [*cells, *side]}


def test_other_rules_stop_the_query_unless_shards_finish_first(streaming, source, tmp_path):
    add(source, tuples())

    def released(**changed):
        frame = events(streaming, source).drop("codes", "at")
        return shoal.spark.stream(frame, **OPTIONS | changed)

    run(released(), tmp_path)
    add(source, tuples(seed=1))
    with pytest.raises(Exception, match=r"made with other rules than these. Use the same"):
        run(released(k=5), tmp_path)
    with pytest.raises(ParameterError, match=r"stopped in the middle of batch 1, .*availableNow"):
        shoal.spark.finish(f"{tmp_path}/checkpoint")
    run(released(k=5, new_rules="finish"), tmp_path)
    cells, side = parts(streaming.read.parquet(f"{tmp_path}/out"))
    rest, withheld = parts(shoal.spark.finish(f"{tmp_path}/checkpoint", side=True))

    assert sorted(row["number"] for row in [*cells, *side, *rest, *withheld]) == list(range(2 * N))


def test_the_example_streams_flights_and_an_audit_agrees(streaming, tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setenv("SHOAL_DATA", str(tmp_path))
    verdict, safe, rest = importlib.import_module("flights_on_spark").main(streaming, tmp_path / "flights", n=3000)

    assert verdict.smallest >= 10
    assert len(safe) > 0
    assert len(safe) + len(rest) == 3000
    assert "3,000 flights" in capsys.readouterr().out


# What is refused.


JOB = """
k = 3
engine = "spark"

[roles]
quasi_identifiers = ["age", "income"]
confidential = ["diagnosis"]
subject = "person"
other = ["number"]
identifiers = ["codes", "at"]

[stream]
delay = 20

[stream.spark]
shards = 5
order_by = ["number"]
"""


def test_a_job_describes_the_same_stream(streaming, source, tmp_path):
    (tmp_path / "job.toml").write_text(JOB)
    released = shoal.spark.stream(events(streaming, source), job=tmp_path / "job.toml")

    assert released.columns == ["number", "age", "income", "diagnosis"]
    with pytest.raises(ParameterError, match=r"released = shoal.spark.stream\(events, job='JOB.toml'\)"):
        stream_of(Job.from_toml(JOB), "line")
    with pytest.raises(ParameterError, match=r"stream\.spark is set in the job"):
        stream_of(Job.from_toml(JOB.replace('engine = "spark"', "")), "line")
    with pytest.raises(ParameterError, match=r'The job is not one for Spark. Say so in it: engine="spark"'):
        shoal.spark.stream(events(streaming, source), job=Job.from_toml(JOB.replace('engine = "spark"', "")))
    with pytest.raises(ParameterError, match="k cannot be given beside a job"):
        shoal.spark.stream(events(streaming, source), job=tmp_path / "job.toml", k=4)


REFUSED = [
    ({"delay": 1}, ParameterError, r"delay=1 is too short for k=3"),
    (
        {"shard": "ward"},
        SchemaError,
        r'shard="ward" names a column that the DataFrame does not have. Its columns: number',
    ),
    ({"order_by": ["codes"]}, SchemaError, r"Column 'codes' is nested, and has no order"),
    ({"event_time": "at"}, ParameterError, r'event_time="at" has no effect without max_age'),
    ({"event_time": "at", "max_age": 9.0}, ParameterError, r"'at' has no watermark.*withWatermark\('at'"),
    ({"event_time": "age", "max_age": 9.0}, SchemaError, r"'age' is int; event times are timestamps"),
    ({"shards": 0}, ParameterError, r"shards"),
    ({"shards": 2, "on_side": print}, ParameterError, r"on_side cannot be given for a stream on Spark"),
    ({"tracked": ()}, SchemaError, r"codes, at have no role"),
    ({"sharts": 2}, ParameterError, r"sharts"),
]


@pytest.mark.parametrize(("changed", "error", "message"), REFUSED, ids=lambda each: str(each)[:30])
def test_what_does_not_fit_is_refused_before_the_query_starts(streaming, source, changed, error, message):
    with pytest.raises(error, match=message):
        shoal.spark.stream(events(streaming, source), **OPTIONS | {"tracked": ["codes", "at"]} | changed)


def test_a_frame_of_a_batch_is_refused(streaming):
    with pytest.raises(ParameterError, match=r"spark\.readStream returned\. Use shoal\.spark\.anonymize"):
        shoal.spark.stream(streaming.range(3), k=2, delay=5, quasi_identifiers=["id"])
    with pytest.raises(ParameterError, match="takes a streaming DataFrame of Spark; got Table"):
        shoal.spark.stream(tuples(), k=2, delay=5)


def test_another_state_store_is_refused(streaming, source):
    from shoal.stream.spark_query.operator import PROVIDER, ROCKSDB

    streaming.conf.unset(PROVIDER)
    try:
        with pytest.raises(ParameterError, match=r"Set it before the query starts: spark.conf.set\('spark"):
            shoal.spark.stream(events(streaming, source).drop("codes", "at"), **OPTIONS)
    finally:
        streaming.conf.set(PROVIDER, ROCKSDB)


@pytest.mark.parametrize(("module", "name"), [("google.protobuf", "protobuf"), ("pandas", "pandas")])
def test_a_missing_package_of_spark_is_asked_for(streaming, source, monkeypatch, module, name):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ParameterError, match=rf"needs {name} .* which is not installed: pip install"):
        shoal.spark.stream(events(streaming, source).drop("codes", "at"), **OPTIONS)


def test_a_spark_without_the_operator_is_refused(streaming, source, monkeypatch):
    frame = events(streaming, source).drop("codes", "at")
    has_it = next(each for each in type(frame.groupBy()).__mro__ if "transformWithState" in vars(each))
    monkeypatch.delattr(has_it, "transformWithState")
    with pytest.raises(ParameterError, match=r"needs the operator transformWithState of PySpark 4\.1 or newer: pip"):
        shoal.spark.stream(frame, **OPTIONS)


def test_a_folder_that_is_no_checkpoint_is_refused(streaming, source):
    add(source, tuples(5))
    for path in (source, source / "nothing"):
        with pytest.raises(FileError, match=r"is not the checkpoint of a query with shoal.spark.stream"):
            shoal.spark.finish(path)


def test_the_options_of_a_stream_are_those_of_the_object():
    options = {name: value for name, value in OPTIONS.items() if name not in ("shards", "side")}

    assert Stream(**options).rules.k == 3
