"""``shoal dp``: a release with differential privacy."""

from typing import Any

import click

from shoal.cli import options
from shoal.cli import parsing as typed
from shoal.cli.printing import facts
from shoal.cli.progress import showing
from shoal.errors import ParameterError
from shoal.files import check_free
from shoal.interrupts import report_what_is_written

_EXAMPLES = """\b
Examples:
  shoal dp people.csv --epsilon 1 --bounds age=0,120 --bounds income=0,500000 --categories sex=f,m --identifiers name \\
      -o release.csv
  shoal dp people.csv --epsilon 2 --joint --bounds age=0,120 --bounds income=0,500000 \\
      --identifiers name,sex -o release.csv
"""


@click.command("dp", epilog=_EXAMPLES)
@click.argument("file", metavar="FILE")
@click.option(
    "--epsilon", type=float, required=True, help="Privacy budget: how much the release may depend on one record."
)
@click.option("-o", "--output", metavar="FILE", required=True, help="The release; the ending decides the format.")
@click.option(
    "--bounds", multiple=True, metavar="COLUMN=LOW,HIGH", help="Range of a numeric column; must be public knowledge."
)
@click.option(
    "--categories",
    multiple=True,
    metavar="COLUMN=A,B,..",
    help="Categories of a nominal column; must be public knowledge.",
)
@click.option(
    "--identifiers", multiple=True, callback=typed.names, metavar="A,B,..", help="Columns that are not published."
)
@click.option(
    "--shares",
    multiple=True,
    metavar="COLUMN=NUMBER",
    help="Share of epsilon, relative to 1 for other columns; marginals only.",
)
@click.option("--joint", is_flag=True, help="Publish joint records of coarse cells, not each column by itself.")
@options.reading
@options.force
@options.quiet
def command(file: str, epsilon: float, output: str, joint: bool, force: bool, **given: Any) -> None:
    """Publish FILE with epsilon-differential privacy, by noise from OpenDP.

    Every column is published by itself or, with --joint, together with the others. Bounds and categories have to be
    known without looking at the data. There is no seed: a second run is a second release and spends epsilon again.
    """
    from shoal import dp

    path = f"{output}.public.json"
    check_free([output, path], force, [file])
    settings = {
        "bounds": _per_column(given["bounds"], "--bounds"),
        "categories": _per_column(given["categories"], "--categories"),
        "identifiers": given["identifiers"],
        "reading": options.reading_of(given),
    }
    shares = {name: value[0] for name, value in _per_column(given["shares"], "--shares").items()}
    if joint and shares:
        raise ParameterError("--shares is for marginals; a joint release divides epsilon itself.")
    report_what_is_written()
    with showing("reading and adding noise", ""):
        release = (
            dp.joint(file, epsilon, **settings) if joint else dp.marginals(file, epsilon, shares=shares, **settings)
        )
        release.write(output, force=force)
    facts(
        {
            "records": f"{release.published.num_rows:,}",
            "mechanism": release.mechanism,
            "epsilon": f"{release.epsilon:g}",
            "spent on columns": _costs(release.spent["columns"]),
            **({"spent on cells": _costs(release.spent["cells"])} if release.spent["cells"] else {}),
            "written": f"{output}, {path}",
        }
    )


def _costs(book: dict[str, float]) -> str:
    return ", ".join(f"{what}: {cost:.4g}" for what, cost in book.items())


def _per_column(entries: tuple[str, ...], flag: str) -> dict[str, list[Any]]:
    named = options.each_once((typed.column_and_value(entry, flag) for entry in entries), flag)
    return {name: typed.values(value) for name, value in named.items()}
