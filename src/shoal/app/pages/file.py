"""File: how the file is read, what was found in it, and its first records for those who ask to see values."""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from shoal.app.draft import Draft, with_reading
from shoal.app.fields import Field, Layout, field_of, label_of, on_form, sections, value_in_words
from shoal.app.pages.common import Form, back_to, digits, parts_of, render_step, work_of
from shoal.app.projects import Work, key_of
from shoal.app.runs import AppRun
from shoal.columns.schema import Kind
from shoal.errors import FileError, ParameterError
from shoal.findings.rows import OF_RECORDS
from shoal.job import Input
from shoal.output.report.sentences import kind_in_words
from shoal.sources import format_of
from shoal.sources.left_out import all_skipped
from shoal.sources.reading import OF_ANY_SOURCE

_ORDINALS = {"2": "second", "3": "third", "4": "fourth", "5": "fifth"}

LAYOUT: Layout = {
    "": ("encoding", "delimiter", "decimal", "thousands", "sheet", "header_row", "catalog"),
    "Records that are left out": ("skip_rows", "skip_where", "comment"),
    "Names, dates and missing values": ("header", "names", "date_format", "unit", "null_values", "fill_keys"),
}


def show(request: Request) -> Response:
    """Show how the file is read."""
    work = work_of(request)
    draft = work.draft
    run = work.inspection(draft)
    found = work.facts(draft)
    options = format_of(draft.input.path)[1].options if draft.input is not None else frozenset()
    unit = "row" if "sheet" in options else "line"
    preview = _preview(work, draft) if work.shows_values and not work.has_changed(draft) else None
    return render_step(
        request,
        "file",
        work,
        draft,
        run=run,
        found=found,
        kinds=_kinds(found),
        read_as=_read_as(found.get("read_as", {})),
        unit=unit,
        suspects=any(
            finding["question"] and finding["name"] in OF_RECORDS
            for column in found.get("columns", ())
            for finding in column["findings"]
        ),
        proposals=[_proposal_in_words(each, unit, _may_show_names(work, draft)) for each in _proposals(run)],
        sections=sections(_fields(draft, run), LAYOUT),
        preview=preview,
        glimpse=preview.told.get("glimpse") if preview is not None else None,
        options=options,
    )


def change(request: Request, form: Form) -> str:
    """Read the file in another way, or read another file."""
    work = work_of(request)
    fields = _fields(work.draft, work.inspection(work.draft))
    given = {name: value for field in fields for name, value in field.read(form).items()}
    work.change(form.at, lambda draft: with_reading(draft, given))
    return f"/work/{work.id}/file"


def settle(request: Request, form: Form) -> str:
    """Take what a refusal proposes, name the line of the header, or leave out a record: each is a button."""
    work = work_of(request)
    given: dict[str, Any]
    if form.has("take"):
        proposals = _proposals(work.inspection(work.draft))
        if not 0 <= digits(form.text("take")) < len(proposals):
            raise ParameterError("This is settled already.")
        given = proposals[digits(form.text("take"))]
    elif form.has("header_row"):
        given = {"header_row": max(digits(form.text("header_row")), 1), "header": None, "names": None}
    else:
        skipped = work.draft.input.skip_rows if work.draft.input is not None else None
        given = {"skip_rows": all_skipped(skipped, [max(digits(form.text("leave_out")), 1)])}
    work.change(form.at, lambda draft: with_reading(draft, given))
    return f"/work/{work.id}/file"


def replace_file(request: Request, form: Form) -> str:
    """Take another file for the same job."""
    work, parts = work_of(request), parts_of(request)
    upload = form.file("upload")
    path = parts.places.keep(upload.filename or "", upload.file) if upload else parts.places.inside(form.raw("path"))
    format_of(path)
    if not os.path.isfile(path):
        raise FileError(f"{path.name!r} does not exist or is not a regular file.")
    work.change(
        form.at,
        lambda draft: with_reading(draft, {"path": parts.places.relative(path)}),
        f"another file: {path.name}",
    )
    return f"/work/{work.id}/file"


def read_again(request: Request, form: Form) -> str:
    """Read the file again, since it has changed on disk."""
    work = work_of(request)
    work.read_again(work.draft)
    return f"/work/{work.id}/file"


def values(request: Request, form: Form) -> str:
    """Show values on this screen, or hide them again."""
    work = work_of(request)
    work.shows_values = form.text("show") == "yes"
    if not work.shows_values:
        for verb in ("preview", "records"):
            work.runs.forget(verb)
    return f"/work/{work.id}/{back_to(form, 'file')}"


def _preview(work: Work, draft: Draft) -> AppRun | None:
    """Return the run that reads the first and last records for the screen; begin it if there is none."""
    if draft.input is None:
        return None
    key = f"records-{key_of(draft.content.get('input'))}"
    return work.runs.latest("preview", key) or work.runs.run(work.start("preview", draft, key))


