"""Releases in databases: one transaction into a new table, recounted before it is committed, never over its source."""

import json
import os
import shutil
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import postgres_server
import shoal
from shoal import cli
from shoal.errors import DatabaseError, FileError, GuaranteeError
from shoal.output.manifest import read_internal
from shoal.sources import read
from shoal.sources.databases import sqlite as sqlite_module
from shoal.sources.databases.new_table import NewTable
from stores import TABLE_AND_ROLES
from systems import KILL
from waits import LIMIT

ROLES = {"quasi_identifiers": ["Age", "zip", "pay"], "identifiers": ["id"]}


def released(address, **reading):
    return shoal.anonymize(address, k=4, seed=1, reading=reading or {"table": "people"}, **ROLES)


def test_a_release_its_manifest_and_its_report_are_written_together(store, tmp_path):
    release = released(store.address)
    paths = release.write(store.address, to_table="release", report=tmp_path / "report.html")

    assert store.names() == ["people", "release", "shoal_manifest"]
    ((name, sha256, manifest),) = store.rows("SELECT table_name, sha256, manifest FROM shoal_manifest")
    assert name == "release"
    assert sha256 == read(store.address, table="release").sha256 == json.loads(manifest)["output_sha256"]
    assert "seed" not in manifest
    assert len(read_internal(paths[0]).labels) == 40
    assert paths[0].stat().st_mode & 0o777 == 0o600
    assert [path.name for path in paths[1:]] == ["report.html"]
    assert shoal.audit(store.address, table="release", quasi_identifiers=ROLES["quasi_identifiers"], k=4).holds


def test_the_internal_manifest_goes_beside_a_file_and_into_the_current_folder_for_a_server(store, tmp_path):
    release = released(store.address)
    (path,) = release.write(store.address, to_table="release")
    (asked,) = release.write(store.address, to_table="other", manifest=tmp_path / "kept.json")

    is_file = Path(store.address).exists()
    assert (
        path.resolve()
        == Path(f"{store.address}.release.internal.json" if is_file else "release.internal.json").resolve()
    )
    assert asked == tmp_path / "kept.json"


@pytest.mark.parametrize("store", ["sqlite", "duckdb"], indirect=True)
def test_a_new_file_appears_whole_or_not_at_all(store, tmp_path, monkeypatch):
    release = released(store.address)
    with monkeypatch.context() as patch:
        patch.setattr(NewTable, "describe", _fail)
        with pytest.raises(OSError, match="planted"):
            release.write(store.new(), to_table="release")

    assert [path.name for path in tmp_path.iterdir()] == [Path(store.address).name]
    release.write(store.new(), to_table="release")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [Path(store.address).name, Path(store.new()).name, f"{Path(store.new()).name}.release.internal.json"]
    )


@pytest.mark.parametrize("day", ["-0044-03-15", "12345-01-01"])
def test_dates_that_no_database_returns_are_refused_by_the_name_of_their_column(store, tmp_path, day):
    table = pa.table({"age": np.arange(8.0), "day": pa.array(np.full(8, day, "datetime64[s]"))})
    release = shoal.anonymize(table, k=4, seed=1, quasi_identifiers=["age"], other=["day"])
    with pytest.raises(FileError, match="'day' has dates outside the years 1 to 9999") as found:
        release.write(store.address, to_table="release")

    assert day not in str(found.value)
    assert store.names() == ["people"]


@pytest.mark.parametrize("store", ["sqlite", "duckdb"], indirect=True)
def test_an_error_in_a_new_file_names_that_file_and_not_the_copy_that_is_written(store, monkeypatch):
    release = released(store.address)
    monkeypatch.setattr(NewTable, "describe", lambda table, *_: table._connection.rows("no sql"))
    with pytest.raises(DatabaseError) as found:
        release.write(store.new(), to_table="release")

    assert f"The database {store.new()!r}" in str(found.value)


def _fail(*_):
    raise OSError("planted")


def test_nothing_remains_of_a_release_that_fails(store, tmp_path, monkeypatch):
    release = released(store.address)
    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(NewTable, "commit", _fail)
    with pytest.raises(OSError, match="planted"):
        release.write(store.address, to_table="release", report=tmp_path / "report.html")

    assert store.names() == ["people"]
    assert sorted(tmp_path.iterdir()) == before


