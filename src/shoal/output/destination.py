"""Destination: where a release goes, what stands beside it, and how it is written: checked once, before any work.

The table goes to a file, to a new table of a database or to standard output; on Spark, to a folder of Parquet files or
to a new table of its catalogue. Each engine has a part of them.
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.errors import FileError, ParameterError
from shoal.files import check_free
from shoal.job import Writing
from shoal.job.engine_facts import ENGINES, IN_MEMORY, beyond
from shoal.output.standard_output import StandardOutput
from shoal.series.cells_file import ENDING
from shoal.sources import format_of, output_format_of
from shoal.sources.batches import has_batches
from shoal.sources.databases import place_of
from shoal.sources.databases.new_table import TableAt, check_free_table
from shoal.sources.standard_input import DASH
from shoal.spelling import named, setting

PUBLIC, INTERNAL = ".public.json", ".internal.json"
"""Ends of the names of the manifests."""

_PART = r"(?:`(?:[^`]|``)+`|[^`.]+)"


@dataclass(frozen=True)
class FolderAt:
    """A folder of Parquet files, on any file system that Spark can write to."""

    path: str
    partition_by: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self.path.rsplit("/", 1)[-1]

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True)
class CatalogueAt:
    """A new table of Spark's catalogue, by the parts of its name, each in backticks."""

    asked: str
    parts: tuple[str, ...]
    partition_by: tuple[str, ...] = ()

    @staticmethod
    def of(name: str, partition_by: tuple[str, ...]) -> "CatalogueAt":
        """Return the table; raise unless Spark can read its name."""
        if re.fullmatch(rf"{_PART}(?:\.{_PART})*", name) is None:
            raise ParameterError(
                f"{name!r} is not the name of a table. Give TABLE, DATABASE.TABLE or CATALOG.DATABASE.TABLE; a part "
                "that holds a dot or a backtick stands in backticks, as in Spark: `a.b`."
            )
        parts = (part if part[0] == "`" else f"`{part}`" for part in re.findall(_PART, name))
        return CatalogueAt(name, tuple(parts), partition_by)

    @property
    def name(self) -> str:
        """The last part of its name."""
        return self.parts[-1][1:-1].replace("``", "`")

    def __str__(self) -> str:
        return f"table {self.asked}"


OnSpark = FolderAt | CatalogueAt
"""What Spark writes."""

TablePlace = Path | TableAt | StandardOutput | OnSpark
"""Where the table of a release goes."""


