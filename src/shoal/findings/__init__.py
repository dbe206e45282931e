"""Findings: how a column may have been misread, checked before a release is made.

A finding is a function of a `ColumnView` and a line in `FINDINGS`; `shoal inspect` shows them all, and `anonymize`
refuses those whose likely reading would publish values of single persons or averages of codes.
"""

import json
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from shoal.errors import ParameterError, SchemaError, did_you_mean
from shoal.findings.codes import codes, perhaps_codes
from shoal.findings.column_view import ColumnView
from shoal.findings.declared import labelled_values, mixed_types
from shoal.findings.finding import Finding, Remedy
from shoal.findings.forms import other_forms
from shoal.findings.numbers import (
    dates_as_numbers,
    missing_codes,
    repeats_of_identifiers,
    thousands_as_decimals,
    two_scales,
    zeros,
)
from shoal.findings.outliers import outliers
from shoal.findings.questions import asked
from shoal.findings.roles import PUBLISHED
from shoal.findings.rows import OF_RECORDS
from shoal.findings.shares import constant, mostly_missing
from shoal.findings.texts import (
    dates_as_text,
    near_unique_text,
    numbers_as_text,
    numbers_with_unit,
    spelling_variants,
)
from shoal.findings.two_forms import two_forms
from shoal.spelling import Dialect, in_r

__all__ = [
    "FINDINGS",
    "SINGLE_VALUES",
    "ColumnView",
    "Dialect",
    "Finding",
    "QuestionError",
    "Remedy",
    "ask",
    "check_accepted",
    "findings_of",
    "is_accepted",
]

FINDINGS: dict[str, Callable[[ColumnView], Finding | None]] = {
    "mixed-types": mixed_types,
    "numbers-as-text": numbers_as_text,
    "numbers-with-unit": numbers_with_unit,
    "dates-as-text": dates_as_text,
    "near-unique-text": near_unique_text,
    "spelling-variants": spelling_variants,
    "two-forms": two_forms,
    "other-forms": other_forms,
    "labelled-values": labelled_values,
    "codes": codes,
    "perhaps-codes": perhaps_codes,
    "dates-as-numbers": dates_as_numbers,
    "thousands-as-decimals": thousands_as_decimals,
    "missing-code": missing_codes,
    "zeros": zeros,
    "two-scales": two_scales,
    "outliers": outliers,
    "repeats-of-identifiers": repeats_of_identifiers,
    "mostly-missing": mostly_missing,
    "constant": constant,
}
"""The checks, by the name under which a finding can be accepted."""

SINGLE_VALUES = "single-record-values"
"""Found only after cells are made: a published category that a single record of the table has."""

_OF_RELEASES = (SINGLE_VALUES, PUBLISHED, *OF_RECORDS)
"""Findings about a release or about records, rather than about how a column is read."""

_ABOUT_CATEGORIES = {"near-unique-text", "spelling-variants", "two-forms", "other-forms"}
_EXPLAINS = {
    "mixed-types": {"numbers-as-text", "numbers-with-unit", "dates-as-text", *_ABOUT_CATEGORIES},
    "numbers-as-text": {"numbers-with-unit", *_ABOUT_CATEGORIES},
    "numbers-with-unit": _ABOUT_CATEGORIES,
    "dates-as-text": {"numbers-with-unit", *_ABOUT_CATEGORIES},
    "near-unique-text": {"two-forms", "other-forms"},
    "two-forms": {"other-forms"},
    "labelled-values": {"codes", "perhaps-codes", "missing-code"},
    "codes": {"perhaps-codes", "outliers"},
    "perhaps-codes": {"outliers"},
    "dates-as-numbers": {"repeats-of-identifiers", "missing-code", "outliers"},
    "missing-code": {"two-scales", "zeros", "outliers"},
    "two-scales": {"outliers"},
    "zeros": {"outliers"},
    "constant": {"codes", "spelling-variants"},
}
"""A finding of the first name makes those of the second redundant."""


class QuestionError(SchemaError):
    """Findings that have to be settled before a release is made.

    Attributes
    ----------
    findings : tuple of Finding
    """

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__(self.worded("argument"))

    def worded(self, dialect: Dialect) -> str:
        """Return the message in the terms of the command line, a job, Python or R."""
        names = list(dict.fromkeys(finding.name for finding in self.findings))
        accepting = {
            "option": " ".join(f"--accept {name}" for name in names),
            "key": f"accept = {json.dumps(names)}",
            "argument": f"accept={json.dumps(names)}",
            "r": f"accept = {in_r(names)}",
        }
        return (
            f"{asked(self.findings, dialect)} Nothing was released. To release it as it is, accept what was found: "
            f"{accepting[dialect]}. `shoal inspect FILE` shows all findings, and with --show-values the values "
            "that they are about."
        )


def findings_of(view: ColumnView) -> list[Finding]:
    """Return the findings of a column.

    Examples
    --------
    >>> import pyarrow as pa
    >>> walls = ColumnView("walls", pa.chunked_array([[1, 2, 3, 4, 5] * 10]))
    >>> [found.name for found in findings_of(walls)]
    ['codes']
    """
    with np.errstate(over="ignore", invalid="ignore"):  # distances between the largest numbers
        found = {name: finding for name, look in FINDINGS.items() if (finding := look(view)) is not None}
    explained = {other for name in found for other in _EXPLAINS.get(name, ())}
    return [finding for name, finding in found.items() if name not in explained]


def check_accepted(accept: Iterable[str], columns: Sequence[str]) -> None:
    """Refuse names that are not findings, and findings of columns that do not exist."""
    known = [*FINDINGS, *_OF_RELEASES]
    for entry in accept:
        column, _, name = entry.rpartition("=")
        if column and column not in columns:
            hint = did_you_mean(column, known=columns)
            raise SchemaError(f"A finding of column {column!r} is accepted, which is not in the table.{hint}")
        if name not in known:
            hint = did_you_mean(name, known=known)
            raise ParameterError(f"There is no finding {name!r} to accept.{hint} Findings: {', '.join(known)}.")


def is_accepted(finding: Finding, accept: Iterable[str]) -> bool:
    """Return whether a finding is accepted, for all columns or for its column."""
    return any(entry in (finding.name, f"{finding.column}={finding.name}") for entry in accept)


def ask(findings: Iterable[Finding], accept: Sequence[str], strict: bool = False) -> None:
    """Raise `QuestionError` if a finding is open; strictly, one that is only a note is open too."""
    waiting = [finding for finding in findings if (finding.question or strict) and not is_accepted(finding, accept)]
    if waiting:
        raise QuestionError(waiting)
