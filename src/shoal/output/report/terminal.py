"""Terminal: the report in a few lines."""

from collections.abc import Iterable, Mapping
from typing import Any

from shoal.output.report.formatting import counted, lost, number, percent, shortened, shown
from shoal.output.report.risks import risk_rows
from shoal.output.report.sentences import reached_in_words

_WIDTH = 18
_MOST = 5

Line = tuple[str, str]
"""A title and a text."""


def to_text(facts: Mapping[str, Any]) -> str:
    """Return the report as a few plain lines.

    Parameters
    ----------
    facts : mapping
        As `shoal.output.report.facts.gather` returns them.
    """
    return "".join(f"{title:<{_WIDTH}}{text}".rstrip() + "\n" for title, text in _lines(facts))


def _lines(facts: Mapping[str, Any]) -> Iterable[Line]:
    verdict = facts["verdict"]
    yield "verdict", facts["headline"]
    if verdict["k"] is not None:
        yield "k", f"{verdict['smallest']:,} found, {verdict['k']:,} asked for"
    yield "records", f"{verdict['n_records']:,} in {verdict['n_classes']:,} groups"
    if verdict["n_below"]:
        yield "below k", f"{verdict['n_below']:,} records"
    for found in verdict["models"]:
        yield _title(found["model"]), f"{shortened(found['column'], 30)}: {reached_in_words(found)}"
    # The worst first: the columns that a group reveals most about.
    confidential = sorted(verdict["confidential"].items(), key=lambda item: -item[1]["t"])
    for name, found in confidential[:_MOST]:
        yield (
            _title(name),
            f"at least {counted(found['distinct'], 'value')} in a group, t = {number(found['t'], 3)}",
        )
    if facts.get("series"):
        yield "series", shown(facts["series"]["told"])
    yield from _loss(facts.get("loss"), facts.get("bound"))
    if facts.get("certainty"):
        yield "certainty penalty", f"{lost(facts['certainty']['ncp'])} (NCP of the exact ranges and sets)"
    if facts.get("risk"):
        for row in risk_rows(facts["risk"], verdict):
            sides = (("before", row.before), ("published", row.after))
            told = ", ".join(f"{row.text(value)} {side}" for side, value in sides if value is not None)
            yield "risk", f"{row.name.lower()}: {told}"
    warnings = facts.get("warnings", [])
    for warning in warnings[:_MOST]:
        yield "warning", shown(warning)
    if len(warnings) > _MOST:
        yield "", f"and {counted(len(warnings) - _MOST, 'more warning')}"


def _loss(loss: Mapping[str, Any] | None, bound: float | None) -> Iterable[Line]:
    if loss is None:
        return
    least = f", and no release can lose less than {lost(bound)}" if bound is not None else ""
    yield "information loss", f"{lost(loss['il'])}{least}"
    columns = sorted(loss["columns"].items(), key=lambda item: -item[1]["il"])
    for name, found in columns[:_MOST]:
        yield (
            "",
            f"{shortened(name, 30)}: {lost(found['il'])}, {percent(found['changed'])} of the records changed",
        )
    if len(columns) > _MOST:
        yield "", f"and {counted(len(columns) - _MOST, 'more column')} that lose less"


def _title(name: str) -> str:
    return shortened(name, _WIDTH - 2)
