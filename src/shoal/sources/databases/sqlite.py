"""SQLite files, through ADBC: the extra `sqlite`.

SQLite has types of values, not of columns: a column of numbers and texts is refused. Dates, timestamps and
booleans are recognised by the declared type of their column.
"""

import re
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shoal.distribution import optional
from shoal.errors import DatabaseError, FileError, SchemaError
from shoal.sources.clean import check_flat, check_names, check_wanted, decimals_as_floats
from shoal.sources.databases.adbc import AdbcConnection, is_adbc
from shoal.sources.databases.address import Address, check_file, identity_of
from shoal.sources.databases.connection import Connection, Database, Relation, Why, refused, subquery
from shoal.sources.databases.sql_names import Name, literal, quoted
from shoal.sources.databases.values import checked, in_microseconds

_BATCH = 65_536
_ALL = 2**31 - 2  # the largest batch
_WAIT = 5_000  # milliseconds that another program may hold a lock
_MAGIC = b"SQLite format 3\0"
_QUOTED = re.compile(
    r"'(?:[^']|'')*+'?|\"(?:[^\"]|\"\")*+\"?|`[^`]*+`?|\[[^\]]*+\]?|--[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL
)
"""Strings, names and comments in SQL, up to its end where they have none: what follows them is searched once."""
_ZONED = "TIMESTAMP WITH TIME ZONE"
_DECLARED = {
    "BOOLEAN": pa.bool_(),
    "BOOL": pa.bool_(),
    "DATE": pa.date32(),
    "DATETIME": pa.timestamp("us"),
    "TIMESTAMP": pa.timestamp("us"),
    _ZONED: pa.timestamp("us", "UTC"),
}
"""What columns hold according to their declared type."""
_DAMAGED = "is damaged. Restore it from a backup."
_REFUSALS = {
    # First those that end with a name from the query, which may hold any words.
    "no such column": Why.NO_COLUMN,
    "syntax error": Why.ONE_SELECT,
    "already exists": Why.EXISTS,
    "is locked": Why.LOCKED,
    "not a database": "is not a SQLite file, or it is encrypted. Give a file that SQLite can open.",
    "readonly": "was asked to write while it is read, or its file may not be written to. Give a query that only "
    "selects, or ask for the right to write.",
    "disk is full": "has no room left: the disk is full. Make room.",
    "malformed JSON": "holds a value that is not JSON where the query reads JSON. Leave such values out of the query: "
    "WHERE json_valid(..).",
    "disk image is malformed": _DAMAGED,
    "malformed database schema": _DAMAGED,
    "more than one statement": "cannot use this query: it must be one SELECT.",
}
"""What became of a statement, by a part of the driver's text."""


