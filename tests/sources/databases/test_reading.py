"""Reading from databases: tables and queries, in one transaction that cannot write."""

import os
import subprocess
import sys

import adbc_driver_postgresql.dbapi
import adbc_driver_sqlite.dbapi
import duckdb
import pytest

import shoal
from shoal.errors import DatabaseError
from shoal.sources import read
from shoal.sources.databases.postgresql import PostgreSQL
from stores import PEOPLE, STORES
from waits import LIMIT

ROLES = {"quasi_identifiers": ["Age", "zip", "pay"], "identifiers": ["id"]}


def test_a_table_is_read_as_it_is(store):
    table = read(store.address, table="people")

    assert table.names == ("Age", "zip", "pay", "id")
    assert [tuple(record.values()) for record in table.arrow.to_pylist()] == PEOPLE


def test_a_query_is_read_in_its_order_and_columns_are_chosen(store):
    query = 'SELECT "Age" AS age, id FROM people WHERE id < 10 ORDER BY id DESC; '
    table = read(store.address, query=query)

    assert table.arrow["id"].to_pylist() == list(range(9, -1, -1))
    assert read(store.address, query=query, columns=["id"]).names == ("id",)
    assert read(store.address, query="SELECT id FROM people -- all of them").n_records == 40


def test_an_empty_table_has_its_columns_and_no_records(store):
    store.run("CREATE TABLE nobody (age integer, name text)")
    table = read(store.address, table="nobody")

    assert table.names == ("age", "name")
    assert table.n_records == 0
    with pytest.raises(shoal.ShoalError, match="records"):
        shoal.anonymize(store.address, k=2, quasi_identifiers=["age"], other=["name"], reading={"table": "nobody"})


def test_the_same_release_comes_from_a_table_and_a_query(store):
    found = [
        shoal.anonymize(store.address, k=4, seed=1, reading=reading, **ROLES).table
        for reading in ({"table": "people"}, {"query": "SELECT * FROM people"})
    ]

    assert found[0] == found[1]


def test_names_are_never_read_as_sql(store):
    name, column = 'a"b; DROP TABLE people; --', 'x"y; DROP TABLE people; --'
    store.run('CREATE TABLE "a""b; DROP TABLE people; --" ("x""y; DROP TABLE people; --" integer, "Select" text)')
    quoted = '"a""b; DROP TABLE people; --"'

    assert read(store.address, table=quoted).names == (column, "Select")
    assert read(store.address, table=quoted, columns=[column]).names == (column,)
    assert name in store.names()
    assert "people" in store.names()
    for wrong in ("people; DROP TABLE people", 'people" UNION SELECT * FROM people --', "people\0", "", "a.b.c.d"):
        with pytest.raises(shoal.ShoalError):
            read(store.address, table=wrong)


WRITING = [
    "DELETE FROM people",
    "INSERT INTO people (id) VALUES (1)",
    "CREATE TABLE other (a integer)",
    "CREATE TEMPORARY TABLE other (a integer)",
    "SELECT 1; DELETE FROM people",
    "SELECT 1) AS records; DELETE FROM people; --",
    "WITH gone AS (DELETE FROM people RETURNING id) SELECT * FROM gone",
    "DROP TABLE people",
    "COMMIT",
    "PRAGMA user_version = 7",
    "ATTACH 'other.db' AS other",
    "COPY people TO 'copied.csv'",
    "COPY (SELECT 1) TO PROGRAM 'touch copied.csv'",
    "SET default_transaction_read_only = off",
    "EXPLAIN ANALYZE DELETE FROM people",
    "",
    ";",
    "no sql at all",
]


def test_a_query_that_is_not_one_select_is_refused(store, tmp_path):
    before = sorted(os.listdir(tmp_path))
    for query in WRITING:
        with pytest.raises(DatabaseError, match=r"The database '"):
            read(store.address, query=query)

    assert store.rows("SELECT count(*) FROM people") == [("40",)]
    assert store.names() == ["people"]
    assert sorted(os.listdir(tmp_path)) == before


def test_one_of_table_and_query_is_asked_for_with_the_names_of_tables(store):
    with pytest.raises(shoal.ParameterError, match=r"table= or query=. Tables: people"):
        read(store.address)
    with pytest.raises(shoal.ParameterError, match="not both"):
        read(store.address, table="people", query="SELECT 1")
    with pytest.raises(shoal.ParameterError, match="delimiter cannot be given"):
        read(store.address, table="people", delimiter=";")


def test_a_missing_table_is_refused_with_the_names_of_those_that_exist(store):
    with pytest.raises(DatabaseError, match=r"no table 'peple'. Did you mean 'people'\? Tables: people"):
        read(store.address, table="peple")
    with pytest.raises(DatabaseError, match=r"that the query uses. Tables: people"):
        read(store.address, query="SELECT * FROM persons")


