"""``shoal plan``: when to start with the records that have arrived, so that the release is ready in time."""

from datetime import datetime, timedelta
from typing import Any

import click
from click.core import ParameterSource

from shoal.cli import options
from shoal.cli.printing import print_json
from shoal.cli.progress import showing
from shoal.errors import ParameterError
from shoal.files import replacing, write_text
from shoal.incremental import VARIANTS
from shoal.incremental.planning import (
    ALPHA,
    Arrivals,
    Measured,
    NearestNeighbours,
    Plan,
    Quadratic,
    Times,
    as_seconds,
    plan,
    spoken,
)
from shoal.interrupts import report_what_is_written
from shoal.job import Job
from shoal.sources import shown

_EXAMPLES = """\b
Examples:
  shoal plan --collection 10h --takes 2h
  shoal plan --collection 10h --takes 2h --deadline 1h --svg timeline.svg
  shoal plan --collection 10h --takes 2h --variant split-end
  shoal plan --collection 10h --takes 2h --ends 20:00 --deadline 20:30
  shoal plan --arrived 0h=0,8h=30%,10h=100% --takes 2h --json
  shoal plan --collection 10h --records 1000000 --measure early.csv -k 10 --quasi-identifiers age,income --other vote
  shoal plan --collection 10h --records 1000000 --measure early.csv --job job.toml
"""


_NO_PART_OF_A_JOB = (
    *("collection", "arrived", "deadline", "ends", "takes", "measure", "records", "seconds", "variant", "alpha"),
    *("as_json", "svg", "force"),
)


@click.command("plan", cls=options.JobCommand, epilog=_EXAMPLES)
@click.option(
    "--collection",
    metavar="DURATION",
    help="Duration of the collection, with evenly arriving records: 10h, 45min, 2days.",
)
@click.option(
    "--arrived", metavar="T=SHARE,..", help="Share of the records that has arrived by each time: 0h=0,8h=30%,10h=100%."
)
@click.option(
    "--deadline", metavar="DURATION|CLOCK", help="Deadline after the end of the collection; a clock time with --ends."
)
@click.option("--ends", metavar="CLOCK", help="When the collection ends: 20:00, or 2026-11-03T20:00.")
@click.option(
    "--variant",
    type=click.Choice(list(VARIANTS)),
    help="How late records join.  [default: two-step with --takes, reopen with --measure]",
)
@click.option(
    "--alpha",
    type=click.FloatRange(min=0, min_open=True),
    help="With --takes and a nearest-neighbour variant: late records take alpha nu (1 - nu) of it.  [default: 0.4]",
)
@click.option(
    "--takes",
    metavar="DURATION",
    help="Duration of the ordinary job on all records, by MDAV, which takes time n squared.",
)
@click.option(
    "--measure",
    metavar="FILE",
    help="Measure the durations instead, for about a minute, on records like those to come.",
)
@click.option("--records", type=click.IntRange(min=2), help="Expected number of records (with --measure).")
@click.option("-k", "k", type=int, help="Smallest cell size (with --measure).")
@options.roles()
@options.models
@options.job_file
@click.option("--seconds", type=click.FloatRange(min=1), default=60.0, show_default=True, help="Time for measuring.")
@options.reading
@options.as_json
@click.option("--svg", metavar="FILE", help="SVG file for the timeline.")
@options.force
@options.no_progress
def command(**given: Any) -> None:
    """Say when to start, and with what share of the records.

    With a deadline: the plan that loses least and is ready in time. Without: the one that is ready first. --takes plans
    by the rule of the literature, for two steps of MDAV or, with --variant, for nearest neighbours; --measure plans by
    a calibration on this machine.
    """
    arrivals, now = _arrivals(given), datetime.now()
    ends = None if given["ends"] is None else _clock(given["ends"], now)
    deadline = None if given["deadline"] is None else _deadline(given["deadline"], ends)
    if ends is not None and ends < now:
        # The collection has ended: start now.
        deadline = deadline and deadline - (now - ends).total_seconds()
        ends = now
    head_start = None if ends is None else (ends - now).total_seconds()
    times = _times(given)
    if ends is not None and deadline is not None and ends + timedelta(seconds=deadline) <= now:
        _refuse_past(deadline, ends, plan(times, arrivals, None, head_start))
    found = plan(times, arrivals, deadline, head_start)
    if given["svg"]:
        from shoal.incremental.planning.timeline_svg import timeline

        report_what_is_written()
        job = [] if given["job"] is None else [given["job"], *Job.load(given["job"]).files]
        inputs = [*job, *([] if given["measure"] is None else [given["measure"]])]
        with replacing(given["svg"], given["force"], inputs=inputs) as temporary:
            write_text(temporary, timeline(found))
    if given["as_json"]:
        print_json(found.json())
    else:
        click.echo("\n".join(_lines(found, ends)))