def test_ctrl_c_during_the_commit_comes_too_late(store, tmp_path, monkeypatch):
    release, commit = released(store.address), NewTable.commit

    def interrupted(self):
        os.kill(os.getpid(), signal.SIGINT)
        commit(self)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(NewTable, "commit", interrupted)
    words = [*TABLE_AND_ROLES, "--to-table", "told"]
    told = CliRunner().invoke(cli.main, ["anonymize", store.address, "-o", store.address, *words])
    with pytest.raises(KeyboardInterrupt):
        release.write(store.address, to_table="release", manifest=tmp_path / "release.internal.json")

    assert told.exit_code == 0, told.stderr
    assert "written           table told" in told.stdout
    assert store.names() == ["people", "release", "shoal_manifest", "told"]
    assert len(list(tmp_path.glob("*.internal.json"))) == 2


def test_the_guarantee_is_recounted_on_what_the_database_returns(store, tmp_path, monkeypatch):
    release = released(store.address)
    returned = NewTable.read

    def wrong(self, columns=None):
        arrow = returned(self, columns)
        return arrow.set_column(0, "Age", pa.array(range(arrow.num_rows)))

    monkeypatch.setattr(NewTable, "read", wrong)
    with pytest.raises(GuaranteeError, match="The written table does not satisfy k=4"):
        release.write(store.address, to_table="release")

    assert store.names() == ["people"]
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".json"] == []


def test_an_existing_table_is_replaced_only_with_force_and_atomically(store, monkeypatch):
    release = released(store.address)
    store.run("CREATE TABLE release (old integer)")
    with pytest.raises(DatabaseError, match=r"already has a table .*release.*force"):
        release.write(store.address, to_table="release")
    with monkeypatch.context() as patch:
        patch.setattr(NewTable, "commit", _fail)
        with pytest.raises(OSError, match="planted"):
            release.write(store.address, to_table="release", force=True)

    assert store.rows("SELECT count(old) FROM release") == [("0",)]
    for _ in range(2):
        release.write(store.address, to_table="release", force=True)
    assert store.rows('SELECT count("Age") FROM release') == [("40",)]
    assert store.rows("SELECT count(*) FROM shoal_manifest") == [("1",)]


