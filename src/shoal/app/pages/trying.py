"""Try: several k and methods side by side, as a map one can click and as a table."""

from typing import TYPE_CHECKING

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from shoal.app.draft import Draft
from shoal.app.pages.common import Form, render_step, work_of
from shoal.app.projects import Work, key_of
from shoal.app.runs import AppRun
from shoal.errors import ParameterError
from shoal.methods import ALGORITHMS

if TYPE_CHECKING:
    from shoal.comparison import Comparison

_USUAL = ("auto", "mdav", "topdown")
_METHODS = {
    "auto": "Suits every table: less loss than the others, and quick.",
    "mdav": "The standard of the literature, to compare with.",
    "mdav+": "The same; then groups whose records fit better elsewhere are dissolved.",
    "topdown": "Splits the table again and again; quick, with somewhat more loss.",
}
"""The methods that are shown at once, each with a line; the others are for those who know them by name."""


def show(request: Request) -> Response:
    """Show the choices that were tried."""
    from shoal.comparison import RISK  # not before: the server starts without

    work = work_of(request)
    draft = work.draft
    run = work.runs.latest("compare")
    found = _comparison(run)
    usual = [name for name in _USUAL if name in ALGORITHMS]
    return render_step(
        request,
        "try",
        work,
        draft,
        run=run,
        found=found,
        pictures=_pictures(found),
        is_current=run is not None and run.key == _key(work, draft),
        sizes=", ".join(map(str, run.options["k"] if run else _sizes(work, draft))),
        methods={name: words for name, words in _METHODS.items() if name in ALGORITHMS},
        others=[name for name in ALGORITHMS if name not in _METHODS],
        ticked=run.options["methods"] if run else usual,
        risk=RISK,
        ready=draft.k is not None and bool(draft.roles.quasi_identifiers),
    )


def _pictures(found: "Comparison | None") -> dict[str, Markup]:
    """Return the map for wide and for narrow screens."""
    from shoal.comparison.picture import NARROW, WIDE, map_of

    if found is None or not found.choices:
        return {}
    return {name: Markup(map_of(found, "#choice-{}", frame)) for name, frame in (("wide", WIDE), ("narrow", NARROW))}


def start(request: Request, form: Form) -> str:
    """Try the choices."""
    work = work_of(request)
    work.check_current(form.at)
    draft = work.draft
    sizes = _whole_numbers(form.text("k"))
    methods = [name for name in form.many("method") if name in ALGORITHMS]
    if not methods:
        raise ParameterError("No method is ticked. Tick at least one.")
    seeded = draft if draft.seed is not None else draft.with_changes(seed=1)
    seeded.with_changes(k=sizes[0]).job()  # says what is still missing
    work.start("compare", seeded.with_changes(k=sizes[0]), _key(work, draft), k=sizes, methods=methods)
    return f"/work/{work.id}/try"


def take(request: Request, form: Form) -> str:
    """Take one of the choices into the job."""
    work = work_of(request)
    found = _comparison(work.runs.latest("compare"))
    number = form.whole("choice", "The choice")
    if found is None or number is None or not 0 <= number < len(found.choices):
        raise ParameterError("There is no such choice.")
    choice = found.choices[number]
    work.change(form.at, lambda draft: draft.with_changes(k=choice.k, method=choice.method))
    return f"/work/{work.id}/release"


def _comparison(run: AppRun | None) -> "Comparison | None":
    """Return what was found, or what has been found so far."""
    from shoal.comparison import Choice, Comparison, Skipped

    if run is None:
        return None
    if run.outcome == "done":
        result = run.result
        choices, skipped = result["choices"], result["skipped"]
        return Comparison(
            n_records=result["n_records"],
            choices=tuple(Choice(**choice) for choice in choices),
            skipped=tuple(Skipped(**each) for each in skipped),
            warnings=tuple(result["warnings"]),
            seed=result["seed"],
            models=tuple(result["models"]),
        )
    return Comparison(0, tuple(Choice(**part) for part in run.parts), (), (), 0) if run.parts else None


def _key(work: Work, draft: Draft) -> str:
    """Return what the choices depend on, beside those tried."""
    apart = ("k", "method", "seed", "output", "options")
    return key_of([{name: value for name, value in draft.content.items() if name not in apart}])


def _sizes(work: Work, draft: Draft) -> list[int]:
    n_records: int = work.facts(draft, begin=False).get("n_records", 1000)
    return [size for size in (3, 5, 10, 25) if 2 * size <= n_records] or [2]


def _whole_numbers(text: str) -> list[int]:
    try:
        found = [int(part) for part in text.replace(";", ",").replace(" ", ",").split(",") if part]
    except ValueError:
        raise ParameterError("The sizes have to be whole numbers, such as 3, 5, 10.") from None
    if not found:
        raise ParameterError("No size is given. Give one or several, such as 3, 5, 10.")
    return sorted(set(found))
