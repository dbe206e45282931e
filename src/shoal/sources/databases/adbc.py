"""What the databases read and written through ADBC share."""

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import pyarrow as pa

from shoal.errors import DatabaseError
from shoal.sources.databases.connection import Connection
from shoal.sources.databases.sql_names import Name, quoted

T = TypeVar("T")

_STATE = re.compile(r"SQLSTATE: (\w{5})")


def is_adbc(connection: Any, vendor: str) -> bool:
    """Return whether this is a DB-API connection of ADBC to a database of this vendor."""
    return hasattr(connection, "adbc_get_info") and connection.adbc_get_info().get("vendor_name") == vendor


class AdbcConnection(Connection):
    """A connection through the DB-API of an ADBC driver."""

    def __init__(self, where: str, connect: Callable[[], Any]) -> None:
        self.where = where
        with self.refusing():
            self._connection = connect()
        self._cursor = self._connection.cursor()

    @abstractmethod
    def refusal(self, state: str | None, text: str) -> DatabaseError:
        """Return the error for a failed statement, from its SQLSTATE and the driver's text, which is not repeated."""

    @abstractmethod
    def sql_type(self, kind: pa.DataType) -> str:
        """Return the type of a column that stores values of an Arrow type."""

    def create(self, name: Name, schema: pa.Schema) -> None:
        """Create an empty table; raise if it exists."""
        self.check_names(schema.names)
        columns = ", ".join(f"{quoted(field.name)} {self.sql_type(field.type)}" for field in schema)
        self.rows(f"CREATE TABLE {name.sql} ({columns})")

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Turn errors of the driver into a `DatabaseError`, since their texts hold values, queries and addresses."""
        from adbc_driver_manager import Error  # not before: an extra installs it

        try:
            yield
        except (Error, pa.ArrowException, OSError) as error:
            state = getattr(error, "sqlstate", None)
            found = _STATE.search(str(error))
            refusal = self.refusal(state or (found[1] if found else None), str(error))
        else:
            return
        raise refusal from None

    def call(self, work: Callable[[], T]) -> T:
        """Return what some work of the driver returns; Ctrl-C cancels it.

        The work has a thread of its own: in the main thread the driver would take Ctrl-C for itself, also where it has
        to wait (`shoal.interrupts.held`), and report it as an error of the database.
        """
        with self.refusing(), ThreadPoolExecutor(1) as executor:
            found = executor.submit(work)
            try:
                while wait([found], 0.2).not_done:  # Ctrl-C alone does not always wake this thread
                    pass
                return found.result()
            except BaseException:
                while not found.done():  # the statement may be about to begin
                    with suppress(Exception):  # not every driver can cancel one
                        self._cursor.adbc_cancel()
                    wait([found], 0.2)
                raise

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Execute a statement and return its rows."""

        def work() -> list[tuple[Any, ...]]:
            self._cursor.execute(sql, values or None)
            return list(self._cursor.fetchall()) if self._cursor.description else []

        return self.call(work)

    def names(self, query: str) -> list[str]:
        """Return the names of the columns of a query."""

        def work() -> list[str]:
            self._cursor.execute(f"{query} LIMIT 0")
            return [column[0] for column in self._cursor.description]

        return self.call(work)

    def arrow(self, query: str) -> pa.Table:
        """Return the records of a query, which arrive in batches."""

        def work() -> pa.Table:
            self._cursor.execute(query)
            return self._cursor.fetch_arrow_table()

        return self.call(work)

    def insert(self, name: Name, arrow: pa.Table) -> None:
        """Append records to a table."""
        self.call(lambda: self._cursor.adbc_ingest(name.table, arrow, mode="append", db_schema_name=name.schema))

    def close(self) -> None:
        """End the connection; what is not committed is undone."""
        for each in (self._cursor, self._connection):
            with suppress(DatabaseError), self.refusing():
                each.close()
