"""Dialect: translates messages that name Python arguments into options of the command line or keys of a job."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from shoal.columns.schema import ColumnSettings, Roles
from shoal.errors import ShoalError
from shoal.findings import Dialect, QuestionError
from shoal.job import Input, Job, Late, Output, RedisSettings, StreamSettings
from shoal.spelling import option_name

_MODELS = (Roles, ColumnSettings, Input, Output, StreamSettings, RedisSettings, Late, Job)
_NOT_GIVEN_ALONE = {"k", "path", "fields", "roles", "columns", "models", "options", "late", "input", "output", "stream"}
_ONLY_OF_CALLS = ("same_order", "release_reading", "original", "original_reading")
SETTINGS = {
    "reading": "--encoding, --delimiter, --decimal ...",
    "records": "--list, --risks",
    **{name: option_name(name) for model in _MODELS for name in model.model_fields if name not in _NOT_GIVEN_ALONE},
    **{name: option_name(name) for name in _ONLY_OF_CALLS},
}
"""What messages call a setting, and the option that gives it."""

_LISTS = {"order": "COLUMN=A,B,.."}
# A value is read up to a length, so that none is searched for its end over and over.
_ARGUMENT = re.compile(
    rf"(?<![\w-])({'|'.join(sorted(SETTINGS, key=len, reverse=True))})="
    r"(\[\.\.\.\]|\.\.\.|\[[^\[\]]{0,200}\]|\"[^\"]{0,200}\"|'[^']{0,200}'|True|False|None|-?\d{1,30}(?:\.\d{1,30})?)?"
)
_NAME = r"'?[a-z][a-z_]+'?"
_NAMES = re.compile(
    rf"^{_NAME}(?:, {_NAME})*(?= (?:cannot be given for|can only be given for|is set for|has no effect))"
)
_KEY_OF_COLUMN = re.compile(r"^(?:columns|(?:input\.)?fields)\.(.+)\.(\w+)(?= cannot be used:)")
_KEY = re.compile(r"^(?:(?:input|output|roles|stream|redis|late)\.){0,2}([a-z]\w+)(?= cannot be used:)")


@contextmanager
def speaking_of_keys() -> Iterator[None]:
    """Have messages name keys within the context, because a job file is run."""
    try:
        yield
    except ShoalError as error:
        error.dialect = "key"  # the message is composed where the command ends, outside this block
        raise


def in_options(error: ShoalError) -> str:
    """Return the message of an error with settings named as on the command line or, for a job, as keys."""
    dialect: Dialect = "key" if error.dialect == "key" else "option"
    if isinstance(error, QuestionError):
        return error.told(dialect)
    return translated(str(error), dialect)


def translated(text: str, dialect: Dialect) -> str:
    """Return a text with Python arguments replaced by options or keys.

    Examples
    --------
    >>> translated('If it is a header, say header=True; if there is none, give names=[...].', "option")
    'If it is a header, say --header; if there is none, give --names A,B,...'
    >>> translated('Say missing="own-value", or replace it with force.', "key")
    'Say missing = "own-value", or replace it with --force.'
    >>> translated("columns.age.weight cannot be used: it should be a number.", "option")
    '--weight age cannot be used: it should be a number.'
    >>> translated("input.max_unpacked_gb cannot be used: it should be a number.", "option")
    '--max-unpacked-gb cannot be used: it should be a number.'
    """
    rephrased = _ARGUMENT.sub(_as_key if dialect == "key" else _as_option, text)
    if dialect == "option":
        rephrased = _NAMES.sub(lambda found: ", ".join(map(_option, found[0].split(", "))), rephrased)
        rephrased = _KEY_OF_COLUMN.sub(lambda found: f"{_option(found[2])} {found[1]}", rephrased)
        rephrased = _KEY.sub(lambda found: _option(found[1]), rephrased)
    return re.sub(r"(\(|with )force\b", r"\1--force", rephrased)


def _option(name: str) -> str:
    """Return the option of a setting, as it may stand in quotes."""
    return option_name(name.strip("'"))


def _as_option(found: re.Match[str]) -> str:
    name, value = found[1], found[2]
    flag = SETTINGS[name]
    if name == "order" and value and not value.startswith("["):
        flag = "--order"  # of the records of the release
    if value in (None, "True"):
        return flag + _gap(found)
    if value == "False":
        return f"no {flag}"
    if value.startswith("["):
        return f"{flag} {_LISTS.get(name, 'A,B,..')}" if value == "[...]" else f"{flag} {value[1:-1].strip(chr(39))}"
    return f"{flag} {value[1:-1]}" if value[0] in "\"'" and len(value) > 2 else f"{flag} {value}"


def _gap(found: re.Match[str]) -> str:
    """Return a blank before a value that is shown as it is."""
    after = found.string[found.end() : found.end() + 1]
    return " " if found[2] is None and after not in (*" .,;)", "") else ""


def _as_key(found: re.Match[str]) -> str:
    value = {"True": "true", "False": "false"}.get(found[2], found[2])
    return f"{found[1]} = {value}" if value else found[1] + (" = " if _gap(found) else "")
