"""``shoal reproduce``: a paper's tables and figures, measured again."""

import click

from shoal.reproduce import PAPERS
from shoal.reproduce import command as paper_command


class Papers(click.Group):
    """The reproductions, each imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the papers."""
        return list(PAPERS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the paper's file."""
        return paper_command(cmd_name) if cmd_name in PAPERS else None


@click.group("reproduce", cls=Papers, epilog="\b\nExamples:\n  shoal reproduce fmdav\n  shoal reproduce fmdav --help")
def command() -> None:
    """Measure a paper's tables and figures again."""
