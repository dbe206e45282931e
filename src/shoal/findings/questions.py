"""Questions: open findings of one sort are asked together, and one answer settles them together."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from shoal.errors import listed
from shoal.findings.finding import Finding, Remedy
from shoal.spelling import Dialect, as_listed, as_word

_SORTS = {
    "codes": ("hold few whole numbers", "Which are codes? "),
    "perhaps-codes": ("hold numbers that may be codes", "Which are? "),
    "outliers": ("hold values far from all others", ""),
    "two-forms": ("hold texts of two sorts that may say the same", ""),
    "mixed-types": ("hold values of several types", ""),
    "numbers-as-text": ("hold numbers that are read as texts", ""),
    "numbers-with-unit": ("hold numbers with a unit", ""),
    "dates-as-text": ("hold dates that are read as texts", ""),
    "dates-as-numbers": ("hold dates that are read as numbers", ""),
    "near-unique-text": ("have nearly as many texts as records", ""),
    "spelling-variants": ("hold texts that differ only in case or blanks", ""),
    "other-forms": ("hold a few texts of another form than the others", ""),
    "labelled-values": ("hold numbers some of which have labels", ""),
    "thousands-as-decimals": ("hold numbers whose points may separate thousands", ""),
    "missing-code": ("have frequent extremes apart from all other values", "Do they mean missing? "),
    "zeros": ("hold many zeros apart from all other numbers", ""),
    "two-scales": ("hold numbers of two scales", ""),
    "repeats-of-identifiers": ("hold numbers that repeat as those of persons do", ""),
    "mostly-missing": ("have no value in most records", ""),
    "constant": ("have the same value in all records", ""),
    "published-identifier": ("are to be published unchanged, but look like identifiers", ""),
}
"""What the columns of a sort of findings have in common, and what is asked."""

_SHOWN, _WAYS, _LISTED = 3, 3, 12
_KINDS = {"nominal": "codes", "numeric": "numbers"}


def by_sort(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Return findings of one sort together, in the order of the first of each."""
    sorts: dict[str, list[Finding]] = {}
    for finding in findings:
        sorts.setdefault(finding.name, []).append(finding)
    return list(sorts.values())


def asked(findings: Sequence[Finding], dialect: Dialect) -> str:
    """Return the questions in the terms of the command line, a job or Python, with their answers."""
    sorts = by_sort(findings)
    told = [_asked(group, dialect) for group in sorts[:_SHOWN]]
    n_more = len(sorts) - _SHOWN
    if n_more > 0:
        told.append(f"There {'is one more question' if n_more == 1 else f'are {n_more} more questions'}.")
    return " ".join(told)


def _asked(group: list[Finding], dialect: Dialect) -> str:
    if len(group) == 1:
        return f"{group[0].sentence} Settle it by {group[0].ways(dialect)}."
    return (
        f"{common(group)} {_SORTS.get(group[0].name, ('', ''))[1]}Settle them by {'; or '.join(ways(group, dialect))}."
    )


def ways(group: Sequence[Finding], dialect: Dialect) -> list[str]:
    """Return the ways to settle findings of one sort, each in one line."""
    if len(group) == 1:
        return [remedy.told(dialect) for remedy in group[0].remedies]
    return [together(remedies, dialect) for remedies in alternatives(group)]


def common(group: Sequence[Finding]) -> str:
    """Return what was found in one or several columns and why it matters."""
    first = group[0]
    if len(group) == 1:
        return first.sentence
    what = _SORTS.get(first.name, (f"have the finding {first.name!r}", ""))[0]
    return f"{len(group)} columns {what}: {listed([finding.column for finding in group], _LISTED)}. {first.why}."


def alternatives(group: Sequence[Finding]) -> list[list[Remedy]]:
    """Return ways to settle several findings of one sort: the first of each, then those that all of them have."""
    sorts = [{_sort(remedy): remedy for remedy in reversed(finding.remedies)} for finding in group]
    firsts = [finding.remedies[0] for finding in group if finding.remedies]
    shared = [sort for sort in map(_sort, group[0].remedies) if all(sort in of for of in sorts)]
    ways = [firsts, *([of[sort] for of in sorts] for sort in shared)]
    return [way for place, way in enumerate(ways) if way and way not in ways[:place]][:_WAYS]


def _sort(remedy: Remedy) -> tuple[Any, ...]:
    return (remedy.place, *remedy.settings, remedy.settings.get("kind"))


def together(remedies: Iterable[Remedy], dialect: Dialect) -> str:
    """Return several remedies as one answer in the terms of the command line, a job or Python.

    Examples
    --------
    >>> remedies = [Remedy("column", name, {"kind": "nominal"}) for name in ("sex", "roof")]
    >>> for dialect in ("option", "key", "argument"):
    ...     print(together([*remedies, Remedy("column", "kids", {"kind": "numeric"})], dialect))
    --codes sex,roof --numbers kids
    codes = ["sex", "roof"]; numbers = ["kids"]
    codes=["sex", "roof"], numbers=["kids"]
    """
    lists: dict[str, list[str]] = {}
    tables: dict[str, dict[str, Any]] = {}
    others: list[Remedy] = []
    for remedy in remedies:
        if remedy.place == "column" and remedy.settings.get("kind") in _KINDS and len(remedy.settings) == 1:
            lists.setdefault(_KINDS[remedy.settings["kind"]], []).append(remedy.column)
        elif remedy.place == "role" and "identifiers" in remedy.settings:
            lists.setdefault("identifiers", []).extend(remedy.settings["identifiers"])
        elif remedy.place == "accept":
            lists.setdefault("accept", []).extend(remedy.settings["accept"])
        else:
            others.append(remedy)
    if dialect == "argument":
        for remedy in others:
            if remedy.place in ("column", "field"):
                tables.setdefault(remedy.place, {})[remedy.column] = remedy.settings
        words = [f"{name}={_json(values)}" for name, values in lists.items()]
        words += [f"columns={_json(tables['column'])}"] if "column" in tables else []
        words += [f'reading={{"fields": {_json(tables["field"])}}}'] if "field" in tables else []
        return ", ".join([*words, *(each.argument for each in others if each.place not in ("column", "field"))])
    if dialect == "key":
        words = [f"{'[roles] ' if name == 'identifiers' else ''}{name} = {_json(v)}" for name, v in lists.items()]
        return "; ".join([*words, *(each.key for each in others)])
    words = [
        f"--{name} {as_word(','.join(map(as_listed, values)))}" for name, values in lists.items() if name != "accept"
    ]
    words += [f"--accept {as_word(entry)}" for entry in lists.get("accept", ())]
    return " ".join([*words, *(each.option for each in others)])


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).replace(": true", ": True")
