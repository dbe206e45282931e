"""Databases for tests: made and read without shoal."""

import csv
import io
import sqlite3

import duckdb

import postgres_server as server


class Store:
    """A database: its address, and statements executed by its own program."""

    def names(self):
        """Return the tables and views."""
        return sorted(name for (name,) in self.rows(self.listing))


class PostgreSQL(Store):
    listing = "SELECT relname FROM pg_class WHERE relkind IN ('r', 'v') AND relnamespace = 'public'::regnamespace"

    def __init__(self, folder):
        self.name = server.new_database()
        self.address = server.address(self.name)

    def run(self, *statements):
        server.psql(self.name, *statements)

    def rows(self, query):
        return [tuple(row) for row in csv.reader(io.StringIO(server.psql(self.name, query)))][1:]

    def new(self):
        """Return the address of a database that is still empty."""
        return server.address(server.new_database())


class SQLite(Store):
    listing = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"

    def __init__(self, folder):
        self.folder = folder
        self.address = str(folder / "people.db")
        self.run("SELECT 1")

    def run(self, *statements):
        connection = sqlite3.connect(self.address)
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        connection.close()

    def rows(self, query):
        connection = sqlite3.connect(self.address)
        found = connection.execute(query).fetchall()
        connection.close()
        return [tuple("" if value is None else str(value) for value in row) for row in found]

    def new(self):
        return str(self.folder / "new.db")


class DuckDB(Store):
    listing = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main'"

    def __init__(self, folder):
        self.folder = folder
        self.address = str(folder / "people.duckdb")
        self.run("SELECT 1")

    def run(self, *statements):
        with duckdb.connect(self.address) as connection:
            for statement in statements:
                connection.execute(statement)

    def rows(self, query):
        with duckdb.connect(self.address, read_only=True) as connection:
            found = connection.execute(query).fetchall()
        return [tuple("" if value is None else str(value) for value in row) for row in found]

    def new(self):
        return str(self.folder / "new.duckdb")


STORES = {"postgresql": PostgreSQL, "sqlite": SQLite, "duckdb": DuckDB}

TABLE_AND_ROLES = ["--table", "people", "-k", "4", "--quasi-identifiers", "Age,zip,pay", "--identifiers", "id"]
PEOPLE = [(20 + i * 7 % 40, f"{'abc'[i % 3]}", 1000.5 + i, i) for i in range(40)]
CREATE = 'CREATE TABLE people ("Age" integer, zip text, pay double precision, id integer)'


def fill(store, table="people"):
    """Create a table of 40 people and return the store."""
    values = ", ".join(f"({age}, '{zip_}', {pay}, {id_})" for age, zip_, pay, id_ in PEOPLE)
    store.run(CREATE.replace("people", table), f"INSERT INTO {table} VALUES {values}")
    return store
