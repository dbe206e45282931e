"""Releases on Spark: on one core, on two, and on a cluster of which a worker is killed."""

import importlib
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from threading import Thread

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from block_tables import ROLES, batches, job, multiset, people
from shoal import LDiversity, TCloseness
from shoal.engines.blocks import blueprint, driver
from shoal.engines.spark import engine, sessions, spark_tables
from shoal.engines.spark.spark_records import execute_on_spark
from shoal.errors import DatabaseError, FileError, GuaranteeError, ParameterError, SchemaError
from shoal.output.destination import CatalogueAt
from shoal.sources.batches import open_batches
from toy_engine import toy_release
from waits import wait_until

EXAMPLES = Path(__file__).parents[3] / "examples"

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
    table = people(N)
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


N = 700
"""Records of the tables: enough for several blocks in each stratum."""

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
    with execute_on_spark(VISITS, spark.read.parquet(str(lake)), {}) as release:
        yield release


def collected(release):
    return release.table.toArrow()


def test_two_cores_publish_the_records_of_the_engine_disk(release, on_disk):
    assert multiset(collected(release)) == multiset(on_disk)


def test_the_verdict_and_the_measures_are_those_of_all_records(release):
    assert release.verdict.holds
    assert release.verdict.n_records == N
    assert sum(size * n for size, n in release.verdict.sizes.items()) == N
    assert 0 < release.loss.il < 1
    assert f"{N} records" in repr(release)
    assert release.utility
    assert release.risk.linkage.n_ranked > 0


@pytest.fixture(scope="module")
def written(release, tmp_path_factory):
    """Return the folder of a release that is split by region, with its report."""
    folder = tmp_path_factory.mktemp("written")
    path, report = folder / "release", folder / "report.html"
    paths = release.write(str(path), partition_by=["region"], report=str(report))
    assert paths == [str(path), f"{path}.public.json", f"{path}.internal.json", report]
    return path


def test_a_release_is_written_whole_with_manifests_report_and_the_marker_last(written, on_disk):
    path = written
    assert (path / "_SUCCESS").exists()
    assert {child.name for child in path.iterdir() if child.is_dir()} == {"region=north", "region=south"}
    found = pq.read_table(path)
    assert found.num_rows == N
    assert sorted(found["age"].to_pylist()) == sorted(on_disk["age"].to_pylist())
    public, internal = (
        json.loads((path.parent / f"release.{form}.json").read_text()) for form in ("public", "internal")
    )
    assert public["verdict"]["holds"] is True
    assert "seed" not in public["job"]
    assert internal["job"]["seed"] == 7
    assert set(public["files"]) == {str(file.relative_to(path)) for file in path.rglob("part-*.parquet")}
    assert (path.parent / "release.internal.json").stat().st_mode & 0o077 == 0


def test_the_written_order_follows_published_values_alone(written):
    for file in written.rglob("part-*.parquet"):
        ages = pq.ParquetFile(file).read(["age"])["age"].to_pylist()

        assert ages != sorted(ages)


def test_the_files_do_not_depend_on_the_order_of_the_input(spark, written, lake, tmp_path):
    table = pq.read_table(lake)
    order = np.random.default_rng(8).permutation(N)
    pq.write_table(table.take(pa.array(order)), tmp_path / "shuffled.parquet", row_group_size=100)
    with execute_on_spark(VISITS, spark.read.parquet(str(tmp_path / "shuffled.parquet")), {}) as other:
        other.write(str(tmp_path / "other"), partition_by=["region"])

    assert public_content(written) == public_content(tmp_path / "other")


def public_content(path):
    """Return the bytes of the files of a release, and its public manifest, without the random names of the files."""
    manifest = json.loads(Path(f"{path}.public.json").read_text())
    files = sorted(path.rglob("part-*.parquet"))
    assert sorted(manifest.pop("files")) == [str(file.relative_to(path)) for file in files]
    del manifest["output_sha256"]
    return [file.read_bytes() for file in files], manifest


def test_a_path_that_exists_is_refused_and_left_alone(release, tmp_path):
    (tmp_path / "release").mkdir()
    with pytest.raises(FileError, match=r"exists\. Choose another path, or overwrite it: force=True"):
        release.write(str(tmp_path / "release"))

    assert [child.name for child in tmp_path.iterdir()] == ["release"]


