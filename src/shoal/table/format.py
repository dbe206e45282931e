"""Format: what a kind of file says about itself, for reading, writing, help and docs."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa


class Format(NamedTuple):
    """A kind of file. Its reader takes the path, the columns, and the options of the format by name."""

    name: str
    title: str
    """As help and docs call it."""
    endings: tuple[str, ...]
    read: Callable[..., tuple[pa.Table, Any]]
    write: Callable[..., None]
    comes_back: str
    """What a release in this format looks like, for the docs."""
    extra: str | None = None
    """The extra that brings what reading and writing need."""
    tells_empty: bool = True
    """Whether an empty text differs from a missing one in such a file."""

    @property
    def options(self) -> frozenset[str]:
        """The names of the reading options."""
        return frozenset(inspect.signature(self.read).parameters) - {"path", "columns"}
