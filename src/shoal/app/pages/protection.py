"""Protection: k, models of confidential columns, persons, households, weights; and what is unique now."""

from dataclasses import replace
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from shoal.app.draft import Draft, undecided, with_helpers
from shoal.app.fields import Field, Layout, field_of, on_form, sections
from shoal.app.pages.common import Form, digits, render_step, work_of
from shoal.columns.schema import Roles
from shoal.errors import ParameterError
from shoal.job import Job
from shoal.methods import ALGORITHMS
from shoal.methods.algorithm import options_of
from shoal.models import MODELS
from shoal.models.serialization import as_model, settings_in, settings_of
from shoal.output.report.formatting import listed
from shoal.settings import choices
from shoal.spelling import number

_HINTS = {
    "t-closeness": "In every group the values are spread almost as in the whole table. Try 0.2; smaller is stricter.",
    "l-diversity": "Every group has several different values. Try 2 or 3; larger is stricter.",
    "p-sensitivity": "Every group has at least this many different values. Try 2.",
    "beta-likeness": "No value is much more frequent in a group than in the whole table. Try 1.",
    "alpha-k": "No value has a larger share of a group than this. Try 0.5.",
    "delta-disclosure": "No value is much more or less frequent in a group than in the whole table. Try 1.",
}


LAYOUT: Layout = {
    "": ("k", "missing", "subject", "household", "weights", "truthful"),
    "Households": ("household_level",),
    "Linked records": ("keep_link", "link_order", "rare_patterns"),
    "Method, scaling, seed": ("method", "scaling", "objective", "intervals", "seed", "options"),
    "Releases of the same people": ("key", "after", "may_withhold", "leavers", "reserve"),
    "Random aggregation": ("rho",),
}


class ModelSetting(NamedTuple):
    """A further setting of a model: its name, and the values it may have, if they are few."""

    name: str
    choices: tuple[str, ...]


class Promise(NamedTuple):
    """A privacy model as the form offers it."""

    name: str
    bound: str
    hint: str
    further: tuple[ModelSetting, ...]


def promises() -> list[Promise]:
    """Return the models of the registry."""
    found = []
    for name, model in MODELS.items():
        _, bound, *others = settings_in(model)
        further = tuple(ModelSetting(each.name, tuple(choices(each.type))) for each in others)
        hint = _HINTS.get(name, (model.__doc__ or "").strip().partition("\n")[0].replace("`", ""))
        found.append(Promise(name, bound.name, hint, further))
    return found


def show(request: Request) -> Response:
    """Show what is promised, and what is unique now."""
    work = work_of(request)
    draft = work.draft
    found = work.facts(draft)
    names = [column["name"] for column in found.get("columns", ())]
    return render_step(
        request,
        "protection",
        work,
        draft,
        sections=sections(_fields(draft, names, found.get("proposed_k", 0)), LAYOUT),
        n_undecided=len(undecided(draft, names)),
        run=work.check(draft),
        promises=promises(),
        models=[(number, model, settings_of(model)) for number, model in enumerate(draft.models)],
    )


def change(request: Request, form: Form) -> str:
    """Change what is promised of the whole table, and the columns that say whose a record is."""
    work = work_of(request)
    draft = work.draft
    fields = _fields(draft, [column["name"] for column in work.columns(draft)])
    given = {name: value for field in fields for name, value in field.read(form).items()}
    roles = {name: given.pop(name) for name in on_form(Roles) if name in given}
    work.change(form.at, lambda draft: with_helpers(draft, roles).with_changes(**given))
    return f"/work/{work.id}/protection"


def _fields(draft: Draft, names: list[str], proposed_k: int = 0) -> list[Field]:
    """Return the settings of the whole table; `names` are the columns of the file."""
    quasi = draft.roles.quasi_identifiers
    fields = [
        *(field_of(Job, name, draft) for name in on_form(Job) if name != "steer"),  # each column has its own weight
        *(field_of(Roles, name, draft.roles, quasi if name == "household_level" else names) for name in on_form(Roles)),
    ]
    if draft.roles.household is None:
        fields = [field for field in fields if field.name != "household_level"]
    options = options_of(ALGORITHMS[draft.method].function) if draft.method in ALGORITHMS else []
    suits = f"{proposed_k} suits the number of records; what law or a contract asks for goes first."
    hints = {
        "k": suits if proposed_k else "",
        "options": f"One a line, such as effort=best. The method {draft.method} takes {listed(options) or 'none'}.",
    }
    fields = [replace(field, hint=hints.get(field.name, field.hint)) for field in fields]
    return [replace(field, placeholder=str(proposed_k or "")) if field.name == "k" else field for field in fields]


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
            settings[name] = number(text)
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


def _column(names: list[str], text: str) -> str | None:
    """Return the column with a number; None for an empty choice."""
    if not text:
        return None
    if not 0 <= digits(text) < len(names):
        raise ParameterError("There is no such column.")
    return names[digits(text)]
