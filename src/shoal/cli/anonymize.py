"""``shoal anonymize``: from a file to a release, its report and its manifests."""

from typing import Any, get_args

import click

from shoal.cli import options
from shoal.cli.execute import run_and_tell
from shoal.job import BoundEffort, Engine, Job, Order
from shoal.sources import databases_in_words, formats_in_words
from shoal.spelling import number

_EXAMPLES = """\b
Examples:
  shoal anonymize people.csv -k 10 --quasi age,zip,income --confidential diagnosis --drop name,ssn \\
      -o release.parquet --report report.html
  shoal anonymize people.csv -k 5 --quasi age,zip,sex --other wave --by region --kind zip=nominal --round age=0 \\
      --missing own-value -o release.csv --dry-run
  shoal anonymize visits.parquet -k 10 --quasi age,height --subject patient --confidential diagnosis \\
      -o release.parquet --save-job job.toml
  shoal anonymize people.csv -k 10 --quasi age,zip --confidential salary,diagnosis --drop name \\
      --t-closeness salary=0.1 --l-diversity diagnosis=3,kind=entropy -o release.parquet
  shoal anonymize people.csv -k 10 --quasi age,job,zip --confidential diagnosis --drop name --truthful \\
      --hierarchy job=isco.csv --hierarchy zip=prefix:1,3 -o release.csv
  shoal anonymize people.csv -k 10 --quasi age,job,zip --confidential diagnosis --drop name \\
      --aggregate age=interval --step age=5 --aggregate job=set -o release.csv
  shoal anonymize postgresql://db.example.org/census --table people -k 10 --quasi age,zip --drop name \\
      -o postgresql://db.example.org/census --to-table release
"""


@click.command("anonymize", epilog=_EXAMPLES)
@click.argument("file", metavar="FILE")
@click.option("-k", "k", type=int, required=True, help="Smallest cell size, at least 2.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help=f"The release: {formats_in_words()} by its ending, a {databases_in_words()} database with --to-table, or - "
    "for standard output with --manifest.",
)
@click.option("--to-table", metavar="TABLE", help="New table of the database for the release: NAME or SCHEMA.NAME.")
@click.option("--manifest", metavar="FILE", help="File for the internal manifest; by default beside the release.")
@click.option("--to-format", metavar="FORMAT", help="Of the release on standard output: csv, ndjson, parquet ..")
@options.roles()
@options.models
@click.option("--report", metavar="FILE", help="HTML file for the report.")
@click.option("--json", "json_file", metavar="FILE", help="JSON file with what the report says.")
@click.option(
    "--internal/--public",
    default=None,
    help="Form of the report; the public one shows nothing of the original.  [default: internal]",
)
@click.option(
    "--bound",
    type=click.Choice(get_args(BoundEffort)),
    help="Add a lower bound of the loss to the report: cheap for any number of records, strong for some "
    "thousands, within a minute.",
)
@click.option("--title", help="Title of the report.")
@click.option("--author", help="Who is responsible for the release; shown in the report.")
@click.option("--date", help="Date in the report; never taken from the clock, so that a job repeats exactly.")
@click.option(
    "--order",
    type=click.Choice(get_args(Order)),
    default="shuffle",
    show_default=True,
    help="Order of the published records; that of the input can reveal who is who.",
)
@options.method
@options.objective
@click.option(
    "--rho",
    metavar="NUMBER|song",
    callback=lambda ctx, parameter, value: None if value is None else number(value),
    help="Random aggregation of numbers, 0 to 1; above 0 the release is NOT k-anonymous (docs/random.md).",
)
@click.option(
    "--engine",
    type=click.Choice(get_args(Engine)),
    help="What makes the release: memory, disk for files larger than memory, or spark.  [default: memory]",
)
@click.option("--memory", metavar="SIZE", help="How much memory the engine disk may use, such as 2GB; chooses it.")
@options.making
@options.truth
@options.columns()
@options.reading
@click.option("--save-job", metavar="FILE", help="Write the job, with its seed, to a file that `shoal run` repeats.")
@click.option("--force", is_flag=True, help="Replace existing files.")
@click.option("--dry-run", is_flag=True, help="Check everything and say what would be done; write nothing.")
def command(file: str, k: int, output: str | None, **given: Any) -> None:
    """Make FILE k-anonymous.

    Every column needs a role: --quasi for what somebody could know about a person (grouped and replaced), --drop for
    what names a person, --confidential and --other for what is published unchanged. `shoal inspect FILE` proposes them.
    Separate names by commas, or repeat the option; a name with a comma goes in double quotes: --quasi '"a,b",c'.

    Models guarantee more about a confidential column than k does; a model that cannot be met is refused: --t-closeness
    salary=0.1. Further settings of a model follow after a comma: --l-diversity diagnosis=2,kind=recursive,c=3.

    With --truthful, what is published is true of everybody in the class: an interval of numbers, a set of categories or
    their common ancestor in a --hierarchy, a period of dates. --aggregate chooses one for a column (docs/truthful.md).

    RELEASE.public.json and RELEASE.internal.json are written beside the release: the first may accompany it, the second
    repeats it and must not be published. In a database, the table shoal_manifest holds the first; the second is a file.
    """
    if output is None:
        raise click.UsageError("Name the output file: -o release.parquet")
    if given["internal"] is not None and not (given["report"] or given["json_file"]):
        raise click.UsageError("--internal and --public are forms of a report; ask for one: --report report.html")
    if given["bound"] and (given["internal"] is False or not (given["report"] or given["json_file"])):
        raise click.UsageError("--bound stands in the internal report; ask for one: --report report.html")
    job = Job.of(
        k=k,
        method=given["method"],
        objective=given["objective"],
        scaling=given["scaling"],
        missing=given["missing"],
        rho=given["rho"],
        truthful=given["truthful"],
        intervals=given["intervals"],
        seed=given["seed"],
        roles=options.taken(given, "role"),
        columns=options.column_settings(given),
        models=options.models_of(given),
        accept=given["accept"],
        steer=options.steering_of(given),
        options=options.method_options(given["options"]),
        engine=given["engine"],
        memory=given["memory"],
        input={"path": file, **options.reading_of(given)},
        output={
            "path": output,
            "to_table": given["to_table"],
            "manifest": given["manifest"],
            "to_format": given["to_format"],
            "order": given["order"],
            "report": given["report"],
            "form": "public" if given["internal"] is False else "internal",
            "json": given["json_file"],
            "bound": given["bound"],
            **{name: given[name] for name in ("title", "author", "date")},
        },
    )
    run_and_tell(
        job,
        force=given["force"],
        dry_run=given["dry_run"],
        save_job=given["save_job"],
        threads=given["threads"],
    )