def test_a_missing_column_in_a_query_is_refused_without_its_text(store):
    with pytest.raises(DatabaseError, match="Check the query") as caught:
        read(store.address, query="SELECT absent, 'geheim' FROM people")

    assert "geheim" not in str(caught.value)


def test_values_stay_out_of_the_errors_of_drivers(store):
    store.run("CREATE TABLE texts (a text)", "INSERT INTO texts VALUES ('geheim')")
    query = "SELECT CAST(a AS integer) AS a FROM texts"
    if store.address.endswith(".db"):
        query = "SELECT abs(-9223372036854775808) FROM texts"  # an overflow: SQLite casts any text
    with pytest.raises(DatabaseError, match="its text is left out") as caught:
        read(store.address, query=query)

    assert "geheim" not in str(caught.value) + repr(caught.value.__cause__)
    assert caught.value.__suppress_context__


def test_a_view_is_read_like_a_table(store):
    store.run("CREATE VIEW elders AS SELECT * FROM people WHERE id >= 20")

    assert read(store.address, table="elders").n_records == 20


def test_two_columns_of_the_same_name_are_refused(postgres):
    with pytest.raises(shoal.SchemaError, match="same name"):
        read(postgres.address, query="SELECT id, id FROM people")


def connection_to(store):
    if isinstance(store, STORES["duckdb"]):
        return duckdb.connect(store.address)
    driver = adbc_driver_sqlite.dbapi if store.address.endswith(".db") else adbc_driver_postgresql.dbapi
    return driver.connect(store.address)


def test_a_connection_is_read_by_a_query_and_left_as_it_is(store):
    with connection_to(store) as connection:
        release = shoal.anonymize(
            connection, k=4, seed=1, reading={"query": 'SELECT "Age", zip, pay, id FROM people'}, **ROLES
        )
        cursor = connection.cursor()
        cursor.execute("SELECT count(*) FROM people")
        count = cursor.fetchall()
        cursor.close()

    assert release.table == shoal.anonymize(store.address, k=4, seed=1, reading={"table": "people"}, **ROLES).table
    assert count == [(40,)]


def test_a_query_that_writes_is_refused_on_a_connection_too(store):
    with connection_to(store) as connection, pytest.raises(DatabaseError):
        read(connection, query="DELETE FROM people")

    assert store.rows("SELECT count(*) FROM people") == [("40",)]


def test_a_database_in_memory_is_read_through_its_connection():
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE people AS SELECT range AS id FROM range(5)")

        assert read(connection, table="people").n_records == 5


def test_a_connection_without_a_query_is_asked_for_one(store):
    with connection_to(store) as connection, pytest.raises(shoal.ParameterError, match="table= or query="):
        read(connection)


def test_every_command_reads_a_database(store):
    found = shoal.inspect(store.address, table="people")
    compared = shoal.compare(store.address, k=[4], methods=["mdav"], reading={"table": "people"}, **ROLES)

    assert found.n_records == 40
    assert found.job(4).input.table == "people"
    assert "--table people" in found.command(4)
    assert len(compared.choices) == 1


SLOW = {
    "DuckDB": "SELECT count(*) AS n FROM range(20000000)",
    "PostgreSQL": "SELECT 1 AS n FROM pg_sleep(30)",
    "SQLite": "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t LIMIT 5000000) SELECT max(n) AS n FROM t",
}


def test_reading_stops_at_ctrl_c(store):
    code = (
        "import os, signal, sys, threading, shoal.sources\n"
        "shoal.sources.read(sys.argv[1], table='people')\n"
        "try:\n"
        "    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "    while True: shoal.sources.read(sys.argv[1], query=sys.argv[2])\n"
        "except KeyboardInterrupt: print('stopped')\n"
    )
    command = [sys.executable, "-c", code, store.address, SLOW[type(store).__name__]]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT)

    assert (done.stdout, done.stderr) == ("stopped\n", "")


def test_a_table_that_changes_during_the_read_is_read_as_it_was(postgres, monkeypatch):
    read_records = PostgreSQL.arrow

    def changed(self, query):
        postgres.run("DELETE FROM people WHERE id < 20")
        return read_records(self, query)

    monkeypatch.setattr(PostgreSQL, "arrow", changed)
    table = read(postgres.address, table="people")

    assert table.n_records == 40
    assert postgres.rows("SELECT count(*) FROM people") == [("20",)]


def test_a_closed_connection_is_refused(store):
    connection = connection_to(store)
    connection.close()
    with pytest.raises(DatabaseError, match="connection is closed"):
        read(connection, table="people")
