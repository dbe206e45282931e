"""Output places: where the table of a release and the files beside it go. Either all of them appear or none.

The table goes to a file; to standard output, which gets its first byte last; or to a new table of a database, in one
transaction, which is committed last.
"""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.columns.coarse.layout import laid_out, written_names
from shoal.columns.schema import Schema
from shoal.errors import FileError, GuaranteeError, SchemaError
from shoal.files import check_free, hidden_folder, is_same_file, replacing_all, sha256, temporary_path
from shoal.job import IntervalForm
from shoal.output.destination import PUBLIC, Destination
from shoal.output.standard_output import StandardOutput
from shoal.sources import Source, Table, format_of, read, rewrite_parquet_into, write_into
from shoal.sources.clean import empty_made_missing, has_column, plain, publishable, reordered
from shoal.sources.databases.new_table import NewTable, TableAt, new_table, to_copy_without
from shoal.sources.databases.sql_names import Name
from shoal.sources.parquet_arrow import PARQUET, read_columns
from shoal.sources.source_stamps import sha256_of_records


@dataclass(frozen=True)
class Published:
    """The columns of a release: replaced columns are in memory, the others are loaded on access.

    `layout` says how intervals are published.
    """

    source: Table
    schema: Schema
    replaced: pa.Table
    layout: IntervalForm = "text"

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        return (self.replaced if has_column(self.replaced, name) else self.source.load([name]))[name]

    def select(self, names: Sequence[str]) -> pa.Table:
        """Return some columns."""
        return pa.table({name: self[name] for name in names})

    @property
    def names(self) -> list[str]:
        """The names of the published columns."""
        return [column.name for column in self.schema.published]

    def laid_out(self, rows: NDArray[np.int64] | None = None) -> pa.Table:
        """Return all of them, intervals laid out as the job says, records in the order of the rows."""
        published = self.select(self.names)
        # Before texts are laid out, since codes take less time to move.
        ordered = published if rows is None else reordered(published, rows)
        return laid_out(ordered, self.schema, self.layout)


class TableInTheMaking(Protocol):
    """A table that is being written: to a file, to a database or by Spark."""

    def describe(self, manifests: Mapping[str, str], output: str) -> None:
        """Keep with the table the manifests that are not files of this machine, by the ends of their names."""


class TableOfOneMachine(TableInTheMaking, Protocol):
    """A table that is being written to a file or to a database."""

    def write(self, published: Published, rows: NDArray[np.int64] | None) -> None:
        """Write the published columns, in the order of `rows`."""

    def read_back(self, names: Sequence[str], coded: Sequence[str] = ()) -> pa.Table:
        """Return some of its columns as a reader gets them; the texts of those `coded` may be dictionary columns."""

    def sha256(self) -> str:
        """Return the SHA-256 of what was written."""


@contextmanager
def begun(
    destination: Destination, source: Source, also_read: Sequence[str] = ()
) -> Iterator[tuple[TableOfOneMachine, dict[Path, Path]]]:
    """Yield the table to write and the temporary path of each file; publish all of them at the end.

    None of them may be a file of the source, or one of those that were read beside it.
    """
    inputs = [*source.inputs, *map(Path, also_read)]
    place, force, private = destination.table, destination.force, destination.private
    if isinstance(place, Path):
        checked = [] if destination.cells is None else [destination.cells]
        with replacing_all(destination.paths, force, private, inputs, checked=checked) as temporaries:
            beside = dict(zip(destination.paths, temporaries, strict=True))
            yield FileTable(beside[place]), beside
        return
    assert isinstance(source, Table)
    if isinstance(place, StandardOutput):
        with _standard_output(destination, place, source, inputs) as begun:
            yield begun
        return
    assert isinstance(place, TableAt)
    is_new = place.is_new_file
    older = None if is_new else to_copy_without(place, source.origin, force)
    if is_new or older is not None:
        with _new_database(destination, place, inputs, older) as begun:
            yield begun
        return
    with (
        new_table(place, source.origin, force) as table,
        replacing_all(destination.paths, force, private, inputs, commit=table.commit) as temporaries,
    ):
        yield DatabaseTable(table), dict(zip(destination.paths, temporaries, strict=True))
    table.warn()


