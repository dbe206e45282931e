"""Database: how it is addressed and opened, and its description for help and docs."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from shoal.sources.databases.address import Address
from shoal.sources.databases.connection import Connection
from shoal.sources.databases.sql_names import Name


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
