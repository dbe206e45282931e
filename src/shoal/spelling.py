"""Spelling: settings as people type them: in Python, on the command line, in a job; lists of names, numbers, pairs.

A message holds the settings that it names as data, and each door spells them in its own way.
"""

import json
import re
from collections.abc import Callable
from itertools import dropwhile
from typing import Any, Literal

Dialect = Literal["option", "key", "argument", "r"]
"""How settings are named: on the command line, in a job, in Python, in R."""

_MARKS = "\ue000{}\ue001"
_MARKED = re.compile("\ue000([^\ue001]*)\ue001")
_TABLES = ("input", "output", "roles", "stream", "redis", "spark", "late")
_OF_FIELDS = ("null_values", "decimal", "thousands", "date_format", "unit")  # how the texts of a column are read
_ANY = "..."  # in place of values that the reader knows


def setting(name: str, *values: object, column: str | None = None) -> str:
    """Return a setting, and the value that it should have, for a message that `spelled` spells.

    Parameters
    ----------
    name : str
        The key of the setting in a job.
    *values : object
        At most one: a text, a number, true or false, or a list; ``[...]`` is any list.
    column : str, optional
        The column whose setting it is.

    Examples
    --------
    >>> text = f"If it is a header, give {setting('header', True)}; if not, give {setting('names', [...])}."
    >>> for dialect in ("argument", "option", "key", "r"):
    ...     print(spelled(text, dialect))
    If it is a header, give header=True; if not, give names=[...].
    If it is a header, give --header; if not, give --names A,B,...
    If it is a header, give header = true; if not, give names = [...].
    If it is a header, give header = TRUE; if not, give names = c(...).
    """
    data = {"name": name, "values": [_plain(value) for value in values], "column": column}
    return _MARKS.format(json.dumps(data))


def named(*names: str) -> str:
    """Return the names of settings, as keys of a job with or without their tables, for a message that `spelled` spells.

    Examples
    --------
    >>> spelled(f"{named('sheet', 'query')} cannot be given.", "option")
    '--sheet, --query cannot be given.'
    """
    return ", ".join(_MARKS.format(json.dumps({"name": name, "values": None, "column": None})) for name in names)


def word_of(tool_word: str) -> str:
    """Return our word, in a sentence after a blank, for a word that another tool has for a role; or an empty string.

    Examples
    --------
    >>> spelled(word_of("--sensibleVar"), "option"), word_of("zip")
    (' In sdcMicro, that is what --confidential is here.', '')
    """
    plain = re.sub("[^a-z]", "", tool_word.lower())
    found = [(tool, ours) for tool, words in _OTHER_WORDS.items() for theirs, ours in words.items() if theirs == plain]
    return f" In {found[0][0]}, that is what {named(found[0][1])} is here." if found else ""


_OTHER_WORDS = {
    "sdcMicro": {
        "keyvars": "quasi_identifiers",
        "numvars": "quasi_identifiers",
        "sensiblevar": "confidential",
        "sensiblevars": "confidential",
        "excludevars": "identifiers",
        "stratavar": "by",
        "weightvar": "weights",
        "hhid": "household",
    },
    "ARX": {
        "identifying": "identifiers",
        "quasiidentifying": "quasi_identifiers",
        "sensitive": "confidential",
        "sensitiveattributes": "confidential",
        "insensitive": "other",
    },
    "pyCANON": {"quasiident": "quasi_identifiers", "sensatt": "confidential"},
}
"""Words of other tools, in letters alone, and ours."""


def _plain(value: object) -> Any:
    """Return a value that JSON holds; anything else, as a user may have given it, as its text."""
    if isinstance(value, list | tuple):
        return [_ANY if entry is ... else _plain(entry) for entry in value]
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)


def spelled(text: str, dialect: Dialect) -> str:
    """Return a message with its settings spelled for Python, R, the command line or a job.

    Examples
    --------
    >>> text = f"{named('columns.age.weight')} cannot be used: it should be a number."
    >>> spelled(named("stream.redis.batch", "steer.region"), "option")
    '--batch, --steer region'
    >>> spelled(text, "option"), spelled(text, "key")
    ('--weight age cannot be used: it should be a number.', 'columns.age.weight cannot be used: it should be a number.')
    >>> spelled(f"Replace it with {setting('force', True)}.", "key")
    'Replace it with --force.'
    """
    return spelled_by(text, _SPELLINGS[dialect])


def spelled_by(text: str, spell: Callable[[str, list[Any] | None, str | None], str]) -> str:
    """Return a message whose settings are spelled by a function of their name, their values and their column."""

    def spelling(found: re.Match[str]) -> str:
        data = json.loads(found[1])
        return spell(data["name"], data["values"], data["column"])

    return _MARKED.sub(spelling, text)


def settings_in(text: str) -> list[tuple[str, list[Any] | None]]:
    """Return the settings that a message holds as data, by name, with the values that they should have.

    Examples
    --------
    >>> settings_in(f"Give {setting('header', True)} or {setting('names', [...])}, not {named('sheet')}.")
    [('header', [True]), ('names', [['...']]), ('sheet', None)]
    """
    found = (json.loads(data) for data in _MARKED.findall(text))
    return [(each["name"], each["values"]) for each in found]


