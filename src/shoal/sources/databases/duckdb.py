"""DuckDB files, through the package duckdb: the extra `duckdb`.

The database is opened without access to other files, and queries see no variables of Python.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from shoal.distribution import optional
from shoal.errors import DatabaseError, FileError
from shoal.sources.clean import check_names, check_wanted
from shoal.sources.databases.address import Address, check_file, identity_of
from shoal.sources.databases.connection import Connection, Database, Relation, Why, refused, subquery
from shoal.sources.databases.sql_names import Name, literal, quoted
from shoal.sources.databases.values import checked
from shoal.sources.source_stamps import Stamp, check_stamp

_MAGIC = b"DUCK"
_RECORDS = "shoal records"
_COPY = "shoal copy"
_DEFINED = (
    "SELECT schema_name, comment FROM duckdb_schemas() WHERE database_name = ? AND NOT internal",
    "SELECT schema_name, table_name, sql, comment FROM duckdb_tables() WHERE database_name = ? AND NOT internal",
    "SELECT schema_name, table_name, column_name, column_index, data_type, column_default, is_nullable, comment "
    "FROM duckdb_columns() WHERE database_name = ? AND NOT internal",
    "SELECT schema_name, table_name, constraint_type, constraint_text FROM duckdb_constraints() "
    "WHERE database_name = ?",
    "SELECT schema_name, view_name, sql, comment FROM duckdb_views() WHERE database_name = ? AND NOT internal",
    "SELECT schema_name, index_name, sql, comment FROM duckdb_indexes() WHERE database_name = ?",
    "SELECT schema_name, sequence_name, sql, comment FROM duckdb_sequences() WHERE database_name = ?",
    "SELECT schema_name, type_name, labels, comment FROM duckdb_types() WHERE database_name = ? AND NOT internal",
    "SELECT schema_name, function_name, parameters, macro_definition, comment FROM duckdb_functions() "
    "WHERE database_name = ? AND NOT internal",
)
"""What a copy has to have too."""
_CONFIG = {"enable_external_access": "false"}
_REFUSALS = {
    "already exists": Why.EXISTS,
    "version number": "was written by a newer version of DuckDB. Update the package: pip install --upgrade duckdb.",
    "Could not set lock": Why.LOCKED,
    "different configuration": "is open in this process in another way. Close that connection, or pass it in place of "
    "the address.",
    "read-only": Why.WRITES,
    "disabled by configuration": "cannot run this query: it uses another file or an extension. Read that by itself.",
    "Parser Error": Why.ONE_SELECT,
    "Binder Error": "has no column or function of a name that the query uses. Check the query.",
    "Schema with name": Why.NO_SCHEMA,
    "not a valid DuckDB": "is not a DuckDB file. Check the address.",
    "Permission denied": "may not be opened by this user. Ask its owner for the right.",
    "Dependency": "cannot replace the table, since something else depends on it. Drop that first, or choose another "
    "name.",
}
"""What became of a statement, by a part of the text of the error."""


class DuckDB(Connection):
    """A transaction in a DuckDB file, or in a database in memory."""

    def __init__(self, where: str, path: Path | None, connect: Any) -> None:
        self.where = where
        with self.refusing():
            self._connection = connect()
        self.identity = identity_of(path)

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Turn errors of DuckDB into a `DatabaseError`, since their texts hold values and queries."""
        import duckdb

        try:
            yield
        except duckdb.InterruptException:
            raise KeyboardInterrupt from None
        except duckdb.Error as error:
            text = str(error)
        except RuntimeError as error:
            if str(error) == "Query interrupted":
                raise KeyboardInterrupt from None
            raise
        else:
            return
        if "Catalog Error: Table with name" in text:
            raise self.without_table() from None
        reason = next((reason for part, reason in _REFUSALS.items() if part in text), None)
        raise refused(self.where, reason, text.partition(":")[0], "duckdb") from None

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Execute a statement and return its rows."""
        with self.refusing():
            return list(self._connection.execute(sql, values or None).fetchall())

    def begin(self, *, write: bool) -> None:
        """Begin the transaction."""
        self.rows("BEGIN TRANSACTION" if write else "BEGIN TRANSACTION READ ONLY")
        ((self._catalog,),) = self.rows("SELECT current_database()")

    def commit(self) -> None:
        """Make what was written permanent."""
        self.rows("COMMIT")

    def close(self) -> None:
        """End the connection; what is not committed is undone."""
        with suppress(DatabaseError):
            self.rows("ROLLBACK")
        self._connection.close()

    def fetch(self, query: str, columns: Sequence[str] | None) -> pa.Table:
        """Return the records of a query."""
        with self.refusing():
            names = list(self._connection.sql(subquery(query)).columns)
        check_names(names)
        wanted = check_wanted(columns, names)
        with self.refusing():
            found = self._connection.sql(subquery(query, ", ".join(map(quoted, wanted)) or "1")).to_arrow_table()
        return checked(found if wanted else found.select([]))

    def relations_read(self, query: str) -> frozenset[object]:
        """Return the tables in the plan of the query before it is optimized."""
        self.rows("SET explain_output = 'all'")
        plans = dict(self.rows(f"EXPLAIN (FORMAT json) {subquery(query)}"))
        names = set(_tables(json.loads(plans["logical_plan"])))
        # Some versions name a table without its schema.
        return frozenset(
            each.key for each in self.relations() if any(f".{each.key}".endswith(f".{name}") for name in names)
        )

    def relations(self) -> list[Relation]:
        """Return the tables and views."""
        rows = self.rows(
            "SELECT schema_name, table_name, true FROM duckdb_tables() WHERE database_name = current_database() "
            "AND NOT internal UNION ALL SELECT schema_name, view_name, false FROM duckdb_views() "
            "WHERE database_name = current_database() AND NOT internal ORDER BY 1, 2"
        )
        return [
            Relation(Name(table, None if schema == "main" else schema), self._key(schema, table), is_table)
            for schema, table, is_table in rows
        ]

    def _key(self, schema: str, table: str) -> str:
        return f"{self._catalog}.{schema}.{table}".lower()

    def find(self, name: Name) -> Relation | None:
        """Return the relation of this name; upper and lower case are the same to DuckDB."""
        key = self._key(name.schema or "main", name.table)
        return next((each for each in self.relations() if each.key == key), None)

    def comments(self, relation: Relation) -> dict[str, str]:
        """Return the comments on the columns of a table."""
        rows = self.rows(
            "SELECT column_name, comment FROM duckdb_columns() WHERE database_name = current_database() "
            "AND schema_name = ? AND table_name = ? AND comment IS NOT NULL",
            relation.name.schema or "main",
            relation.name.table,
        )
        return dict(rows)

    def placed(self, name: Name) -> Name:
        """Return the name with the schema in which a new table of this name is created."""
        return Name(name.table, name.schema or "main")

    def storable(self, arrow: pa.Table) -> pa.Table:
        """Return the table with categories as text, since an ENUM would list them in the catalog."""
        return pa.table({name: arrow[name].cast(_stored(arrow[name].type)) for name in arrow.column_names})

    def create(self, name: Name, schema: pa.Schema) -> None:
        """Create an empty table of the types that DuckDB gives to those of Arrow."""
        self.check_names(schema.names)
        with self._registered(schema.empty_table()):
            self.rows(f"CREATE TABLE {name.sql} AS SELECT * FROM {quoted(_RECORDS)}")

    def insert(self, name: Name, arrow: pa.Table) -> None:
        """Append records to a table."""
        with self._registered(arrow):
            self.rows(f"INSERT INTO {name.sql} SELECT * FROM {quoted(_RECORDS)}")

    @contextmanager
    def _registered(self, arrow: pa.Table) -> Iterator[None]:
        with self.refusing():
            self._connection.register(_RECORDS, arrow)
        try:
            yield
        finally:
            with suppress(DatabaseError), self.refusing():  # a transaction that has failed answers no more
                self._connection.unregister(_RECORDS)


def _tables(plan: Any) -> Iterator[str]:
    """Yield the tables of a plan, in lower case."""
    if isinstance(plan, dict) and isinstance(plan.get("extra_info"), dict) and "Table" in plan["extra_info"]:
        yield str(plan["extra_info"]["Table"]).lower()
    parts = plan.get("children", []) if isinstance(plan, dict) else plan
    for part in parts:
        yield from _tables(part)


def _stored(kind: pa.DataType) -> pa.DataType:
    """Return the type as which values are sent."""
    if pa.types.is_dictionary(kind):
        return _stored(kind.value_type)
    return pa.float32() if pa.types.is_float16(kind) else kind


def connect(address: Address, write: bool) -> Connection:
    """Open a file, for reading only unless it is to be written."""
    assert address.path is not None
    path = address.path
    duckdb = optional("duckdb", "DuckDB files need the extra duckdb", "duckdb", FileError)
    if not write:
        check_file(path, "DuckDB", 8, _MAGIC)
    # Variables are invisible to queries; a table in the making is one of them.
    config: dict[str, Any] = _CONFIG if write else {**_CONFIG, "python_enable_replacements": "false"}
    return DuckDB(
        f"The database {str(path)!r}", path, lambda: duckdb.connect(str(path), read_only=not write, config=config)
    )


@contextmanager
def copy_without(address: Address, older: Name, copy: Path) -> Iterator[None]:
    """Copy a file without a table, and let no other program change the file in the block.

    DuckDB leaves the records of a dropped table in the file, and other tables in the blocks that it shared with them.
    """
    import duckdb

    assert address.path is not None
    connect(address, True).close()  # what stands in the log is now in the file
    stamp, dropped = Stamp.of(address.path), copy.with_name("dropped.duckdb")
    shutil.copyfile(address.path, dropped)
    holder = connect(address, True)
    try:
        check_stamp(address.path, stamp)  # opening and closing the file here would end the lock
        with closing(DuckDB(holder.where, None, lambda: duckdb.connect(str(dropped)))) as every:
            _copy_without(every, older, copy)
        dropped.unlink()
        yield
    finally:
        holder.close()


def _copy_without(every: DuckDB, older: Name, copy: Path) -> None:
    manifests = older._replace(table="shoal_manifest")
    every.begin(write=True)
    every.rows(f"DROP TABLE {older.sql}")
    every.commit()
    with suppress(DatabaseError):  # there is none, or not one of shoal
        every.rows(f"DELETE FROM {manifests.sql} WHERE table_name = {literal(older.table)}")
    every.rows("CHECKPOINT")
    every.rows(f"ATTACH {literal(str(copy))} AS {quoted(_COPY)}")
    ((name,),) = every.rows("SELECT current_database()")
    try:
        every.rows(f"COPY FROM DATABASE {quoted(name)} TO {quoted(_COPY)}")
        is_same = _content(every, name) == _content(every, _COPY)
    except DatabaseError:
        is_same = False
    if not is_same:
        raise DatabaseError(
            f"{every.where} holds more than a copy of its tables would keep, and without a copy the records of the "
            f"table {str(older)!r} would stay in the file. Choose another name for the output, or another file."
        )
    every.rows(f"DETACH {quoted(_COPY)}")


def _content(connection: DuckDB, database: str) -> list[Any]:
    """Return what is defined in a database, and for each table the number of its records and a hash of them."""
    tables = connection.rows(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = ? AND NOT internal ORDER BY ALL",
        database,
    )
    return [
        [connection.rows(f"{query} ORDER BY ALL", database) for query in _DEFINED],
        [
            (
                schema,
                table,
                connection.rows(
                    f"SELECT count(*), bit_xor(hash(t)) FROM {quoted(database)}.{quoted(schema)}.{quoted(table)} AS t"
                ),
            )
            for schema, table in tables
        ],
    ]


def share(connection: Any) -> Connection | None:
    """Open a second connection to the database of a DuckDB connection."""
    if type(connection).__name__ != "DuckDBPyConnection":
        return None
    rows = connection.cursor().execute("SELECT path FROM duckdb_databases() WHERE database_name = current_database()")
    ((file,),) = rows.fetchall()
    return DuckDB("The database of the connection", Path(file) if file else None, connection.cursor)


DUCKDB = Database(
    "duckdb",
    "DuckDB",
    ("duckdb",),
    (".duckdb",),
    connect,
    share,
    "a new table, with types and comments",
    extra="duckdb",
    copy_without=copy_without,
)
