"""``shoal collect``: a release that is started before all records have arrived."""

from pathlib import Path
from typing import Any

import click

from shoal.cli import options
from shoal.cli.execute import tell
from shoal.cli.printing import facts, telling
from shoal.cli.progress import showing
from shoal.incremental import VARIANTS
from shoal.incremental.collection import Collection, begin
from shoal.interrupts import report_what_is_written
from shoal.job import Job, Output, Writing
from shoal.output.destination import Destination
from shoal.output.report.formatting import counted
from shoal.sources import shown
from shoal.sources.clean import printable

_EXAMPLES = """\b
Examples:
  shoal collect begin evening early.csv -k 10 --quasi-identifiers age,district --confidential vote --identifiers name
  shoal collect begin evening early.csv -k 10 --quasi-identifiers age --confidential salary --t-closeness salary=0.1
  shoal collect begin evening early.csv --job job.toml
  shoal collect add evening late.csv
  shoal collect status evening
  shoal collect finish evening -o release.parquet --report report.html
"""


@click.group("collect", epilog=_EXAMPLES)
def command() -> None:
    """Start before all records have arrived; publish once, or by a key several times.

    `begin` stores the records that have arrived in a folder that only you can read, and makes their cells. `add` stores
    later records. `finish` joins them and makes the one release; `shoal plan` says when to begin. With --key it may be
    followed by further `add` and `finish`: releases of a series (docs/series.md).
    """


@command.command("begin", cls=options.JobCommand, epilog=_EXAMPLES)
@click.argument("folder", metavar="FOLDER")
@click.argument("file", metavar="FILE")
@click.option("-k", "k", type=int, help="Smallest cell size, at least 2.")
@options.roles()
@options.models
@options.job_file
@click.option("--variant", type=click.Choice(list(VARIANTS)), help="How late records join.  [default: reopen]")
@click.option(
    "--inertial", is_flag=True, help="Prefer small cells by the inertial coefficient (nearest-neighbour variants)."
)
@options.settings(
    Job, "method", "options", "scaling", "missing", "seed", "codes", "numbers", "kinds", "accept", "steer"
)
@options.threads
@options.columns()
@options.reading
@options.quiet
def _begin(folder: str, file: str, **given: Any) -> None:
    """Begin the collection FOLDER with the records of FILE."""
    job = options.job_of(given, beside=("variant", "inertial", "threads"))
    reading = (job.input.reading() if job.input else {}) | options.reading_of(given)
    with telling(), showing(f"reading {shown(file)}", "grouping records", "writing") as meter:
        begin(
            folder,
            file,
            job,
            variant=given["variant"],
            inertial=given["inertial"],
            threads=given["threads"],
            progress=meter,
            reading=reading,
        )
    _tell(Collection.open(folder))


@command.command("resume")
@click.argument("folder", metavar="FOLDER")
@options.threads
@options.quiet
def _resume(folder: str, threads: int | None) -> None:
    """Make the cells of the base if `begin` was interrupted."""
    collection = Collection.open(folder)
    with showing("reading the collection", "grouping records", "writing") as meter:
        collection.partition_base(threads=threads, progress=meter)
    _tell(collection)


@command.command("add")
@click.argument("folder", metavar="FOLDER")
@click.argument("file", metavar="FILE")
@click.option("--allow-overlap", is_flag=True, help="Accept records that equal earlier ones, as different people.")
@options.reading
@options.quiet
def _add(folder: str, file: str, allow_overlap: bool, **given: Any) -> None:
    """Add the records of FILE, which have arrived since."""
    collection = Collection.open(folder)
    with telling(), showing(f"reading {shown(file)}", "", ""):
        collection.add(file, allow_overlap=allow_overlap, **options.reading_of(given))
    _tell(collection)


@command.command("status")
@click.argument("folder", metavar="FOLDER")
def _status(folder: str) -> None:
    """Show the state of the collection."""
    _tell(Collection.open(folder))


@command.command("finish", epilog=_EXAMPLES)
@click.argument("folder", metavar="FOLDER")
@click.option("-o", "--output", metavar="FILE", required=True, help="The release; the ending decides the format.")
@click.option("-k", "k", type=int, help="If given, must be the k given to `begin`.")
@options.settings(Output, "to_table", "manifest", "order", "report", "json_file", "releases")
@options.settings(Job, "may_withhold")
@options.threads
@options.force
@options.quiet
def _finish(folder: str, output: str, k: int | None, threads: int | None, force: bool, **given: Any) -> None:
    """Join the late records and write the release; of a collection with a key, each time records have been added."""
    collection = Collection.open(folder)
    asked = Writing.of(path=output, **options.settings_of(given, Output))
    destination = Destination.of(asked, force=force, has_cells=collection.job.is_of_series)
    own = [path for path in Path(folder).iterdir() if path.is_file()]
    destination.check_free([*collection.job.files, *own])
    with telling(), showing("reading the collection", "grouping records", "measuring and writing") as meter:
        collection.partition_base(threads=threads, progress=meter)
        report_what_is_written()
        release = collection.finish(
            k, **options.settings_of(given, Job), output=destination, threads=threads, progress=meter
        )
    tell(release, destination.places)


def _tell(collection: Collection) -> None:
    base, *late = collection.n_records
    batches = counted(len(late), "batch")
    with_inertia = ", inertial" if collection.inertial else ""
    facts(
        {
            "base": f"{base:,} records, k = {collection.job.k}, {collection.job.method}",
            **{f"{model.name}: {printable(model.column)}": model.promise for model in collection.job.models},
            "cells": "made"
            if collection.is_partitioned
            else "not made yet; if `begin` was interrupted, `resume` makes them",
            "late": f"{sum(late):,} records in {batches}, to join by {collection.variant}{with_inertia}",
            "release": _release_in_words(collection),
        }
    )


def _release_in_words(collection: Collection) -> str:
    if collection.job.roles.key is None:
        return "made; nothing can be added" if collection.is_finished else "not made yet"
    made = counted(collection.n_released, "release")
    return f"{made} made" + (
        "" if collection.is_finished else "; records have been added since" * bool(collection.n_released)
    )