@contextmanager
def _new_database(
    destination: Destination, target: TableAt, inputs: Sequence[Path], older: Name | None
) -> Iterator[tuple[TableOfOneMachine, dict[Path, Path]]]:
    """As `begun`, for a file that does not exist, and never replaces another; or for one without its `older` table.

    It is written in a hidden folder.
    """
    assert target.path is not None
    force = destination.force
    check_free(destination.paths, force, inputs)
    paths = [target.path, *destination.paths]
    others = [path for path in inputs if older is None or not is_same_file(path, target.path)]
    with ExitStack() as held:
        folder = held.enter_context(hidden_folder(Path(os.path.realpath(target.path))))
        copy = folder / target.path.name
        if older is not None:
            assert target.place.database.copy_without is not None
            held.enter_context(target.place.database.copy_without(target.place.address, older, copy))
        never = paths[:1] if older is None else ()
        with replacing_all(paths, force, destination.private, others, never=never) as (file, *temporaries):
            with new_table(target, None, force, copy) as table:
                yield DatabaseTable(table), dict(zip(destination.paths, temporaries, strict=True))
                table.commit()
            shutil.copyfile(copy, file)


@contextmanager
def _standard_output(
    destination: Destination, output: StandardOutput, source: Table, inputs: Sequence[Path]
) -> Iterator[tuple[TableOfOneMachine, dict[Path, Path]]]:
    """As `begun`, for standard output: a private file, which is sent when the other files have their names."""
    ending = output.ending(source)
    with hidden_folder(temporary_path("release")) as folder:
        path = folder / f"release{ending}"
        paths, force, private = destination.paths, destination.force, destination.private
        with replacing_all(paths, force, private, inputs, commit=lambda: output.send(path)) as temporaries:
            yield FileTable(path), dict(zip(paths, temporaries, strict=True))


@dataclass(frozen=True)
class FileTable:
    """A table in a temporary file."""

    path: Path

    def write(self, published: Published, rows: NDArray[np.int64] | None) -> None:
        """Write the table; from Parquet to Parquet, unchanged columns never have to fit into memory."""
        source, schema, layout = published.source, published.schema, published.layout
        original = source.path if source.kind == "parquet" and source.rows is None else None
        if original is not None and format_of(self.path)[1].name == "parquet":
            laid = laid_out(published.replaced, schema, layout)
            columns = written_names(published.names, schema, layout, published.replaced)
            rewrite_parquet_into(original, self.path, replaced=laid, columns=columns, order=rows)
        else:
            write_into(published.laid_out(rows), self.path, like=source)

    def read_back(self, names: Sequence[str], coded: Sequence[str] = ()) -> pa.Table:
        """Return some of its columns."""
        ending, kind = format_of(self.path)
        try:
            if kind is PARQUET:
                written = plain(read_columns(self.path, names, coded=coded))
            else:
                written = read(self.path, columns=list(names), **kind.own_reading).arrow
        except (FileError, SchemaError):  # whose message names a file that is about to be removed
            raise GuaranteeError(
                f"The written table cannot be read back from the {ending} file, so that its guarantees cannot be "
                "recounted. Nothing was released. The cause may be a column without a name or with an unusual one: "
                "rename it, or choose another format."
            ) from None
        return written if kind.tells_empty else empty_made_missing(written)

    def sha256(self) -> str:
        """Return the SHA-256 of the file."""
        return sha256(self.path)

    def describe(self, manifests: Mapping[str, str], output: str) -> None:
        """Do nothing: both manifests are files of their own."""


class DatabaseTable:
    """A table in a transaction."""

    def __init__(self, table: NewTable) -> None:
        self._table = table

    def write(self, published: Published, rows: NDArray[np.int64] | None) -> None:
        """Write the table, with the labels of its columns as comments, and read it back."""
        records = publishable(published.laid_out(rows))
        labels = published.source.labels.variables if published.source.labels is not None else {}
        comments = {name: labels[name] for name in records.column_names if labels.get(name)}
        self._table.write(records, comments)
        self._records = self._table.read()

    def read_back(self, names: Sequence[str], coded: Sequence[str] = ()) -> pa.Table:
        """Return some of its columns."""
        return plain(self._records.select(list(names)))

    def sha256(self) -> str:
        """Return the SHA-256 of the records as the database returns them."""
        return sha256_of_records(self._records)

    def describe(self, manifests: Mapping[str, str], output: str) -> None:
        """Store the public manifest in the database."""
        self._table.describe(manifests[PUBLIC], output)
