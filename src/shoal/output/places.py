"""Output places: where the table of a release and the files beside it go. Either all of them appear or none.

The table goes to a file; to standard output, which gets its first byte last; or to a new table of a database, in one
transaction, which is committed last.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.aggregate import Cells
from shoal.columns.coarse.layout import laid_out, written_names
from shoal.errors import FileError, GuaranteeError, ParameterError, SchemaError
from shoal.files import check_free, hidden_folder, is_same_file, replacing_all, sha256, temporary_path
from shoal.job import Order
from shoal.output.report import Form, ReleaseLike
from shoal.output.standard_output import StandardOutput
from shoal.sources import Source, Table, format_of, output_format_of, read, rewrite_parquet_into, write_into
from shoal.sources.batches import Batches
from shoal.sources.clean import empty_made_missing, plain, publishable, reordered
from shoal.sources.databases import place_of
from shoal.sources.databases.new_table import NewTable, TableAt, check_free_table, new_table, to_copy_without
from shoal.sources.databases.sql_names import Name
from shoal.sources.parquet_arrow import PARQUET, read_back_parquet
from shoal.sources.source_stamps import sha256_of_records
from shoal.sources.standard_input import DASH
from shoal.typing import Labels


class Writable(ReleaseLike, Protocol):
    """The parts of a release that `shoal.output.writing.write_release` uses, wherever its records are."""

    @property
    def source(self) -> Source:
        """The input table."""

    @property
    def labels(self) -> Labels | None:
        """The cell of each record, if records are in memory."""

    def rows(self, order: Order) -> NDArray[np.int64] | None:
        """Return the record number of each row of the written table; None for the order of the input."""

    def write_table(self, table: "TableInTheMaking", rows: NDArray[np.int64] | None) -> None:
        """Write the published table."""

    def recount_table(self, table: "TableInTheMaking", rows: NDArray[np.int64] | None) -> None:
        """Recount the guarantees on the written table; raise if they do not hold."""


class InMemory(ReleaseLike, Protocol):
    """The parts of a release whose records are in memory, as in `shoal.release.Release`."""

    @property
    def source(self) -> Table:
        """The input table."""

    @property
    def original(self) -> pa.Table:
        """The prepared input columns, in the order of the input."""

    @property
    def replaced(self) -> pa.Table:
        """The published quasi-identifiers, in the order of the input."""

    @property
    def cells(self) -> Cells:
        """The cell of each record, in the order of the input."""


@dataclass(frozen=True)
class Files:
    """The files of a release: the table, its two manifests, and optionally reports and job.

    In a database, the table and its public manifest are not files; on standard output, the table is not a file.
    """

    table: Path | TableAt | StandardOutput
    report: Path | None = None
    json: Path | None = None
    job: Path | None = None
    form: Form = "internal"
    manifest: Path | None = None

    @staticmethod
    def of(
        path: str | os.PathLike[str],
        report: str | os.PathLike[str] | None = None,
        json: str | os.PathLike[str] | None = None,
        job: str | os.PathLike[str] | None = None,
        form: Form = "internal",
        to_table: str | None = None,
        manifest: str | os.PathLike[str] | None = None,
        to_format: str | None = None,
    ) -> "Files":
        """Return the files; raise if an extension does not fit, or a table in a database is not named."""
        check_reports(report, json, form)
        others = [None if each is None else Path(each) for each in (report, json, job, manifest)]
        if os.fspath(path) == DASH:
            check_for_standard_output(to_table, manifest)
            return Files(StandardOutput(to_format), others[0], others[1], others[2], form, others[3])
        if to_format is not None:
            raise ParameterError(
                "to_format= is the format of standard output (-); a file has that of its extension. Leave it out."
            )
        place = place_of(path)
        if place is None:
            output_format_of(path)
        if place is None and to_table is not None:
            raise ParameterError("to_table= names a table in a database, and the release goes to a file. Leave it out.")
        table = Path(path) if place is None else TableAt.of(place, to_table)
        return Files(table, others[0], others[1], others[2], form, others[3])

    @property
    def title(self) -> str:
        """The name of the table."""
        return self.table.name if isinstance(self.table, Path) else str(getattr(self.table, "name", self.table))

    @property
    def public_manifest(self) -> Path | None:
        """The manifest that may be published with the table; None in a database, which holds it itself."""
        if isinstance(self.table, StandardOutput):
            file = self.internal_manifest
            return file.with_name(f"{file.name.removesuffix('.json').removesuffix('.internal')}.public.json")
        return None if isinstance(self.table, TableAt) else self.table.with_name(f"{self.table.name}.public.json")

    @property
    def internal_manifest(self) -> Path:
        """The manifest that reproduces the release: beside the file; for a server, in the current folder."""
        if self.manifest is not None:
            return self.manifest
        assert not isinstance(self.table, StandardOutput)  # which has been refused without a manifest
        if not isinstance(self.table, TableAt):
            return self.table.with_name(f"{self.table.name}.internal.json")
        name = f"{self.table.name.table.replace(os.sep, '_')}.internal.json"
        file = self.table.path
        return Path(name) if file is None else file.with_name(f"{file.name}.{name}")

    @property
    def reports(self) -> dict[str, Path]:
        """The reports by format."""
        return {name: path for name, path in (("html", self.report), ("json", self.json)) if path is not None}

    @property
    def paths(self) -> list[Path]:
        """All files, the table first."""
        table = self.table if isinstance(self.table, Path) else None
        files = [table, self.public_manifest, self.internal_manifest, *self.reports.values(), self.job]
        return [file for file in files if file is not None]

    @property
    def places(self) -> list[str]:
        """All that is written, the table first."""
        return [*([] if isinstance(self.table, Path) else [str(self.table)]), *map(str, self.paths)]

    @property
    def private(self) -> list[Path]:
        """The files that are not meant for publication."""
        public = {self.table, self.public_manifest, *(self.reports.values() if self.form == "public" else ())}
        return [path for path in self.paths if path not in public]


def check_reports(
    report: str | os.PathLike[str] | None,
    json: str | os.PathLike[str] | None,
    form: Form = "internal",
    bound: str | None = None,
    **said: Any,
) -> None:
    """Raise if the extension of a report does not fit its format, or if there is something to say and no report."""
    if bound is not None and (form == "public" or (report is None and json is None)):
        raise ParameterError(
            "The bound on the loss is shown only in the internal report. Ask for that one with "
            'report="report.html", or leave the bound out.'
        )
    unused = [name for name, value in said.items() if value is not None] + ["form"] * (form == "public")
    if report is None and json is None and unused:
        raise ParameterError(
            f"{', '.join(unused)} can only be given for a report, and none was asked for. Ask for one with "
            'report="report.html", or leave it out.'
        )
    for path, format_, endings in ((report, "an HTML page", (".html", ".htm")), (json, "JSON", (".json",))):
        if path is not None and not os.fspath(path).lower().endswith(endings):
            raise FileError(
                f"The report {Path(path).name!r} would be {format_}, which its extension does not say. Choose a name "
                f"that ends in {' or '.join(endings)}."
            )


def check_for_standard_output(to_table: str | None, manifest: str | os.PathLike[str] | None) -> None:
    """Raise if a release cannot go to standard output as asked."""
    if to_table is not None:
        raise ParameterError(
            "to_table= names a table in a database, and the release goes to standard output. Leave it out."
        )
    if manifest is None:
        raise ParameterError(
            "The release goes to standard output (-), beside which there is no place for its manifests. Say where the "
            'internal one goes, for instance manifest="release.internal.json"; the public one is written beside it, '
            "here as release.public.json."
        )


def check_free_files(files: Files, force: bool, inputs: Sequence[str | os.PathLike[str]] = ()) -> None:
    """Refuse what `write_release` would refuse, before any work is done."""
    check_free(files.paths, force, inputs)
    if isinstance(files.table, TableAt):
        check_free_table(files.table, force)


class TableInTheMaking(Protocol):
    """A table that is being written: to a file or to a database."""

    def write(self, release: InMemory, rows: NDArray[np.int64] | None) -> None:
        """Write the published columns, in the order of `rows`."""

    def read_back(self, names: Sequence[str], coded: Sequence[str] = ()) -> pa.Table:
        """Return some of its columns as a reader gets them; the texts of those `coded` may be dictionary columns."""

    def sha256(self) -> str:
        """Return the SHA-256 of what was written."""

    def describe(self, manifest: str, output: str) -> None:
        """Keep the public manifest with the table, where it is not a file of its own."""


@contextmanager
def begun(
    files: Files, force: bool, source: Source, also_read: Sequence[str] = ()
) -> Iterator[tuple[TableInTheMaking, dict[Path, Path]]]:
    """Yield the table to write and the temporary path of each file; publish all of them at the end.

    None of them may be a file of the source, or one of those that were read beside it.
    """
    inputs = [*source.inputs, *map(Path, also_read)]
    if isinstance(source, Batches) and not isinstance(files.table, Path):
        raise ParameterError('A release made in blocks goes to a file. Name one, or use engine="memory".')
    if isinstance(files.table, Path):
        with replacing_all(files.paths, force, files.private, inputs) as temporaries:
            beside = dict(zip(files.paths, temporaries, strict=True))
            yield FileTable(beside[files.table]), beside
    elif isinstance(files.table, StandardOutput):
        assert isinstance(source, Table)
        with _standard_output(files, files.table, force, source, inputs) as begun:
            yield begun
    else:
        assert isinstance(source, Table)
        is_new = files.table.is_new_file
        older = None if is_new else to_copy_without(files.table, source.origin, force)
        if is_new or older is not None:
            with _new_database(files, files.table, force, inputs, older) as begun:
                yield begun
            return
        with (
            new_table(files.table, source.origin, force) as table,
            replacing_all(files.paths, force, files.private, inputs, commit=table.commit) as temporaries,
        ):
            yield DatabaseTable(table), dict(zip(files.paths, temporaries, strict=True))
        table.warn()


@contextmanager
def _new_database(
    files: Files, target: TableAt, force: bool, inputs: Sequence[Path], older: Name | None
) -> Iterator[tuple[TableInTheMaking, dict[Path, Path]]]:
    """As `begun`, for a file that does not exist, and never replaces another; or for one without its `older` table.

    It is written in a hidden folder.
    """
    assert target.path is not None
    check_free(files.paths, force, inputs)
    paths = [target.path, *files.paths]
    others = [path for path in inputs if older is None or not is_same_file(path, target.path)]
    with ExitStack() as held:
        folder = held.enter_context(hidden_folder(Path(os.path.realpath(target.path))))
        copy = folder / target.path.name
        if older is not None:
            assert target.place.database.copy_without is not None
            held.enter_context(target.place.database.copy_without(target.place.address, older, copy))
        never = paths[:1] if older is None else ()
        with replacing_all(paths, force, files.private, others, never=never) as (file, *temporaries):
            with new_table(target, None, force, copy) as table:
                yield DatabaseTable(table), dict(zip(files.paths, temporaries, strict=True))
                table.commit()
            shutil.copyfile(copy, file)


@contextmanager
def _standard_output(
    files: Files, output: StandardOutput, force: bool, source: Table, inputs: Sequence[Path]
) -> Iterator[tuple[TableInTheMaking, dict[Path, Path]]]:
    """As `begun`, for standard output: a private file, which is sent when the other files have their names."""
    ending = output.ending(source)
    with hidden_folder(temporary_path("release")) as folder:
        path = folder / f"release{ending}"
        with replacing_all(files.paths, force, files.private, inputs, commit=lambda: output.send(path)) as temporaries:
            yield FileTable(path), dict(zip(files.paths, temporaries, strict=True))


def _published(release: InMemory, rows: NDArray[np.int64] | None) -> pa.Table:
    """Return the published columns, intervals laid out as the job says, records in the order of the rows."""
    published = release.columns.select([column.name for column in release.schema.published])
    # Before texts are laid out, since codes take less time to move.
    ordered = published if rows is None else reordered(published, rows)
    return laid_out(ordered, release.schema, release.job.intervals)


@dataclass(frozen=True)
class FileTable:
    """A table in a temporary file."""

    path: Path

    def write(self, release: InMemory, rows: NDArray[np.int64] | None) -> None:
        """Write the table; from Parquet to Parquet, unchanged columns never have to fit into memory."""
        source, schema, layout = release.source, release.schema, release.job.intervals
        if source.kind == "parquet" and source.path is not None and format_of(self.path)[1].name == "parquet":
            laid = laid_out(release.replaced, schema, layout)
            columns = written_names([column.name for column in schema.published], schema, layout, release.replaced)
            rewrite_parquet_into(source.path, self.path, replaced=laid, columns=columns, order=rows)
        else:
            write_into(_published(release, rows), self.path, like=source)

    def read_back(self, names: Sequence[str], coded: Sequence[str] = ()) -> pa.Table:
        """Return some of its columns."""
        ending, kind = format_of(self.path)
        try:
            if kind is PARQUET:
                written = plain(read_back_parquet(self.path, names, coded))
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

    def describe(self, manifest: str, output: str) -> None:
        """Do nothing: the manifest is a file of its own."""


class DatabaseTable:
    """A table in a transaction."""

    def __init__(self, table: NewTable) -> None:
        self._table = table

    def write(self, release: InMemory, rows: NDArray[np.int64] | None) -> None:
        """Write the table, with the labels of its columns as comments, and read it back."""
        published = publishable(_published(release, rows))
        labels = release.source.labels.variables if release.source.labels is not None else {}
        comments = {name: labels[name] for name in published.column_names if labels.get(name)}
        self._table.write(published, comments)
        self._records = self._table.read()

    def read_back(self, names: Sequence[str], coded: Sequence[str] = ()) -> pa.Table:
        """Return some of its columns."""
        return plain(self._records.select(list(names)))

    def sha256(self) -> str:
        """Return the SHA-256 of the records as the database returns them."""
        return sha256_of_records(self._records)

    def describe(self, manifest: str, output: str) -> None:
        """Store the manifest in the database."""
        self._table.describe(manifest, output)
