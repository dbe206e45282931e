"""``shoal inspect``: what is in a file, without showing a value of it."""

from typing import Any

import click

from shoal.cli import options
from shoal.cli.printing import print_json
from shoal.cli.progress import showing
from shoal.inspection import inspect
from shoal.sources import shown


@click.command(
    "inspect",
    epilog="\b\nExamples:\n  shoal inspect people.csv\n  shoal inspect people.parquet --json > columns.json\n"
    "  shoal inspect people.csv -k 5 --job > job.toml",
)
@click.argument("file", metavar="FILE")
@click.option(
    "-k", "k", type=int, help="The k of the proposed command or job; by default one that suits the number of records."
)
@options.as_json
@click.option("--job", "as_job", is_flag=True, help="Print a job file with the proposed roles, to correct and run.")
@click.option("--show-values", is_flag=True, help="Show the values that findings are about; they come from the table.")
@options.reading
@options.no_progress
def command(file: str, k: int | None, as_json: bool, as_job: bool, show_values: bool, **given: Any) -> None:
    """Show what is in FILE and what may be misread, and propose a role for each column.

    For each column: kind, missing and different values, and the share of the records that it alone makes unique. Then
    what may be misread, such as codes that would be averaged, with the options that settle it. No value is shown unless
    asked for. The proposals are based on names and counts; a person decides.
    """
    if as_json and as_job:
        raise click.UsageError("Ask for --json or for --job, not for both")
    with showing(f"reading {shown(file)}", "counting columns", "counting combinations") as meter:
        found = inspect(file, show_values=show_values, progress=meter, **options.reading_of(given))
    if as_json:
        print_json(found.to_dict())
    elif as_job:
        click.echo(found.job(k).to_toml(), nl=False)
    else:
        click.echo(found.to_text(k))
