"""``shoal compare``: several k and methods, as a table and as the risk-utility map."""

from typing import Any

import click

from shoal.cli import options
from shoal.cli.parsing import whole_numbers
from shoal.cli.progress import showing
from shoal.comparison import compare, map_format
from shoal.files import check_free
from shoal.interrupts import report_what_is_written
from shoal.job import Job
from shoal.methods import ALGORITHMS
from shoal.sources import shown
from shoal.spelling import number

_TRIED = (
    *("objective", "scaling", "missing", "truthful", "intervals", "seed", "accept", "strict", "steer", "options"),
    *("codes", "numbers", "kinds", "hierarchies"),
)
"""The settings of a job that all choices share."""


@click.command(
    "compare",
    epilog="\b\nExamples:\n"
    "  shoal compare people.csv -k 3,5,10 --quasi-identifiers age,zip --confidential diagnosis --identifiers name\n"
    "  shoal compare people.csv -k 5,10 --methods auto,mdav --quasi-identifiers age,zip --other wave -o map.html\n"
    "  shoal compare people.csv --quasi-identifiers age,zip --other wave --identifiers name --json > choices.json",
)
@click.argument("file", metavar="FILE")
@click.option("-k", "k", default="3,5,10,25", show_default=True, callback=whole_numbers, help="Cell sizes to try.")
@click.option(
    "--methods",
    default="all",
    show_default=True,
    help=f"Methods to try: all that are fast enough, or some of {', '.join(ALGORITHMS)}.",
)
@click.option(
    "--rho",
    callback=lambda ctx, parameter, value: None if value is None else [number(part) for part in value.split(",")],
    metavar="NUMBER,..",
    help="Random aggregation, one release for each: 0,0.5,1; above 0 a release is NOT k-anonymous (docs/random.md).",
)
@click.option("-o", "--output", metavar="FILE", help="The map: .html, .svg, .png, .pdf or .json by its ending.")
@options.roles()
@options.models
@options.settings(Job, *_TRIED)
@options.threads
@options.columns()
@options.reading
@options.as_json
@options.force
@options.no_progress
def command(file: str, k: list[int], methods: str, output: str | None, **given: Any) -> None:
    """Try several k and methods on FILE, and mark the undominated choices.

    Every column needs a role, as for `shoal anonymize`. Nothing of the table is written.
    """
    if output is not None:
        read = [column["hierarchy"] for column in options.column_settings(given).values() if "hierarchy" in column]
        check_free([output], given["force"], [file, *read])
        map_format(output)
    names: Any = methods if methods == "all" else methods.split(",")
    shared = options.settings_of(given, Job)
    of_methods = shared.pop("options", {})
    with showing(f"reading {shown(file)}", "comparing", "finishing") as meter:
        found = compare(
            file,
            k=k,
            methods=names,
            rho=given["rho"],
            threads=given["threads"],
            columns=options.column_settings(given),
            models=options.models_of(given),
            reading=options.reading_of(given),
            progress=meter,
            **options.with_prefix(given, "role"),
            **shared,
            **of_methods,
        )
    if output is not None:
        report_what_is_written()
        found.write(output, force=given["force"])
    click.echo(found.to_json() if given["as_json"] else str(found), nl=not given["as_json"])
    for text in found.warnings:
        click.echo(f"Warning: {text}", err=True)
