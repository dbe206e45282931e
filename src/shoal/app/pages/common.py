"""What all pages share: how a page is rendered, how a form is read, and how a refusal becomes a message."""

import os
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from shoal.app.draft import Draft
from shoal.app.folders import Folders
from shoal.app.messages import fields_in, in_words, message_of
from shoal.app.projects import StaleError, Work, Works
from shoal.app.security import Keys
from shoal.errors import ParameterError, ShoalError
from shoal.output.report.formatting import counted, lost, percent, shown

STEPS = {
    "file": "File",
    "columns": "Columns",
    "protection": "Protection",
    "try": "Try",
    "release": "Release",
    "closer": "Look closer",
}
"""The steps of a release, by the last part of their address."""

_MOST_FIELDS = 10_000
_LONGEST_FIELD = 2**20  # bytes
_UNREADABLE = (
    "The form cannot be read: a field is longer than 1 MB, there are too many fields, or its encoding is not one that "
    "browsers use. Nothing was changed. Shorten the text and send the form again."
)
_INSTEAD_OF_UPLOAD = "Make room, or put the file into the folder of the app and choose it there."


@dataclass(frozen=True)
class Services:
    """What handlers work with."""

    works: Works
    places: Folders
    keys: Keys


class Refusal(NamedTuple):
    """Why a form was refused: what a page says, the fields that it is about, and the form as it was filled in."""

    message: str = ""
    status: int = 200
    fields: tuple[str, ...] = ()
    form: "Form | None" = None


class Form:
    """A form as it was sent. Its fields are named by numbers, never by columns."""

    def __init__(self, data: FormData) -> None:
        self._data = data

    def text(self, name: str) -> str:
        """Return a field as text without blanks around it; empty if it was not sent."""
        value = self._data.get(name)
        return value.strip() if isinstance(value, str) else ""

    def raw(self, name: str) -> str:
        """Return a field exactly as it was sent."""
        value = self._data.get(name)
        return value if isinstance(value, str) else ""

    @property
    def at(self) -> int:
        """The job that the form was filled in for."""
        return digits(self.text("at"))

    def lines(self, name: str) -> list[str]:
        """Return the lines of a field that are not empty."""
        return [line.strip() for line in self.text(name).splitlines() if line.strip()]

    def whole(self, name: str, what: str) -> int | None:
        """Return a field as a whole number; None if it is empty."""
        text = self.text(name)
        try:
            return int(text) if text else None
        except ValueError:
            raise ParameterError(f"{what} has to be a whole number, such as 10.") from None

    def many(self, name: str) -> list[str]:
        """Return all values of a field."""
        return [value for value in self._data.getlist(name) if isinstance(value, str)]

    def has(self, name: str) -> bool:
        """Return whether a field or a button was sent."""
        return name in self._data

    def numbered(self, prefix: str) -> dict[int, str]:
        """Return the fields ``PREFIX-NUMBER`` by number."""
        found: dict[int, str] = {}
        for name, value in self._data.multi_items():
            head, _, number = name.rpartition("-")
            if head == prefix and isinstance(value, str) and digits(number) >= 0:
                found[digits(number)] = value
        return found

    def file(self, name: str) -> UploadFile | None:
        """Return an uploaded file, if one was chosen."""
        value = self._data.get(name)
        return value if isinstance(value, UploadFile) and value.filename else None


def digits(text: str) -> int:
    """Return a number that is written in a few digits, and -1 for everything else.

    Examples
    --------
    >>> digits("12"), digits("-1"), digits("9" * 5000)
    (12, -1, -1)
    """
    return int(text) if len(text) < 10 and text.isascii() and text.isdigit() else -1


Show = Callable[..., Response]
Change = Callable[[Request, Form], str | Response]


def back_to(form: Form, usual: str) -> str:
    """Return the page that a button was on, which its form names."""
    back = form.text("back")
    return back if back in STEPS or back == "history" or re.fullmatch(r"columns/\d{1,4}", back) else usual


def parts_of(request: Request) -> Services:
    """Return what handlers work with."""
    parts: Services = request.app.state.parts
    return parts


def work_of(request: Request) -> Work:
    """Return the piece of work that an address names."""
    return parts_of(request).works[request.path_params["work"]]