class SQLite(AdbcConnection):
    """A transaction in a SQLite file, or in a database in memory."""

    has_comments = False

    def __init__(self, where: str, path: Path | None, connect: Callable[[], Any]) -> None:
        super().__init__(where, connect)
        self.identity = identity_of(path)

    def refusal(self, state: str | None, text: str) -> DatabaseError:
        """Return the error for a failed statement."""
        if "no such table" in text:
            return self.without_table()
        reason = next((reason for part, reason in _REFUSALS.items() if part in text), None)
        return refused(self.where, reason, "", "sqlite3")

    def begin(self, *, write: bool) -> None:
        """Begin the transaction; the driver has begun one, which takes its locks with the first statement."""
        self.rows(f"PRAGMA busy_timeout = {_WAIT}")
        self.rows("PRAGMA temp_store = MEMORY")  # SQLite would sort records in the folder of its own choice
        if write:
            self.rows("PRAGMA secure_delete = ON")  # the records of an older release do not stay in free pages
        else:
            self.rows("PRAGMA query_only = ON")
            self.rows("SELECT count(*) FROM sqlite_master")

    def commit(self) -> None:
        """Make what was written permanent."""
        with self.refusing():
            self._connection.commit()
            self._connection.adbc_connection.set_autocommit(True)
        with suppress(DatabaseError):  # the table is written
            ((is_busy, *_),) = self.rows("PRAGMA wal_checkpoint(TRUNCATE)")
            if is_busy:
                self.remains = (
                    f"{self.where} is open in another program, so that the table that was replaced stays in the file "
                    "that ends in -wal. Close that program."
                )

    def fetch(self, query: str, columns: Sequence[str] | None) -> pa.Table:
        """Return the records of a query."""
        return self._fetch(query, columns)

    def _fetch(self, query: str, columns: Sequence[str] | None, texts: Collection[str] = ()) -> pa.Table:
        """Return the records of a query; columns in `texts` are known to hold no numbers."""
        if ";" in _QUOTED.sub("", query).rstrip("; \t\n"):  # the driver would leave out what comes after it
            raise self.refusal(None, "more than one statement")
        names = self.names(subquery(query))
        check_names(names)
        wanted = check_wanted(columns, names)
        found = self._batches(subquery(query, ", ".join(map(quoted, wanted)) or "1"))
        self._check_mixed(
            query, [name for name in found.column_names if pa.types.is_string(found[name].type) and name not in texts]
        )
        return checked(found if wanted else found.select([]))

    def _batches(self, query: str) -> pa.Table:
        """Return the records; types come from the first batch, or, if a later one does not fit, from all records."""
        try:
            return self._read(query, _BATCH)
        except _MismatchError:
            return self._read(query, _ALL)

    def _read(self, query: str, batch: int) -> pa.Table:
        def work() -> pa.Table:
            self._cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(batch)})
            self._cursor.execute(query)
            try:
                return self._cursor.fetch_arrow_table()
            except OSError as error:
                if "Type mismatch" in str(error):
                    raise _MismatchError from None
                raise

        return self.call(work)

    def _check_mixed(self, query: str, names: Sequence[str]) -> None:
        """Raise if a column holds texts and numbers, which were all read as text."""
        if not names:
            return
        asked = ", ".join(f"total(typeof({quoted(name)}) NOT IN ('text', 'null'))" for name in names)
        (row,) = self.rows(subquery(query, asked))
        for name, n_others in zip(names, row, strict=True):
            if n_others:
                raise SchemaError(
                    f"Column {name!r} holds text, and in {int(n_others):,} records a number or bytes. Convert it by a "
                    f"query, CAST({quoted(name)} AS TEXT) for instance, or leave it out."
                )

    def fetch_table(self, relation: Relation, columns: Sequence[str] | None) -> pa.Table:
        """Return the records of a table, with dates, timestamps and booleans by the declared types."""
        rows = self.rows(f"SELECT name, type FROM pragma_table_info({literal(relation.name.table)})")
        declared = {name: _DECLARED.get(kind.upper()) for name, kind in rows}
        # SQLite makes text of a number that is stored in such a column of a table.
        texts = {name for name, kind in rows if relation.is_table and kind.upper() == "TEXT"}
        found = self._fetch(f"SELECT * FROM {relation.name.sql}", columns, texts)
        return checked(pa.table({name: _as_declared(found[name], declared.get(name)) for name in found.column_names}))

    def relations_read(self, query: str) -> frozenset[object]:
        """Return the tables whose pages, or those of their indexes, the program of a query opens.

        Python's own sqlite3 could report them, but a second SQLite in a process takes the locks of the first away.
        """
        program = self.rows(f"EXPLAIN {subquery(query)}")
        pages = {p2 for _, opcode, _, p2, *_ in program if opcode == "OpenRead"}
        rows = self.rows("SELECT tbl_name, rootpage FROM sqlite_master")
        return frozenset(name.lower() for name, page in rows if page in pages)

    def relations(self) -> list[Relation]:
        """Return the tables and views."""
        rows = self.rows("SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name")
        return [
            Relation(Name(name), name.lower(), kind == "table")
            for name, kind in rows
            if not name.lower().startswith("sqlite_")
        ]

    def find(self, name: Name) -> Relation | None:
        """Return the relation of this name; upper and lower case are the same to SQLite."""
        if name.schema is not None and name.schema.lower() != "main":
            return None
        return next((each for each in self.relations() if each.name.table.lower() == name.table.lower()), None)

    def placed(self, name: Name) -> Name:
        """Return the name without its schema, of which a file has only one."""
        if name.schema is not None and name.schema.lower() != "main":
            raise DatabaseError(f"{self.where} has no schema {name.schema!r}. Give the name of the table alone.")
        if name.table.lower().startswith("sqlite_"):
            raise DatabaseError("SQLite keeps names that begin with sqlite_ to itself. Choose another name.")
        return Name(name.table)

    def storable(self, arrow: pa.Table) -> pa.Table:
        """Return the table in types that the driver stores: numbers, text and bytes; dates become text."""
        flat = [field for field in arrow.schema if not _is_bytes(field.type)]
        check_flat(pa.schema(flat))
        return pa.table({name: _stored(name, arrow[name]) for name in arrow.column_names})

    def insert(self, name: Name, arrow: pa.Table) -> None:
        """Append records to a table."""
        super().insert(name, pa.table({column: _sent(arrow[column]) for column in arrow.column_names}))

    def sql_type(self, kind: pa.DataType) -> str:
        """Return the declared type of a column."""
        if pa.types.is_timestamp(kind):
            return _ZONED if kind.tz else "TIMESTAMP"
        if pa.types.is_integer(kind):
            return "INTEGER"
        if pa.types.is_floating(kind):
            return "REAL"
        return {pa.bool_(): "BOOLEAN", pa.date32(): "DATE", pa.time64("us"): "TIME", pa.binary(): "BLOB"}.get(
            kind, "TEXT"
        )


