"""File format: its reader, writer, and description for help and docs."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa


class Format(NamedTuple):
    """A file format. Its reader takes the path, the columns, and the options of the format as keywords."""

    name: str
    title: str
    """Name in help and docs."""
    endings: tuple[str, ...]
    read: Callable[..., tuple[pa.Table, Any]]
    write: Callable[..., None]
    comes_back: str
    """Description of a release in this format, for the docs."""
    extra: str | None = None
    """Extra that installs the dependencies of this format."""
    write_parts: Callable[..., None] | None = None
    """Writer that takes several tables of the same columns, one after another; None if the format has none."""
    tells_empty: bool = True
    """Whether the format distinguishes an empty string from a missing value."""

    @property
    def options(self) -> frozenset[str]:
        """The names of the reading options."""
        return frozenset(inspect.signature(self.read).parameters) - {"path", "columns"}
