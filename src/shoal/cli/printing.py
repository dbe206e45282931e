"""Printing: what commands print, the same on a terminal and in a file."""

import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click

from shoal.errors import ShoalWarning
from shoal.sources.clean import printable

_QUIET = "shoal.cli.quiet"


def quieten(context: click.Context, parameter: click.Parameter, is_quiet: bool) -> None:
    """Let this run of the command print only what it was asked for, and warnings and errors."""
    context.meta[_QUIET] = is_quiet


def is_quiet() -> bool:
    """Return whether this run of the command was asked to be quiet."""
    context = click.get_current_context(silent=True)
    return context is not None and context.meta.get(_QUIET, False)


def tell(text: str, *, err: bool = False) -> None:
    """Print what a command did, unless it is to be quiet."""
    if not is_quiet():
        click.echo(text, err=err)


def facts(lines: Mapping[str, str], *, err: bool = False) -> None:
    """Print titles and texts in two aligned columns, unless the command is to be quiet."""
    width = max(18, *(len(title) + 2 for title in lines))
    for title, value in lines.items():
        tell(f"{title:<{width}}{printable(value)}", err=err)


def print_json(content: Any) -> None:
    """Print plain values as JSON."""
    click.echo(json.dumps(content, indent=1, ensure_ascii=False))


@contextmanager
def warned() -> Iterator[list[str]]:
    """Collect the warnings of shoal, each once, in a list that is complete when the block ends."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ShoalWarning)
        yield texts
    for one in caught:
        if not issubclass(one.category, ShoalWarning):
            warnings.showwarning(one.message, one.category, one.filename, one.lineno)
    texts += dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, ShoalWarning))


@contextmanager
def telling() -> Iterator[None]:
    """Print the warnings of shoal on standard error when the block ends."""
    with warned() as texts:
        yield
    for text in texts:
        click.echo(f"Warning: {text}", err=True)
