"""``shoal anonymize``: from a file to a release, its report and its manifests."""

from typing import Any

import click

from shoal.cli import options
from shoal.cli.execute import run_and_tell
from shoal.job import Job, Output
from shoal.sources import databases_in_words, formats_in_words

_EXAMPLES = """\b
Examples:
  shoal anonymize people.csv -k 10 --quasi-identifiers age,zip,income --confidential diagnosis --identifiers name,ssn \\
      -o release.parquet --report report.html
  shoal anonymize people.csv -k 5 --quasi-identifiers age,zip,sex --other wave --by region --kind zip=nominal \\
      --round age=0 --missing own-value -o release.csv --dry-run
  shoal anonymize visits.parquet -k 10 --quasi-identifiers age,height --subject patient --confidential diagnosis \\
      -o release.parquet --save-job job.toml
  shoal anonymize people.csv -k 10 --quasi-identifiers age,zip --confidential salary,diagnosis --identifiers name \\
      --t-closeness salary=0.1 --l-diversity diagnosis=3,kind=entropy -o release.parquet
  shoal anonymize people.csv -k 10 --quasi-identifiers age,job,zip --confidential diagnosis --identifiers name \\
      --truthful --hierarchy job=isco.csv --hierarchy zip=prefix:1,3 -o release.csv
  shoal anonymize people.csv -k 10 --quasi-identifiers age,job,zip --confidential diagnosis --identifiers name \\
      --aggregate age=interval --step age=5 --aggregate job=set -o release.csv
  shoal anonymize postgresql://db.example.org/census --table people -k 10 --quasi-identifiers age,zip \\
      --identifiers name -o postgresql://db.example.org/census --to-table release
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
@options.settings(Output)
@options.roles()
@options.models
@options.settings(Job)
@options.threads
@options.columns()
@options.reading
@click.option("--save-job", metavar="FILE", help="Write the job, with its seed, to a file that `shoal run` repeats.")
@options.force
@options.dry_run
@options.quiet
def command(file: str, output: str | None, **given: Any) -> None:
    """Make FILE k-anonymous.

    Every column needs a role: --quasi-identifiers for what somebody could know about a person (grouped and replaced),
    --identifiers for what names a person (dropped), --confidential and --other for what is published unchanged. `shoal
    inspect FILE` proposes them. Separate names by commas, or repeat the option; a name with a comma goes in double
    quotes: --other '"a,b",c'.

    Models guarantee more about a confidential column than k does; a model that cannot be met is refused: --t-closeness
    salary=0.1. Further settings of a model follow after a comma: --l-diversity diagnosis=2,kind=recursive,c=3.

    With --truthful, what is published is true of everybody in the class: an interval of numbers, a set of categories or
    their common ancestor in a --hierarchy, a period of dates. --aggregate chooses one for a column (docs/truthful.md).

    RELEASE.public.json and RELEASE.internal.json are written beside the release: the first may accompany it, the second
    repeats it and must not be published. In a database, the table shoal_manifest holds the first; the second is a file.
    """
    if output is None:
        raise click.UsageError("Name the output file: -o release.parquet")
    files = {"path": output, **options.settings_of(given, Output)}
    job = options.job_of(given, input={"path": file, **options.reading_of(given)}, output=files)
    run_and_tell(
        job,
        force=given["force"],
        dry_run=given["dry_run"],
        save_job=given["save_job"],
        threads=given["threads"],
    )