def with_marks(*published):
    """Return a release of 400 people, some of whose columns are published; four share a word."""
    own = {name: [f"{name}-marked-{i % 100:04}" for i in range(400)] for name in ("kept", "withdrawn")}
    people = pa.table({"age": [i // 20 for i in range(400)], **own})
    dropped = [name for name in own if name not in published]
    return shoal.anonymize(people, k=4, quasi_identifiers="age", other=published, identifiers=dropped, seed=1)


def marks(store, word="withdrawn-marked"):
    """Count a word in the files of a database, as long as they exist."""
    if Path(store.address).exists():
        files = Path(store.address).parent.glob(f"{Path(store.address).name}*")
    else:
        store.run("CHECKPOINT")
        ((oid,),) = store.rows("SELECT oid FROM pg_database WHERE datname = current_database()")
        files = (postgres_server.folder() / "data" / "base" / oid).iterdir()
    return sum(path.read_bytes().count(word.encode()) for path in files)


MORE = [
    "CREATE SCHEMA further",
    "CREATE TYPE mood AS ENUM ('sad', 'glad')",
    "CREATE SEQUENCE numbers START 5",
    "CREATE TABLE further.parent (id integer PRIMARY KEY, mood mood, n integer DEFAULT nextval('numbers'))",
    "INSERT INTO further.parent SELECT range, 'glad', 5 FROM range(3)",
    "CREATE TABLE further.another (of_parent integer REFERENCES further.parent (id), twice integer AS (of_parent * 2))",
    "INSERT INTO further.another VALUES (2), (1)",
    "CREATE INDEX found ON further.another (of_parent)",
    "COMMENT ON TABLE further.another IS 'theirs'",
]
"""What else a DuckDB file can hold."""


def test_nothing_of_a_release_that_was_replaced_stays_in_the_files(store, tmp_path):
    if "duck" in store.address and version("duckdb") < "2":
        pytest.skip("shoal refuses to replace a table beside what only DuckDB 2 copies")
    store.run("CREATE VIEW theirs AS SELECT * FROM people WHERE id > 3", *(MORE if "duck" in store.address else ()))
    before = store.rows("SELECT * FROM theirs ORDER BY id")
    with_marks("kept", "withdrawn").write(store.address, to_table="release")
    withdrawn = marks(store)
    with_marks("kept").write(store.address, to_table="release", force=True)

    assert withdrawn >= 100
    assert marks(store) == 0
    assert marks(store, "kept-marked") >= 100
    assert store.rows("SELECT * FROM theirs ORDER BY id") == before
    assert store.rows("SELECT count(*) FROM shoal_manifest") == [("1",)]
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    if "duck" in store.address:
        store.run("INSERT INTO further.parent (id) VALUES (9)")
        assert store.rows("SELECT mood, n FROM further.parent WHERE id IN (0, 9)") == [("glad", "5"), ("", "5")]
        assert store.rows("SELECT * FROM further.another") == [("2", "4"), ("1", "2")]
        assert store.rows("SELECT comment FROM duckdb_tables() WHERE comment IS NOT NULL") == [("theirs",)]


READER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
for statement in ("SELECT count(*) FROM people", "BEGIN", "SELECT count(*) FROM people"):
    print(connection.execute(statement).fetchall(), flush=True)
    if statement != "BEGIN": input()
"""


def test_nothing_stays_in_the_log_of_sqlite_and_a_reader_that_holds_it_is_told_of(sqlite, monkeypatch):
    monkeypatch.setattr(sqlite_module, "_WAIT", 50)
    sqlite.run("PRAGMA journal_mode = WAL")
    # In another process: locks of one process do not hold each other up.
    command = [sys.executable, "-c", READER, sqlite.address]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True, bufsize=1) as reader:
        reader.stdout.readline()
        with_marks("kept", "withdrawn").write(sqlite.address, to_table="release")
        withdrawn = marks(sqlite)
        with_marks("kept").write(sqlite.address, to_table="release", force=True)

        assert withdrawn >= 100
        assert marks(sqlite) == 0
        reader.stdin.write("\n")
        assert [reader.stdout.readline(), reader.stdout.readline()] == ["[]\n", "[(40,)]\n"]
        with pytest.warns(shoal.ShoalWarning, match=r"is open in another program, so that the table .* ends in -wal"):
            with_marks().write(sqlite.address, to_table="release", force=True)
        reader.communicate("\n")


def test_a_duckdb_file_that_changes_meanwhile_is_not_replaced(duck, monkeypatch):
    with_marks().write(duck.address, to_table="release")
    copied = shutil.copyfile

    def changing(source, target):
        monkeypatch.undo()
        copied(source, target)
        duck.run("CREATE TABLE theirs (a integer)")

    monkeypatch.setattr(shutil, "copyfile", changing)
    with pytest.raises(shoal.FileError, match="has changed while it was in use"):
        with_marks("kept").write(duck.address, to_table="release", force=True)

    assert duck.names() == ["people", "release", "shoal_manifest", "theirs"]


def test_the_source_is_never_replaced_under_any_spelling(store):
    release = released(store.address)
    schema = "main" if Path(store.address).exists() else "public"
    folded = ["PEOPLE", "Main.People"] if schema == "main" else []  # PostgreSQL tells these apart
    for name in ("people", '"people"', f"{schema}.people", f'"{schema}"."people"', *folded):
        with pytest.raises(DatabaseError, match="that was read"):
            release.write(store.address, to_table=name, force=True)
    with pytest.raises(DatabaseError, match="no schema"):
        release.write(store.address, to_table="nowhere.people", force=True)

    assert store.rows("SELECT count(id) FROM people") == [("40",)]
    assert store.names() == ["people"]


def test_the_source_is_never_replaced_when_it_was_read_through_a_view_or_a_query(store):
    store.run("CREATE VIEW elders AS SELECT * FROM people WHERE id >= 0")
    queries = [
        {"table": "elders"},
        {"query": "SELECT * FROM elders"},
        {"query": "WITH q AS (SELECT * FROM people) SELECT * FROM q WHERE EXISTS (SELECT * FROM elders)"},
        {"query": 'SELECT "Age", zip, pay, id FROM (SELECT * FROM People) AS p'},
    ]
    for reading in queries:
        with pytest.raises(DatabaseError, match=r"that was read|depends on it"):
            released(store.address, **reading).write(store.address, to_table="people", force=True)
    with pytest.raises(DatabaseError, match="is not a table"):
        released(store.address).write(store.address, to_table="elders", force=True)

    assert store.rows("SELECT count(id) FROM people") == [("40",)]


@pytest.mark.parametrize("store", ["sqlite", "duckdb"], indirect=True)
def test_the_source_is_never_replaced_through_another_path_to_its_file(store, tmp_path):
    link = tmp_path / f"link{Path(store.address).suffix}"
    link.symlink_to(store.address)
    scheme = "duckdb" if link.suffix == ".duckdb" else "sqlite"
    release = released(store.address)
    for other in (link, f"{tmp_path}/./../{tmp_path.name}/{Path(store.address).name}", f"{scheme}:///{link}"):
        with pytest.raises(DatabaseError, match="that was read"):
            release.write(other, to_table="people", force=True)
    report = tmp_path / "report.html"
    report.symlink_to(store.address)
    with pytest.raises(shoal.FileError, match="same file as the input"):
        release.write(tmp_path / "out.csv", report=report, force=True)

    assert store.rows("SELECT count(id) FROM people") == [("40",)]


def test_a_server_is_recognised_under_another_address(postgres):
    address = postgres.address.replace("postgresql://", "postgres://") + "&application_name=other"
    with pytest.raises(DatabaseError, match="that was read"):
        released(postgres.address).write(address, to_table="public.people", force=True)


def test_a_view_on_an_old_release_keeps_it_from_being_replaced(postgres):
    release = released(postgres.address)
    release.write(postgres.address, to_table="release")
    postgres.run("CREATE VIEW uses AS SELECT * FROM release")
    with pytest.raises(DatabaseError, match="depends on it"):
        release.write(postgres.address, to_table="release", force=True)

    assert postgres.rows("SELECT count(*) FROM uses") == [("40",)]


def test_names_of_tables_and_columns_are_stored_as_they_are(store):
    name = 'a"b; DROP TABLE people; --'
    people = pa.table({'x"y': [1, 1, 2, 2], "Select": ["a", "a", "b", "b"], "naïve; --": [1.5, 1.5, 3.5, 3.5]})
    release = shoal.anonymize(people, k=2, quasi_identifiers=['x"y', "Select"], other=["naïve; --"], seed=1)
    release.write(store.address, to_table='"a""b; DROP TABLE people; --"')

    assert read(store.address, table='"a""b; DROP TABLE people; --"').names == tuple(people.column_names)
    assert store.names() == [name, "people", "shoal_manifest"]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["a" * 63 + "b", "a" * 63 + "c"], "cuts names off after 63"),
        (["ä" * 32], "has 64 bytes"),
        (["a\0b"], "NUL"),
        ([""], "empty name"),
    ],
)
def test_names_that_postgresql_would_change_are_refused(postgres, names, said):
    people = pa.table({name: [1, 1, 2, 2] for name in names})
    release = shoal.anonymize(people, k=2, quasi_identifiers=names, seed=1)
    with pytest.raises(shoal.SchemaError, match=said):
        release.write(postgres.address, to_table="release")
    with pytest.raises(shoal.ShoalError):
        release.write(postgres.address, to_table=names[0])

    assert postgres.names() == ["people"]


@pytest.mark.parametrize("store", ["sqlite", "duckdb"], indirect=True)
def test_columns_that_differ_only_in_case_are_refused_where_the_database_cannot_tell(store):
    people = pa.table({"a": [1, 1, 2, 2], "A": [1, 1, 2, 2]})
    with pytest.raises(shoal.SchemaError, match="differ only in case"):
        shoal.anonymize(people, k=2, quasi_identifiers=["a", "A"]).write(store.address, to_table="release")


def test_times_finer_than_a_database_stores_are_refused_without_a_value(store):
    times = pa.chunked_array([pa.array([1_000, 12_345_678_901_234] * 2, pa.time64("ns"))])
    release = shoal.anonymize(pa.table({"a": [1, 1, 2, 2], "t": times}), k=2, quasi_identifiers="a", other="t", seed=1)
    if Path(store.address).exists():  # SQLite stores them as texts, and DuckDB as they are
        release.write(store.address, to_table="release", order="keep")
        assert read(store.address, table="release").arrow["t"].cast(pa.string()).equals(times.cast(pa.string()))
        return
    with pytest.raises(shoal.FileError, match="Column 't' has times finer than a microsecond") as refused:
        release.write(store.address, to_table="release")

    assert "345" not in str(refused.value)
    assert store.names() == ["people"]


def test_the_manifest_table_is_not_written_over(store):
    release = released(store.address)
    with pytest.raises(shoal.ParameterError, match="holds the manifests"):
        release.write(store.address, to_table="Shoal_Manifest")
    store.run("CREATE TABLE shoal_manifest (mine integer)")
    with pytest.raises(DatabaseError, match="that shoal did not make"):
        release.write(store.address, to_table="release")

    assert store.names() == ["people", "shoal_manifest"]


def test_a_table_is_named_for_a_database_and_for_nothing_else(store, tmp_path):
    release = released(store.address)
    with pytest.raises(shoal.ParameterError, match="to_table="):
        release.write(store.address)
    with pytest.raises(shoal.ParameterError, match="Leave it out"):
        release.write(tmp_path / "out.csv", to_table="release")


@pytest.mark.parametrize("store", ["postgresql", "duckdb"], indirect=True)  # SQLite has no comments
def test_comments_travel_with_the_columns_that_are_published(store):
    store.run("COMMENT ON COLUMN people.\"Age\" IS 'the person''s \"age\"'", "COMMENT ON COLUMN people.id IS 'number'")
    release = released(store.address)
    release.write(store.address, to_table="release")

    assert read(store.address, table="release").labels.variables == {"Age": 'the person\'s "age"'}


CODE = """
import sys, time, shoal
import shoal.sources.databases.new_table as t
describe = t.NewTable.describe
def slow(self, *about):
    describe(self, *about)
    print("written", flush=True)
    time.sleep(float(sys.argv[2]))
t.NewTable.describe = slow
roles = {"quasi_identifiers": ["Age", "zip", "pay"], "identifiers": ["id"]}
release = shoal.anonymize(sys.argv[1], k=4, seed=1, reading={"table": "people"}, **roles)
try: release.write(sys.argv[1], to_table="release")
except KeyboardInterrupt: print("stopped")
except shoal.ShoalError as error: print(error)
else: print("done")
"""


def started(address, seconds):
    command = [sys.executable, "-c", CODE, address, str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    ("store", "number"),
    [
        ("postgresql", KILL),
        ("postgresql", signal.SIGINT),
        ("sqlite", KILL),
        ("duckdb", KILL),
    ],
    indirect=["store"],
)
def test_a_run_that_is_stopped_leaves_no_half_table(store, number, tmp_path):
    process = started(store.address, 600)
    assert process.stdout.readline() == "written\n"
    os.kill(process.pid, number)
    process.communicate(timeout=LIMIT)

    assert store.names() == ["people"]
    assert [
        path.name for path in tmp_path.iterdir() if path.name.endswith(".internal.json") and path.name[0] != "."
    ] == []
    released(store.address).write(store.address, to_table="release")  # and nothing of it is in the way
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_of_two_runs_that_write_the_same_table_one_is_refused(postgres):
    first, second = started(postgres.address, 0.3), started(postgres.address, 0.3)
    said = sorted(process.communicate(timeout=LIMIT)[0].splitlines()[-1] for process in (first, second))

    assert said[1] == "done"
    assert "already" in said[0]
    assert postgres.names() == ["people", "release", "shoal_manifest"]
