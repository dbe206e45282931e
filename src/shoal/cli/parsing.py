"""Parsing: what a user types becomes plain values: lists of names, settings of columns, options of methods."""

import csv
from collections.abc import Iterable
from typing import Any

import click

from shoal.spelling import name_and_value, number, plain_value


def names(ctx: click.Context, parameter: click.Parameter, given: Iterable[str]) -> tuple[str, ...]:
    """Return the names in one or several comma-separated lists; a name with a comma is in double quotes.

    Examples
    --------
    >>> names(None, None, ["age,zip", '"last, first"'])
    ('age', 'zip', 'last, first')
    """
    return tuple(name for text in given for name in split(text))


def split(text: str) -> list[str]:
    """Split a list at its commas, but not within double quotes; spaces around names are dropped.

    Examples
    --------
    >>> split('low, mid ,"high, or more"')
    ['low', 'mid', 'high, or more']
    """
    (row,) = csv.reader([text.replace("\n", " ")], skipinitialspace=True) if text.strip() else ([],)
    return [name.rstrip() if f'"{name}"' not in text else name for name in row]


def column_and_value(text: str, flag: str) -> tuple[str, str]:
    """Split ``COLUMN=VALUE``; a column with an equals sign in its name is in double quotes.

    Examples
    --------
    >>> column_and_value("zip=nominal", "--kind"), column_and_value('"a=b"=2', "--weight")
    (('zip', 'nominal'), ('a=b', '2'))
    """
    found = name_and_value(text)
    if found is None:
        raise click.BadParameter(f"{text!r} has to be COLUMN=VALUE.", param_hint=flag)
    return found


def perhaps_column(text: str) -> tuple[str | None, str]:
    """Split ``COLUMN=VALUE`` or take ``VALUE`` for all columns.

    Examples
    --------
    >>> perhaps_column("NA"), perhaps_column("born=%d.%m.%Y"), perhaps_column("=")
    ((None, 'NA'), ('born', '%d.%m.%Y'), (None, '='))
    """
    return column_and_value(text, "") if "=" in text[1:] else (None, text)


def values(text: str) -> list[Any]:
    """Return a list of values: whole numbers if all are, numbers if all are, else texts.

    Examples
    --------
    >>> values("-9,99"), values("0.5,1"), values("01,2"), values("low,high")
    ([-9, 99], [0.5, 1.0], ['01', '2'], ['low', 'high'])
    """
    texts = split(text)
    found = [number(part) for part in texts]
    if not all(isinstance(value, int | float) and _plainly(part) for value, part in zip(found, texts, strict=True)):
        return list(texts)
    return found if all(isinstance(value, int) for value in found) else [float(value) for value in found]


def _plainly(text: str) -> bool:
    """Return whether a number is written as a number, and not as a code such as 007 or 1_000."""
    digits = text.lstrip("+-")
    return "_" not in digits and not (len(digits) > 1 and digits[0] == "0" and digits[1].isdigit())


def option(text: str, flag: str) -> tuple[str, Any]:
    """Split ``NAME=VALUE``: a number, true, false or a text.

    Examples
    --------
    >>> option("effort=best", "--options"), option("seconds=2.5", "--options"), option("phases=1", "--options")
    (('effort', 'best'), ('seconds', 2.5), ('phases', 1))
    """
    name, value = column_and_value(text, flag)
    return name, plain_value(value)


def whole_numbers(ctx: click.Context, parameter: click.Parameter, given: str) -> list[int]:
    """Return a comma-separated list of whole numbers."""
    try:
        return [int(part) for part in given.split(",")]
    except ValueError:
        raise click.BadParameter(f"{given!r} is not a list of whole numbers such as 3,5,10.") from None
