"""Connection: what a database has to be able to do so that tables are read from it and releases written to it.

And its entry in the registry: how it is addressed and opened, and its description for help and docs.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa

from shoal.errors import DatabaseError, ParameterError, did_you_mean
from shoal.sources.databases.address import Address
from shoal.sources.databases.sql_names import Name, check_storable, literal, quoted


class Why(StrEnum):
    """Why a statement has failed, in words that several databases share."""

    ONE_SELECT = (
        "cannot read the query: it must be one SELECT without errors in its SQL; statements that write are refused."
    )
    NO_COLUMN = "has no column of a name that the query uses. Check the query."
    EXISTS = "already has this table: another program created it in the meantime. Choose another name."
    WRITES = "was asked to write while it is read: the query changes data. Give a query that only selects."
    NO_SCHEMA = "has no schema of this name. Create it first, or choose another one."
    LOCKED = "is locked by another program. Try again when that has ended."


class Origin(NamedTuple):
    """What was read: names of the database, each of which identifies it, and keys of its tables."""

    database: frozenset[object]
    relations: frozenset[object]

    @property
    def files(self) -> list[Path]:
        """The file of the database, if it is one."""
        return [each for each in self.database if isinstance(each, Path)]

    def holds(self, connection: "Connection", key: object) -> bool:
        """Return whether a table was read from: the one with this key in the database of the connection."""
        return bool(self.database & connection.identity) and key in self.relations


class Relation(NamedTuple):
    """A table or a view that exists."""

    name: Name
    key: object
    """Identifies the relation within its database."""
    is_table: bool


class Connection(ABC):
    """One transaction in a database. Statements fail with a `DatabaseError` that holds no value and no secret."""

    longest_name: ClassVar[int | None] = None
    """Bytes of UTF-8 after which names are cut off."""
    ignores_case: ClassVar[bool] = True
    """Whether names that differ only in case are the same."""
    has_comments: ClassVar[bool] = True
    """Whether columns have comments; where they have none, the codebook in the manifest holds the labels."""

    where: str
    """The database, for messages."""
    identity: frozenset[object]
    """Names that identify the database, whatever address it was reached by."""
    remains: str | None = None
    """What to say after the commit about a table that was replaced, if it stays in a file."""

    @abstractmethod
    def begin(self, *, write: bool) -> None:
        """Begin the transaction: of one snapshot and read-only, unless it is to write."""

    @abstractmethod
    def commit(self) -> None:
        """Make what was written permanent."""

    @abstractmethod
    def close(self) -> None:
        """End the connection; what is not committed is undone."""

    @abstractmethod
    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Execute a statement and return its rows."""

    @abstractmethod
    def fetch(self, query: str, columns: Sequence[str] | None) -> pa.Table:
        """Return the records of a query, or some of its columns, in types that all of shoal supports."""

    def fetch_table(self, relation: Relation, columns: Sequence[str] | None) -> pa.Table:
        """Return the records of a table as `fetch` does, with what the database knows about its columns."""
        return self.fetch(f"SELECT * FROM {relation.name.sql}", columns)

    @abstractmethod
    def relations_read(self, query: str) -> frozenset[object]:
        """Return the keys of the relations that a query reads, through views too."""

    @abstractmethod
    def relations(self) -> list[Relation]:
        """Return the tables and views that the user may see; those of the system are left out."""

    @abstractmethod
    def find(self, name: Name) -> Relation | None:
        """Return the relation of this name."""

    def placed(self, name: Name) -> Name:
        """Return the name with the schema in which a new table of this name is created."""
        return name

    @abstractmethod
    def create(self, name: Name, schema: pa.Schema) -> None:
        """Create an empty table for records of these types; raise if it exists."""

    @abstractmethod
    def insert(self, name: Name, arrow: pa.Table) -> None:
        """Append records to a table made by `create`."""

    @abstractmethod
    def storable(self, arrow: pa.Table) -> pa.Table:
        """Return the table in types that the database can store; raise if there is none for a column."""

    def comments(self, relation: Relation) -> dict[str, str]:
        """Return the comments on the columns of a table."""
        return {}

    def comment(self, name: Name, comments: Mapping[str, str]) -> None:
        """Set comments on columns of a table, in a database that has comments."""
        for column, text in comments.items() if self.has_comments else ():
            self.rows(f"COMMENT ON COLUMN {name.sql}.{quoted(column)} IS {literal(text)}")

    def check_names(self, names: Sequence[str]) -> None:
        """Raise if the database cannot store these names as they are."""
        check_storable(names, longest=self.longest_name, ignores_case=self.ignores_case)

    def existing(self, text: str) -> Relation:
        """Return the relation with this name; raise, with the names of those that exist, if there is none."""
        name = Name.of(text)
        self.check_names([name.table])
        found = self.find(name)
        if found is None:
            raise self.missing(f"{self.where} has no table {str(name)!r}", str(name))
        return found

    def missing(self, what: str, name: str | None = None) -> DatabaseError:
        """Return the error for a missing table, with the names of those that exist."""
        names = [str(relation.name) for relation in self.relations()]
        meant = did_you_mean(name, known=names) if name else ""
        return DatabaseError(f"{what}.{meant} {in_words(names)}")

    def without_table(self) -> DatabaseError:
        """Return the error for a query of a table that does not exist."""
        return self.missing(f"{self.where} has no table of a name that the query uses")

    def chosen(self, table: str | None, query: str | None) -> Relation | None:
        """Return the relation to read, None if a query is given; raise unless exactly one of them is."""
        if table is not None and query is not None:
            raise ParameterError("A table and a query are both given. Give table= or query=, not both.")
        if query is not None:
            return None
        if table is None:
            raise ParameterError(
                f"{self.where} holds tables, and none is named. Give table= or query=. "
                f"{in_words([str(relation.name) for relation in self.relations()])}"
            )
        return self.existing(table)


