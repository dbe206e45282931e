"""Look closer: the classes and records of a release, the audit of another file, two releases side by side."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from shoal.app.pages.common import Form, render_step, work_of
from shoal.app.pages.release import file_of
from shoal.app.runs import AppRun
from shoal.errors import FileError, ParameterError
from shoal.models.serialization import settings_of

_MOST_RECORDS = 20


def show(request: Request, two: tuple[AppRun, AppRun] | None = None) -> Response:
    """Show what a release did to classes and records."""
    work = work_of(request)
    releases = [run for run in work.runs.all_of("release") if run.outcome == "done"]
    release = releases[-1] if releases else None
    listed = work.places.listed()
    return render_step(
        request,
        "closer",
        work,
        work.draft,
        releases=releases,
        release=release,
        closer=release.result["closer"] if release is not None else None,
        records=work.runs.latest("records") if work.shows_values else None,
        audit=work.runs.latest("audit"),
        tables=listed.tables,
        two=two,
    )


def records(request: Request, form: Form) -> str:
    """Show the values of the records that lost most; only after consent."""
    work = work_of(request)
    if not work.shows_values:
        raise ParameterError("Values are hidden. Choose “Show values on this screen” first.")
    releases = [run for run in work.runs.all_of("release") if run.outcome == "done"]
    if not releases:
        raise ParameterError("No release has been made yet.")
    release = releases[-1]
    which = "risky" if form.text("which") == "risky" else "lost"
    numbers = [record["record"] for record in release.result["closer"][which]][:_MOST_RECORDS]
    names = ("release", "internal manifest")
    files = {what: work.places.relative(file_of(work, release, what)) for what in names}
    work.start("records", work.history.draft_at(release.job), "", records=numbers, files=files)
    return f"/work/{work.id}/closer#records"


def audit(request: Request, form: Form) -> str:
    """Recount what another file keeps."""
    work = work_of(request)
    draft = work.draft
    path = form.raw("path")
    if not path:
        raise FileError("No file was chosen. Choose one in the list.")
    names = [*draft.roles.quasi_identifiers, *draft.roles.by]
    if not names:
        raise ParameterError(
            "No column is to be protected yet, so there is nothing to count by. Say on the page Columns which ones "
            "somebody could know about a person."
        )
    options: dict[str, Any] = {}
    if draft.models:
        confidential = dict.fromkeys(model.column for model in draft.models)
        options = {"confidential": [*confidential], "models": [settings_of(model) for model in draft.models]}
    found = work.places.relative(work.places.inside(path))
    work.start("audit", draft, "", path=found, k=form.whole("k", "k") or draft.k, names=names, **options)
    return f"/work/{work.id}/closer#audit"


def compare(request: Request, form: Form) -> Response:
    """Show two releases side by side."""
    work = work_of(request)
    numbers = [form.whole(name, "The release") for name in ("one", "other")]
    runs = {run.number: run for run in work.runs.all_of("release") if run.outcome == "done"}
    chosen = [runs[number] for number in numbers if number in runs]
    if len(chosen) < 2:
        raise ParameterError("Choose two releases of this work.")
    return show(request, two=(chosen[0], chosen[1]))
