"""The command line: the same verbs as the Python calls, with help that carries examples.

What a command needs is imported when it runs. A refusal (`ShoalError`) is one paragraph on stderr and exit code 2;
Ctrl-C ends with exit code 130.
"""

from time import perf_counter
from typing import Any

import click
import numpy as np

from shoal.errors import ShoalError
from shoal.reproduce import PAPERS
from shoal.reproduce import command as paper_command
from shoal.typing import Labels


class Refusal(click.ClickException):
    """What shoal refuses to do, as click shows it."""

    exit_code = 2


class Commands(click.Group):
    """A group whose commands end in a message, never in a traceback, when shoal refuses or the user stops them."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except ShoalError as error:
            raise Refusal(str(error)) from error
        except KeyboardInterrupt:
            ctx.exit(130)


class Papers(click.Group):
    """The reproductions, each imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the papers."""
        return list(PAPERS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the paper's file."""
        return paper_command(cmd_name) if cmd_name in PAPERS else None


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    epilog="\b\nExamples:\n  shoal demo\n  shoal reproduce fmdav\n  shoal reproduce fmdav --help",
)
@click.version_option(package_name="shoal", message="shoal %(version)s")
def main() -> None:
    """Make personal data safe to publish by k-anonymous microaggregation."""


@main.command(epilog="\b\nExamples:\n  shoal demo\n  shoal demo -k 10")
@click.option("-k", "k", type=int, default=5, show_default=True, help="Smallest cell size, at least 2.")
def demo(k: int) -> None:
    """Microaggregate the bundled Census sample.

    Groups its 1080 records into cells of at least k similar ones by MDAV and reports what that costs.
    """
    from shoal import datasets
    from shoal.metrics import loss
    from shoal.partition import partition
    from shoal.space import standardize

    data = datasets.census()
    X = standardize(data.X)
    start = perf_counter()
    labels = partition(X, k, "mdav")
    seconds = perf_counter() - start
    for title, value in {
        "data": f"{data.name}, {X.shape[1]} columns",
        "records": f"{len(X):,}",
        "method": f"mdav, k = {k}",
        "cells": f"{labels.max() + 1:,}",
        "cell sizes": _cell_sizes(labels),
        "information loss": f"{loss(X, labels).il:.4f} %",
        "time": f"{seconds * 1000:.1f} ms",
    }.items():
        click.echo(f"{title:<18}{value}")


def _cell_sizes(labels: Labels) -> str:
    """Say how many cells there are of each size."""
    sizes, counts = np.unique(np.bincount(labels), return_counts=True)
    return ", ".join(f"{count:,} of {size}" for size, count in zip(sizes, counts, strict=True))


@main.command(epilog="\b\nExamples:\n  shoal bound census -k 5\n  shoal bound eia -k 10 --effort strong")
@click.argument("data", type=click.Choice(["census", "tarragona", "eia"]))
@click.option("-k", "k", type=int, default=5, show_default=True, help="Smallest cell size, at least 2.")
@click.option("--effort", type=click.Choice(["cheap", "strong"]), default="cheap", show_default=True, help="How hard.")
@click.option("--seconds", type=float, default=60.0, show_default=True, help="When a strong bound is cut short.")
def bound(data: str, k: int, effort: str, seconds: float) -> None:
    """Say what no partition of a bundled set can lose less than.

    Columns are standardized; MDAV's loss stands beside the bound.
    """
    from shoal import datasets
    from shoal.metrics import loss, lower_bound
    from shoal.partition import partition
    from shoal.space import standardize

    X = standardize(getattr(datasets, data)().X)
    start = perf_counter()
    found = lower_bound(X, k, effort=effort, seconds=seconds)
    spent = perf_counter() - start
    mdav = loss(X, partition(X, k, "mdav"))
    for title, value in {
        "lower bound": f"{found.il:.4f} % ({found.method}, {spent:.1f} s)",
        "mdav": f"{mdav.il:.4f} %",
        "gap": f"{found.gap(mdav):.2f} % of mdav's loss, at most, could be avoided",
    }.items():
        click.echo(f"{title:<18}{value}")


@main.group(cls=Papers, epilog="\b\nExamples:\n  shoal reproduce fmdav\n  shoal reproduce fmdav --help")
def reproduce() -> None:
    """Measure a paper's tables and figures again."""


if __name__ == "__main__":
    main()
