"""Text: what commands print, the same on a terminal and in a file."""

from collections.abc import Mapping

import click


def facts(lines: Mapping[str, str]) -> None:
    """Print titles and what there is to say about each, aligned."""
    width = max(18, *(len(title) + 2 for title in lines))
    for title, value in lines.items():
        click.echo(f"{title:<{width}}{value}")
