"""New tables: a release is written in one transaction, read back and described, and committed last."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from shoal.errors import DatabaseError, FileError, ParameterError, ShoalWarning
from shoal.sources.clean import beyond_years
from shoal.sources.databases import Place
from shoal.sources.databases.address import Address
from shoal.sources.databases.connection import Connection, Origin, Relation, transaction
from shoal.sources.databases.sql_names import Name, literal, quoted
from shoal.spelling import setting

MANIFEST = "shoal_manifest"
"""Table that holds the public manifest of every release in its schema."""

_COLUMNS = ("table_name", "sha256", "manifest")


class TableAt(NamedTuple):
    """A table in a database, to which a release goes."""

    place: Place
    name: Name

    @staticmethod
    def of(place: Place, name: str | None) -> "TableAt":
        """Return the table; raise unless its name can be that of a release."""
        if name is None:
            raise ParameterError(
                f"{str(place.address)!r} is a database. Name the new table for the release: {setting('to_table')}."
            )
        found = Name.of(name)
        if found.table.lower() == MANIFEST:
            raise ParameterError(f"{MANIFEST} holds the manifests of the releases. Choose another name.")
        return TableAt(place, found)

    @property
    def path(self) -> Path | None:
        """File of the database; None for a server."""
        return self.place.address.path

    @property
    def is_new_file(self) -> bool:
        """Whether the database is a file that does not exist yet."""
        return self.path is not None and not self.path.exists()

    def at(self, path: Path) -> "TableAt":
        """Return the same table in another file."""
        return TableAt(Place(self.place.database, Address(str(path), path)), self.name)

    def __str__(self) -> str:
        return f"table {self.name} in {self.place.address}"


def check_free_table(target: TableAt, force: bool) -> None:
    """Refuse a table that `new_table` would refuse, before any work is done."""
    if not target.is_new_file:
        with transaction(target.place.connect()) as connection:
            connection.check_names([target.name.table])
            _replaced(connection, connection.placed(target.name), force)


def to_copy_without(target: TableAt, source: Origin | None, force: bool) -> Name | None:
    """Return the table that must not stay in a copy of the file; None if it can be replaced in place."""
    if target.place.database.copy_without is None or not force:
        return None
    with transaction(target.place.connect(write=True), write=True) as connection:
        older = _replaced(connection, connection.placed(target.name), force, source)
        return None if older is None else older.name


@contextmanager
def new_table(target: TableAt, source: Origin | None, force: bool, copy: Path | None = None) -> Iterator["NewTable"]:
    """Begin a transaction in which a table is written; it is undone unless `NewTable.commit` is called.

    It is written to a `copy` of the file, if one is given, whose name messages do not show.
    """
    place = target.place if copy is None else target.at(copy).place
    with transaction(place.connect(write=True), write=True) as connection:
        if copy is not None:
            connection.where = f"The database {str(target.path)!r}"
        connection.check_names([target.name.table])
        yield NewTable(connection, connection.placed(target.name), source, force)


class NewTable:
    """A table that is being written."""

    def __init__(self, connection: Connection, name: Name, source: Origin | None, force: bool) -> None:
        self._connection, self._name, self._source, self._force = connection, name, source, force

    def write(self, arrow: pa.Table, comments: Mapping[str, str]) -> None:
        """Create the table and fill it; an older table of its name is dropped in the same transaction."""
        connection, name = self._connection, self._name
        _check_dates(arrow)
        try:
            stored = connection.storable(arrow)
        except pa.ArrowException:  # its message may contain a value
            raise FileError(
                f"The table has a column with values that {connection.where} cannot hold. Convert it, or leave it out."
            ) from None
        older = _replaced(connection, name, self._force, self._source)
        self._replaces = older is not None
        if older is not None:
            connection.rows(f"DROP TABLE {older.name.sql}")
        connection.create(name, stored.schema)
        connection.insert(name, stored)
        connection.comment(name, comments)

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the records as the database returns them."""
        return self._connection.fetch_table(self._connection.existing(str(self._name)), columns)

    def describe(self, manifest: str, sha256: str) -> None:
        """Store the public manifest of the release in the same transaction, in place of that of an older table."""
        connection, where = self._connection, self._name._replace(table=MANIFEST)
        row = pa.table(dict(zip(_COLUMNS, ([self._name.table], [sha256], [manifest]), strict=True)))
        if connection.find(where) is None:
            connection.create(where, row.schema)
        elif connection.fetch(f"SELECT * FROM {where.sql} LIMIT 0", None).column_names != list(_COLUMNS):
            raise DatabaseError(
                f"{connection.where} has a table {MANIFEST} that shoal did not make. Rename it, or choose another "
                "schema or file."
            )
        connection.rows(f"DELETE FROM {where.sql} WHERE {quoted(_COLUMNS[0])} = {literal(self._name.table)}")
        connection.insert(where, row)

    def commit(self) -> None:
        """Make the table and its manifest visible to others."""
        self._connection.commit()

    def warn(self) -> None:
        """Warn if the table that was replaced stays in a file."""
        if self._replaces and self._connection.remains is not None:
            warnings.warn(self._connection.remains, ShoalWarning, stacklevel=2)


def _check_dates(arrow: pa.Table) -> None:
    """Raise if a date would be refused when it is read back."""
    for column in arrow.column_names:
        if beyond_years(arrow[column]):
            raise FileError(
                f"Column {column!r} has dates outside the years 1 to 9999, which shoal does not write to a database. "
                "Correct them, or convert them to text."
            )


def _replaced(connection: Connection, name: Name, force: bool, source: Origin | None = None) -> Relation | None:
    """Return the table that is to be replaced, None if the name is free; raise if it must not be replaced."""
    found = connection.find(name)
    if found is None:
        return None
    if not found.is_table:
        raise DatabaseError(
            f"{str(name)!r} in the database is not a table (a view, for instance). Choose another name."
        )
    if not force:
        raise DatabaseError(
            f"{connection.where} already has a table {str(name)!r}. Choose another name, or replace it with "
            f"{setting('force', True)}."
        )
    if source is not None and source.holds(connection, found.key):
        raise DatabaseError(
            f"The output is the table {str(found.name)!r} that was read, which would be lost. Choose another name for "
            "the output."
        )
    return found
