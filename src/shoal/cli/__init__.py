"""The command line: the same verbs as the Python calls, with help that carries examples.

A command is a file of this folder with a click command called ``command``, and a line in `COMMANDS`. It is imported
when it is asked for, so that ``shoal --help`` is quick. `shoal.cli.exit_codes` decides how a command ends.
"""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any, cast

import click

from shoal.cli.completion import completing_files
from shoal.cli.exit_codes import ended
from shoal.distribution import DISTRIBUTION
from shoal.errors import did_you_mean
from shoal.passwords import check_no_password, scheme_of
from shoal.system import system

COMMANDS = {
    "inspect": "Say what is in a file, and propose a role for each column.",
    "anonymize": "Make a file k-anonymous: the release, its report, its manifests.",
    "hierarchy": "Draw and check a hierarchy of values.",
    "audit": "Recount the guarantees of a published file.",
    "attack": "Try attacks on a published file whose originals are at hand.",
    "run": "Run a job file.",
    "dp": "Publish a file with differential privacy.",
    "compare": "Try several k and methods: risk and loss of each.",
    "plan": "Say when to start a release, to be ready in time.",
    "collect": "Start before all records have arrived; publish once.",
    "stream": "Make a stream of lines k-anonymous, within a bounded delay.",
    "worker": "Make a Redis Stream k-anonymous; survives any crash.",
    "app": "Make a release in the browser, on this machine alone.",
    "demo": "Make a release of a bundled sample, with its report.",
    "bound": "Compute a lower bound of the loss for a bundled data set.",
}
"""What each command does, in a line; ``shoal --help`` shows it without importing the command."""


class Commands(click.Group):
    """A group whose commands are imported by name, and end in a message, never in a traceback."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command line; refusals, Ctrl-C and failures become a message and an exit code."""
        system.use_utf8()
        words = sys.argv[1:] if args is None else list(args)
        run = partial(self._run, super().main, words, prog_name, complete_var, standalone_mode=False, **extra)
        if not standalone_mode:
            return run()
        raise SystemExit(ended(run, words))

    def _run(self, run: Callable[..., Any], words: Sequence[str], *rest: Any, **extra: Any) -> Any:
        """Run a command; an address with a password is refused before anything can repeat it."""
        for word in words:
            for part in (word, word.partition("=")[2], word.removeprefix("-o")):
                if scheme_of(part) not in ("redis", "rediss"):  # `shoal worker` refuses those itself
                    check_no_password(part)
        return run(words, *rest, **extra)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the file of a command."""
        if cmd_name not in COMMANDS:
            return None
        return completing_files(cast(click.Command, import_module(f"shoal.cli.{cmd_name}").command))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or suggest a similar one."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            hint = did_you_mean(args[0], known=COMMANDS) or f" Commands: {', '.join(COMMANDS)}."
            ctx.fail(f"There is no command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with their one-line help, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    epilog="\b\nExamples:\n"
    "  shoal inspect people.csv\n"
    "  shoal anonymize people.csv -k 10 --quasi-identifiers age,zip --identifiers name -o release.parquet\n"
    "  shoal anonymize --help",
)
@click.version_option(package_name=DISTRIBUTION, message="shoal %(version)s")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Make personal data safe to publish by k-anonymous microaggregation."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
