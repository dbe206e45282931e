"""``python -m papers``, in the repository: reproduces the tables and figures of a paper."""

from functools import partial
from typing import Any

import click

from papers import PAPERS
from papers import command as paper_command
from papers.claims import as_text, counted, kept
from shoal.cli.exit_codes import ended

EXAMPLES = """\b
Examples:
  python -m papers --list
  python -m papers fmdav --claims
  python -m papers fmdav
  python -m papers fmdav --help
"""


class Papers(click.Group):
    """The papers, each imported on demand; a refusal or Ctrl-C becomes a message and an exit code."""

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run the command line."""
        run = partial(super().main, *args, standalone_mode=False, **extra)
        if not standalone_mode:
            return run()
        raise SystemExit(ended(run))

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


@click.group("papers", cls=Papers, epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--list",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_list,
    help="Name each paper, its tables and figures and how long they take, and exit.",
)
def main() -> None:
    """Reproduce the tables and figures of a paper."""


if __name__ == "__main__":
    main(prog_name="python -m papers")
