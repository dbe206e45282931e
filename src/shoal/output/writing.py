"""Writing: the files of a release and the order of their records; either all files appear or none.

The table is read back and recounted before it gets its final name, or before it is committed to a database.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.columns.coarse.layout import gathered, written_names
from shoal.columns.schema import Column, Kind, Role, Roles, Schema
from shoal.errors import GuaranteeError, ParameterError
from shoal.job import Job, Order
from shoal.measures.recount import Verdict, recount
from shoal.models.table_columns import categories_of
from shoal.output.manifest import as_text, internal_manifest, public_manifest
from shoal.output.places import Files, InMemory, TableInTheMaking, Writable, begun
from shoal.output.published_order import Alike, published_order
from shoal.output.report import FORMATS, ReleaseLike, gather


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
    with begun(files, force, release.source, release.job.files) as (table, beside):
        release.write_table(table, rows)
        release.recount_table(table, rows)
        facts = gather(release, files.form, **said, file=files.title) if files.reports else {}
        output, measures = table.sha256(), dict(release.measures)
        published = as_text(public_manifest(release.job, output, release.verdict, release.codebook))
        texts = {
            **{path: FORMATS[name]({**facts, "sha256": output}) for name, path in files.reports.items()},
            files.internal_manifest: as_text(
                internal_manifest(
                    release.job, release.source.sha256, output, release.labels, rows, release.verdict, measures
                )
            ),
        }
        if files.job is not None:
            texts[files.job] = release.job.to_toml()
        if files.public_manifest is not None:
            texts[files.public_manifest] = published
        table.describe(published, output)
        for path, text in texts.items():
            beside[path].write_text(text, encoding="utf-8")
        release.source.check_unchanged()
        if before_publishing is not None:
            before_publishing()


def written_order(release: InMemory, order: Order) -> NDArray[np.int64] | None:
    """Return the record number of each row of the written table; None for the order of the input."""
    if order == "keep":
        return None
    names = [column.name for column in release.schema.published]
    return published_order((release.columns[name] for name in names), release.verdict.n_records, _alike(release, names))


def _alike(release: InMemory, names: list[str]) -> Alike | None:
    """Return the cells, and the places of the columns in which the records of a cell are published with one value."""
    if release.job.rho:
        return None
    cells = release.cells
    same = {column.name for column in release.schema.quasi if cells.of(column) is cells.labels}
    return Alike(cells.labels, frozenset(place for place, name in enumerate(names) if name in same))


def recount_table(release: InMemory, table: TableInTheMaking, rows: NDArray[np.int64] | None) -> None:
    """Recount the guarantees on what was written before it is published, with the subjects in the order of its rows."""
    job = release.job
    schema = _counted_schema(release)
    names = [column.name for column in schema.columns]
    wanted = written_names(names, schema, job.intervals, release.replaced)
    coded = [column.name for column in schema.quasi if not column.is_true]
    written = gathered(table.read_back(wanted, coded), names)
    n_records = release.verdict.n_records
    if written.num_rows != n_records:
        raise GuaranteeError(
            f"The written table, read back, has {written.num_rows:,} records instead of the {n_records:,} of the "
            "release. Nothing was released. Choose another format."
        )
    subjects = _subjects(release, rows)
    own = release.original.select([column.name for column in schema.quasi if column.is_true])
    original = own if rows is None else own.take(pa.array(rows))
    asked = None if release.verdict.withdrawn else job.k
    found = recount(written, schema, asked, subjects, job.models, original=original)
    require_of_written(found, job)


def require_of_written(found: Verdict, job: Job) -> None:
    """Raise if a written table, read back, does not satisfy what was asked for."""
    if not found.k_holds:
        persons = f", and one has {found.subjects} different subjects" if found.subject_asked else ""
        raise GuaranteeError(
            f"The written table does not satisfy k={job.k}: read back, its smallest class has {found.smallest} "
            f"records{persons}. Nothing was released. Choose another format."
        )
    for each in found.broken:
        raise GuaranteeError(
            f"The written table does not satisfy {each.model}: read back, {each.n_failing:,} of {each.n_classes:,} "
            "classes violate it. Nothing was released. Choose another format."
        )
    for false in found.untrue:
        raise GuaranteeError(
            f"The written table is not true of every record: read back, {false.n_false:,} records have values that are "
            f"not within the published {false.form} of column {false.column!r}. Nothing was released. Choose another "
            "format."
        )
    for exposing in found.exposing:
        raise GuaranteeError(
            f"The written table shows where fewer than {job.k} people are: read back, {exposing.n_exposed:,} records "
            f"have such an end in the published {exposing.form} of column {exposing.column!r}. Nothing was released. "
            "Choose another format."
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
    return replace(column, settings=column.settings.model_copy(update={"categories": tuple(order.to_pylist())}))