@dataclass(frozen=True)
class Destination:
    """Where a release goes: the table, its two manifests, and optionally reports and the job; all of them or none.

    Attributes
    ----------
    table : Path, TableAt, StandardOutput, FolderAt or CatalogueAt
        Only the first is a file of this machine.
    asked : Writing
        How it is written: order of the records, form of the report, what stands on its first page.
    job : Path or None
        File for the job.
    force : bool
        Whether existing files are replaced.
    tables : tuple of Path
        Files for further tables of the same persons.
    has_cells : bool
        Whether what later releases of a series need is written too.
    """

    table: TablePlace
    asked: Writing
    job: Path | None = None
    force: bool = False
    tables: tuple[Path, ...] = ()
    has_cells: bool = False

    @staticmethod
    def of(
        asked: Writing,
        engine: str = IN_MEMORY,
        *,
        save_job: str | os.PathLike[str] | None = None,
        force: bool = False,
        partition_by: Sequence[str] = (),
        tables: Sequence[str] = (),
        has_cells: bool = False,
    ) -> "Destination":
        """Return the destination of a release of an engine; raise if the engine cannot write it as asked."""
        _check_reports(asked)
        _check_bound(asked)
        if asked.releases is not None and not Path(asked.releases).is_dir():
            raise FileError(
                f"The folder of earlier releases {asked.releases!r} does not exist. Correct {named('releases')}, or "
                "leave it out."
            )
        if ENGINES[engine].in_blocks:
            _check_blocks(asked, engine)
        table = _TABLES[ENGINES[engine].place](asked, tuple(partition_by))
        others = tuple(map(Path, tables))
        if others and not isinstance(table, Path):
            raise ParameterError(
                "Further tables ([[tables]]) are written to files, so the table has to be one as well."
            )
        for other in others:
            output_format_of(other)
        return Destination(table, asked, None if save_job is None else Path(save_job), force, others, has_cells)

    @property
    def title(self) -> str:
        """The name of the table."""
        return str(getattr(self.table, "name", self.table))

    @property
    def public_manifest(self) -> Path | None:
        """The manifest that may be published with the table; None where it is kept with the table, not as a file."""
        if isinstance(self.table, StandardOutput):
            file = self.internal_manifest
            assert file is not None
            return file.with_name(f"{file.name.removesuffix('.json').removesuffix('.internal')}{PUBLIC}")
        return self.table.with_name(f"{self.table.name}{PUBLIC}") if isinstance(self.table, Path) else None

    @property
    def internal_manifest(self) -> Path | None:
        """The manifest that reproduces the release: beside the file; for a server, in the current folder.

        None where Spark writes it beside its folder.
        """
        if self.asked.manifest is not None:
            return Path(self.asked.manifest)
        if isinstance(self.table, Path):
            return self.table.with_name(f"{self.table.name}{INTERNAL}")
        if isinstance(self.table, TableAt):
            name = f"{self.table.name.table.replace(os.sep, '_')}{INTERNAL}"
            file = self.table.path
            return Path(name) if file is None else file.with_name(f"{file.name}.{name}")
        return Path(f"{self.title.replace(os.sep, '_')}{INTERNAL}") if isinstance(self.table, CatalogueAt) else None

    @property
    def cells(self) -> Path | None:
        """What later releases of the series need; None if there is no series. It stands beside the manifest."""
        file = self.internal_manifest
        if not self.has_cells or file is None:
            return None
        return file.with_name(f"{file.name.removesuffix('.json').removesuffix('.internal')}{ENDING}")

    @property
    def reports(self) -> dict[str, Path]:
        """The reports by format."""
        asked = {"html": self.asked.report, "json": self.asked.json_file}
        return {name: Path(path) for name, path in asked.items() if path is not None}

    @property
    def paths(self) -> list[Path]:
        """All files of this machine, the table first."""
        table = self.table if isinstance(self.table, Path) else None
        files = [table, *self.tables, self.public_manifest, self.internal_manifest, self.cells, *self.reports.values()]
        files.append(self.job)
        return [file for file in files if file is not None]

    @property
    def on_spark(self) -> list[str]:
        """What Spark writes, on a file system that this machine need not reach: the folder, and manifests beside it."""
        if not isinstance(self.table, FolderAt):
            return []
        endings = (PUBLIC,) if self.asked.manifest is not None else (PUBLIC, INTERNAL)
        return [self.table.path, *(self.table.path + ending for ending in endings)]

    @property
    def places(self) -> list[str]:
        """All that is written, the table first."""
        table = [] if isinstance(self.table, Path | FolderAt) else [str(self.table)]
        return [*table, *self.on_spark, *map(str, self.paths)]

    @property
    def private(self) -> list[Path]:
        """The files that are not meant for publication."""
        public = {
            self.table,
            *self.tables,
            self.public_manifest,
            *(self.reports.values() if self.asked.form == "public" else ()),
        }
        return [path for path in self.paths if path not in public]

    def check_free(self, inputs: Sequence[str | os.PathLike[str]] = ()) -> None:
        """Refuse what is taken or read, before any work is done; Spark looks at its own when it writes."""
        check_free(self.paths, self.force, inputs)
        if isinstance(self.table, TableAt):
            check_free_table(self.table, self.force)


def _check_reports(asked: Writing) -> None:
    """Raise if the extension of a report does not fit its format, or if there is something to say and no report."""
    unused = [name for name, value in asked.title_page().items() if value is not None] + ["form"] * (
        asked.form == "public"
    )
    if asked.report is None and asked.json_file is None and unused:
        raise ParameterError(
            f"{named(*unused)} can only be given for a report, and none was asked for. Ask for one with "
            f"{setting('report', 'report.html')}, or leave it out."
        )
    formats: Any = ((asked.report, "an HTML page", (".html", ".htm")), (asked.json_file, "JSON", (".json",)))
    for path, format_, endings in formats:
        if path is not None and not path.lower().endswith(endings):
            raise FileError(
                f"The report {Path(path).name!r} would be {format_}, which its extension does not say. Choose a name "
                f"that ends in {' or '.join(endings)}."
            )