def render(request: Request, template: str, **context: Any) -> Response:
    """Render a page; if a change was refused, with the reason."""
    keys = parts_of(request).keys
    page = _environment().get_template(template)
    refusal = getattr(request.state, "refusal", Refusal())
    seen = {"problem": refusal.message, "refused_fields": refusal.fields, "typed": None, **context}
    return HTMLResponse(page.render(form_token=keys.form_token, **seen), refusal.status)


def render_step(request: Request, step: str, work: Work, draft: Draft, at_page: str = "", **context: Any) -> Response:
    """Render the page of a step, with what its frame shows; `at_page` is the end of its address, if not the step."""
    base, at_page = f"/work/{work.id}", at_page or step
    refusal = getattr(request.state, "refusal", Refusal())
    return render(
        request,
        f"{step}.html",
        typed=refusal.form if request.url.path == f"{base}/{at_page}" else None,
        at_page=at_page,
        labels=_labels(work, draft),
        work=work,
        base=base,
        step=at_page.partition("/")[0],
        steps=STEPS,
        draft=draft,
        at=work.history.at,
        previous=work.history.previous,
        next=work.history.next,
        changed=draft.input is not None and work.has_changed(draft),
        uploaded=draft.input is not None and work.places.is_upload(draft.input.path),
        **context,
    )


def _labels(work: Work, draft: Draft) -> dict[str, str]:
    """Return what the file calls its columns beside their names."""
    columns = work.known(draft).get("columns", ())
    return {column["name"]: column["label"] for column in columns if column.get("label")}


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("shoal.app"),
        autoescape=True,  # column names and categories are data
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": percent, "lost": lost, "counted": counted, "shown": shown, "told": _told}
    return environment


@pass_context
def _told(context: Context, text: str) -> str:
    """Return a sentence of shoal in the words of the pages, with the labels of columns that it quotes."""
    labels: dict[str, str] = context.get("labels", {})
    for name, label in labels.items():
        text = text.replace(f"'{name}'", f"'{name}' ({label})")
    return shown(in_words(text))


def showing(show: Show) -> Callable[[Request], Response]:
    """Make a handler of a function that shows a page; a refusal is shown on the first page."""

    def handler(request: Request) -> Response:
        try:
            return show(request)
        except ShoalError as error:
            return refused(request, message_of(error))

    return handler


def posting(change: Change, show: Show | None = None) -> Callable[[Request], Awaitable[Response]]:
    """Make a handler of a function that changes something and names the address to go to, or shows a page itself.

    If it refuses, the page that `show` renders says why, and nothing is changed.
    """

    async def handler(request: Request) -> Response:
        try:
            data = await request.form(max_fields=_MOST_FIELDS, max_files=1, max_part_size=_LONGEST_FIELD)
        except (HTTPException, UnicodeError):
            return refused(request, _UNREADABLE, 400)
        except OSError as error:
            why = os.strerror(error.errno or 0).lower()
            return refused(request, f"The uploaded file cannot be stored: {why}. {_INSTEAD_OF_UPLOAD}", 507)
        try:
            form = Form(data)
            if not parts_of(request).keys.fits(request.url.path, form.text("csrf")):
                return refused(request, "This form is not from this app, or the app was started again. Reload it.", 403)
            return await run_in_threadpool(_changed, request, form, change, show)
        finally:
            await data.close()

    return handler


def _changed(request: Request, form: Form, change: Change, show: Show | None) -> Response:
    try:
        target = change(request, form)
    except ShoalError as error:
        is_stale = isinstance(error, StaleError)  # then the page shows the current job
        refusal = Refusal(
            message_of(error), 409 if is_stale else 422, tuple(fields_in(error)), None if is_stale else form
        )
        request.state.refusal = refusal
        if show is None:
            return refused(request, refusal.message, refusal.status)
        try:
            return show(request)
        except ShoalError as second:
            return refused(request, message_of(second), refusal.status)
    return target if isinstance(target, Response) else RedirectResponse(target, 303)


def refused(request: Request, message: str, status: int = 422) -> Response:
    """Render a page that says only why something could not be done."""
    request.state.refusal = Refusal(message, status)
    return render(request, "refused.html")
