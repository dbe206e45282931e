"""HTML: the facts as one self-contained page.

All names of columns go through autoescaping. A content security policy forbids network access and every script but
the page's own, which it names by hash.
"""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup, escape

from shoal.output.report import figures
from shoal.output.report.formatting import counted, lost, number, percent, shortened, shown, visible
from shoal.output.report.frequencies import frequency_rows
from shoal.output.report.risks import further_rows, interval_rows, moved, risk_rows
from shoal.output.report.sentences import reached_in_words

_NARROW = 340

MOST_ROWS = 12
"""Approximate number of columns that a table or gallery shows; the others are one click away."""


def to_html(facts: Mapping[str, Any]) -> str:
    """Return the report as one HTML page.

    Parameters
    ----------
    facts : mapping
        As `shoal.output.report.facts.gather` returns them.
    """
    style, script = _part("variables.css") + _part("report.css") + _part("figures.css"), _part("report.js")
    page = _template().render(
        facts=facts,
        verdict=facts["verdict"],
        internal=facts["form"] == "internal",
        state=_state(facts["verdict"]),
        pictures=_pictures(facts),
        loss=_loss_rows(facts.get("loss"), facts.get("utility") or {}),
        risks=_risks(facts),
        models=[(found, reached_in_words(found)) for found in facts["verdict"]["models"]],
        job=visible(facts["job"]),
        style=Markup(style),
        script=Markup(script),
        script_hash=script_hash(),
    )
    return page + "\n"


def script_hash() -> str:
    """Return the hash of the page's script, as a content security policy has it."""
    return base64.b64encode(hashlib.sha256(_part("report.js").encode()).digest()).decode()


def _state(verdict: Mapping[str, Any]) -> str:
    if not verdict["holds"]:
        return "bad"
    return "good" if verdict["k"] is not None or verdict["models"] else "plain"


def _part(name: str) -> str:
    return resources.files(__package__).joinpath("page", name).read_text(encoding="utf-8")


@cache
def _template() -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {
        "percent": percent,
        "number": number,
        "lost": lost,
        "counted": counted,
        "shown": shown,
        "name": _breakable,
        "folded": _folded,
        "frequencies": frequency_rows,
    }
    return environment.from_string(_part("report.html"))


def _breakable(text: str) -> Markup:
    """Return a name with line breaks allowed after underscores, points and hyphens, and not within a word."""
    return Markup(re.sub(r"([_.\-/])(?=\w)", r"\1<wbr>", str(escape(shortened(text, 80)))))


def _folded(rows: Sequence[Any]) -> list[tuple[bool, Sequence[Any]]]:
    """Split many rows into those that are shown and those that are one click away."""
    rows = list(rows)
    most = len(rows) if len(rows) <= MOST_ROWS + 3 else MOST_ROWS
    return [(folded, part) for folded, part in ((False, rows[:most]), (True, rows[most:])) if part]


def _pictures(facts: Mapping[str, Any]) -> dict[str, Any]:
    verdict, sizes = facts["verdict"], facts["class_sizes"]
    hiding = verdict["subjects"] or verdict["smallest"]
    bound, loss = facts.get("bound"), facts.get("loss")
    correlations = facts.get("correlations")
    return {
        "shoal": figures.shoal_figure(hiding, verdict["holds"]),
        "sizes_wide": figures.class_size_figure(sizes, verdict["k"]),
        "sizes_narrow": figures.class_size_figure(sizes, verdict["k"], _NARROW, 190),
        "columns": _folded([(c, figures.distribution_figure(c)) for c in _most_changed(facts)]),
        "correlations": figures.correlation_figures(correlations) if correlations else [],
        "gauge": figures.gauge(loss["il"], bound) if loss and bound is not None else None,
    }


def _most_changed(facts: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the published columns in table order, or where there are many, those that lost most first."""
    columns = list(facts["distributions"])
    lost_by = (facts.get("loss") or {}).get("columns", {})
    if len(columns) <= MOST_ROWS:
        return columns
    return sorted(columns, key=lambda column: -lost_by.get(column["name"], {"il": -1.0})["il"])


def _loss_rows(loss: Mapping[str, Any] | None, utility: Mapping[str, Any]) -> list[tuple[str, Any, Markup, str]]:
    """Return the loss of each column with its bar and its effect on analyses, the largest first."""
    if loss is None:
        return []
    columns = sorted(loss["columns"].items(), key=lambda item: -item[1]["il"])
    return [
        (
            name,
            found,
            figures.share_bar(found["il"], f"{shown(name)}: {lost(found['il'])} lost"),
            moved(utility, name),
        )
        for name, found in columns
    ]


def _risks(facts: Mapping[str, Any]) -> dict[str, Any] | None:
    risk = facts.get("risk")
    if not risk:
        return None
    rows = risk_rows(risk, facts["verdict"])
    bars = [
        [_risk_bar(row.name, side, value) for side, value in (("before", row.before), ("after", row.after))]
        for row in rows
    ]
    return {
        "rows": list(zip(rows, bars, strict=True)),
        "intervals": interval_rows(risk),
        "further": further_rows(risk),
        "any_before": any(row.before is not None for row in rows),
    }


def _risk_bar(name: str, side: str, value: float | None) -> Markup | None:
    if value is None:
        return None
    return figures.share_bar(value, f"{name}, {side}: {percent(value)}", "before" if side == "before" else "after")
