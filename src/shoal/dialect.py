"""Dialect: translates messages that name Python arguments into options of the command line or keys of a job."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from shoal.columns.findings import Dialect, QuestionError
from shoal.errors import ShoalError
from shoal.option_names import option_name

_FLAGS = {
    "reading": "--encoding, --delimiter, --decimal ...",
    **{
        name: option_name(name)
        for name in (
            *("null_values", "order", "quasi_identifiers", "identifiers", "missing_codes"),
            *("header", "names", "encoding", "decimal", "quote", "delimiter", "thousands", "date_format", "missing"),
            *("confidential", "other", "by", "subject", "household", "weights", "rho", "seed", "accept", "aggregate"),
            *("kind", "same_order", "release_reading", "top", "bottom", "fold", "scaling", "engine", "memory"),
            *("fill_keys", "sheet", "header_row", "catalog", "format", "table", "query", "to_table", "manifest"),
            *("to_format", "outside", "hierarchy", "truthful", "objective", "report"),
        )
    },
}
_LISTS = {"order": "COLUMN=A,B,.."}
_ARGUMENT = re.compile(
    rf"\b({'|'.join(_FLAGS)})=(\[\.\.\.\]|\[[^\]]*\]|\"[^\"]*\"|'[^']*'|True|False|\d+|(?=[ .,;)]|$))"
)
_UNUSED = re.compile(r"^[a-z_]+(, [a-z_]+)*(?= (?:cannot|can only) be given for)")
_KEY_OF_COLUMN = re.compile(r"^columns\.(.+)\.(\w+)(?= cannot be used:)")
_KEY = re.compile(r"^(?:(?:input|output|roles|stream)\.)?([a-z]\w+)(?= cannot be used:)")


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
        rephrased = _UNUSED.sub(lambda found: ", ".join(map(option_name, found[0].split(", "))), rephrased)
        rephrased = _KEY_OF_COLUMN.sub(lambda found: f"{option_name(found[2])} {found[1]}", rephrased)
        rephrased = _KEY.sub(lambda found: option_name(found[1]), rephrased)
    return re.sub(r"(\(|with )force\b", r"\1--force", rephrased)


def _as_option(found: re.Match[str]) -> str:
    name, value = found[1], found[2]
    flag = _FLAGS[name]
    if value in ("", "True"):
        return flag
    if value == "False":
        return f"no {flag}"
    if value.startswith("["):
        return f"{flag} {_LISTS.get(name, 'A,B,..')}" if value == "[...]" else f"{flag} {value[1:-1].strip(chr(39))}"
    return f"{flag} {value[1:-1]}" if value[0] in "\"'" and len(value) > 2 else f"{flag} {value}"


def _as_key(found: re.Match[str]) -> str:
    value = {"True": "true", "False": "false"}.get(found[2], found[2])
    return f"{found[1]} = {value}" if value else found[1]