def test_force_replaces_a_release_and_nothing_else_does(release, tmp_path):
    path = tmp_path / "release"
    path.mkdir()
    (path / "part-old.parquet").write_text("old")
    (tmp_path / "release.public.json").write_text("old")
    release.write(str(path), force=True)

    assert pq.read_table(path).num_rows == N
    assert not (path / "part-old.parquet").exists()
    assert json.loads((tmp_path / "release.public.json").read_text())["verdict"]["holds"] is True


def test_files_that_do_not_hold_the_release_are_removed(release, tmp_path, monkeypatch):
    whole = spark_tables.Folder.read
    monkeypatch.setattr(spark_tables.Folder, "read", lambda folder, schema: whole(folder, schema).limit(N - 1))
    with pytest.raises(GuaranteeError, match=r"does not hold the records that were recounted\. It was removed"):
        release.write(str(tmp_path / "release"), report=str(tmp_path / "report.html"))

    assert list(tmp_path.iterdir()) == []


def test_the_input_is_never_overwritten(release, lake):
    before = {file.name: file.read_bytes() for file in lake.iterdir()}
    with pytest.raises(FileError, match=r"holds the input, which would be lost"):
        release.write(str(lake), force=True)

    assert {file.name: file.read_bytes() for file in lake.iterdir()} == before


@pytest.fixture
def database(spark, tmp_path, monkeypatch):
    """Return the name of an empty database; files are written beside it."""
    monkeypatch.chdir(tmp_path)
    name = f"lake_{secrets.token_hex(4)}"
    spark.sql(f"CREATE DATABASE {name} LOCATION '{tmp_path / name}'")
    yield name
    spark.sql(f"DROP DATABASE {name} CASCADE")


def tables_in(spark, database):
    return [row.tableName for row in spark.sql(f"SHOW TABLES IN {database}").collect()]


def manifest_in(spark, table):
    return json.loads(spark.sql(f"SHOW TBLPROPERTIES {table} ('shoal.output.manifest')").collect()[0].value)


def test_a_release_becomes_a_table_of_the_catalogue_with_its_manifests(spark, release, on_disk, database, tmp_path):
    paths = release.write(to_table=f"{database}.people", partition_by=["region"], json="report.json")
    table = spark.table(f"{database}.people")
    public, internal = manifest_in(spark, f"{database}.people"), json.loads(Path("people.internal.json").read_text())

    assert paths == [Path("people.internal.json"), Path("report.json")]
    assert tables_in(spark, database) == ["people"]
    assert {each.name for each in (tmp_path / database).iterdir()} == {"people"}
    assert multiset(table.select(*on_disk.column_names).toArrow()) == multiset(on_disk)
    assert public["verdict"]["holds"] is True
    assert public["output_sha256"] == internal["output_sha256"] == json.loads(Path("report.json").read_text())["sha256"]
    assert "seed" not in public["job"]
    assert internal["job"]["seed"] == 7
    assert Path("people.internal.json").stat().st_mode & 0o077 == 0


def test_a_table_that_exists_is_replaced_when_asked_and_a_view_or_the_input_never(spark, release, lake, database):
    spark.sql(f"CREATE TABLE {database}.people USING parquet AS SELECT 'old' AS age")
    spark.sql(f"CREATE VIEW {database}.view AS SELECT 1 AS age")
    spark.sql(f"CREATE TABLE {database}.visits USING parquet LOCATION '{lake}'")
    for name, force, words in [
        ("people", False, r"exists\. Choose another name, or overwrite it: force=True"),
        ("view", True, "exists as a view"),
        ("visits", True, "is the input, which would be lost"),
    ]:
        with pytest.raises(DatabaseError, match=words):
            release.write(to_table=f"{database}.{name}", force=force)
    assert [row.age for row in spark.table(f"{database}.people").collect()] == ["old"]
    assert not list(Path().glob("*.json"))
    release.write(to_table=f"{database}.people", force=True)

    assert spark.table(f"{database}.people").count() == N
    assert sorted(tables_in(spark, database)) == ["people", "view", "visits"]


