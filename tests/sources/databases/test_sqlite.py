"""SQLite: values without column types, and files that cannot be used."""

import datetime
import sqlite3
import subprocess
import sys
from contextlib import closing

import pyarrow as pa
import pytest

import shoal
from shoal.errors import DatabaseError
from shoal.sources import read
from shoal.sources.databases import sqlite as module


def test_dates_times_and_booleans_go_by_their_declared_types(sqlite):
    sqlite.run(
        "CREATE TABLE typed (d DATE, t TIMESTAMP, z TIMESTAMP WITH TIME ZONE, b BOOLEAN, wrong DATE, two BOOLEAN, "
        "none DATE)",
        "INSERT INTO typed VALUES ('2024-02-29', '2024-02-29 10:00:00', '2024-02-29T10:00:00Z', 1, '29.2.24', 2, NULL)",
    )
    table = read(sqlite.address, table="typed").arrow

    assert table.to_pylist() == [
        {
            "d": datetime.date(2024, 2, 29),
            "t": datetime.datetime(2024, 2, 29, 10),
            "z": datetime.datetime(2024, 2, 29, 10, tzinfo=datetime.UTC),
            "b": True,
            "wrong": "29.2.24",
            "two": 2,
            "none": None,
        }
    ]
    assert table.schema.field("none").type == pa.date32()


def test_types_come_back_from_a_release(sqlite):
    people = pa.table(
        {
            "a": [1, 1, 2, 2],
            "d": pa.array([0, 0, 1, 1], pa.date32()),
            "t": pa.array([0, 0, 1, 1], pa.timestamp("us")),
            "z": pa.array([0, 0, 1, 1], pa.timestamp("ms", "UTC")),
            "b": [True, True, None, None],
            "x": pa.array([b"\0", b"\0", None, None]),
            "c": pa.array(["u", "u", None, None]).dictionary_encode(),
            "f": [1.0, 1.0, 2.0, 2.0],
        }
    )
    names = [name for name in people.column_names if name != "a"]
    release = shoal.anonymize(people, k=2, quasi_identifiers=["a"], other=names, seed=1)
    release.write(sqlite.address, to_table="release", order="keep")
    again = read(sqlite.address, table="release").arrow

    assert again.to_pylist() == release.published.to_pylist()
    assert [again.schema.field(name).type for name in ("d", "t", "b", "f")] == [
        *(pa.date32(), pa.timestamp("us"), pa.bool_(), pa.float64())
    ]


def test_a_column_of_numbers_and_texts_is_refused_wherever_they_are(sqlite):
    sqlite.run(
        "CREATE TABLE mixed (a, late, b)",
        "WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i WHERE i < 200) "
        "INSERT INTO mixed SELECT CASE i WHEN 150 THEN 'x' ELSE i END, CASE WHEN i > 100 THEN 'y' END, i / 2.0 FROM i",
    )
    with pytest.raises(shoal.SchemaError, match=r"Column 'a' holds text, and in 199 records a number"):
        read(sqlite.address, table="mixed")

    assert read(sqlite.address, table="mixed", columns=["late", "b"]).types.types == [pa.string(), pa.float64()]
    assert read(sqlite.address, query="SELECT CAST(a AS TEXT) AS a FROM mixed").types.types == [pa.string()]


def test_types_that_show_late_are_found_in_all_records(sqlite, monkeypatch):
    monkeypatch.setattr(module, "_BATCH", 10)
    sqlite.run(
        "CREATE TABLE late (a, b)",
        "WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i WHERE i < 40) "
        "INSERT INTO late SELECT CASE WHEN i > 30 THEN 'x' END, CASE WHEN i > 30 THEN 0.5 ELSE i END FROM i",
    )
    table = read(sqlite.address, table="late")

    assert table.types.types == [pa.string(), pa.float64()]
    assert table.arrow["b"].to_pylist()[-1] == 0.5


def test_text_that_is_not_utf_8_is_refused(sqlite):
    sqlite.run("CREATE TABLE broken (a TEXT)", "INSERT INTO broken VALUES (CAST(x'ff' AS TEXT))")
    with pytest.raises(DatabaseError, match="not UTF-8"):
        read(sqlite.address, table="broken")


def test_files_that_are_no_database_are_refused(tmp_path):
    (tmp_path / "text.db").write_text("name,age\n" * 20)
    (tmp_path / "folder.db").mkdir()
    newer = bytearray(b"SQLite format 3\0" + bytes(84))
    newer[18:20] = b"\x03\x03"
    (tmp_path / "newer.db").write_bytes(newer)
    for name, said in {
        "text.db": "not a SQLite file, or it is encrypted",
        "folder.db": "is a folder",
        "absent.db": "does not exist",
        "newer.db": "newer version of SQLite",
    }.items():
        with pytest.raises(shoal.ShoalError, match=said):
            read(tmp_path / name, table="people")
    assert not (tmp_path / "absent.db").exists()


def test_a_damaged_file_is_refused(sqlite):
    with open(sqlite.address, "r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 3000)
    with pytest.raises(DatabaseError, match="damaged"):
        read(sqlite.address, table="people")


def test_a_locked_database_is_refused_and_nothing_is_written(sqlite, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_WAIT", 50)
    release = shoal.anonymize(
        sqlite.address, k=4, quasi_identifiers=["Age", "zip", "pay"], identifiers=["id"], reading={"table": "people"}
    )
    code = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1])\n"
        "c.execute('BEGIN EXCLUSIVE'); print(flush=True); input()"
    )
    # In another process: locks of one process do not hold each other up.
    holder = subprocess.Popen([sys.executable, "-c", code, sqlite.address], stdin=-1, stdout=-1, text=True)
    holder.stdout.readline()
    with pytest.raises(DatabaseError, match="is locked by another program"):
        release.write(sqlite.address, to_table="release")
    with pytest.raises(DatabaseError, match="is locked by another program"):
        read(sqlite.address, table="people")
    holder.communicate("\n")

    assert sqlite.names() == ["people"]
    assert [path.name for path in tmp_path.iterdir()] == ["people.db"]


def test_a_file_with_odd_characters_in_its_path_is_read(tmp_path):
    path = tmp_path / "a?mode=rwc&b#c%20d.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE people (id)")
    connection.close()

    assert read(path, table="people").names == ("id",)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_semicolon_in_a_text_or_a_comment_does_not_end_a_query(sqlite):
    query = """SELECT id AS "a;b", ';' AS c FROM people /* ; */ WHERE zip <> 'it''s;' -- ;"""

    assert read(sqlite.address, query=query).names == ("a;b", "c")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT json_extract(note, '$.a') AS a FROM people", "not JSON"),
        ('SELECT "malformed" malformed malformed FROM people', "cannot read the query"),
        ("SELECT malformed FROM people", "no column of a name"),
    ],
)
def test_a_query_that_fails_is_not_blamed_on_the_file(tmp_path, query, words):
    with closing(sqlite3.connect(tmp_path / "people.db")) as connection, connection:
        connection.execute("CREATE TABLE people (note TEXT)")
        connection.execute("INSERT INTO people VALUES ('{a')")
    with pytest.raises(shoal.DatabaseError, match=words) as refused:
        read(tmp_path / "people.db", query=query)

    assert "backup" not in str(refused.value)