class _MismatchError(Exception):
    """A batch does not have the types of the first one."""


def _as_declared(column: pa.ChunkedArray, kind: pa.DataType | None) -> pa.ChunkedArray:
    """Return a column as its declared type says, if all of its values can be read so."""
    if kind is None or column.null_count == len(column):
        return column if kind is None else column.cast(pa.string()).cast(kind)
    try:
        if pa.types.is_boolean(kind):
            is_truth = pa.types.is_integer(column.type) and pc.all(pc.is_in(column, pa.array([0, 1, None]))).as_py()
            return column.cast(kind) if is_truth else column
        if not pa.types.is_string(column.type):
            return column
        return column.cast(kind)
    except pa.ArrowException:
        return column


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _stored(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column in one of the types that `sql_type` knows."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _stored(name, column.cast(kind.value_type))
    if pa.types.is_uint64(kind) and (pc.max(column).as_py() or 0) >= 2**63:
        raise FileError(f"Column {name!r} has integers beyond 64 bits, which SQLite cannot store. Convert it to text.")
    if pa.types.is_integer(kind):
        return column.cast(pa.int64())
    if pa.types.is_decimal(kind):
        return decimals_as_floats(name, column, "SQLite")
    if pa.types.is_floating(kind):
        return column.cast(pa.float64())
    if pa.types.is_timestamp(kind):
        return in_microseconds(name, column, "SQLite")
    if pa.types.is_date(kind):
        return column.cast(pa.date32())
    if pa.types.is_boolean(kind):
        return column
    return column.cast(pa.binary() if _is_bytes(kind) else pa.string())


def _sent(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column as the driver sends it; a time zone is written out, since the driver drops it."""
    if pa.types.is_timestamp(column.type) and column.type.tz:
        return pc.strftime(column, "%Y-%m-%dT%H:%M:%SZ")
    return column


def connect(address: Address, write: bool) -> Connection:
    """Open a file, for reading only unless it is to be written."""
    assert address.path is not None
    path = address.path
    if not write:
        check_file(path, "SQLite", 0, _MAGIC)
        _check_version(path)
    uri = f"{path.resolve().as_uri()}?mode={'rwc' if write else 'ro'}"
    return SQLite(f"The database {str(path)!r}", path, lambda: _driver().connect(uri))


def _driver() -> Any:
    return optional("adbc_driver_sqlite.dbapi", "SQLite files need the extra sqlite", "sqlite", FileError)


def _check_version(path: Path) -> None:
    with open(path, "rb") as file:
        header = file.read(20)
    if len(header) == 20 and max(header[18:20]) > 2:
        raise DatabaseError(
            f"The database {str(path)!r} was written by a newer version of SQLite, whose files this one cannot read. "
            "Export the table to CSV with that version."
        )


def share(connection: Any) -> Connection | None:
    """Open a second connection to the database of an ADBC connection."""
    if not is_adbc(connection, "SQLite"):
        return None
    with connection.cursor() as cursor:
        cursor.execute("SELECT file FROM pragma_database_list WHERE name = 'main'")
        ((file,),) = cursor.fetchall()
    return SQLite("The database of the connection", Path(file) if file else None, connection.adbc_clone)


SQLITE = Database(
    "sqlite",
    "SQLite",
    ("sqlite",),
    (".db", ".sqlite", ".sqlite3"),
    connect,
    share,
    "a new table, with declared types and without comments",
    extra="sqlite",
)
