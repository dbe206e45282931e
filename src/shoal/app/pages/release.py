"""Release: what would be done, in words; then the release, its verdict, its report and its files."""

from dataclasses import replace
from pathlib import Path
from secrets import randbits
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, Response

from shoal.app.draft import Draft, undecided, with_output, with_reading, with_remedy
from shoal.app.fields import Field, Layout, field_of, on_form, sections, value_in_words
from shoal.app.pages.columns import finding_of, is_settled, remedy_in_words
from shoal.app.pages.common import Form, digits, render_step, work_of
from shoal.app.projects import Work
from shoal.app.runs import AppRun
from shoal.app.security import report_policy
from shoal.errors import FileError, ParameterError
from shoal.findings import Finding
from shoal.job import Output
from shoal.sources import FORMATS, format_of, output_format_of

LAYOUT: Layout = {
    "": ("path", "order", "title", "author", "date"),
    "Further files and figures": ("bound", "json", "manifest", "releases"),
}
_SEED_BITS = 63


def show(request: Request) -> Response:
    """Show what would be done, and what was made."""
    work = work_of(request)
    draft = work.draft
    run = work.runs.latest("release")
    names = [column["name"] for column in work.facts(draft).get("columns", ())]
    return render_step(
        request,
        "release",
        work,
        draft,
        check=work.check(draft),
        n_undecided=len(undecided(draft, names)),
        run=run,
        sections=sections(_fields(draft), LAYOUT),
        questions=open_questions(run, draft),
        words=lambda remedy: remedy_in_words(remedy, work.shows_values),
        written_in=_written_in(work.known(draft).get("read_as", {})),
        made_from=run.job if run is not None else 0,
        is_current=run is not None and run.outcome == "done" and _same_release(work, run, draft),
    )


def _written_in(read_as: dict[str, Any]) -> str:
    """Say in which encoding a text is written, where the file has another one.

    Examples
    --------
    >>> _written_in({"kind": "csv", "delimiter": ";", "encoding": "cp1252"})
    'The file is in Western European (Windows); a release that is a text is written in Unicode (UTF-8).'
    """
    encoding = str(read_as.get("encoding", "utf-8")).lower()
    if (
        encoding.startswith("utf-8")
        or encoding == "ascii"
        or ("delimiter" not in read_as and read_as["kind"] != "ndjson")
    ):
        return ""
    named = value_in_words("encoding", encoding)
    return f"The file is in {named}; a release that is a text is written in Unicode (UTF-8)."


def start(request: Request, form: Form) -> str:
    """Make the release."""
    work = work_of(request)
    if work.has_changed(work.draft):
        raise FileError(
            "The file has changed on disk since it was read, so what you decided may no longer fit. Read it again on "
            "the page File, and look at its columns."
        )
    name = form.text("path")
    if not name:
        raise ParameterError("Give the release a file name, such as release.csv.")
    path = work.places.inside(name)
    output_format_of(path)
    further = {
        key: work.places.relative(work.places.inside(str(beside(path, ending))))
        for key, ending in (("job_file", "job.toml"), ("public", "public.html"))
    }
    given = {name: value for field in _fields(work.draft) for name, value in field.read(form).items()}
    given |= {"path": work.places.relative(path), "report": work.places.relative(beside(path, "report.html"))}

    def make(draft: Draft) -> Draft:
        # The seed is part of the job, so that the job repeats the release byte for byte.
        seeded = draft if draft.seed is not None else draft.with_changes(seed=randbits(_SEED_BITS))
        return with_output(seeded, given)

    draft = work.change(form.at, make)
    draft.job()  # says what is still missing
    work.start(
        "release",
        draft,
        "",
        force=form.has("replace"),
        **further,
    )
    return f"/work/{work.id}/release"


def _fields(draft: Draft) -> list[Field]:
    """Return the files to write, and what the report says."""
    endings = [ending for ending, kind in FORMATS.items() if ending in kind.written and ending.count(".") == 1]
    path = field_of(Output, "path", draft.output)
    usual = path.value or _usual_name(draft)
    return [
        replace(path, value=usual, is_set=True, hint=f"Its ending decides the format: {' '.join(endings)}"),
        *(field_of(Output, name, draft.output) for name in on_form(Output) if name != "path"),
    ]