def _lines(found: Plan, ends: datetime | None) -> list[str]:
    lines = [found.text()]
    if ends is not None:
        start, finish = (ends + timedelta(seconds=seconds) for seconds in (found.start, found.finish))
        lines.append(f"by the clock start {start:%H:%M:%S}, ready {finish:%H:%M:%S}")
    return lines


def _arrivals(given: dict[str, Any]) -> Arrivals:
    if (given["collection"] is None) == (given["arrived"] is None):
        raise click.UsageError("Say when records arrive: --collection for evenly, or --arrived for a curve; not both.")
    if given["collection"] is not None:
        return Arrivals.uniform(as_seconds(given["collection"]))
    points = []
    for part in given["arrived"].split(","):
        moment, _, share = part.partition("=")
        try:
            points.append((as_seconds(moment), float(share.rstrip("%")) / (100 if share.endswith("%") else 1)))
        except ValueError:
            raise click.BadParameter(f"{part!r} has to be TIME=SHARE.", param_hint="--arrived") from None
    return Arrivals.of(points)


def _deadline(text: str, ends: datetime | None) -> float:
    """Return how long after the end of the collection the release has to be out, in seconds."""
    if ":" not in text:
        return as_seconds(text)
    if ends is None:
        raise click.UsageError("A deadline by the clock needs the end of the collection: --ends 20:00.")
    return (_clock(text, ends) - ends).total_seconds()


def _refuse_past(deadline: float, ends: datetime, earliest: Plan) -> None:
    ready = ends + timedelta(seconds=earliest.finish)
    raise ParameterError(
        f"The deadline is {spoken((datetime.now() - ends).total_seconds() - deadline)} in the past. The earliest "
        f"release is ready at {ready:%H:%M:%S} on {ready:%Y-%m-%d}."
    )


def _clock(text: str, day: datetime) -> datetime:
    """Parse a time of day, or a date and time."""
    try:
        if "T" in text or " " in text:
            return datetime.fromisoformat(text)
        moment = datetime.strptime(text, "%H:%M:%S" if text.count(":") == 2 else "%H:%M")
    except ValueError:
        raise ParameterError(f"{text!r} is not a time. Write 20:00, 20:00:30 or 2026-11-03T20:00.") from None
    return day.replace(hour=moment.hour, minute=moment.minute, second=moment.second, microsecond=0)


def _times(given: dict[str, Any]) -> Times:
    measuring = {name: given[name] for name in ("records", "k", "job") if given[name] is not None}
    measuring |= options.with_prefix(given, "role") | options.with_prefix(given, "model") | options.reading_of(given)
    if click.get_current_context().get_parameter_source("seconds") is ParameterSource.COMMANDLINE:
        measuring["seconds"] = given["seconds"]
    if (given["takes"] is None) == (given["measure"] is None):
        raise click.UsageError("Say how long the job takes, --takes 2h, or let it be measured: --measure FILE.")
    if given["takes"] is not None:
        if measuring:
            raise click.UsageError(f"{', '.join(sorted(measuring))} is for --measure, and has no meaning with --takes.")
        return _by_rule(as_seconds(given["takes"]), given["variant"] or "two-step", given["alpha"])
    if given["alpha"] is not None:
        raise click.UsageError("--alpha is for --takes; with --measure the variant itself is timed.")
    return _measured(given)


def _by_rule(seconds: float, variant: str, alpha: float | None) -> Times:
    """Return the durations of a variant by the thesis's rule."""
    if variant == "reopen":
        raise click.UsageError("There is no rule for the times of reopen. Choose another --variant, or --measure FILE.")
    if variant != "two-step":
        return NearestNeighbours(seconds, variant, ALPHA if alpha is None else alpha)
    if alpha is not None:
        raise click.UsageError("--alpha is for the variants nearest, split-mid and split-end.")
    return Quadratic(seconds)


def _measured(given: dict[str, Any]) -> Measured:
    """Measure the durations with the records of a file."""
    from shoal.incremental.rehearsal import rehearse

    if given["records"] is None or (given["k"] is None and given["job"] is None):
        raise click.UsageError(
            "--measure needs --records, the expected number of records, and -k with roles, or --job."
        )
    job = options.job_of(given, beside=_NO_PART_OF_A_JOB)
    reading = (job.input.reading() if job.input else {}) | options.reading_of(given)
    with showing(f"reading {shown(given['measure'])}", "", f"measuring for about {spoken(given['seconds'])}") as meter:
        meter(1, 1)
        return rehearse(
            given["measure"],
            job,
            given["records"],
            variant=given["variant"] or (job.late and job.late.variant) or "reopen",
            seconds=given["seconds"],
            reading=reading,
        )