def test_a_table_that_does_not_hold_the_release_is_dropped_and_the_old_one_stays(
    spark, release, database, tmp_path, monkeypatch
):
    spark.sql(f"CREATE TABLE {database}.people USING parquet AS SELECT 'old' AS age")
    whole = spark_tables.CatalogueTable.read
    monkeypatch.setattr(spark_tables.CatalogueTable, "read", lambda *given: whole(*given).limit(N - 1))
    with pytest.raises(GuaranteeError, match="does not hold the records that were recounted"):
        release.write(to_table=f"{database}.people", force=True)

    assert [row.age for row in spark.table(f"{database}.people").collect()] == ["old"]
    assert [each.name for each in tmp_path.rglob("*") if "shoal" in each.name or each.suffix == ".json"] == []


def test_a_rename_that_loses_records_is_undone(spark, database):
    spark.sql(f"CREATE TABLE {database}.people USING parquet AS SELECT 'old' AS age")
    table = spark_tables.CatalogueTable(spark, CatalogueAt.of(f"{database}.people", ()), force=True)
    table.write(spark.range(4))

    def check():
        assert table.read(spark.range(0).schema).count() == 5

    with pytest.raises(AssertionError, match="4 == 5"):
        table.commit(check)
    table.remove()

    assert [row.age for row in spark.table(f"{database}.people").collect()] == ["old"]
    assert tables_in(spark, database) == ["people"]


@pytest.mark.parametrize(
    ("places", "words"),
    [({}, "Give one of them"), ({"path": "a", "to_table": "b"}, "Give one"), ({"to_table": "a..b"}, "not the name")],
)
def test_a_release_goes_to_one_place_that_has_a_name(release, places, words):
    with pytest.raises(ParameterError, match=words):
        release.write(**places)


def test_a_job_does_not_ignore_what_only_databases_have():
    asked = job(engine="spark", output={"path": "release", "to_table": "people"})
    with pytest.raises(ParameterError, match=r"either to a folder, .* or to a table of the catalogue"):
        shoal.run(asked, "nowhere")


def persisted(spark):
    return spark.sparkContext._jsc.sc().getPersistentRDDs().size()


def test_a_job_of_which_an_executor_dies_leaves_nothing_persisted(spark, monkeypatch):
    before = persisted(spark)
    monkeypatch.setattr(driver, "_published_part", lambda *_: os._exit(1))
    with pytest.raises(Exception, match="Python worker exited unexpectedly"):
        shoal.spark.anonymize(spark.range(9), k=3, quasi_identifiers="id", seed=1)

    assert persisted(spark) == before


@pytest.mark.parametrize("place", ["folder", "table"])
def test_an_executor_that_dies_while_it_writes_leaves_nothing_behind(
    spark, release, database, tmp_path, monkeypatch, place
):
    dying = release.table.mapInArrow(lambda _: os._exit(1), release.table.schema)
    monkeypatch.setattr(type(release.records), "_sorted", lambda *_: dying)
    target = {"path": str(tmp_path / "release")} if place == "folder" else {"to_table": f"{database}.people"}
    with pytest.raises(Exception, match="Python worker exited unexpectedly"):
        release.write(**target)

    assert tables_in(spark, database) == []
    assert [each.name for each in tmp_path.rglob("*") if each.name != database] == []


def test_ctrl_c_cancels_the_job_that_writes_and_nothing_is_written_later(spark, release, tmp_path, monkeypatch):
    slow = release.table.mapInArrow(waiting(tmp_path / "begun"), release.table.schema)
    monkeypatch.setattr(type(release.records), "_sorted", lambda *_: slow)
    with pytest.raises(KeyboardInterrupt), interrupted(tmp_path / "begun"):
        release.write(str(tmp_path / "release"))

    wait_until(lambda: not running(spark))
    # A task that was cancelled may leave its own temporary file.
    files = [each for each in (tmp_path / "release").rglob("*") if each.is_file()]
    assert [each for each in files if "_temporary" not in each.parts] == []


def test_ctrl_c_cancels_the_job_whose_result_is_collected(spark, tmp_path):
    slow = spark.range(30).mapInArrow(waiting(tmp_path / "begun"), "id long")
    with pytest.raises(KeyboardInterrupt), interrupted(tmp_path / "begun"):
        shoal.spark.anonymize(slow, k=2, quasi_identifiers="id")

    wait_until(lambda: not running(spark))


