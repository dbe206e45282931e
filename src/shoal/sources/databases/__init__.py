"""Databases: tables and queries are read from them, and releases written into new tables.

Each database is one file in this folder and one entry in `DATABASES`.
"""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from shoal.errors import DatabaseError, ShoalError
from shoal.sources.databases.address import Address, checked_scheme, file_address, refuse_scheme, server_address
from shoal.sources.databases.connection import Connection, Database, Origin, transaction
from shoal.sources.databases.duckdb import DUCKDB
from shoal.sources.databases.postgresql import POSTGRESQL
from shoal.sources.databases.sqlite import SQLITE

DATABASES = (POSTGRESQL, SQLITE, DUCKDB)
"""Kinds of databases: one line here, one file in this folder."""


class Place(NamedTuple):
    """A database at an address."""

    database: Database
    address: Address

    def connect(self, write: bool = False) -> Connection:
        """Open the database."""
        return self.database.connect(self.address, write)


class Found(NamedTuple):
    """Records that were read from a database."""

    arrow: pa.Table
    comments: dict[str, str]
    origin: Origin


def place_of(source: str | os.PathLike[str]) -> Place | None:
    """Return the database that an address or a path names, None if it is not one; raise if it holds a password."""
    scheme, text = checked_scheme(source), os.fspath(source)
    if scheme is not None:
        for database in DATABASES:
            if scheme in database.schemes:
                return Place(database, file_address(text, scheme) if database.endings else server_address(text))
        raise refuse_scheme(scheme, [name for database in DATABASES for name in database.schemes])
    for database in DATABASES:
        if text.lower().endswith(database.endings) and database.endings:
            return Place(database, file_address(text, None))
    return None


def shared(source: Any) -> tuple[Database, Connection] | None:
    """Return a second connection to the database of a Python connection; None if `source` is not such a connection."""
    shares = ((database, database.share(source)) for database in DATABASES)
    try:
        return next(((database, connection) for database, connection in shares if connection is not None), None)
    except ShoalError:
        raise
    except Exception:  # of any driver; its text may hold an address
        raise DatabaseError("The connection is closed, or its database does not answer. Open it again.") from None


def read_database(connection: Connection, table: str | None, query: str | None, columns: Sequence[str] | None) -> Found:
    """Read a table or a query in one read-only transaction."""
    with transaction(connection):
        relation = connection.chosen(table, query)
        if relation is None:
            arrow, comments = connection.fetch(str(query), columns), {}
        else:
            arrow, comments = connection.fetch_table(relation, columns), connection.comments(relation)
        read = connection.relations_read(str(query) if relation is None else f"SELECT * FROM {relation.name.sql}")
        keys = read if relation is None else read | {relation.key}
        return Found(arrow, comments, Origin(connection.identity, keys))


def check_address(text: str) -> str:
    """Return the address of a table in a job; raise if it holds a password or names no known database."""
    place_of(text)
    return text
