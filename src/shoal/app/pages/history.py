"""History: undo, redo, the list of all jobs, and what changed between two of them."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from shoal.app.changes import Change, changes
from shoal.app.pages.common import Form, back_to, parts_of, render_step, work_of
from shoal.errors import ParameterError


def show(
    request: Request,
    problem: str = "",
    status: int = 200,
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
        status=status,
        problem=problem,
        jobs=list(work.history.steps())[::-1],
        two=two,
        found=found,
    )


def undo(request: Request, form: Form) -> str:
    """Go back one job."""
    work = work_of(request)
    work.check_current(form.at)
    work.history.undo()
    return f"/work/{work.id}/{back_to(form, 'history')}"


def redo(request: Request, form: Form) -> str:
    """Go forward one job."""
    work = work_of(request)
    work.check_current(form.at)
    work.history.redo()
    return f"/work/{work.id}/{back_to(form, 'history')}"


def go(request: Request, form: Form) -> str:
    """Make an older or newer job the current one."""
    work = work_of(request)
    work.check_current(form.at)
    work.history.go(form.whole("number", "The job") or 0)
    return f"/work/{work.id}/history"


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