def waiting(begun):
    """Return a function that makes a file when it has begun, and waits for another before it passes on batches."""

    def wait(batches):
        for batch in batches:
            begun.touch()
            while not begun.with_name("ended").exists():
                time.sleep(0.05)
            yield batch

    return wait


@contextmanager
def interrupted(begun):
    """Send Ctrl-C once a file is there, without Spark's own handler, as in a notebook."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt():
        wait_until(begun.exists)
        os.kill(os.getpid(), signal.SIGINT)

    sender = Thread(target=interrupt)
    sender.start()
    try:
        yield
    finally:
        sender.join()
        begun.with_name("ended").touch()  # a task that is cancelled waits for its Python worker
        signal.signal(signal.SIGINT, before)


def running(spark):
    """Return how many tasks run, those that are cancelled included."""
    return spark.sparkContext._jsc.sc().statusStore().executorList(True).apply(0).activeTasks()


def jobs_of(spark):
    """Return description and group of the jobs that Spark's user interface shows, the latest first."""
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    found = (jobs.apply(place) for place in range(jobs.size()))
    return [
        tuple(value.get() if value.isDefined() else None for value in (j.description(), j.jobGroup())) for j in found
    ]


def test_jobs_carry_the_name_of_their_stage(spark, written):
    shown = jobs_of(spark)
    ours = {f"shoal: {stage}" for stage in STAGES}

    assert ours <= {description for description, _ in shown}
    assert {group for description, group in shown if description in ours} == {"shoal"}
    assert {spark.sparkContext.getLocalProperty(f"spark.{name}") for name in ("job.description", "jobGroup.id")} == {
        None
    }


STAGES = (
    "fit",
    "assign",
    "solve",
    "border round 1",
    "publish",
    "recount",
    "write",
    "recount what was written",
    "publish what was written",
)


@pytest.mark.parametrize(
    ("split", "words"), [(["name"], "'name', which is not published"), (["age", "zip"], "'zip', which is not")]
)
def test_a_folder_is_split_by_published_columns_only(release, split, words, tmp_path):
    with pytest.raises(ParameterError, match=words):
        release.write(str(tmp_path / "release"), partition_by=split)


def test_names_of_folders_are_read_as_the_engine_disk_reads_them(spark, tmp_path):
    first = "year=02024/share=1.5/day=2020-01-01/code=a%2Fb"
    second = "year=__HIVE_DEFAULT_PARTITION__/share=2/day=2021-02-03/code=1"
    for number, name in enumerate((first, second)):
        (tmp_path / name).mkdir(parents=True)
        pq.write_table(pa.table({"number": [number]}), tmp_path / name / "a.parquet")
    theirs = spark.read.parquet(str(tmp_path)).toArrow().sort_by("number")
    ours = pa.concat_tables(open_batches(tmp_path).read()).sort_by("number")

    assert ours.to_pydict() == theirs.to_pydict()
    assert ours.schema.types == theirs.schema.types


