"""Columns: what each column is taken for and what it is for, with every finding and its remedies."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from shoal.app.draft import (
    HELPERS,
    Draft,
    role_of,
    undecided,
    with_columns,
    with_field,
    with_helpers,
    with_remedy,
    with_roles,
)
from shoal.app.fields import (
    HELPS,
    KINDS,
    ROLES,
    VALUES,
    Field,
    Layout,
    Section,
    field_of,
    on_form,
    sections,
    value_in_words,
)
from shoal.app.pages.common import Form, digits, render_step, work_of
from shoal.app.projects import Work
from shoal.columns.schema import ColumnSettings, Kind, Role
from shoal.errors import ParameterError
from shoal.findings import is_accepted
from shoal.findings.finding import Finding, Remedy
from shoal.findings.rows import OF_RECORDS
from shoal.job import Job
from shoal.output.report.formatting import counted
from shoal.sources import FieldReading, Reading

LAYOUT: Layout = {
    "": (
        *("kind", "categories", "missing_codes", "weight", "aggregate", "round", "top", "bottom"),
        *("keep_zeros", "fold"),
    ),
    "Ranges, groups and periods": ("hierarchy", "level", "outside", "distance", "step", "precision"),
    "Equal values together or apart": ("steer",),
}
_NAMES_SOMEBODY = ("identifier", "subject", "household")
_OF_ANY_ROLE = ("kind", "categories", "steer")
_OF_KINDS: Mapping[str, tuple[Kind | None, ...]] = {
    "categories": (Kind.ORDINAL, Kind.NOMINAL, None),
    "fold": (Kind.ORDINAL, Kind.NOMINAL),
    **dict.fromkeys(("round", "top", "bottom", "keep_zeros"), (Kind.NUMERIC,)),
}
"""Settings that only some kinds of columns have."""


@dataclass(frozen=True)
class ColumnRow:
    """A column as the page shows it."""

    number: int
    name: str
    facts: Mapping[str, Any]
    role: Role | None
    helper: str | None
    kind: Kind | None
    open: list[tuple[int, Finding]]
    n_settled: int
    settings: dict[str, Any]

    @property
    def proposed(self) -> Role:
        """The role that `inspect` proposes."""
        return Role(self.facts["role"])

    @property
    def round(self) -> int | None:
        """The decimals that suit the means that it publishes, while nothing is said about them."""
        is_mean = (self.kind or self.facts["kind"]) == Kind.NUMERIC and self.settings.get("aggregate", "mean") == "mean"
        proposed: int | None = self.facts.get("proposed_round") if is_mean and "round" not in self.settings else None
        return proposed if self.role is Role.QUASI else None

    @property
    def reason(self) -> str:
        """Why that role is proposed."""
        told: str = self.facts["reason"]
        return told


def show(request: Request, find: str = "", only: str = "") -> Response:
    """Show all columns, or those that a filter leaves."""
    work = work_of(request)
    draft = work.draft
    run = work.inspection(draft)
    rows = rows_of(draft, work.facts(draft).get("columns", []))
    only = only or request.query_params.get("only", "")
    shown = [row for row in rows if _fits(row, find, only)]
    return render_step(
        request,
        "columns",
        work,
        draft,
        run=run,
        rows=shown,
        n_rows=len(rows),
        n_undecided=len(undecided(draft, [row.name for row in rows])),
        to_round=[] if draft.truthful else [row for row in rows if row.round is not None],
        n_questions=sum(_is_asked(row, finding) for row in rows for _, finding in row.open),
        find=find,
        only=only,
        roles=ROLES,
        kinds=KINDS,
        helps=HELPS,
        words=lambda remedy: remedy_in_words(remedy, work.shows_values),
        is_asked=_is_asked,
    )


def find(request: Request, form: Form) -> Response:
    """Show the columns whose name holds a text; the text goes into no address."""
    return show(request, find=form.text("find"), only=form.text("only"))


def change(request: Request, form: Form) -> str:
    """Change roles and kinds, of single columns or of several at once, or take a remedy."""
    work = work_of(request)
    rows = {row.number: row for row in _rows(work)}
    roles = {number: _role(text) for number, text in form.numbered("role").items() if number in rows}
    kinds = {number: _kind(text) for number, text in form.numbered("kind").items() if number in rows}
    if form.has("bulk"):
        wanted = set(rows) & (set(roles) if form.has("all") else set(map(digits, form.many("pick"))))
        if not wanted:
            raise ParameterError("No column is ticked. Tick the columns to change, or choose all that are shown.")
        roles |= dict.fromkeys(wanted, _role(form.text("bulk-role"))) if form.text("bulk-role") else {}
        kinds |= dict.fromkeys(wanted, _kind(form.text("bulk-kind"))) if form.text("bulk-kind") else {}

    def make(draft: Draft) -> Draft:
        draft = _with_roles(draft, {rows[n].name: role for n, role in roles.items() if rows[n].role is not role})
        draft = with_columns(
            draft, {rows[n].name: {"kind": kind} for n, kind in kinds.items() if kind is not rows[n].kind}
        )
        if form.has("propose"):
            draft = _as_proposed(draft, [row for row in rows.values() if row.number in roles])
        if form.has("propose") or form.has("round"):
            draft = rounded_as_read(draft, work.columns(draft))
        if form.has("remedy"):
            draft = _with_remedy(draft, rows, form.text("remedy"))
        return draft

    work.change(form.at, make)
    only = form.text("only")
    return f"/work/{work.id}/columns" + (f"?only={only}" if only in ("undecided", "findings") else "")


def rounded_as_read(draft: Draft, columns: list[dict[str, Any]]) -> Draft:
    """Return the draft with decimals for published means, where nothing is said about them."""
    proposed = {row.name: row.round for row in rows_of(draft, columns)} if not draft.truthful else {}
    return with_columns(draft, {name: {"round": round} for name, round in proposed.items() if round is not None})


def show_one(request: Request) -> Response:
    """Show the settings of one column."""
    work = work_of(request)
    draft, row = work.draft, _row(request, work)
    key = f"column-{row.number}-{work.history.at}"
    values = None
    if work.shows_values and work.facts(draft):
        values = work.runs.latest("preview", key)
        if values is None:
            values = work.runs.run(work.start("preview", draft, key, column=row.name))
    return render_step(
        request,
        "column",
        work,
        draft,
        at_page=f"columns/{row.number}",
        run=work.inspection(draft),
        row=row,
        roles=ROLES,
        kinds=KINDS,
        sections=sections(_fields(draft, row), LAYOUT) + _reading(work, draft, row),
        values=values,
        words=lambda remedy: remedy_in_words(remedy, work.shows_values),
    )


def change_one(request: Request, form: Form) -> str:
    """Change the settings of one column, or take a remedy for it."""
    work = work_of(request)
    row = _row(request, work)
    if form.has("remedy"):
        work.change(form.at, lambda draft: _with_remedy(draft, {row.number: row}, form.text("remedy")))
        return f"/work/{work.id}/columns/{row.number}"
    entry = _number if row.facts.get("is_number", row.facts["kind"] == Kind.NUMERIC) else str
    settings = {name: value for field in _fields(work.draft, row) for name, value in field.read(form, entry).items()}
    reading = {
        name: value
        for section in _reading(work, work.draft, row)
        for field in section.fields
        for name, value in field.read(form).items()
    }
    steering = {"steer": settings.pop("steer")} if "steer" in settings else {}

    def make(draft: Draft) -> Draft:
        draft = _with_roles(draft, {row.name: _role(form.text("role"))})
        draft = with_columns(draft, {row.name: settings})
        for name, weight in steering.items():
            others = {column: given for column, given in draft.steer.items() if column != row.name}
            draft = draft.with_changes(**{name: others | ({} if weight is None else {row.name: weight})})
        return with_field(draft, row.name, reading) if reading else draft

    work.change(form.at, make)
    return f"/work/{work.id}/columns/{row.number}"


def _fields(draft: Draft, row: ColumnRow) -> list[Field]:
    """Return the settings that a column of this role and kind may have, and those that it has."""
    given, kind = draft.columns.get(row.name), row.kind or row.facts["kind"]
    weight = draft.steer.get(row.name)
    steer = field_of(Job, "steer", None)
    found = [
        *(field_of(ColumnSettings, name, given) for name in on_form(ColumnSettings)),
        replace(steer, control="number", value="" if weight is None else f"{weight:g}", is_set=weight is not None),
    ]
    return [
        field
        for field in found
        if field.is_set
        or ((row.role is Role.QUASI or field.name in _OF_ANY_ROLE) and kind in _OF_KINDS.get(field.name, (kind,)))
    ]


def _reading(work: Work, draft: Draft, row: ColumnRow) -> list[Section]:
    """Return how the fields of a column are read, in a file that has fields."""
    if work.known(draft)["read_as"]["kind"] != "csv":
        return []
    given = draft.input.fields.get(row.name) if draft.input is not None else None
    fields = [field_of(FieldReading, name, given) for name in on_form(FieldReading)]
    return sections(fields, {"How its fields are read": ("decimal", "thousands", "unit", "date_format", "null_values")})


def rows_of(draft: Draft, columns: list[dict[str, Any]]) -> list[ColumnRow]:
    """Return the columns as the page shows them."""
    helpers = {getattr(draft.roles, helper): helper for helper in HELPERS}
    role = {name: role for role, names in draft.roles.named().items() for name in names}
    found = []
    for number, facts in enumerate(columns):
        name = facts["name"]
        given = draft.columns.get(name)
        findings = [(place, finding_of(entry)) for place, entry in enumerate(facts["findings"])]
        waiting = [(place, finding) for place, finding in findings if not is_settled(draft, finding)]
        found.append(
            ColumnRow(
                number=number,
                name=name,
                facts=facts,
                role=role.get(name),
                helper=helpers.get(name),
                kind=given.kind if given is not None else None,
                open=waiting,
                n_settled=len(findings) - len(waiting),
                settings={} if given is None else given.model_dump(exclude_defaults=True, exclude={"kind"}),
            )
        )
    return found


def is_settled(draft: Draft, finding: Finding) -> bool:
    """Return whether a job already answers a finding."""
    return is_accepted(finding, draft.accept) or any(_is_taken(draft, remedy) for remedy in finding.remedies)


def _is_asked(row: ColumnRow, finding: Finding) -> bool:
    """Return whether a release asks about a finding of a column."""
    if row.role in (Role.CONFIDENTIAL, Role.OTHER) and finding.name in _NAMES_SOMEBODY:
        return True
    return finding.question and (row.role is Role.QUASI or finding.name in OF_RECORDS)


def _is_taken(draft: Draft, remedy: Remedy) -> bool:
    if remedy.place == "column":
        given = draft.columns.get(remedy.column)
        return given is not None and set(remedy.settings) <= given.model_fields_set
    if remedy.place == "field":
        return draft.input is not None and remedy.column in draft.input.fields
    if remedy.place == "rows":
        reading = draft.input or Reading()
        if "skip_rows" in remedy.settings:
            return bool(reading.skip_rows == remedy.settings["skip_rows"])
        return set(remedy.settings["skip_where"]) <= set(reading.skip_where or ())
    if remedy.place == "role":
        return all(_is_named(getattr(draft.roles, key), remedy.column) for key in remedy.settings)
    return False


def _is_named(given: str | tuple[str, ...] | None, name: str) -> bool:
    return name in given if isinstance(given, tuple) else name == given


def remedy_in_words(remedy: Remedy, show_values: bool) -> str:
    """Say on a button what a remedy does."""
    told = [_setting_in_words(name, value, show_values) for name, value in remedy.settings.items()]
    return " and ".join(told)[:1].upper() + " and ".join(told)[1:]


def _setting_in_words(name: str, value: Any, show_values: bool) -> str:
    if name == "date_format":
        return f"read it as dates ({value_in_words(name, value)})"
    if name in VALUES and name != "skip_where":
        listed = ", ".join(map(str, value)) if show_values else counted(len(value), "value")
        return f"take {listed} as missing"
    if name == "kind":
        return f"take it as {'an' if value == 'ordinal' else 'a'} {KINDS[Kind(value)]}"
    return {
        "identifiers": "leave it out",
        "other": "publish it as it is",
        "aggregate": "publish a text only where two records of a group share it",
        "fold": "ignore case and blanks",
        "skip_where": "leave these records out",
        "skip_rows": "leave these records out",
        "keep_zeros": "keep records with a zero apart",
        "unit": f"read it as numbers with a unit {value} them",
        "accept": "it is right as it is",
        "decimal": f"read it with “{value}” as decimal mark",
        "thousands": f"read it with “{value}” between thousands",
        "subject": "it says whose record it is",
        "household": "it says which records form a household",
        "weights": "use it as survey weights",
        "key": "it names persons in all releases",
    }.get(name, f"{name.replace('_', ' ')}: {value}")


def finding_of(entry: Mapping[str, Any]) -> Finding:
    """Return a finding that a run has found; a question can also be answered by accepting it."""
    remedies = [Remedy(each["place"], each["column"], each["settings"]) for each in entry["remedies"]]
    if entry["question"] and all(remedy.place != "accept" for remedy in remedies):
        remedies.append(Remedy("accept", entry["column"], {"accept": [f"{entry['column']}={entry['name']}"]}))
    return Finding(entry["name"], entry["column"], entry["what"], entry["why"], tuple(remedies), entry["question"])


def _rows(work: Work) -> list[ColumnRow]:
    draft = work.draft
    return rows_of(draft, work.columns(draft))


def _row(request: Request, work: Work) -> ColumnRow:
    number: int = request.path_params["number"]
    rows = _rows(work)
    if number >= len(rows):
        raise ParameterError("There is no such column.")
    return rows[number]


def _fits(row: ColumnRow, find: str, only: str) -> bool:
    if find and find.casefold() not in row.name.casefold():
        return False
    if only == "undecided":
        return row.role is None and row.helper is None
    return bool(row.open) if only == "findings" else True


def _role(text: str) -> Role | None:
    if text and text not in list(Role):
        raise ParameterError("There is no such role.")
    return Role(text) if text else None


def _kind(text: str) -> Kind | None:
    if text and text not in list(Kind):
        raise ParameterError("There is no such kind.")
    return Kind(text) if text else None


def _number(text: str) -> float | int:
    """Return a value of a column of numbers."""
    try:
        found = float(text)
    except ValueError:
        raise ParameterError("The column holds numbers, and one of the lines is not a number.") from None
    return int(found) if found.is_integer() else found


def _with_roles(draft: Draft, roles: Mapping[str, Role | None]) -> Draft:
    """Change roles; settings that only a protected column has are removed from those that no longer are."""
    changed = {name: role for name, role in roles.items() if role_of(draft, name) is not role}
    if not changed:
        return draft
    given = {
        name: draft.columns[name] for name, role in changed.items() if name in draft.columns and role is not Role.QUASI
    }
    unused = {name: settings.model_fields_set - {"kind", "categories"} for name, settings in given.items()}
    draft = with_roles(draft, changed)
    return with_columns(draft, {name: dict.fromkeys(settings) for name, settings in unused.items() if settings})


def _as_proposed(draft: Draft, rows: list[ColumnRow]) -> Draft:
    """Take the proposals for the columns that nobody has decided on."""
    waiting = [row for row in rows if row.role is None and row.helper is None]
    taken = {helper for helper in HELPERS if getattr(draft.roles, helper) is not None}
    roles: dict[str, Role | None] = {}
    for row in waiting:
        helper = row.facts["used_for"]
        if helper and helper not in taken:
            taken.add(helper)
            draft = with_helpers(draft, {helper: row.name})
        else:
            roles[row.name] = row.proposed
    kinds = {
        row.name: {"kind": row.facts["proposed_kind"]} for row in waiting if row.kind is None and row.name in roles
    }
    return with_columns(with_roles(draft, roles), {name: kind for name, kind in kinds.items() if kind["kind"]})


def _with_remedy(draft: Draft, rows: Mapping[int, ColumnRow], text: str) -> Draft:
    """Take a remedy, given as the numbers of column, finding and remedy."""
    column, finding, remedy = (*map(digits, text.split(".")), -1, -1, -1)[:3]
    row = rows.get(column)
    found = dict(row.open).get(finding) if row is not None else None
    if found is None or not 0 <= remedy < len(found.remedies):
        raise ParameterError("This is settled already, or there is no such remedy.")
    taken = found.remedies[remedy]
    return with_remedy(draft, taken.place, taken.column, taken.settings)
