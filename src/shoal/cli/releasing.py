"""Releasing: a job is carried out and told about, in the same way for every command that makes a release."""

import warnings
from collections.abc import Iterable
from pathlib import Path

import click

from shoal.auditing import Verdict
from shoal.cli.progress import showing
from shoal.cli.text import counted, facts
from shoal.errors import ParameterError, ShoalWarning
from shoal.files import check_free, replacing_all
from shoal.grouping import strata_of
from shoal.job import Job
from shoal.prepare import prepare
from shoal.release import Release, files_of, run
from shoal.schema import Role, Schema
from shoal.space import as_cell_size
from shoal.table import read


def carry_out(
    job: Job, *, force: bool = False, dry_run: bool = False, save_job: str | None = None, threads: int | None = None
) -> None:
    """Make and write the release of a job and say what came of it, or only say what would be done."""
    if job.input is None or job.output is None:
        raise ParameterError(
            "The job has to name the file to read, [input] path, and the file to write, [output] path."
        )
    files = files_of(job.output.path, job.output.report, job.output.json_file)
    files += [Path(save_job)] if save_job else []
    check_free(files, force)
    if dry_run:
        tell_plan(job, files)
        return
    release = released(job, force=force, threads=threads)
    if save_job:
        with replacing_all([save_job], force, private=[save_job]) as (temporary,):
            temporary.write_text(release.job.to_toml(), encoding="utf-8")
    tell(release, files)


def released(job: Job, *, force: bool = False, threads: int | None = None) -> Release:
    """Make and write the release of a job; warnings are for `tell`."""
    assert job.input is not None
    name = Path(job.input.path).name
    with warnings.catch_warnings(), showing(f"reading {name}", "grouping records", "measuring and writing") as meter:
        warnings.simplefilter("ignore", ShoalWarning)
        return run(job, force=force, threads=threads, progress=meter)


def tell(release: Release, files: Iterable[Path]) -> None:
    """Print what was made, on standard error what to look at before it is published."""
    job, verdict = release.job, release.verdict
    facts(
        {
            "records": f"{verdict.n_records:,}",
            "method": f"{job.method}, k = {job.k}",
            "verdict": verdict_in_words(verdict),
            "classes": f"{verdict.n_classes:,}, of {min(verdict.sizes):,} to {max(verdict.sizes):,} records",
            "information loss": f"{release.loss.il:.4f} %",
            "linked": f"{100 * release.risk.linkage.dld:.2f} % of the records have their own original as the nearest",
            "written": ", ".join(map(str, files)),
        }
    )
    for text in release.warnings:
        click.echo(f"Warning: {text}", err=True)


def verdict_in_words(verdict: Verdict) -> str:
    """Say what the recount found."""
    if verdict.withdrawn is not None:
        return f"not k-anonymous: {verdict.withdrawn}"
    if verdict.k is None:
        return f"the smallest class has {counted(verdict.smallest, 'record')}"
    if verdict.holds:
        who = "different subjects" if verdict.subject_asked else "records"
        least = verdict.subjects if verdict.subject_asked else verdict.smallest
        return f"holds: every class has at least {least} {who}"
    if verdict.smallest >= verdict.k:
        return f"does not hold: a class has {counted(verdict.subjects or 0, 'different subject')}, not {verdict.k}"
    return (
        f"does not hold: {verdict.n_below:,} of {verdict.n_records:,} records are in classes smaller than {verdict.k}"
    )


def tell_plan(job: Job, files: Iterable[Path]) -> None:
    """Print what would be done, having checked all that can be checked before cells are made."""
    assert job.input is not None
    with showing(f"reading {Path(job.input.path).name}", "") as _:
        table = read(job.input.path, **job.input.reading())
    schema = Schema.of(table.types, job.roles, job.columns)
    k = as_cell_size(job.k, table.n_records)
    strata, _ = strata_of(prepare(table.load(schema.needed), schema, job.missing), schema, k)
    lines = {
        "would read": f"{job.input.path}: {table.n_records:,} records, {len(table.names)} columns",
        "would group": f"by {job.method}, k = {k}, in {counted(int(strata.max()) + 1, 'stratum', 'strata')}",
    }
    for role in Role:
        named = [f"{c.name} ({c.kind})" if role is Role.QUASI else c.name for c in schema.having(role)]
        if named:
            lines[str(role)] = ", ".join(named)
    helpers = {"subject": job.roles.subject, "household": job.roles.household, "weights": job.roles.weights}
    lines |= {title: name for title, name in helpers.items() if name}
    facts({**lines, "would write": ", ".join(map(str, files))})
    click.echo("Nothing was written.")
