"""``shoal reproduce``: reproduces the tables and figures of a paper."""

from typing import Any

import click

from shoal.reproduce import PAPERS
from shoal.reproduce import command as paper_command
from shoal.reproduce.claims import as_text, counted, kept

EXAMPLES = """\b
Examples:
  shoal reproduce --list
  shoal reproduce fmdav --claims
  shoal reproduce fmdav
  shoal reproduce fmdav --help
"""


class Papers(click.Group):
    """The reproductions, each imported on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the papers."""
        return list(PAPERS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of a paper, with the option to print its stored claims."""
        if cmd_name not in PAPERS:
            return None
        command = paper_command(cmd_name)
        if not any(parameter.name == "claims" for parameter in command.params):
            command.params.append(_claims_option(cmd_name))
        return command


def _claims_option(paper: str) -> click.Option:
    def print_claims(ctx: click.Context, parameter: click.Parameter, asked: bool) -> None:
        if asked:
            found = kept(paper)
            click.echo(f"{PAPERS[paper].title}\nMeasured by: {found.run}\n")
            click.echo(as_text(found.claims))
            click.echo(f"{counted(found.claims)}.")
            ctx.exit()

    return click.Option(
        ["--claims"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=print_claims,
        help="Print every checked claim of the stored run (yes, no, not testable, and why) and exit.",
    )


def _print_list(ctx: click.Context, parameter: click.Parameter, asked: bool) -> Any:
    if asked:
        for name, paper in PAPERS.items():
            click.echo(f"{name:<13}{paper.title}")
            click.echo(f"{'':<13}{paper.covers}; {', '.join(part for part in (paper.takes, paper.full) if part)}")
        ctx.exit()


@click.group("reproduce", cls=Papers, epilog=EXAMPLES)
@click.option(
    "--list",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_list,
    help="Name each paper, its tables and figures and how long they take, and exit.",
)
def command() -> None:
    """Reproduce the tables and figures of a paper."""
