"""Protection: k, models of confidential columns, persons, households, weights; and what is unique now."""

from dataclasses import MISSING
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from shoal.app.draft import HELPERS, Draft, undecided, with_helper
from shoal.app.pages.common import Form, digits, render_step, work_of
from shoal.errors import ParameterError
from shoal.methods import ALGORITHMS
from shoal.models import MODELS
from shoal.models.serialization import accepts, as_model, settings_in, settings_of

_HINTS = {
    "t-closeness": "In every group the values are spread almost as in the whole table. Try 0.2; smaller is stricter.",
    "l-diversity": "Every group has several different values. Try 2 or 3; larger is stricter.",
    "p-sensitivity": "Every group has at least this many different values. Try 2.",
    "delta-disclosure": "No value is much more or less frequent in a group than in the whole table. Try 1.",
}


class Setting(NamedTuple):
    """A further setting of a model: its name, and the values it may have, if they are few."""

    name: str
    choices: tuple[str, ...]


class Promise(NamedTuple):
    """A privacy model as the form offers it."""

    name: str
    bound: str
    hint: str
    further: tuple[Setting, ...]


def promises() -> list[Promise]:
    """Return the models of the registry."""
    found = []
    for name, model in MODELS.items():
        _, bound, *others = settings_in(model)
        further = tuple(Setting(each.name, _choices(each)) for each in others)
        hint = _HINTS.get(name, (model.__doc__ or "").strip().partition("\n")[0].replace("`", ""))
        found.append(Promise(name, bound.name, hint, further))
    return found


def show(request: Request, problem: str = "", status: int = 200) -> Response:
    """Show what is promised, and what is unique now."""
    work = work_of(request)
    draft = work.draft
    inspection = work.inspection(draft)
    found = inspection.result if inspection is not None and inspection.outcome == "done" else None
    names = [column["name"] for column in found["columns"]] if found else []
    return render_step(
        request,
        "protection",
        work,
        draft,
        status=status,
        problem=problem,
        names=names,
        proposed_k=found["proposed_k"] if found else 0,
        n_undecided=len(undecided(draft, names)),
        run=work.check(draft),
        promises=promises(),
        models=[(number, model, settings_of(model)) for number, model in enumerate(draft.models)],
        methods={name: algorithm.summary for name, algorithm in ALGORITHMS.items()},
        helpers=HELPERS,
    )


def change(request: Request, form: Form) -> str:
    """Change k, the method, missing values, and the columns that say whose a record is."""
    work = work_of(request)
    names = _names(work.draft, request)
    chosen = {helper: _column(names, form.text(helper)) for helper in HELPERS if form.has(helper)}
    given = {
        "k": form.whole("k", "k"),
        "missing": form.text("missing") or None,
        "method": form.text("method") or None,
        "scaling": form.text("scaling") or None,
        "objective": form.text("objective") or None,
        "intervals": form.text("intervals") or None,
        "truthful": form.has("truthful") or None,
        "seed": form.whole("seed", "The seed"),
    }

    def make(draft: Draft) -> Draft:
        for helper, name in chosen.items():
            draft = with_helper(draft, helper, name)
        return draft.with_changes(**given)

    if given["method"] is not None and given["method"] not in ALGORITHMS:
        raise ParameterError("There is no such method.")
    work.change(form.at, make)
    return f"/work/{work.id}/protection"


def add_model(request: Request, form: Form) -> str:
    """Promise more about a confidential column."""
    work = work_of(request)
    confidential = work.draft.roles.confidential
    column = _column(list(confidential), form.text("column"))
    if column is None:
        raise ParameterError("Choose a confidential column. The page Columns says which ones are.")
    promise = next((each for each in promises() if each.name == form.text("model")), None)
    if promise is None:
        raise ParameterError("Choose what to promise about the column.")
    settings: dict[str, Any] = {"model": promise.name, "column": column}
    for name in (promise.bound, *(each.name for each in promise.further)):
        text = form.text("bound" if name == promise.bound else f"{promise.name}.{name}")
        if text:
            settings[name] = _number(text)
    model = as_model(settings)
    work.change(form.at, lambda draft: draft.with_changes(models=[*map(settings_of, draft.models), settings_of(model)]))
    return f"/work/{work.id}/protection#models"


def remove_model(request: Request, form: Form) -> str:
    """Take a promise back."""
    work = work_of(request)
    number = form.whole("number", "The number")
    kept = [settings_of(model) for place, model in enumerate(work.draft.models) if place != number]
    work.change(form.at, lambda draft: draft.with_changes(models=kept))
    return f"/work/{work.id}/protection#models"


def _names(draft: Draft, request: Request) -> list[str]:
    run = work_of(request).inspection(draft)
    if run is None or run.outcome != "done":
        raise ParameterError("The file is still being read. Wait for it, and try again.")
    return [column["name"] for column in run.result["columns"]]


def _column(names: list[str], text: str) -> str | None:
    """Return the column with a number; None for an empty choice."""
    if not text:
        return None
    if not 0 <= digits(text) < len(names):
        raise ParameterError("There is no such column.")
    return names[digits(text)]


def _choices(setting: Any) -> tuple[str, ...]:
    """Return the values of a setting that has few of them."""
    known = {"kind": ("distinct", "entropy", "recursive")}
    return known.get(setting.name, ()) if str in accepts(setting) and setting.default is not MISSING else ()


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
