"""PostgreSQL, through ADBC: the extra `postgresql`.

Reading is one REPEATABLE READ, READ ONLY transaction. Parallel plans and synchronized scans are switched off in it, so
that an unchanged table returns its records in the same order.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from shoal.distribution import optional
from shoal.errors import DatabaseError, FileError
from shoal.passwords import REMEDY
from shoal.sources.clean import check_names, check_texts, check_wanted
from shoal.sources.databases.adbc import AdbcConnection, is_adbc
from shoal.sources.databases.address import Address
from shoal.sources.databases.connection import Connection, Database, Relation, Why, refused, subquery
from shoal.sources.databases.sql_names import Name, quoted
from shoal.sources.databases.values import checked, decimals, in_microseconds

_SETTINGS = (
    "SET LOCAL client_encoding = 'UTF8'",
    "SET LOCAL standard_conforming_strings = on",
    "SET LOCAL TimeZone = 'UTC'",
    "SET LOCAL DateStyle = 'ISO, YMD'",
    "SET LOCAL IntervalStyle = 'iso_8601'",
    "SET LOCAL max_parallel_workers_per_gather = 0",
    "SET LOCAL synchronize_seqscans = off",
)
_LOCK = 7_375_746_131  # one release at a time is written to a database
_OWN = {
    *("boolean", "smallint", "integer", "bigint", "real", "double precision", "text", "character varying", "character"),
    *("name", "date", "timestamp without time zone", "timestamp with time zone", "time without time zone", "bytea"),
}
"""Types that the driver reads as what they are; all others are read as text."""
_NUMBERS = {"numeric": "", "money": "::numeric"}
_KINDS = "'r', 'p', 'v', 'm', 'f'"
_RELATIONS = f"""
SELECT c.oid::bigint, n.nspname, c.relname, c.relkind IN ('r'), n.nspname = current_schema()
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ({_KINDS})"""
_BASE_TYPES = """
WITH RECURSIVE base(given, oid) AS (
    SELECT oid, oid FROM pg_catalog.pg_type WHERE oid IN ({oids})
    UNION ALL
    SELECT base.given, t.typbasetype FROM base JOIN pg_catalog.pg_type t ON t.oid = base.oid WHERE t.typtype = 'd'
)
SELECT given::bigint, pg_catalog.format_type(base.oid, NULL) FROM base JOIN pg_catalog.pg_type t ON t.oid = base.oid
WHERE t.typtype <> 'd'"""
"""The names of types, by number; for a domain that of the type that it restricts."""
_SQL_TYPES = {
    pa.bool_(): "boolean",
    pa.int8(): "smallint",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.uint8(): "smallint",
    pa.uint16(): "integer",
    pa.uint32(): "bigint",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.string(): "text",
    pa.large_string(): "text",
    pa.binary(): "bytea",
    pa.large_binary(): "bytea",
    pa.date32(): "date",
    pa.time64("us"): "time",
    pa.timestamp("us"): "timestamp",
    pa.timestamp("us", "UTC"): "timestamp with time zone",
}
_REFUSALS = {
    "28": f"does not let this user in. Check user and password. {REMEDY}.",
    "3D": "does not exist on the server. Check the name at the end of the address.",
    "42501": "does not give this user the right that is needed: SELECT on what is read, CREATE on the schema that is "
    "written to. Ask its owner for it.",
    "25006": Why.WRITES,
    "0A000": "cannot use this query: it must be one SELECT, and statements that write are refused.",
    "42601": Why.ONE_SELECT,
    "42701": "cannot create the table, since a column has a name that every table uses itself: ctid, xmin, xmax, cmin, "
    "cmax or tableoid. Rename the column.",
    "42703": Why.NO_COLUMN,
    "3F000": Why.NO_SCHEMA,
    "2BP01": "cannot replace the table, since a view or another table depends on it. Drop that first, or choose "
    "another name.",
    "42P07": Why.EXISTS,
    "55P03": "has a lock on the table that another program holds. Try again when that has ended.",
    "40": "was changed by another program at the same time. Start again.",
    "53": "has no room left: disk, memory or number of connections. Ask its administrator.",
    "57014": "stopped the statement: it took longer than the server allows, or somebody cancelled it. Start again.",
    "57": "is shutting down, and the connection is lost. Nothing was written. Start again when it is back.",
    "08": "does not answer any more: the connection is lost. Nothing was written. Start again when it is back.",
}
"""What became of a statement, by the beginning of its SQLSTATE; the first that fits."""
_TEXTS = {
    "password": "28",
    "authentication": "28",
    "no pg_hba.conf entry": "28",
    "role ": "28",
    "does not exist": "3D",
    "too many": "53",
    "closed the connection": "08",
    "no connection": "08",
    "terminating connection": "08",
    "read record": "08",
}
"""What became of a statement without SQLSTATE, by a part of the driver's text."""