def test_a_partitioned_lake_becomes_a_partitioned_release(spark, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    data_lake = importlib.import_module("data_lake")
    pq.write_to_dataset(data_lake.visits(), tmp_path / "visits", partition_cols=["year"])
    release = data_lake.main(spark, str(tmp_path))

    assert release.verdict.holds
    assert {folder.name for folder in (tmp_path / "release").glob("year=*")} == {
        f"year={y}" for y in (2028, 2029, 2030)
    }


def with_weights(table):
    return table.append_column("weight", pa.array(np.random.default_rng(0).integers(1, 9, table.num_rows)))


PERSONS = job(models=[LDiversity("illness", l=2)], roles={**ROLES, "subject": "name", "identifiers": ()})
WEIGHTED = job(models=[TCloseness("illness", t=0.3)], roles={**ROLES, "weights": "weight"})


@pytest.mark.parametrize(
    ("asked", "table"), [(PERSONS, people(N)), (WEIGHTED, with_weights(people(N)))], ids=["l", "t"]
)
def test_models_persons_and_survey_weights_are_kept_as_they_are_toy_release(spark, asked, table):
    wanted = toy_release(asked, [table])
    with execute_on_spark(asked, spark.createDataFrame(table), {}) as release:
        assert release.verdict.sizes == wanted.verdict.sizes
        assert release.verdict.subjects == wanted.verdict.subjects
        assert release.verdict.models[0].holds
        assert release.verdict.models[0].value == wanted.verdict.models[0].value
        assert multiset(collected(release)) == multiset(wanted.published)


def test_a_model_that_no_release_satisfies_is_refused_before_records_are_sent(spark, monkeypatch):
    monkeypatch.setattr(driver, "_in_leaves", lambda *_: pytest.fail("records were sent to blocks"))
    asked = job(models=[LDiversity("illness", l=4)])
    with pytest.raises(GuaranteeError, match="not even by all 50 records in one class, which have 3 different values"):
        execute_on_spark(asked, spark.createDataFrame(people(50)), {})


def test_half_of_all_records_may_be_equal_and_a_column_constant(spark):
    rng = np.random.default_rng(2)
    table = pa.table({"a": np.zeros(300), "b": rng.normal(size=300), "c": np.arange(300)})
    equal = pa.table({"a": np.zeros(600), "b": np.ones(600), "c": np.arange(600) % 250})
    settings = {"k": 3, "seed": 1, "quasi_identifiers": ["a", "b"], "other": ["c"]}
    whole = pa.concat_tables([table, equal])
    with pytest.warns(shoal.ShoalWarning, match="'a' has the same value"):
        release = shoal.spark.anonymize(spark.createDataFrame(whole), **settings)
    counts = engine.counted(release.records._parts.published.drop("c"), engine.BLOCK)

    assert release.verdict.holds
    assert max(counts.values()) < 3 * blueprint.block_size(2, 3, 1)
    with release:
        assert sorted(collected(release)["c"].to_pylist()) == sorted(whole["c"].to_pylist())


def test_leaves_that_are_too_large_are_cut_further_as_by_other_engines(spark, monkeypatch):
    grown = blueprint.Forest.grown
    monkeypatch.setattr(
        blueprint.Forest, "grown", staticmethod(lambda *given: grown(*given[:4], 5 * given[4], *given[5:]))
    )
    calls, reassign = [], engine._SparkEngine.reassign
    monkeypatch.setattr(engine._SparkEngine, "reassign", lambda *given: calls.append(given[2]) or reassign(*given))
    table = people(2_000)
    with execute_on_spark(job(k=3), spark.createDataFrame(table), {}) as release:
        assert multiset(collected(release)) == multiset(toy_release(job(k=3), batches(table, 3)).published)
    assert calls


def test_an_empty_dataframe_is_refused(spark):
    with pytest.raises(ParameterError, match="has no records"):
        shoal.spark.anonymize(spark.createDataFrame([], "a int"), k=2, quasi_identifiers="a")


def test_a_streaming_dataframe_is_refused_with_a_pointer_to_streams(spark):
    frame = spark.readStream.format("rate").load()
    with pytest.raises(ParameterError, match=r"A streaming DataFrame was given.*shoal.spark.stream"):
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


def test_a_session_of_the_user_stays_as_it_is(spark, monkeypatch):
    monkeypatch.delenv("PYSPARK_PYTHON")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "of-the-user")
    before, found = spark.conf.getAll, []
    finder = Thread(target=lambda: found.append(sessions.session()))
    finder.start()
    finder.join()
    used = sessions.at_work(found[0], lambda: spark.sparkContext.pythonExec)

    assert used == sys.executable
    assert found[0] is spark
    assert spark.conf.getAll == before
    assert spark.sparkContext.pythonExec == "of-the-user"


