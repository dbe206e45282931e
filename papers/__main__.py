"""``python -m papers``, in the repository: reproduces the tables and figures of a paper."""

from functools import partial
from typing import Any

import click

from papers import PAPERS, entry_of
from papers.paper import command
from shoal.cli.exit_codes import ended

EXAMPLES = """\b
Examples:
  python -m papers --list
  python -m papers --quick
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
        """Import a paper's file and make its command."""
        return command(cmd_name, entry_of(cmd_name)) if cmd_name in PAPERS else None


def _print_list() -> None:
    for name in PAPERS:
        entry = entry_of(name)
        click.echo(f"{name:<13}{entry.title}")
        click.echo(f"{'':<13}{entry.covers}; {', '.join(part for part in (entry.takes, entry.full) if part)}")
        click.echo(f"{'':<13}quick form: {entry.quick or 'the same'}")


def _run_all() -> None:
    for name in PAPERS:
        entry = entry_of(name)
        click.echo(f"{entry.title}: python -m papers {name} {entry.quick}".rstrip() + "\n")
        command(name, entry).main(entry.quick.split(), standalone_mode=False)


@click.group(
    "papers",
    cls=Papers,
    epilog=EXAMPLES,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option("--list", "listing", is_flag=True, help="Name each paper, its tables and figures and how long they take.")
@click.option("--quick", is_flag=True, help="Run every paper in its quick form, which --list states.")
@click.pass_context
def main(ctx: click.Context, listing: bool, quick: bool) -> None:
    """Reproduce the tables and figures of a paper."""
    if listing:
        _print_list()
    elif quick:
        _run_all()
    elif ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


if __name__ == "__main__":
    main(prog_name="python -m papers")
