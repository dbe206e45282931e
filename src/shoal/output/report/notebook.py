"""Notebook: a release in a few lines of HTML, as the output of a notebook cell, in the notebook's colours."""

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from shoal.measures.recount import Verdict
from shoal.output.report.formatting import lost, shown
from shoal.output.report.risks import risk_rows
from shoal.output.report.sentences import headline, reached_in_words

_MOST = 4
"""Number of risks shown: those that the report shows first."""


def to_summary(verdict: Verdict, measures: Mapping[str, Any], warnings: Iterable[str]) -> str:
    """Return verdict, loss, risk and warnings as a small table.

    Parameters
    ----------
    verdict : Verdict
        The audit of the published table.
    measures : mapping
        Loss and risk, as in `Release.measures`.
    warnings : iterable of str
        What to check before publishing.

    Returns
    -------
    str
        HTML without styles or scripts. Names of columns are escaped.
    """
    rows = [
        ("records", f"{verdict.n_records:,} in {verdict.n_classes:,} groups, the smallest of {verdict.smallest:,}"),
        ("information loss", lost(measures["loss"]["il"])),
        *([("certainty penalty (NCP)", lost(measures["certainty"]["ncp"]))] if "certainty" in measures else []),
    ]
    rows[1:1] = [
        (f"{found.model.name} of {found.model.column}", reached_in_words(found.to_dict())) for found in verdict.models
    ]
    for row in risk_rows(measures["risk"], verdict.to_dict())[:_MOST]:
        sides = (("before", row.before), ("published", row.after))
        told = ", ".join(f"{row.text(value)} {side}" for side, value in sides if value is not None)
        rows.append((row.name.lower(), told))
    rows += [("warning", warning) for warning in warnings]
    cells = "".join(f"<tr><th>{_safe(title)}</th><td>{_safe(text)}</td></tr>" for title, text in rows)
    return f"<table><caption>{_safe(headline(verdict))}</caption><tbody>{cells}</tbody></table>"


def _safe(text: str) -> str:
    return escape(shown(text))
