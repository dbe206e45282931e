"""``shoal bound``: a lower bound of the loss for a bundled data set."""

from time import perf_counter

import click

from shoal.cli.printing import facts
from shoal.typing import BoundEffort


@click.command("bound", epilog="\b\nExamples:\n  shoal bound census -k 5\n  shoal bound eia -k 10 --effort strong")
@click.argument("data", type=click.Choice(["census", "tarragona", "eia"]))
@click.option("-k", "k", type=int, default=5, show_default=True, help="Smallest cell size, at least 2.")
@click.option(
    "--effort", type=click.Choice(["cheap", "strong"]), default="cheap", show_default=True, help="Effort of the proof."
)
@click.option("--seconds", type=float, default=60.0, show_default=True, help="Time limit of a strong bound.")
def command(data: str, k: int, effort: BoundEffort, seconds: float) -> None:
    """Compute a loss that no partition of a bundled data set can be below.

    Columns are standardized; MDAV's loss is shown beside the bound.
    """
    from shoal import datasets
    from shoal.arrays import standardize
    from shoal.measures import loss, lower_bound
    from shoal.methods import partition

    X = standardize(getattr(datasets, data)().X)
    start = perf_counter()
    found = lower_bound(X, k, effort=effort, seconds=seconds)
    spent = perf_counter() - start
    mdav = loss(X, partition(X, k, "mdav"))
    facts(
        {
            "lower bound": f"{100 * found.il:.4f} % ({found.method}, {spent:.1f} s)",
            "mdav": f"{100 * mdav.il:.4f} %",
            "gap": f"{100 * found.gap(mdav):.2f} % of mdav's loss, at most, could be avoided",
        }
    )
