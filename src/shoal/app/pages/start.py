"""Start: choose a file, continue a piece of work, or open a job."""

import os
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from shoal import datasets
from shoal.app.draft import Draft
from shoal.app.folders import Folders
from shoal.app.pages.common import Form, parts_of, render
from shoal.app.projects import Work, Works
from shoal.errors import FileError
from shoal.sources import format_of, formats_in_words

_SAMPLE = "office"


def show(request: Request) -> Response:
    """Show the first page."""
    parts = parts_of(request)
    return render(
        request,
        "start.html",
        listed=parts.places.listed(request.query_params.get("in", "")),
        works=parts.works.listed(),
        formats=formats_in_words(),
        folder=str(parts.places.root),
    )


def open_file(request: Request, form: Form) -> str:
    """Begin a piece of work with a file below the folder, or with an uploaded one."""
    parts = parts_of(request)
    upload = form.file("upload")
    path = form.raw("path") if upload is None else str(parts.places.keep(upload.filename or "", upload.file))
    if form.has("sample"):
        with datasets.path(_SAMPLE).open("rb") as file:
            path = str(parts.places.keep(f"{_SAMPLE}.csv", file))
    if not path:
        raise FileError("No file was chosen. Choose one in the list, or one to upload.")
    return f"/work/{begun(parts.works, parts.places, path).id}/file"


def begun(works: Works, places: Folders, path: str) -> Work:
    """Begin a piece of work with a file or a job file."""
    found = places.inside(path)
    if found.suffix.lower() == ".toml":
        return works.begin(Draft.from_file(found), f"opened {found.name}")
    format_of(found)
    if not os.path.isfile(found):  # unlike that of a Path, also for a name that is too long
        raise FileError(f"{Path(path).name!r} does not exist or is not a regular file.")
    return works.begin(Draft.model_validate({"input": {"path": places.relative(found)}}), f"opened {found.name}")


def continued(works: Works, places: Folders, path: str) -> Work:
    """Continue the newest piece of work with a file; begin one if there is none, or if it is a job file."""
    found = places.inside(path)
    return works.newest_with(places.relative(found)) or begun(works, places, path)