@pytest.mark.parametrize("spark", ["local[1]"], indirect=True)
def test_one_core_runs_the_same_job_file_and_writes_the_same_records(spark, lake, on_disk, tmp_path):
    file, path = tmp_path / "job.toml", tmp_path / "release.parquet"
    files = {"input": {"path": str(lake)}, "output": {"path": str(path)}, "engine": "spark"}
    file.write_text(shoal.Job.of(**{**VISITS.model_dump(), **files}).to_toml())
    told = []
    spark.sparkContext.setJobGroup("mine", "my job")
    release = shoal.run(file, save_job=tmp_path / "saved.toml", progress=lambda *done: told.append(done))
    audited = shoal.audit(path, quasi_identifiers=list(release.verdict.quasi_identifiers), k=5, memory="1GB")

    assert multiset(pq.read_table(path)) == multiset(on_disk)
    assert audited.holds
    assert audited.sizes == release.verdict.sizes
    assert shoal.Job.load(tmp_path / "saved.toml").seed == 7
    assert told == sorted(told)
    assert (told[0], told[-1]) == ((0, N), (N, N))
    assert {group for description, group in jobs_of(spark) if description != "my job"} == {"mine"}
    assert spark.sparkContext.getLocalProperty("spark.job.description") == "my job"


@pytest.mark.parametrize("spark", ["cluster"], indirect=True)
def test_a_cluster_of_which_a_worker_is_killed_publishes_the_same_records(spark, cluster, lake, on_disk, monkeypatch):
    published = engine._SparkEngine.publish

    def after_a_loss(self, cells, *given):
        assert cells.frame.count() == N
        cluster.workers[0].kill()
        return published(self, cells, *given)

    monkeypatch.setattr(engine._SparkEngine, "publish", after_a_loss)
    with execute_on_spark(VISITS, spark.read.parquet(str(lake)), {}) as release:
        assert release.verdict.holds
        assert multiset(collected(release)) == multiset(on_disk)


CONNECTED = """
import sys, warnings
warnings.simplefilter("ignore")
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
import shoal.job
from shoal.engines.blocks import blueprint, driver
from shoal.engines.spark.spark_records import execute_on_spark

blueprint.BLOCK_RECORDS = 1
job, source, target = sys.argv[1:]
builder = SparkSession.builder.remote("local[2]")
for setting in SETTINGS.items():
    builder = builder.config(*setting)
spark = builder.getOrCreate()
with execute_on_spark(shoal.job.Job.load(job), spark.createDataFrame(pq.read_table(source)), {}) as release:
    release.write(target)
    release.write(to_table="people", manifest="people.json")
    print(spark.table("people").count(), spark.getTags())
spark.stop()
"""


def test_spark_connect_publishes_the_same_records_and_tags_its_jobs(connect_settings, tmp_path):
    table, asked = people(N), job()
    pq.write_table(table, tmp_path / "people.parquet")
    (tmp_path / "job.toml").write_text(asked.to_toml())
    paths = [str(tmp_path / name) for name in ("job.toml", "people.parquet", "release")]
    (tmp_path / "events").mkdir()
    log = {"enabled": "true", "dir": str(tmp_path / "events"), "rolling.enabled": "false", "compress": "false"}
    settings = {**connect_settings, **{f"spark.eventLog.{name}": value for name, value in log.items()}}
    script = CONNECTED.replace("SETTINGS", repr(settings))
    # Another process: a session of Spark Connect cannot be beside one without it. SPARK_TESTING: a free port.
    settings = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_TESTING": "1"}
    command = [sys.executable, "-c", script, *paths]
    done = subprocess.run(command, env={**os.environ, **settings}, cwd=tmp_path, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert multiset(pq.read_table(paths[-1])) == multiset(toy_release(asked, [table]).published)
    assert done.stdout.splitlines()[-1] == f"{N} set()"
    events = "".join(file.read_text() for file in (tmp_path / "events").iterdir())
    assert [stage for stage in STAGES if f"shoal: {stage}" not in events] == []


def test_records_are_left_out_by_a_value_and_not_by_number(spark, lake):
    frame = spark.read.parquet(str(lake))
    n_north = sum(region == "north" for region in visits()["region"].to_pylist())
    with execute_on_spark(VISITS, frame, {"skip_where": {"region": "south"}}) as release:
        assert release.verdict.n_records == n_north
        assert release.records.source.n_left_out == N - n_north
        assert set(collected(release)["region"].to_pylist()) == {"north"}
    with pytest.raises(ParameterError, match="skip_rows cannot be given for the engine 'spark', whose records have no"):
        execute_on_spark(VISITS, frame, {"skip_rows": 3})
    with pytest.raises(ParameterError, match="skip_where leaves out no record"):
        execute_on_spark(VISITS, frame, {"skip_where": {"region": "nowhere"}})
