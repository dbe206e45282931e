"""File format: its reader, its writer, the reading options it understands, and its description for help and docs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from shoal.sources.clean import plain
from shoal.sources.glimpse import Glimpse
from shoal.sources.labelled_files import ValueLabels
from shoal.sources.reading import Reading, Receipt


class About(Protocol):
    """What a writer may know about the input of a release: how it was read, and its labels."""

    @property
    def receipt(self) -> Receipt:
        """How it was read."""

    @property
    def labels(self) -> ValueLabels | None:
        """Its labels."""


@dataclass(frozen=True)
class Content:
    """What a reader has found in a file.

    Attributes
    ----------
    types : pyarrow.Schema
        Names and types of the columns that were asked for.
    n_records : int
        Number of records.
    load : callable
        Returns some of these columns.
    receipt : Receipt
        How they were read.
    labels : ValueLabels or None
        Labels of a SPSS, Stata or SAS file.
    """

    types: pa.Schema
    n_records: int
    load: Callable[[Sequence[str]], pa.Table]
    receipt: Receipt = field(default_factory=Receipt)
    labels: ValueLabels | None = None

    @staticmethod
    def of(arrow: pa.Table, receipt: Receipt | None = None, labels: ValueLabels | None = None) -> "Content":
        """Return records that are in memory, without metadata."""
        records = plain(arrow)
        return Content(records.schema, int(records.num_rows), records.select, receipt or Receipt(), labels)


class Parts(NamedTuple):
    """A file that is read a part at a time."""

    types: pa.Schema
    n_records: int
    read: Callable[[Sequence[str]], Iterator[pa.Table]]
    """Yields some columns, a part of the records at a time, without metadata and with the same types in every part."""
    receipt: Receipt


class InParts(NamedTuple):
    """How files of a format are read a part at a time."""

    open: Callable[[Path, Reading], Parts]
    endings: tuple[str, ...]
    """Extensions of the files that can be; packed ones cannot."""
    options: frozenset[str] = frozenset()
    """Names of the reading options that have an effect then."""


Writer = Callable[[pa.Table, Path, str, About | None], None]
PartsWriter = Callable[[Iterable[pa.Table], Path, str, About | None], None]


def one_part(write_parts: PartsWriter) -> Writer:
    """Return the writer of a table, by that of several tables of the same columns."""
    return lambda table, path, ending, like: write_parts([table], path, ending, like)


class Format(NamedTuple):
    """A file format.

    Its reader takes the path, the columns wanted, or None for all, and how they are to be read. Its writer takes the
    table, the path, the extension and what is known about the input.
    """

    name: str
    title: str
    """Name in help and docs."""
    endings: tuple[str, ...]
    read: Callable[[Path, Sequence[str] | None, Reading], Content]
    write: Writer
    comes_back: str
    """Description of a release in this format, for the docs."""
    options: frozenset[str] = frozenset()
    """Names of the reading options that it understands; the others are refused."""
    in_parts: InParts | None = None
    """How its files are read a part at a time; None if they cannot be."""
    extra: str | None = None
    """Extra that installs the dependencies of this format."""
    write_parts: PartsWriter | None = None
    """Writer that takes several tables of the same columns, one after another; None if the format has none."""
    tells_empty: bool = True
    """Whether the format distinguishes an empty string from a missing value."""
    read_only: tuple[str, ...] = ()
    """Extensions that are read but not written."""
    own_reading: Mapping[str, Any] = MappingProxyType({})
    """Options to read a file that this format has written: its first row is a header, whatever it looks like."""
    glimpse: Callable[[Path, Reading], Glimpse] | None = None
    """How its first and last lines or rows are shown before it is read; None where its records are all that it has."""
    sheets: Callable[[Path, Reading], list[str]] | None = None
    """The names of the sheets of which one is read; None where there are none."""
    loses: str = ""
    """What the format cannot store, for the docs."""
    skips: bool = False
    """Whether its reader itself leaves out records, before it decides on the types of columns."""

    @property
    def written(self) -> tuple[str, ...]:
        """The extensions of files that can be written."""
        return tuple(ending for ending in self.endings if ending not in self.read_only)