def _as_argument(name: str, values: list[Any] | None, column: str | None) -> str:
    if values is None:
        return name
    if values and column is not None and name in _OF_FIELDS:
        return f"fields={{{_in_python(column)}: {{{_in_python(name)}: {''.join(map(_in_python, values))}}}}}"
    key, *of_name = name.split(".") if values else [name]
    value = "".join(map(_in_python, values))
    return f"{key}={{{_in_python('.'.join(of_name))}: {value}}}" if of_name else f"{key}={value}"


def _in_python(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_ANY if entry == _ANY else _in_python(entry) for entry in value)}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _as_option(name: str, values: list[Any] | None, column: str | None) -> str:
    parts = name.split(".")
    while len(parts) > 1 and parts[-1].isdigit():  # the position in a list
        parts.pop()
    parts = [*dropwhile(_TABLES.__contains__, parts[:-1]), parts[-1]]
    if parts[0] in ("columns", "fields") and len(parts) > 2:  # columns.NAME.key
        parts = [parts[-1], *parts[1:-1]]
    key, *of_name = parts  # as in steer.NAME
    column = ".".join(of_name) or column
    of_column = [] if column is None else [as_listed(column)]
    if values == [False]:
        return f"no {option_name(key)}"
    of_value = [_on_command_line(value) for value in values or () if value is not True]
    return " ".join([option_name(key), *([as_word("=".join(of_column + of_value))] if of_column + of_value else [])])


def _on_command_line(value: Any) -> str:
    if isinstance(value, list):
        return "A,B,.." if _ANY in value else ",".join(as_listed(str(entry)) for entry in value)
    return str(value)


def _as_key(name: str, values: list[Any] | None, column: str | None) -> str:
    if name == "force":  # of a run, whatever the job
        return option_name(name)
    if not values:
        return name
    (value,) = values
    if column is not None and name in _OF_FIELDS:
        name = f"[input.fields.{column if column.isidentifier() else json.dumps(column, ensure_ascii=False)}] {name}"
    if isinstance(value, list):
        return f"{name} = {_in_python(value)}"
    return f"{name} = {json.dumps(value, ensure_ascii=False)}"


def _as_r(name: str, values: list[Any] | None, column: str | None) -> str:
    if values and column is not None and name in _OF_FIELDS:
        return f"fields = {in_r({column: {name: values[0]}})}"
    return name if not values else f"{name} = {in_r(values[0])}"


def in_r(value: Any) -> str:
    """Return a value as R writes it.

    Examples
    --------
    >>> in_r({"zip code": {"kind": "nominal", "missing_codes": [-9, -8]}})
    'list(`zip code` = list(kind = "nominal", missing_codes = c(-9, -8)))'
    """
    if isinstance(value, dict):
        pairs = [(name if name.isidentifier() else f"`{name}`", in_r(entry)) for name, entry in value.items()]
        return f"list({', '.join(' = '.join(pair) for pair in pairs)})"
    if isinstance(value, list):
        entries = [_ANY if entry == _ANY else in_r(entry) for entry in value]
        return entries[0] if len(entries) == 1 and entries != [_ANY] else f"c({', '.join(entries)})"
    if isinstance(value, bool):
        return str(value).upper()
    return "NULL" if value is None else json.dumps(value, ensure_ascii=False)


_SPELLINGS = {"argument": _as_argument, "option": _as_option, "key": _as_key, "r": _as_r}


def option_name(setting: str) -> str:
    """Return the option of a setting, which has its name in Python and in a job.

    Examples
    --------
    >>> option_name("quasi_identifiers")
    '--quasi-identifiers'
    """
    return f"--{setting.replace('_', '-')}"


def as_listed(name: str) -> str:
    """Quote a name where needed for a comma-separated list or a NAME=VALUE setting.

    Examples
    --------
    >>> as_listed("age"), as_listed("last, first")
    ('age', '"last, first"')
    """
    plain = name == name.strip() and not set(name) & set(',="')
    return name if plain else '"' + name.replace('"', '""') + '"'


def name_and_value(text: str) -> tuple[str, str] | None:
    """Split ``NAME=VALUE``; a name with an equals sign is in double quotes, as `as_listed` puts it. None if it is not.

    Examples
    --------
    >>> name_and_value("zip=nominal"), name_and_value('"a=b"=2'), name_and_value("zip")
    (('zip', 'nominal'), ('a=b', '2'), None)
    """
    quoted = re.fullmatch(r'"((?:[^"]|"")+)"=(.*)', text, re.DOTALL)
    if quoted:
        return quoted[1].replace('""', '"'), quoted[2]
    name, sign, value = text.partition("=")
    return (name, value) if sign and name else None


def as_word(text: str) -> str:
    """Quote a word of a command line where a shell would split or change it.

    Examples
    --------
    >>> print(as_word("age=3"), as_word("last, first"), as_word(""))
    age=3 'last, first' ''
    """
    plain = all(letter.isalnum() or letter in "_-.,=%/:+@" for letter in text)
    return text if text and plain else "'" + text.replace("'", "'\"'\"'") + "'"


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
