"""Completion: shells propose files where a command expects one. What else they propose, click knows by itself.

docs/commands.md says how a shell is told.
"""

import re

import click
from click.shell_completion import CompletionItem

_PLACE = re.compile(r"(?P<folder>FOLDER)|FILE|RELEASE|\.toml")


class _Place(click.types.StringParamType):
    """The path of a file or a folder, or the address of a database, as it was typed."""

    def __init__(self, kind: str) -> None:
        self.name = kind

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type=self.name)]


def completing_files(command: click.Command) -> click.Command:
    """Return a command, with those below it, whose parameters that stand for a file complete the names of files."""
    for parameter in command.params:
        place = _PLACE.search(parameter.metavar or "")
        if place is not None and parameter.type is click.STRING:
            parameter.type = _Place("dir" if place["folder"] else "file")
    for below in getattr(command, "commands", {}).values():
        completing_files(below)
    return command
