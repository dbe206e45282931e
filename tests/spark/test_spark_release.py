"""Releases on Spark: on one core, on two, and on a cluster of which a worker is killed."""

import importlib
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
import shoal.spark
from block_tables import ROLES, batches, job, multiset, people
from shoal.blocks import blueprint
from shoal.disk.recounting import audit_on_disk
from shoal.errors import FileError, GuaranteeError, ParameterError, SchemaError
from shoal.spark import engine, writing
from shoal.spark.release import execute_job

EXAMPLES = Path(__file__).parents[2] / "examples"

# It comes with the import of PySpark.
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")


@pytest.fixture(scope="module", autouse=True)
def small_blocks():
    """Let blocks be as small as k allows, so that small tables have several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blueprint, "BLOCK_RECORDS", 1)
        yield


def visits():
    """Return people with columns of types that are only passed on."""
    table = people(1_500)
    n = table.num_rows
    start = datetime(2024, 3, 31, 1, 30, tzinfo=UTC)
    others = {
        "seen": pa.array([start + timedelta(minutes=i % 99) for i in range(n)], pa.timestamp("us", "UTC")),
        "price": pa.array([Decimal(i % 50) / 100 if i % 7 else None for i in range(n)], pa.decimal128(9, 2)),
        "codes": pa.array([[i % 3, None] for i in range(n)]),
        "place": pa.array([{"x": i % 5, "y": None} for i in range(n)], pa.struct({"x": pa.int32(), "y": pa.string()})),
        "tags": pa.array([[("a", i % 4)] for i in range(n)], pa.map_(pa.string(), pa.int64())),
    }
    return pa.table({**{name: table[name] for name in table.column_names}, **others})


OTHERS = ("note", "seen", "price", "codes", "place", "tags")
VISITS = job(roles={**ROLES, "other": OTHERS})


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """Return a folder of Parquet files."""
    folder = tmp_path_factory.mktemp("lake") / "visits"
    folder.mkdir()
    for number, batch in enumerate(batches(visits(), 3, shuffled=5)):
        pq.write_table(batch, folder / f"{number}.parquet")
    return folder


@pytest.fixture(scope="module")
def on_disk(lake):
    """Return the records that the engine disk publishes."""
    with shoal.run(VISITS.model_copy(update={"engine": "disk"}), lake) as release:
        return pa.concat_tables(release.batches())


@pytest.fixture(scope="module")
def release(spark, lake):
    with execute_job(VISITS, spark.read.parquet(str(lake))) as release:
        yield release


def collected(release):
    return release.table.toArrow()


def test_two_cores_publish_the_records_of_the_engine_disk(release, on_disk):
    assert multiset(collected(release)) == multiset(on_disk)


def test_the_verdict_and_the_measures_are_those_of_all_records(release):
    assert release.verdict.holds
    assert release.verdict.n_records == 1_500
    assert sum(size * n for size, n in release.verdict.sizes.items()) == 1_500
    assert 0 < release.loss.il < 100
    assert "1,500 records" in repr(release)
    assert release.utility
    assert release.risk.linkage.n_ranked > 0


def test_a_release_is_written_whole_with_manifests_report_and_the_marker_last(release, on_disk, tmp_path):
    path, report = tmp_path / "release", tmp_path / "report.html"
    written = release.write(str(path), partition_by=["region"], report=str(report))

    assert written == [str(path), f"{path}.public.json", f"{path}.internal.json", str(report)]
    assert (path / "_SUCCESS").exists()
    assert {child.name for child in path.iterdir() if child.is_dir()} == {"region=north", "region=south"}
    found = pq.read_table(path)
    assert found.num_rows == 1_500
    assert sorted(found["age"].to_pylist()) == sorted(on_disk["age"].to_pylist())
    public, internal = (json.loads((tmp_path / f"release.{form}.json").read_text()) for form in ("public", "internal"))
    assert public["verdict"]["holds"] is True
    assert "seed" not in public["job"]
    assert internal["job"]["seed"] == 7
    assert set(public["files"]) == {str(file.relative_to(path)) for file in path.rglob("part-*.parquet")}
    assert (tmp_path / "release.internal.json").stat().st_mode & 0o077 == 0


def test_the_written_order_follows_published_values_alone(release, tmp_path):
    release.write(str(tmp_path / "release"), partition_by=["region"])
    for file in (tmp_path / "release").rglob("part-*.parquet"):
        ages = pq.ParquetFile(file).read(["age"])["age"].to_pylist()

        assert ages != sorted(ages)


def test_a_path_that_exists_is_refused_and_left_alone(release, tmp_path):
    (tmp_path / "release").mkdir()
    with pytest.raises(FileError, match=r"exists\. Choose another path, or overwrite it: force=True"):
        release.write(str(tmp_path / "release"))

    assert [child.name for child in tmp_path.iterdir()] == ["release"]


def test_files_that_do_not_hold_the_release_are_removed(release, tmp_path, monkeypatch):
    whole = writing.Folder.read
    monkeypatch.setattr(writing.Folder, "read", lambda folder, schema: whole(folder, schema).limit(1_499))
    with pytest.raises(GuaranteeError, match=r"do not hold the records that were recounted\. They were removed"):
        release.write(str(tmp_path / "release"), report=str(tmp_path / "report.html"))

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("split", "words"), [(["name"], "'name', which is not published"), (["age", "zip"], "'zip', which is not")]
)
def test_a_folder_is_split_by_published_columns_only(release, split, words, tmp_path):
    with pytest.raises(ParameterError, match=words):
        release.write(str(tmp_path / "release"), partition_by=split)


def test_a_partitioned_lake_becomes_a_partitioned_release(spark, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    data_lake = importlib.import_module("data_lake")
    pq.write_to_dataset(data_lake.visits(), tmp_path / "visits", partition_cols=["year"])
    release = data_lake.main(spark, str(tmp_path))

    assert release.verdict.holds
    assert {folder.name for folder in (tmp_path / "release").glob("year=*")} == {
        f"year={y}" for y in (2028, 2029, 2030)
    }


def test_half_of_all_records_may_be_equal_and_a_column_constant(spark):
    rng = np.random.default_rng(2)
    table = pa.table({"a": np.zeros(900), "b": rng.normal(size=900), "c": np.arange(900)})
    equal = pa.table({"a": np.zeros(1_500), "b": np.ones(1_500), "c": np.arange(1_500) % 700})
    settings = {"k": 3, "seed": 1, "quasi_identifiers": ["a", "b"], "other": ["c"]}
    whole = pa.concat_tables([table, equal])
    with pytest.warns(shoal.ShoalWarning, match="'a' has the same value"):
        release = shoal.spark.anonymize(spark.createDataFrame(whole), **settings)
    counts = engine.counted(release._parts.published.drop("c"), engine.BLOCK)

    assert release.verdict.holds
    assert max(counts.values()) < 3 * blueprint.block_size(2, 3, 1)
    with release:
        assert sorted(collected(release)["c"].to_pylist()) == sorted(whole["c"].to_pylist())


def test_an_empty_dataframe_is_refused(spark):
    with pytest.raises(ParameterError, match="has no records"):
        shoal.spark.anonymize(spark.createDataFrame([], "a int"), k=2, quasi_identifiers="a")


def test_a_streaming_dataframe_is_refused_with_a_pointer_to_streams(spark):
    frame = spark.readStream.format("rate").load()
    with pytest.raises(ParameterError, match=r"A streaming DataFrame was given.*`shoal stream`"):
        shoal.spark.anonymize(frame, k=2, quasi_identifiers="value", other="timestamp")


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("1 AS `a.b`", "'a.b' has a dot or a backtick"),
        ("1 AS `_shoal_cell`", "used internally"),
        ("1 AS a, 2 AS A", "does not tell these columns apart: 'a', 'A'"),
    ],
)
def test_names_that_spark_cannot_use_are_refused(spark, columns, words):
    with pytest.raises(SchemaError, match=words):
        shoal.spark.anonymize(spark.sql(f"SELECT {columns}"), k=2, quasi_identifiers="a")


def test_another_table_is_refused_with_a_pointer_to_anonymize():
    with pytest.raises(ParameterError, match=r"takes a Spark DataFrame; got Table\. Use shoal\.anonymize"):
        shoal.spark.anonymize(pa.table({"a": [1, 2]}), k=2, quasi_identifiers="a")


def test_values_that_a_worker_refuses_are_refused_on_the_driver(spark):
    frame = spark.sql("SELECT CAST(id AS DOUBLE) AS a, IF(id = 7, DOUBLE('inf'), 1.0) AS b FROM range(30)")
    with pytest.raises(SchemaError, match="'b'"):
        shoal.spark.anonymize(frame, k=2, quasi_identifiers=["a", "b"])


@pytest.mark.parametrize("spark", ["local[1]"], indirect=True)
def test_one_core_runs_the_same_job_file_and_writes_the_same_records(spark, lake, on_disk, tmp_path):
    file, path = tmp_path / "job.toml", tmp_path / "release.parquet"
    files = {"input": {"path": str(lake)}, "output": {"path": str(path)}, "engine": "spark"}
    file.write_text(shoal.Job.of(**{**VISITS.model_dump(), **files}).to_toml())
    told = []
    release = shoal.run(file, save_job=tmp_path / "saved.toml", progress=lambda *done: told.append(done))
    audited = audit_on_disk(path, quasi_identifiers=list(release.verdict.quasi_identifiers), k=5)

    assert multiset(pq.read_table(path)) == multiset(on_disk)
    assert audited.holds
    assert audited.sizes == release.verdict.sizes
    assert shoal.Job.load(tmp_path / "saved.toml").seed == 7
    assert told == sorted(told)
    assert (told[0], told[-1]) == ((0, 1_500), (1_500, 1_500))


@pytest.mark.parametrize("spark", ["cluster"], indirect=True)
def test_a_cluster_of_which_a_worker_is_killed_publishes_the_same_records(spark, cluster, lake, on_disk, monkeypatch):
    refined = engine._refined

    def after_a_loss(cells, *given):
        assert cells.count() == 1_500
        cluster.workers[0].kill()
        return refined(cells, *given)

    monkeypatch.setattr(engine, "_refined", after_a_loss)
    with execute_job(VISITS, spark.read.parquet(str(lake))) as release:
        assert release.verdict.holds
        assert multiset(collected(release)) == multiset(on_disk)