class PostgreSQL(AdbcConnection):
    """A transaction in PostgreSQL."""

    longest_name = 63
    ignores_case = False

    def refusal(self, state: str | None, text: str) -> DatabaseError:
        """Return the error for a failed statement."""
        if state is None and "Failed to connect" in text and not any(part in text for part in _TEXTS):
            return DatabaseError(
                f"{self.where} cannot be reached. Check host and port of the address, and that the server is running."
            )
        if state == "42P01":
            self.rows("ROLLBACK")  # the transaction has failed, and answers no more
            return self.without_table()
        if state is None:
            state = next((state for part, state in _TEXTS.items() if part in text), "")
        reason = next((reason for begin, reason in _REFUSALS.items() if state.startswith(begin)), None)
        return refused(self.where, reason, f"SQLSTATE {state or 'unknown'}", "psql")

    def begin(self, *, write: bool) -> None:
        """Begin the transaction."""
        self.rows("BEGIN" if write else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        for setting in _SETTINGS:
            self.rows(setting)
        if write:
            self.rows(f"SELECT pg_catalog.pg_advisory_xact_lock({_LOCK})")
        ((database, may_ask),) = self.rows(
            "SELECT oid::bigint, has_function_privilege('pg_catalog.pg_control_system()', 'EXECUTE') "
            "FROM pg_catalog.pg_database WHERE datname = current_database()"
        )
        ask = "SELECT system_identifier::text FROM pg_catalog.pg_control_system()"
        # Where the server does not show its number, all databases of the same number are taken for one.
        self.identity = frozenset({("postgresql", database, *(self.rows(ask)[0] if may_ask else ()))})

    def commit(self) -> None:
        """Make what was written permanent."""
        try:
            self.rows("COMMIT")
        except DatabaseError:
            raise DatabaseError(
                f"{self.where} did not confirm the last step, the commit. See whether it has the new table; if not, "
                "start again."
            ) from None

    def fetch(self, query: str, columns: Sequence[str] | None) -> pa.Table:
        """Return the records of a query."""
        names = self.names(subquery(query))
        check_names(names)
        wanted = check_wanted(columns, names)
        types = self._types(query, wanted)
        selected = ", ".join(f"{quoted(name)}{_cast(kind)} AS {quoted(name)}" for name, kind in types.items())
        found = self.arrow(subquery(query, selected))
        made = {name: _as_arrow(name, found[name], kind) for name, kind in types.items()}
        return checked(pa.table(made) if made else found)

    def _types(self, query: str, names: Sequence[str]) -> dict[str, str]:
        """Return the names of the types of columns."""
        if not names:
            return {}
        asked = ", ".join(f"pg_catalog.pg_typeof(records.{quoted(name)})::oid::bigint" for name in names)
        empty = f"(SELECT 1) AS one LEFT JOIN ({subquery(query)} LIMIT 0) AS records ON true"
        (oids,) = self.rows(f"SELECT {asked} FROM {empty}")
        titles = dict(self.rows(_BASE_TYPES.format(oids=", ".join(map(str, set(oids))))))
        return {name: titles[oid] for name, oid in zip(names, oids, strict=True)}

    def relations_read(self, query: str) -> frozenset[object]:
        """Return the relations that the transaction has locked: all that it has read, also through views."""
        rows = self.rows(
            "SELECT relation::bigint FROM pg_catalog.pg_locks WHERE pid = pg_backend_pid() AND locktype = 'relation'"
        )
        return frozenset(oid for (oid,) in rows)

    def relations(self) -> list[Relation]:
        """Return the tables and views that the user may read."""
        rows = self.rows(
            f"{_RELATIONS} AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_%' "
            "AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT') ORDER BY 2, 3"
        )
        return [
            Relation(Name(table, None if own else schema), oid, is_table) for oid, schema, table, is_table, own in rows
        ]

    def find(self, name: Name) -> Relation | None:
        """Return the relation of this name, in its schema or the first of the search path that has it."""
        if name.schema is None:
            rows = self.rows(f"{_RELATIONS} AND c.relname = $1 AND pg_catalog.pg_table_is_visible(c.oid)", name.table)
        else:
            rows = self.rows(f"{_RELATIONS} AND c.relname = $1 AND n.nspname = $2", name.table, name.schema)
        return next((Relation(Name(table, schema), oid, is_table) for oid, schema, table, is_table, _ in rows), None)

    def placed(self, name: Name) -> Name:
        """Return the name with the schema in which a new table of this name is created; raise without the right to."""
        ((schema,),) = self.rows("SELECT coalesce($1, current_schema()::text)", name.schema)
        if schema is None:
            raise DatabaseError(f"{self.where} has no schema on the search path. Give SCHEMA.TABLE.")
        ((may_create,),) = self.rows("SELECT has_schema_privilege($1, 'CREATE')", schema)
        if not may_create:
            raise self.refusal("42501", "")
        return name._replace(schema=schema)

    def comments(self, relation: Relation) -> dict[str, str]:
        """Return the comments on the columns of a table."""
        rows = self.rows(
            "SELECT a.attname, d.description FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_description d "
            "ON d.objoid = a.attrelid AND d.objsubid = a.attnum AND d.classoid = 'pg_catalog.pg_class'::regclass "
            f"WHERE a.attrelid = {relation.key} AND NOT a.attisdropped"
        )
        return dict(rows)

    def storable(self, arrow: pa.Table) -> pa.Table:
        """Return the table in types that have one in PostgreSQL."""
        made = {name: _stored_column(name, arrow[name]) for name in arrow.column_names}
        odd = [name for name, column in made.items() if self._sql_type(column.type) is None]
        if odd:
            raise FileError(
                f"Column(s) {', '.join(map(repr, odd))} have a type that shoal does not write to PostgreSQL. Convert "
                "them, or leave them out."
            )
        stored = pa.table(made)
        check_texts(stored, "PostgreSQL")
        return stored

    def sql_type(self, kind: pa.DataType) -> str:
        """Return the type of a column."""
        return self._sql_type(kind) or "text"

    @staticmethod
    def _sql_type(kind: pa.DataType) -> str | None:
        return f"numeric({kind.precision}, {kind.scale})" if pa.types.is_decimal(kind) else _SQL_TYPES.get(kind)


def _cast(kind: str) -> str:
    return "" if kind in _OWN else _NUMBERS.get(kind, "::text")


def _as_arrow(name: str, column: pa.ChunkedArray, kind: str) -> pa.ChunkedArray:
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    return decimals(name, column) if kind in _NUMBERS else column


def _stored_column(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_timestamp(column.type) or pa.types.is_time(column.type):
        return in_microseconds(name, column, "PostgreSQL")
    return column.cast(_stored(column.type))


def _stored(kind: pa.DataType) -> pa.DataType:
    """Return the type as which values are sent, which has to fit the column exactly."""
    if pa.types.is_dictionary(kind):
        return _stored(kind.value_type)
    plain = {
        pa.null(): pa.string(),
        pa.date64(): pa.date32(),
        pa.float16(): pa.float32(),
        pa.uint64(): pa.decimal128(20, 0),
        pa.int8(): pa.int16(),
        pa.uint8(): pa.int16(),
        pa.uint16(): pa.int32(),
        pa.uint32(): pa.int64(),
    }
    return plain.get(kind, kind)


def connect(address: Address, write: bool) -> Connection:
    """Connect to a server."""
    dbapi = optional("adbc_driver_postgresql.dbapi", "PostgreSQL needs the extra postgresql", "postgresql", FileError)
    return PostgreSQL(f"The database {str(address)!r}", lambda: dbapi.connect(address.text, autocommit=True))


def share(connection: Any) -> Connection | None:
    """Open a second connection to the server of an ADBC connection."""
    if not is_adbc(connection, "PostgreSQL"):
        return None

    def clone() -> Any:
        cloned = connection.adbc_clone()
        cloned.adbc_connection.set_autocommit(True)
        return cloned

    return PostgreSQL("The database of the connection", clone)


POSTGRESQL = Database(
    "postgresql",
    "PostgreSQL",
    ("postgresql", "postgres"),
    (),
    connect,
    share,
    "a new table, with types and comments",
    extra="postgresql",
)
