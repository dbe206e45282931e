"""Writing: the files of a release; either all of them appear or none.

The table is read back and recounted before it gets its final name, or before it is committed to a database.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from shoal.errors import GuaranteeError
from shoal.files import write_text
from shoal.job import Job
from shoal.measures.recount import Verdict
from shoal.output.destination import INTERNAL, PUBLIC, Destination
from shoal.output.manifest import as_text, internal_manifest, public_manifest
from shoal.output.report import FORMATS, gather

if TYPE_CHECKING:
    from shoal.output.release import Release


def write_release(
    release: "Release", destination: Destination, before_publishing: Callable[[], None] | None = None
) -> None:
    """Write all files of a release, or none.

    `before_publishing` is called when all files are complete and before they are renamed; if it raises, none is.
    """
    records, asked = release.records, destination.asked
    page: dict[str, Any] = {} if asked.bound is None else {"bound": release.bound(asked.bound).il}
    page |= {**asked.title_page(), "file": destination.title}
    rows = records.rows(asked.order)
    with records.begun(destination) as (table, beside):
        records.write(table, rows)
        written = records.recount(table, rows)
        facts = gather(release, asked.form, **page, sha256=written.sha256) if destination.reports else {}
        manifests = _manifests(release, rows, *written)
        places = {PUBLIC: destination.public_manifest, INTERNAL: destination.internal_manifest}
        texts = {
            **{path: FORMATS[name](facts) for name, path in destination.reports.items()},
            **{path: manifests.pop(form) for form, path in places.items() if path is not None},
        }
        if destination.cells is not None and records.series is not None:
            kept = records.series.cells.in_order(rows, written.sha256)
            beside[destination.cells].write_bytes(kept.to_bytes())
        if destination.job is not None:
            texts[destination.job] = release.job.to_toml()
        for path, text in texts.items():
            write_text(beside[path], text)
        table.describe(manifests, written.sha256)
        records.source.check_unchanged()
        if before_publishing is not None:
            before_publishing()


def _manifests(release: "Release", rows: Any, output: str, files: dict[str, str] | None) -> dict[str, str]:
    """Return the texts of both manifests, by the ends of their names."""
    job, verdict, cells = release.job, release.verdict, release.records.cells
    labels = None if cells is None else cells.labels
    source, linking = release.records.source, release.linking
    taken = None if linking is None else linking.taken
    if release.series is not None and not release.series.plan.is_whole:
        taken = release.series.plan.records
    public = public_manifest(job, output, verdict, release.codebook, source.n_left_out)
    public |= {} if linking is None else {"linking": linking.to_dict()}
    measures = dict(release.measures)
    internal = internal_manifest(
        job, source.sha256, output, labels, rows, verdict, measures, source.n_left_out, taken, release.series
    )
    listed = {"files": files} if files else {}
    return {PUBLIC: as_text(public | listed), INTERNAL: as_text(internal | listed)}


def require_as_many(n_written: int, n_records: int) -> None:
    """Raise if a written table, read back, has another number of records."""
    if n_written != n_records:
        raise GuaranteeError(
            f"The written table, read back, has {n_written:,} records instead of the {n_records:,} of the "
            "release. Nothing was released. Choose another format."
        )


def require_of_written(found: Verdict, job: Job) -> None:
    """Raise if a written table, read back, does not satisfy what was asked for."""
    if found.history_below(job.k):
        assert found.linked is not None
        raise GuaranteeError(
            f"The written table does not satisfy k={job.k}: read back, {found.linked.n_below:,} persons have histories "
            "that fewer share. Nothing was released. Choose another format."
        )
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
