"""File format: its reader, writer, and description for help and docs."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa


@dataclass(frozen=True)
class Notes:
    """What a reader returns beside the records.

    Attributes
    ----------
    reading : Reading or None
        Options with which a CSV file was read.
    labels : ValueLabels or None
        Labels of a SPSS, Stata or SAS file.
    said : tuple of str
        Sentences about what the records alone do not show, such as hidden rows.
    mixed : mapping of str to (mapping of str to int)
        Columns that hold values of several types, and the number of values of each.
    """

    reading: Any = None
    labels: Any = None
    said: tuple[str, ...] = ()
    mixed: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


class Format(NamedTuple):
    """A file format. Its reader takes the path, the columns, and the options of the format as keywords."""

    name: str
    title: str
    """Name in help and docs."""
    endings: tuple[str, ...]
    read: Callable[..., tuple[pa.Table, Notes | None]]
    write: Callable[..., None]
    comes_back: str
    """Description of a release in this format, for the docs."""
    extra: str | None = None
    """Extra that installs the dependencies of this format."""
    write_parts: Callable[..., None] | None = None
    """Writer that takes several tables of the same columns, one after another; None if the format has none."""
    tells_empty: bool = True
    """Whether the format distinguishes an empty string from a missing value."""
    read_only: tuple[str, ...] = ()
    """Extensions that are read but not written."""
    own_reading: Mapping[str, Any] = MappingProxyType({})
    """Options to read a file that this format has written: its first row is a header, whatever it looks like."""
    loses: str = ""
    """What the format cannot store, for the docs."""

    @property
    def written(self) -> tuple[str, ...]:
        """The extensions of files that can be written."""
        return tuple(ending for ending in self.endings if ending not in self.read_only)

    @property
    def options(self) -> frozenset[str]:
        """The names of the reading options."""
        return frozenset(inspect.signature(self.read).parameters) - {"path", "columns"}
