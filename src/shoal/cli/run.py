"""``shoal run``: runs a job file."""

import click

from shoal.cli import options
from shoal.cli.execute import run_and_tell
from shoal.job import Job


@click.command(
    "run",
    cls=options.JobCommand,
    epilog="\b\nExamples:\n  shoal run job.toml\n  shoal run job.toml --dry-run\n"
    "  shoal run job.toml --json > made.json",
)
@click.argument("job", metavar="JOB.toml")
@options.threads
@options.force
@options.dry_run
@options.as_json
@options.quiet
def command(job: str, threads: int | None, force: bool, dry_run: bool, as_json: bool) -> None:
    """Run a job file.

    `shoal anonymize ... --save-job JOB.toml` writes one. With the same seed and input, the release is the same byte for
    byte. Paths in the file are relative to the current folder.
    """
    run_and_tell(Job.load(job), file=job, force=force, dry_run=dry_run, threads=threads, as_json=as_json)
