"""``shoal inspect``: what is in a file, without showing a value of it."""

import json
from pathlib import Path
from typing import Any

import click

from shoal.cli import options
from shoal.cli.progress import showing
from shoal.inspection import inspect


@click.command(
    "inspect",
    epilog="\b\nExamples:\n  shoal inspect people.csv\n  shoal inspect people.parquet --json > columns.json\n"
    "  shoal inspect people.csv -k 5 --job > job.toml",
)
@click.argument("file", metavar="FILE")
@click.option("-k", "k", type=int, default=10, show_default=True, help="For the proposed command or job.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--job", "as_job", is_flag=True, help="Print a job file with the proposed roles, to correct and run.")
@options.reading
def command(file: str, k: int, as_json: bool, as_job: bool, **given: Any) -> None:
    """Say what is in FILE, and propose a role for each column.

    For each column: kind, missing and different values, and the share of the records that it alone makes unique. No
    value is shown. The proposals go by names and counts; a person decides.
    """
    if as_json and as_job:
        raise click.UsageError("Ask for --json or for --job, not for both")
    with showing(f"reading {Path(file).name}", "counting columns", "counting combinations") as meter:
        found = inspect(file, progress=meter, **options.taken(given, "reading"))
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=1, ensure_ascii=False))
    elif as_job:
        click.echo(found.job(k).to_toml(), nl=False)
    else:
        click.echo(found.to_text(k))
