"""Table: an input whose records can be held in memory; and what it shares with one that is read in parts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.errors import FileError
from shoal.sources.clean import publishable
from shoal.sources.databases.connection import Origin
from shoal.sources.format import Content
from shoal.sources.frames import Back, without_types
from shoal.sources.labelled_files import ValueLabels
from shoal.sources.reading import Receipt
from shoal.sources.source_stamps import Files, sha256_of_records


@dataclass(frozen=True, eq=False, repr=False)
class Source:
    """An input: what its columns are, where it is from, and how it was read.

    Attributes
    ----------
    types : pyarrow.Schema
        Names and types of the columns.
    n_records : int
        Number of records.
    kind : str
        csv, ndjson, xlsx, parquet, arrow, sav, dta or sas for files; postgresql, sqlite or duckdb for databases;
        pandas, polars, pyarrow, duckdb ... for frames.
    files : Files
        The files that are read; none for a frame or a database.
    receipt : Receipt
        How it was read.
    labels : ValueLabels or None
        Labels from an SPSS, Stata or SAS file; comments on the columns of a table in a database.
    origin : Origin or None
        The database and the tables in it that were read.
    options : frozenset of str
        Names of the reading options that its format or database understands.
    """

    types: pa.Schema
    n_records: int
    kind: str
    files: Files = field(default_factory=Files)
    receipt: Receipt = field(default_factory=Receipt)
    labels: ValueLabels | None = None
    origin: Origin | None = None
    options: frozenset[str] = frozenset()

    @property
    def has_fields(self) -> bool:
        """Whether the texts of a column can be read in another way, as numbers or dates."""
        return "fields" in self.options

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.types.names)

    @property
    def inputs(self) -> list[Path]:
        """The files that were read, which must not be overwritten, and their folder, which must not get others."""
        of_folder = [] if self.files.folder is None else [self.files.folder]
        return [*self.files.paths, *of_folder, *([] if self.origin is None else self.origin.files)]

    @property
    def n_left_out(self) -> int:
        """Number of records that were left out on request."""
        return len(self.receipt.left_out)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the bytes of the files, or of the records of a frame or database; computed on first use."""
        return self.files.sha256() if self.files.paths else sha256_of_records(self._records())

    def check_unchanged(self) -> None:
        """Raise if a file has changed since it was opened, or a frame since its SHA-256 was computed."""
        self.files.check()
        # What a database returned is one snapshot, which nothing else can change.
        is_frame = not self.files.paths and self.origin is None
        if is_frame and sha256_of_records(self._records()) != self.sha256:
            raise FileError(
                "The frame has changed since it was passed in. Nothing was written. Start again, and do not modify the "
                "frame until the release is written."
            )

    def _records(self) -> pa.Table:
        """Return all records of an input without files."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False, repr=False)
class Table(Source):
    """An input table.

    Attributes
    ----------
    index : tuple of str
        Columns that came from the index of a pandas frame.
    rows : ndarray of shape (n_records,), optional
        The records of the file or frame that the table has, from 0; None for all.
    """

    index: tuple[str, ...] = ()
    rows: NDArray[np.int64] | None = None
    _load: Callable[[Sequence[str]], pa.Table] = field(kw_only=True)
    _back: Back | None = field(default=None, kw_only=True)

    @staticmethod
    def of(records: pa.Table | Content, kind: str, **about: Any) -> "Table":
        """Return a table of records in memory, or of what a reader has found."""
        found = records if isinstance(records, Content) else Content.of(records)
        about = {"receipt": found.receipt, "labels": found.labels, **about}
        return Table(found.types, found.n_records, kind, _load=found.load, **about)

    @property
    def path(self) -> Path | None:
        """Path of the file; None for a frame or a database."""
        return self.files.paths[0] if self.files.paths else None

    @cached_property
    def arrow(self) -> pa.Table:
        """All records, without metadata."""
        return self.load(self.names)

    def load(self, names: Sequence[str]) -> pa.Table:
        """Return the named columns, without metadata. Columns of a Parquet file are read now and not cached."""
        self.files.check()
        found = self._load(names)
        self.files.check()
        return found if self.rows is None else found.take(pa.array(self.rows))

    def of_rows(self, rows: NDArray[np.int64]) -> "Table":
        """Return a table of some of the records of the file or frame, whose stamp stays that of all of them."""
        return replace(self, n_records=len(rows), rows=rows)

    def column(self, name: str) -> pa.ChunkedArray:
        """Return one column, as `load` does."""
        return self.load([name])[name]

    def in_memory(self) -> "Table":
        """Return the same table with all columns read, so that none is read again."""
        return replace(self, _load=self._records().select)

    def seal(self) -> "Table":
        """Compute the SHA-256 now, so that `check_unchanged` can compare with it later."""
        assert self.sha256
        return self

    def _records(self) -> pa.Table:
        return self.arrow if self.rows is None else self._load(self.names)

    def like(self, arrow: pa.Table, *, own_types: bool = True) -> Any:
        """Return `arrow` as the same kind of frame as the input; for a file, as a `pyarrow.Table`.

        Metadata and unused categories are left out. With ``own_types=False``, the dtypes of the input frame are not
        restored, since a single record can determine them.
        """
        released = publishable(arrow)
        if self._back is None:
            return released
        return (self._back if own_types else without_types(self._back))(released)

    def __repr__(self) -> str:
        return f"Table({self.kind!r}, {self.n_records} records x {len(self.names)} columns)"
