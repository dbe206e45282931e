"""File: how the file is read, what was found in it, and its first records for those who ask to see values."""

import os
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from shoal.app.draft import Draft, with_reading
from shoal.app.fields import Field, field_of, on_form, sections
from shoal.app.pages.common import Form, back_to, parts_of, render_step, work_of
from shoal.columns.schema import Kind
from shoal.errors import FileError
from shoal.job import Input
from shoal.output.report.sentences import kind_in_words
from shoal.sources import format_of
from shoal.sources.reading import OF_ANY_SOURCE


def show(request: Request) -> Response:
    """Show how the file is read."""
    work = work_of(request)
    draft = work.draft
    run = work.inspection(draft)
    found = work.facts(draft)
    preview = work.runs.latest("preview", f"records-{work.history.at}") if work.shows_values else None
    return render_step(
        request,
        "file",
        work,
        draft,
        run=run,
        found=found,
        kinds=_kinds(found),
        sections=sections(_fields(draft), {"": on_form(Input)}),
        preview=preview,
    )


def change(request: Request, form: Form) -> str:
    """Read the file in another way, or read another file."""
    work = work_of(request)
    given = {name: value for field in _fields(work.draft) for name, value in field.read(form).items()}
    work.change(form.at, lambda draft: with_reading(draft, given), "how the file is read")
    return f"/work/{work.id}/file"


def replace(request: Request, form: Form) -> str:
    """Take another file for the same job."""
    work, parts = work_of(request), parts_of(request)
    upload = form.file("upload")
    path = parts.places.keep(upload.filename or "", upload.file) if upload else parts.places.inside(form.raw("path"))
    format_of(path)
    if not os.path.isfile(path):
        raise FileError(f"{path.name!r} does not exist or is not a regular file.")
    work.change(
        form.at,
        lambda draft: with_reading(draft, {"path": parts.places.relative(path)}),
        f"another file: {path.name}",
    )
    return f"/work/{work.id}/file"


def read_again(request: Request, form: Form) -> str:
    """Read the file again, since it has changed on disk."""
    work = work_of(request)
    work.read_again(work.draft)
    return f"/work/{work.id}/file"


def values(request: Request, form: Form) -> str:
    """Show values on this screen, or hide them again."""
    work = work_of(request)
    work.shows_values = form.text("show") == "yes"
    if work.shows_values:
        work.start("preview", work.draft, f"records-{work.history.at}")
    else:
        for verb in ("preview", "records"):
            work.runs.forget(verb)
    return f"/work/{work.id}/{back_to(form, 'file')}"


def _fields(draft: Draft) -> list[Field]:
    """Return the settings of reading that the format of the file knows."""
    if draft.input is None:
        return []
    known = format_of(draft.input.path)[1].options | OF_ANY_SOURCE
    return [field_of(Input, name, draft.input) for name in on_form(Input) if name in known]


def _kinds(found: dict[str, Any] | None) -> dict[str, int]:
    """Count the columns of each kind, in words."""
    counts: dict[str, int] = {}
    for column in found["columns"] if found else ():
        kind = column["proposed_kind"] or column["kind"]
        word = kind_in_words(Kind(kind)) if kind else "of a type that cannot be grouped"
        counts[word] = counts.get(word, 0) + 1
    return counts
