"""Messages: what shoal says, in the words of the pages, which name settings as their fields do."""

import re
from typing import Any

from shoal.app.fields import DATES, label_of, value_in_words
from shoal.errors import ShoalError
from shoal.findings import QuestionError
from shoal.output.report.formatting import counted
from shoal.spelling import settings_in, spelled_by

REPLACE = "Replace files that are there already"

_WORDS = {
    r"replace it with “force”": f"tick “{REPLACE}”",
    r"\bQuasi-identifier(s?)\b": r"Protected column\1",
    r"\bquasi-identifier(s?)\b": r"protected column\1",
    r"protected columns? columns?": "protected columns",
    r"\binput should be greater than or equal to\b": "it should be at least",
    r"\binput should be less than or equal to\b": "it should be at most",
    r"\binput should be (greater|less) than\b": r"it should be \1 than",
    r"\b([Aa]|[Ee]ach|[Ee]very) cell\b": r"\1 group",
    **{re.escape(form): words.partition(":")[0] for form, words in DATES.items() if form},
    r"perhaps --subject": "perhaps it says whose record it is (page Protection)",
}
"""What the pages call otherwise than the command line and the literature."""


def message_of(error: ShoalError) -> str:
    """Return the message of an error as a page shows it.

    Examples
    --------
    >>> from shoal.spelling import named, setting
    >>> message_of(ShoalError(f"'a.csv' already exists: replace it with {setting('force', True)}."))
    "'a.csv' already exists: tick “Replace files that are there already”."
    >>> message_of(ShoalError(f"If it is the header, give {setting('header_row', 4)}."))
    'If it is the header, give “Line or row that names the columns”: 4.'
    >>> message_of(ShoalError(f"{named('columns.age.round')} cannot be used: it should be a whole number."))
    '“Decimals of published numbers” of age cannot be used: it should be a whole number.'
    """
    if isinstance(error, QuestionError):
        told = [f"Column {finding.column!r}: {finding.what}. {finding.why}." for finding in error.findings]
        n = len(told)
        asked = f"{counted(n, 'question')} {'is' if n == 1 else 'are'} open. Nothing was released."
        return in_words(" ".join([asked, *told[:3], *(["And so on."] if n > 3 else [])]))
    return in_words(spelled_by(error.marked, _spelled))


def in_words(text: str) -> str:
    """Return a sentence of shoal in the words of the pages.

    Examples
    --------
    >>> in_words("Only 3 quasi-identifiers are grouped.")
    'Only 3 protected columns are grouped.'
    """
    for word, ours in _WORDS.items():
        text = re.sub(word, ours, text)
    return text


def fields_in(error: ShoalError) -> list[str]:
    """Return the fields that a refusal is about: the settings that its message names without a value."""
    return [key_of(name)[0] for name, values in settings_in(error.marked) if values is None]


def key_of(name: str) -> tuple[str, str | None]:
    """Return the key of a setting in its part of a job, and the column that it is about.

    Examples
    --------
    >>> key_of("columns.age.missing_codes.0"), key_of("steer.age"), key_of("k")
    (('missing_codes', 'age'), ('steer', 'age'), ('k', None))
    """
    parts = name.split(".")
    while len(parts) > 1 and parts[-1].isdigit():
        parts.pop()
    if parts[0] == "steer":
        return "steer", ".".join(parts[1:]) or None
    of_column = parts[1:-1] if parts[0] == "columns" else parts[2:-1] if parts[:2] == ["input", "fields"] else []
    return parts[-1], ".".join(of_column) or None


def _spelled(name: str, values: list[Any] | None, column: str | None) -> str:
    key, of_column = key_of(name)
    label = f"“{label_of(key)}”" + (f" of {column or of_column}" if column or of_column else "")
    if not values or values[0] is True or values[0] == ["..."]:
        return label
    return f"no {label}" if values[0] is False else f"{label}: {value_in_words(key, values[0])}"
