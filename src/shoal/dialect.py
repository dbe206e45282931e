"""Dialect: translates messages that name Python arguments into options of the command line or keys of a job."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from shoal.columns.findings import Dialect, QuestionError
from shoal.errors import ShoalError

_FLAGS = {
    "null_values": "--null-value",
    "order": "--order-of",
    "quasi_identifiers": "--quasi",
    "identifiers": "--drop",
    "missing_codes": "--missing-code",
    "reading": "--encoding, --delimiter, --decimal ...",
    **{
        name: f"--{name.replace('_', '-')}"
        for name in (
            *("header", "names", "encoding", "decimal", "quote", "delimiter", "thousands", "date_format", "missing"),
            *("confidential", "other", "by", "subject", "household", "weights", "rho", "seed", "accept", "aggregate"),
            *("kind", "same_order", "release_reading", "top", "bottom", "fold", "scaling", "engine", "memory"),
            *("fill_keys", "sheet", "header_row", "catalog", "format", "table", "query", "to_table", "manifest"),
            *("to_format", "outside", "hierarchy", "truthful", "objective"),
        )
    },
}
_LISTS = {"order": "COLUMN=A,B,.."}
_ARGUMENT = re.compile(
    r"\b[A-Z]\w*\([^()]*\)|"
    rf"\b({'|'.join(_FLAGS)})=(\[\.\.\.\]|\[[^\]]*\]|\"[^\"]*\"|'[^']*'|True|False|\d+|(?=[ .,;)]|$))"
)


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
    >>> translated("LDiversity(column='illness', l=9, kind='distinct') cannot be satisfied.", "option")
    "LDiversity(column='illness', l=9, kind='distinct') cannot be satisfied."
    """
    told = _ARGUMENT.sub(_as_key if dialect == "key" else _as_option, text)
    return re.sub(r"(\(|with )force\b", r"\1--force", told)


def _as_option(found: re.Match[str]) -> str:
    name, value = found[1], found[2]
    if name is None:  # a model, whose arguments have no options of their own
        return found[0]
    flag = _FLAGS[name]
    if value in ("", "True"):
        return flag
    if value == "False":
        return f"no {flag}"
    if value.startswith("["):
        return f"{flag} {_LISTS.get(name, 'A,B,..')}" if value == "[...]" else f"{flag} {value[1:-1].strip(chr(39))}"
    return f"{flag} {value[1:-1]}" if value[0] in "\"'" and len(value) > 2 else f"{flag} {value}"


def _as_key(found: re.Match[str]) -> str:
    if found[1] is None:
        return found[0]
    value = {"True": "true", "False": "false"}.get(found[2], found[2])
    return f"{found[1]} = {value}" if value else found[1]