def _fields(draft: Draft, run: AppRun | None) -> list[Field]:
    """Return the settings of reading that the format of the file knows; its sheets are a choice."""
    if draft.input is None:
        return []
    known = format_of(draft.input.path)[1].options | OF_ANY_SOURCE
    fields = [field_of(Input, name, draft.input) for name in on_form(Input) if name in known]
    sheets = run.told.get("sheets", []) if run is not None else []
    listed = [
        ("", "the only visible one"),
        *((name, name) for name in dict.fromkeys([*sheets, draft.input.sheet or ""])),
    ]
    choices = [each for place, each in enumerate(listed) if each[0] or not place]
    return [
        replace(field, control="choice", choices=choices, value=draft.input.sheet or "")
        if field.name == "sheet" and sheets
        else field
        for field in fields
    ]


def _proposals(run: AppRun | None) -> list[dict[str, Any]]:
    """Return what would settle a refusal to read the file."""
    if run is None or run.outcome != "refused":
        return []
    found: list[dict[str, Any]] = run.told.get("proposals", [])
    return found


def _may_show_names(work: Work, draft: Draft) -> bool:
    """Return whether the header may be shown: it may be a record, unless somebody has said that it is none."""
    named = draft.input is not None and (draft.input.header or draft.input.header_row)
    return work.shows_values or bool(named)


def _proposal_in_words(settings: dict[str, Any], unit: str = "line", show_names: bool = True) -> str:
    """Say on a button what a proposal does.

    Examples
    --------
    >>> _proposal_in_words({"header_row": 4}), _proposal_in_words({"encoding": "cp1252"})
    ('Use line 4 as the header', 'Read it as Western European (Windows)')
    """
    ways: dict[str, Callable[[Any], str]] = {
        "names": lambda value: _new_names(value, show_names),
        "header_row": f"Use {unit} {{}} as the header".format,
        "header": lambda value: "The first line is the header",
        "encoding": lambda value: f"Read it as {value_in_words('encoding', value)}",
        "sheet": "Read the sheet “{}”".format,
        "skip_rows": lambda value: f"Leave out record {value}" if value.isdigit() else f"Leave out records {value}",
        "quote": lambda value: f"There {'are no quotation marks' if not value else 'is another quotation mark'}",
        "delimiter": lambda value: f"Fields are separated by a {value_in_words('delimiter', value)}",
        "decimal": lambda value: f"The decimal mark is a {value_in_words('decimal', value)}",
        "thousands": lambda value: f"The mark between thousands is a {value_in_words('thousands', value)}",
        "comment": "Lines that begin with {} are comments".format,
    }
    name, value = next(iter(settings.items()))
    return ways.get(name, lambda value: f"{label_of(name)}: {value_in_words(name, value)}")(value)


def _new_names(names: list[str], show_names: bool = True) -> str:
    """Say which columns get another name than the file gives them.

    Examples
    --------
    >>> _new_names(["rent", "column_2", "rent_2"])
    'Call the 2nd column “column_2” and rename the second “rent” to “rent_2”'
    >>> _new_names(["rent", "rent_2"], show_names=False)
    'Put a number behind the names that are there twice'
    """
    if names[:1] == ["column_1"]:
        return f"There is no header: call the columns “column_1” to “column_{len(names)}”"
    if not show_names:
        return "Put a number behind the names that are there twice"
    told = []
    for place, name in enumerate(names, 1):
        stem, _, number = name.rpartition("_")
        if stem in names and number.isdigit():
            told.append(f"rename the {_ORDINALS.get(number, f'{number}th')} “{stem}” to “{name}”")
        elif name == f"column_{place}":
            told.append(f"call the {place}{({1: 'st', 2: 'nd', 3: 'rd'}).get(place, 'th')} column “{name}”")
    more = f" and {len(told) - 3} more alike" if len(told) > 3 else ""
    return _capital(" and ".join(told[:3]) + more)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _read_as(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Return how the file was read, in words."""
    return (
        [(label_of(name), value_in_words(name, found[name])) for name in ("sheet", "header_row") if name in found]
        + [(label_of(name), value_in_words(name, found[name].lower())) for name in ("encoding",) if name in found]
        + [(label_of(name), value_in_words(name, found[name])) for name in ("delimiter", "decimal") if name in found]
    )


def _kinds(found: dict[str, Any] | None) -> dict[str, int]:
    """Count the columns of each kind, in words."""
    counts: dict[str, int] = {}
    for column in found["columns"] if found else ():
        kind = column["proposed_kind"] or column["kind"]
        word = kind_in_words(Kind(kind)) if kind else "of a type that cannot be grouped"
        counts[word] = counts.get(word, 0) + 1
    return counts