def _check_bound(asked: Writing) -> None:
    """Raise if a bound is asked for and there is no internal report to show it."""
    if asked.bound is not None and (asked.form == "public" or not (asked.report or asked.json_file)):
        raise ParameterError(
            "The bound on the loss is shown only in the internal report. Ask for that one with "
            f"{setting('report', 'report.html')}, or leave the bound out."
        )


def _check_blocks(asked: Writing, engine: str) -> None:
    """Raise if something is asked for that a release made in blocks cannot give."""
    if asked.bound is not None:
        raise beyond(engine, "a bound on the loss", "it is computed from all records at once")
    if asked.order == "keep":
        why = "records are sorted by their published values, block by block"
        raise beyond(engine, "keeping the order of the input", why)


def _anywhere(asked: Writing, partition_by: tuple[str, ...]) -> Path | TableAt | StandardOutput:
    """Return a place on this machine or in a database."""
    if partition_by:
        raise ParameterError(
            f"{named('partition_by')} splits a folder that {setting('engine', 'spark')} writes; other engines write "
            "one file. Leave it out."
        )
    if asked.path is None:
        raise ParameterError("Say where the release goes: write(PATH).")
    if asked.path == DASH:
        _check_standard_output(asked)
        return StandardOutput(asked.to_format)
    if asked.to_format is not None:
        raise ParameterError(
            f"{setting('to_format')} is the format of standard output (-); a file has that of its extension. Leave it "
            "out."
        )
    place = place_of(asked.path)
    if place is not None:
        return TableAt.of(place, asked.to_table)
    output_format_of(asked.path)
    if asked.to_table is not None:
        raise ParameterError(
            f"{setting('to_table')} names a table in a database, and the release goes to a file. Leave it out."
        )
    return Path(asked.path)


def _check_standard_output(asked: Writing) -> None:
    """Raise if a release cannot go to standard output as asked."""
    if asked.to_table is not None:
        raise ParameterError(
            f"{setting('to_table')} names a table in a database, and the release goes to standard output. Leave it out."
        )
    if asked.manifest is None:
        raise ParameterError(
            "The release goes to standard output (-), beside which there is no place for its manifests. Say where the "
            f"internal one goes, for instance {setting('manifest', 'release.internal.json')}; the public one is "
            "written beside it, here as release.public.json."
        )


def _in_parts(asked: Writing, partition_by: tuple[str, ...]) -> Path:
    """Return a file that takes a release in parts, and gives it back in parts."""
    table = _anywhere(asked, partition_by)
    if not isinstance(table, Path) or format_of(table)[1].write_parts is None or not has_batches(table):
        title = getattr(table, "name", table)
        raise ParameterError(
            f"{str(title)!r} cannot be written in parts and recounted. Write a CSV (not packed), Parquet or Arrow "
            f"file, or use {setting('engine', 'memory')}."
        )
    return table


def _on_spark(asked: Writing, partition_by: tuple[str, ...]) -> OnSpark:
    """Return a folder or a table of the catalogue."""
    if asked.to_format is not None:
        raise ParameterError(
            f"{setting('to_format')} is the format of standard output (-), and Spark writes a folder of Parquet files. "
            "Leave it out."
        )
    if asked.path is not None and asked.to_table is None:
        return FolderAt(asked.path.rstrip("/"), partition_by)
    if asked.path is None and asked.to_table is not None:
        return CatalogueAt.of(asked.to_table, partition_by)
    raise ParameterError(
        "A release on Spark goes either to a folder, as a job says it or write(PATH), or to a table of the catalogue, "
        'write(to_table="db.people"). Give one of them.'
    )


_TABLES: dict[str, Callable[[Writing, tuple[str, ...]], TablePlace]] = {
    "anywhere": _anywhere,
    "in parts": _in_parts,
    "on Spark": _on_spark,
}
"""What returns the place of the table, or refuses it, by the places of an engine."""
