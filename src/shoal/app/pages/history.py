"""History: undo, redo, the list of all jobs, and what changed between two of them."""

from collections.abc import Callable, Sequence

from starlette.requests import Request
from starlette.responses import Response

from shoal.app.draft import Draft
from shoal.app.history import Change, History, changes
from shoal.app.pages.common import Form, back_to, parts_of, render_step, work_of
from shoal.errors import ParameterError


def show(
    request: Request,
    two: tuple[int, int] | None = None,
    found: Sequence[Change] = (),
) -> Response:
    """Show all jobs of a piece of work."""
    work = work_of(request)
    return render_step(
        request,
        "history",
        work,
        work.draft,
        jobs=list(work.history.steps())[::-1],
        two=two,
        found=found,
    )


def undo(request: Request, form: Form) -> str:
    """Go back one job."""
    return _moved(request, form, History.undo)


def redo(request: Request, form: Form) -> str:
    """Go forward one job."""
    return _moved(request, form, History.redo)


def go(request: Request, form: Form) -> str:
    """Make an older or newer job the current one."""
    number = form.whole("number", "The job") or 0
    return _moved(request, form, lambda history: history.go(number))


def _moved(request: Request, form: Form, move: Callable[[History], Draft]) -> str:
    """Make another job the current one, and go back to the page that the button was on."""
    work = work_of(request)
    work.check_current(form.at)
    move(work.history)
    return f"/work/{work.id}/{back_to(form, 'history')}"


def compare(request: Request, form: Form) -> Response:
    """Show what changed between two jobs."""
    work = work_of(request)
    one, other = (form.whole(name, "The job") for name in ("one", "other"))
    if one is None or other is None:
        raise ParameterError("Choose two jobs.")
    found = changes(work.history.draft_at(one), work.history.draft_at(other), work.shows_values)
    return show(request, two=(one, other), found=found)


def remove(request: Request, form: Form) -> str:
    """Remove a piece of work from this machine; files of releases stay."""
    if not form.has("sure"):
        raise ParameterError("Tick that you are sure; removed jobs cannot be brought back.")
    parts_of(request).works.remove(work_of(request))
    return "/"
