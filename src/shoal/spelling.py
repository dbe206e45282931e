"""Spelling: settings as people type them: the options of the command line, lists of names, numbers, pairs."""

import json
from typing import Any

_OTHERWISE = {
    "identifiers": ("--drop", "--identifiers"),
    "quasi_identifiers": ("--quasi", "--quasi-identifiers", "--qi"),
    "confidential": ("--confidential", "--sensitive"),
    "null_values": ("--null-value",),
    "missing_codes": ("--missing-code",),
    "order": ("--order-of",),
    "json_file": ("--json",),
    "ranges": ("--range",),
    "url": ("--redis",),
    "source": ("--from",),
    "target": ("--to",),
    "target_length": ("--to-length",),
}


def option_names(setting: str) -> tuple[str, ...]:
    """Return the option of a setting and its other names.

    Examples
    --------
    >>> option_names("quasi_identifiers"), option_names("header_row")
    (('--quasi', '--quasi-identifiers', '--qi'), ('--header-row',))
    """
    return _OTHERWISE.get(setting, (f"--{setting.replace('_', '-')}",))


def option_name(setting: str) -> str:
    """Return the option of a setting."""
    return option_names(setting)[0]


def as_listed(name: str) -> str:
    """Quote a name where needed for a comma-separated list or a NAME=VALUE setting.

    Examples
    --------
    >>> as_listed("age"), as_listed("last, first")
    ('age', '"last, first"')
    """
    plain = name == name.strip() and not set(name) & set(',="')
    return name if plain else '"' + name.replace('"', '""') + '"'


def number(text: str) -> int | float | str:
    """Return a number, an integer if written as one; a text that is not a number is returned unchanged.

    Examples
    --------
    >>> number("0"), number("2.5"), number("x")
    (0, 2.5, 'x')
    """
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def as_plain_text(value: Any) -> str:
    """Return the text of which `plain_value` makes the value."""
    return value if isinstance(value, str) else json.dumps(value)


def plain_value(text: str) -> Any:
    """Return the value of an option of a method: a number, true, false, or the text itself.

    Examples
    --------
    >>> plain_value("2.5"), plain_value("true"), plain_value("best")
    (2.5, True, 'best')
    """
    try:
        return json.loads(text)
    except ValueError:
        return text