class Database(NamedTuple):
    """A kind of database."""

    name: str
    title: str
    """Name in help and docs."""
    schemes: tuple[str, ...]
    endings: tuple[str, ...]
    """Extensions of its files; none for a server."""
    connect: Callable[[Address, bool], Connection]
    """Open the database at an address, for reading or also for writing."""
    share: Callable[[Any], Connection | None]
    """Open a second connection to the database of a Python connection; None if it is not one of this database."""
    comes_back: str
    """Description of a release in this database, for the docs."""
    extra: str
    """Extra that installs the driver."""
    copy_without: Callable[[Address, Name, Path], AbstractContextManager[None]] | None = None
    """Copy a file without a table, and hold it; None where a dropped table leaves no record in the file."""

    @property
    def options(self) -> frozenset[str]:
        """The names of the reading options."""
        return frozenset({"table", "query"})


def in_words(names: Sequence[str], most: int = 30) -> str:
    """Return a sentence that lists tables."""
    if not names:
        return "It has no tables that this user may read."
    further = f" and {len(names) - most} more" if len(names) > most else ""
    return f"Tables: {', '.join(names[:most])}{further}."


def refused(where: str, reason: str | None, what: str, program: str) -> DatabaseError:
    """Return the error for a failed statement: its reason if it is known, otherwise `what` the driver calls it."""
    return DatabaseError(
        f"{where} {reason}"
        if reason is not None
        else f"{where} reported an error{what and f' ({what})'}; its text is left out, because it may hold values of "
        f"the table. Check the table or the query with the program {program}."
    )


@contextmanager
def transaction(connection: Connection, *, write: bool = False) -> Iterator[Connection]:
    """Begin a transaction, and undo at the end what is not committed."""
    try:
        connection.begin(write=write)
        yield connection
    finally:
        connection.close()


def subquery(query: str, columns: str = "*") -> str:
    """Return a selection from a query. As a subquery it can be nothing but one SELECT.

    A line break ends a comment at the end of the query; a semicolon there is left out.
    """
    return f"SELECT {columns} FROM (\n{query.strip().rstrip(';')}\n) AS records"
