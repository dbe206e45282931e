"""Writing: the files of a release and the order of their records; either all files appear or none.

The table is read back and recounted before it gets its final name.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.auditing import Verdict, recount
from shoal.columns.schema import Column, Kind, Role, Roles, Schema
from shoal.errors import GuaranteeError, ParameterError
from shoal.files import replacing_all, sha256
from shoal.job import Job, Order
from shoal.manifest import as_text, internal_manifest, public_manifest
from shoal.models.table_columns import categories_of
from shoal.report import FORMATS, Form, ReleaseLike, gather
from shoal.table import Table, format_of, read, rewrite_parquet_into, write_into
from shoal.table.clean import empty_made_missing
from shoal.table.published_order import published_order
from shoal.typing import Labels


class Writable(ReleaseLike, Protocol):
    """The parts of a release that `write_release` uses, whether its records are in memory or not."""

    @property
    def inputs(self) -> list[Path]:
        """The files that were read."""

    @property
    def labels(self) -> Labels | None:
        """The cell of each record, if records are in memory."""

    def rows(self, order: Order) -> NDArray[np.int64] | None:
        """Return the record number of each row of the written table; None for the order of the input."""

    def write_table(self, path: Path, rows: NDArray[np.int64] | None) -> None:
        """Write the published table."""

    def recount_table(self, path: Path, rows: NDArray[np.int64] | None) -> None:
        """Recount the guarantees on the written table; raise if they do not hold."""

    def check_input(self) -> str:
        """Return the SHA-256 of the input; raise if it has changed."""


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


@dataclass(frozen=True)
class Files:
    """The files of a release: the table, its two manifests, and optionally reports and job."""

    table: Path
    report: Path | None = None
    json: Path | None = None
    job: Path | None = None
    form: Form = "internal"

    @staticmethod
    def of(
        path: str | os.PathLike[str],
        report: str | os.PathLike[str] | None = None,
        json: str | os.PathLike[str] | None = None,
        job: str | os.PathLike[str] | None = None,
        form: Form = "internal",
    ) -> "Files":
        """Return the files; raise if the extension of the table is unknown."""
        format_of(path)
        others = [None if each is None else Path(each) for each in (report, json, job)]
        return Files(Path(path), others[0], others[1], others[2], form)

    @property
    def public_manifest(self) -> Path:
        """The manifest that may be published with the table."""
        return self.table.with_name(f"{self.table.name}.public.json")

    @property
    def internal_manifest(self) -> Path:
        """The manifest that reproduces the release."""
        return self.table.with_name(f"{self.table.name}.internal.json")

    @property
    def reports(self) -> dict[str, Path]:
        """The reports by format."""
        return {name: path for name, path in (("html", self.report), ("json", self.json)) if path is not None}

    @property
    def paths(self) -> list[Path]:
        """All files, the table first."""
        manifests = [self.public_manifest, self.internal_manifest]
        return [self.table, *manifests, *self.reports.values(), *([] if self.job is None else [self.job])]

    @property
    def private(self) -> list[Path]:
        """The files that are not meant for publication."""
        public = {self.table, self.public_manifest, *(self.reports.values() if self.form == "public" else ())}
        return [path for path in self.paths if path not in public]


def write_release(
    release: Writable,
    files: Files,
    order: Order = "shuffle",
    *,
    force: bool = False,
    said: Mapping[str, Any],
    before_publishing: Callable[[], None] | None = None,
) -> None:
    """Write all files of a release, or none; `said` is passed to the reports unchanged.

    `before_publishing` is called when all files are complete and before they are renamed; if it raises, none is.
    """
    if order not in get_args(Order):
        raise ParameterError(f"order must be one of {', '.join(get_args(Order))}.")
    rows = release.rows(order)
    with replacing_all(files.paths, force, files.private, release.inputs) as temporaries:
        beside = dict(zip(files.paths, temporaries, strict=True))
        release.write_table(beside[files.table], rows)
        release.recount_table(beside[files.table], rows)
        facts = gather(release, files.form, **said, file=files.table.name) if files.reports else {}
        output, measures = sha256(beside[files.table]), dict(release.measures)
        texts = {
            **{path: FORMATS[name]({**facts, "sha256": output}) for name, path in files.reports.items()},
            files.public_manifest: as_text(public_manifest(release.job, output, release.verdict, release.codebook)),
            files.internal_manifest: as_text(
                internal_manifest(
                    release.job, release.check_input(), output, release.labels, rows, release.verdict, measures
                )
            ),
        }
        if files.job is not None:
            texts[files.job] = release.job.to_toml()
        for path, text in texts.items():
            beside[path].write_text(text, encoding="utf-8")
        release.check_input()
        if before_publishing is not None:
            before_publishing()


def written_order(release: InMemory, order: Order) -> NDArray[np.int64] | None:
    """Return the record number of each row of the written table; None for the order of the input."""
    if order == "keep":
        return None
    return published_order(
        (release.columns[column.name] for column in release.schema.published), release.verdict.n_records
    )


def write_table(release: InMemory, path: Path, rows: NDArray[np.int64] | None) -> None:
    """Write the published table; from Parquet to Parquet, unchanged columns never have to fit into memory."""
    source, names = release.source, [column.name for column in release.schema.published]
    if source.kind == "parquet" and source.path is not None and format_of(path)[1].name == "parquet":
        rewrite_parquet_into(source.path, path, replaced=release.replaced, columns=names, order=rows)
    else:
        write_into(release.columns.select(names), path, like=source, order=rows)


def recount_file(release: InMemory, path: Path, rows: NDArray[np.int64] | None) -> None:
    """Recount the guarantees on the written file before it is published, with the subjects in the order of its rows."""
    job = release.job
    schema = _counted_schema(release)
    # The first line of our own file is a header, whatever it looks like.
    header = True if format_of(path)[1].name == "csv" else None
    written = read(path, columns=[column.name for column in schema.columns], header=header).arrow
    n_records = release.verdict.n_records
    if written.num_rows != n_records:
        raise GuaranteeError(
            f"The written file, read back, has {written.num_rows:,} records instead of the {n_records:,} of the "
            "release. Nothing was released. Choose another format."
        )
    if not format_of(path)[1].tells_empty:
        written = empty_made_missing(written)
    subjects = _subjects(release, rows)
    found = recount(written, schema, None if release.verdict.withdrawn else job.k, subjects, job.models)
    require_of_file(found, job)


def require_of_file(found: Verdict, job: Job) -> None:
    """Raise if a written file, read back, does not satisfy what was asked for."""
    if not found.k_holds:
        persons = f", and one has {found.subjects} different subjects" if found.subject_asked else ""
        raise GuaranteeError(
            f"The written file does not satisfy k={job.k}: read back, its smallest class has {found.smallest} "
            f"records{persons}. Nothing was released. Choose another format."
        )
    for each in found.broken:
        raise GuaranteeError(
            f"The written file does not satisfy {each.model}: read back, {each.n_failing:,} of {each.n_classes:,} "
            "classes violate it. Nothing was released. Choose another format."
        )


def _subjects(release: InMemory, rows: NDArray[np.int64] | None) -> pa.ChunkedArray | None:
    """Return the subject of each written record, or None without a subject column."""
    name = release.schema.roles.subject
    if name is None:
        return None
    subjects = release.original[name]
    return subjects if rows is None else subjects.take(pa.array(rows))


def _counted_schema(release: ReleaseLike) -> Schema:
    """Return the schema for recounting a written file, with explicit orders, since a file may not store them."""
    wanted = {*release.schema.quasi_names, *(model.column for model in release.job.models)}
    columns = [column for column in release.schema.columns if column.name in wanted]
    return Schema(tuple(_with_order(release, column) for column in columns), Roles())


def _with_order(release: ReleaseLike, column: Column) -> Column:
    if column.kind is not Kind.ORDINAL or column.role is not Role.CONFIDENTIAL:
        return column
    order = categories_of(release.columns[column.name], column).drop_null()
    return replace(column, settings=column.settings.model_copy(update={"order": tuple(order.to_pylist())}))
