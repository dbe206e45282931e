"""Printing: what commands print, the same on a terminal and in a file."""

from collections.abc import Mapping

import click

from shoal.table.clean import printable


def facts(lines: Mapping[str, str]) -> None:
    """Print titles and texts in two aligned columns."""
    width = max(18, *(len(title) + 2 for title in lines))
    for title, value in lines.items():
        click.echo(f"{title:<{width}}{printable(value)}")


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun.

    Examples
    --------
    >>> counted(1, "record"), counted(1200, "record"), counted(2, "stratum", "strata")
    ('1 record', '1,200 records', '2 strata')
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