def settle(request: Request, form: Form) -> str:
    """Take a remedy for a question that only came up when the release was made."""
    work = work_of(request)
    finding, remedy = (*map(digits, form.text("remedy").split(".")), -1, -1)[:2]
    found = dict(open_questions(work.runs.latest("release"), work.draft)).get(finding)
    if found is None or not 0 <= remedy < len(found.remedies):
        raise ParameterError("This is settled already, or there is no such remedy.")
    taken = found.remedies[remedy]
    work.change(form.at, lambda draft: with_remedy(draft, taken.place, taken.column, taken.settings))
    return f"/work/{work.id}/release"


def open_questions(run: AppRun | None, draft: Draft) -> list[tuple[int, Finding]]:
    """Return the questions for which the last release was refused and which the job does not answer yet."""
    found = enumerate(map(finding_of, run.findings)) if run is not None else ()
    return [(place, finding) for place, finding in found if not is_settled(draft, finding)]


def report(request: Request) -> Response:
    """Send the internal report for the frame that embeds it."""
    from shoal.output.report.html import script_hash  # not before: the server starts without

    work = work_of(request)
    path = file_of(work, _done(work, request.path_params["number"]), "internal report")
    return FileResponse(path, media_type="text/html", headers={"content-security-policy": report_policy(script_hash())})


def download(request: Request) -> Response:
    """Send one of the files of a release."""
    work = work_of(request)
    files = _done(work, request.path_params["number"]).result["files"]
    place = request.path_params["file"]
    if place >= len(files):
        raise FileError("There is no such file.")
    path = work.places.inside(files[place]["path"])
    if not path.is_file():
        raise FileError(f"{path.name!r} is no longer there: it was moved or removed after the release was made.")
    return FileResponse(path, filename=path.name, media_type="application/octet-stream")


def job_file(request: Request) -> Response:
    """Send the current job, whatever is still missing in it."""
    work = work_of(request)
    return _text(_portable(work, work.draft).to_toml(), "job.toml")


def script(request: Request) -> Response:
    """Send the Python script that repeats the release."""
    from shoal.app.repeat import script_of  # not before: the server starts without

    work = work_of(request)
    return _text(script_of(_complete(work).job()), "release.py")


def command(request: Request) -> Response:
    """Send the shell command that repeats the release."""
    from shoal.app.repeat import command_of

    work = work_of(request)
    return _text(command_of(_complete(work).job()) + "\n", "release.sh")


def beside(path: Path, ending: str) -> Path:
    """Return the name of a file that belongs to a release.

    Examples
    --------
    >>> str(beside(Path("a/release.csv"), "job.toml"))
    'a/release.job.toml'
    """
    known, _ = format_of(path)
    return path.with_name(f"{path.name[: -len(known)]}.{ending}")


def file_of(work: Work, run: AppRun, what: str) -> Path:
    """Return a file of a finished release by what it is."""
    path = next((file["path"] for file in run.result["files"] if file["what"] == what), None)
    if path is None or not work.places.inside(path).is_file():
        raise FileError(f"The {what} is no longer there: it was moved or removed after the release was made.")
    return work.places.inside(path)


def _done(work: Work, number: int) -> AppRun:
    run = work.runs.run(number)
    if run.verb != "release" or run.outcome != "done":
        raise FileError("There is no such release.")
    return run


def _same_release(work: Work, run: AppRun, draft: Draft) -> bool:
    """Return whether the current job is the one that the release was made from."""
    return work.history.draft_at(run.job).content == draft.content


def _usual_name(draft: Draft) -> str:
    if draft.input is None:
        return "release.csv"
    name = Path(draft.input.path).name
    ending, kind = format_of(name)
    return f"{name[: -len(ending)]}.release{ending.removesuffix('.gz') if ending in kind.written else kind.written[0]}"


def _complete(work: Work) -> Draft:
    draft = _portable(work, work.draft)
    return draft if draft.output is not None else with_output(draft, {"path": _usual_name(draft)})


def _portable(work: Work, draft: Draft) -> Draft:
    """Name an uploaded file by its name alone, since its place on this machine is removed at the end."""
    if draft.input is None or not work.places.is_upload(draft.input.path):
        return draft
    return with_reading(draft, {"path": Path(draft.input.path).name})


def _text(text: str, name: str) -> Response:
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type="text/plain; charset=utf-8", headers=headers)
