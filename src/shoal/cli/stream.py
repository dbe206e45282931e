"""``shoal stream``: lines in, k-anonymous lines out, within a bounded delay."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from functools import partial
from logging import getLogger
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from shoal.cli import options
from shoal.cli import parsing as typed
from shoal.errors import ParameterError
from shoal.job import Job, StreamSettings
from shoal.stream import Summary
from shoal.stream.from_job import stream_of
from shoal.stream.logs import logging_to_stderr
from shoal.stream.monitor import Monitor
from shoal.stream.pipe.ends import PipeEnds
from shoal.stream.pipe.lines import LINE, LineForm, LineReading
from shoal.stream.pipe.loop import Ending, Pipe, watch_every

F = TypeVar("F", bound=Callable[..., Any])
log = getLogger("shoal.stream")

EXAMPLES = """\b
Examples:
  producer | shoal stream -k 10 --quasi-identifiers age,income --delay 100 | consumer
  shoal stream -k 10 --quasi-identifiers age,zip --kind zip=nominal --delay 1000 -i in.ndjson.gz -o out.ndjson
  shoal stream -k 5 --quasi-identifiers lat,lon --delay 500 --max-age 30 --side side.ndjson --checkpoint state/ --csv
"""


def rules(function: F) -> F:
    """Add the options of the stream itself."""
    for add in reversed(
        (
            click.option("-k", "k", type=click.IntRange(min=2), help="Smallest cell."),
            click.option(
                "--job", metavar="JOB.toml", help="Take k, roles, models and all of [stream] from a job file."
            ),
            options.settings(StreamSettings),
            click.option(
                "--ranges",
                "ranges",
                multiple=True,
                metavar="COLUMN=LOW:HIGH",
                help="Range that counts as one unit of distance.",
            ),
            options.models,
            options.roles("identifiers", "quasi_identifiers", "confidential", "other", "subject"),
            options.columns("kind", "categories", "weight"),
            options.settings(Job, "missing"),
            click.option("--seed", "job__seed", metavar="NUMBER", help="Accepted everywhere; nothing here is random."),
            click.option(
                "--metrics",
                type=click.IntRange(0, 65535),
                metavar="PORT",
                help="Serve /metrics, /health and /ready on this port of 127.0.0.1.",
            ),
        )
    ):
        function = add(function)
    return function


@click.command("stream", cls=options.JobCommand, epilog=EXAMPLES)
@rules
@click.option("-i", "--input", "source", help="File to read, also gzip or zstd; stdin by default.")
@click.option("-o", "--output", help="File to write, compressed if it ends in .gz or .zst; stdout by default.")
@click.option("--csv", "is_csv", is_flag=True, help="Lines are CSV with a header, not NDJSON.")
@click.option("--delimiter", default=",", show_default=True, help="Delimiter of CSV.")
@click.option("--side", help="File for tuples that cannot be released, with the reason. They are unprotected.")
@click.option(
    "--checkpoint",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the state of a stopped stream, to resume from.",
)
@click.option("--checkpoint-every", type=click.IntRange(min=1), default=1_000_000, show_default=True, metavar="TUPLES")
@options.force
@click.option(
    "--drain",
    type=click.FloatRange(min=0),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Time after a stop within which what was read has to be delivered.",
)
@click.option("--stats", is_flag=True, help="Show progress on stderr.")
@click.option("--log", "log_form", type=click.Choice(["text", "json"]), help="Write events to stderr, one per line.")
def command(**given: Any) -> None:
    """Make a stream of lines k-anonymous.

    Every tuple waits until it is due, and is released with its nearest neighbours in a cell of at least k that look the
    same. Tuples that cannot be released safely go to the side output and are counted. SIGTERM and Ctrl-C end the
    stream: everything that was read is released or, with a checkpoint, kept for the next run.
    """
    stream = stream_of(job_of(given, beside=_OF_A_RUN), LINE)
    _refuse_without_effect(given)
    form = LineForm.CSV if given["is_csv"] else LineForm.NDJSON
    if len(given["delimiter"]) != 1:
        raise ParameterError("The delimiter is one character.")
    reading = LineReading(stream.rules, form, given["delimiter"])
    is_json = given["log_form"] == "json"
    live = sys.stderr.isatty() and not is_json
    tell = _log_progress if is_json else partial(_tell, live=live)
    watching = watch_every(1.0 if live else 10.0, tell) if given["stats"] else None
    ends = PipeEnds(
        given["source"],
        given["output"],
        given["side"],
        given["checkpoint"],
        given["checkpoint_every"],
        given["force"],
        given["drain"],
        given["job"],
    )
    with observed(given["log_form"], given["metrics"], stream=Path(given["source"] or "stdin").name) as monitor:
        pipe = Pipe(stream, reading, ends, watching, monitor)
        ending = pipe.run()
        log.info("ended", extra={"facts": {"ending": str(ending), **asdict(pipe.stream.summary())}})
        if not is_json:
            _conclude(ending, pipe, given["stats"])


def _refuse_without_effect(given: dict[str, Any]) -> None:
    """Raise if an option has no effect without another one, or a file of CSV is to be read as NDJSON."""
    source = click.get_current_context().get_parameter_source
    for name, needed, other in (("delimiter", "is_csv", "--csv"), ("checkpoint_every", "checkpoint", "--checkpoint")):
        if source(name) is ParameterSource.COMMANDLINE and not given[needed]:
            raise click.UsageError(
                f"--{name.replace('_', '-')} has no effect without {other}. Add that, or leave it out."
            )
    if given["source"] and not given["is_csv"] and _CSV_NAME.search(given["source"]):
        raise click.UsageError(
            f"The name of the input, {Path(given['source']).name!r}, says that it is CSV, and lines are read as NDJSON."
            " Add --csv, or rename the file."
        )


_CSV_NAME = re.compile(r"\.(csv|tsv)(\.gz|\.zst)?$", re.IGNORECASE)
_FILES = ("source", "output", "side", "checkpoint", "checkpoint_every", "force")
_OF_A_RUN = (*_FILES, "is_csv", "delimiter", "drain", "stats")


@contextmanager
def observed(form: Any, port: int | None, **labels: str) -> Iterator[Monitor]:
    """Write events to stderr, and serve the figures of a stream, which the labels name."""
    with logging_to_stderr(form) if form else nullcontext():
        monitor = Monitor(port, labels=labels)
        try:
            yield monitor
        finally:
            monitor.close()


def job_of(given: dict[str, Any], beside: tuple[str, ...], **further: Any) -> Job:
    """Return the job of ``--job``, or the one that the options describe; `further` goes into its table [stream].

    The options in `beside` are about one run, not about the stream.
    """
    if given["job"] is not None:
        return options.job_of(given, beside=("metrics", "log_form", *beside))
    dates = [name for name, column in options.column_settings(given).items() if column.get("kind") == "date"]
    ranges = dict(_range(text, dates) for text in given["ranges"])
    return options.job_of(given, stream={**options.settings_of(given, StreamSettings), "ranges": ranges, **further})


def _range(text: str, dates: list[str]) -> tuple[str, tuple[Any, Any]]:
    name, value = typed.column_and_value(text, "--ranges")
    low, _, high = value.partition("..") if ".." in value else value.partition(":")
    try:
        return name, (low, high) if name in dates else (float(low), float(high))
    except ValueError:
        raise ParameterError(f"The range of column {name!r} is two numbers, as in --ranges {name}=0:120.") from None


def _tell(summary: Summary, seconds: float, live: bool) -> None:
    rate = summary.n_in / max(seconds, 1e-9)
    il = "" if summary.il is None else f", loss {100 * summary.il:.2f} %"
    line = (
        f"{summary.n_in:,} in, {summary.n_released:,} released, {summary.n_side:,} aside, {summary.n_buffered:,} "
        f"waiting, {rate:,.0f}/s, delay {summary.delay_mean:.0f} (at most {summary.delay_max}){il}"
    )
    click.echo(f"\r\x1b[K{line}" if live else line, err=True, nl=not live)


def _log_progress(summary: Summary, seconds: float) -> None:
    log.info("progress", extra={"facts": asdict(summary)})


def _conclude(ending: Ending, pipe: Pipe, stats: bool) -> None:
    """Report what happened to the tuples, where there is something to report."""
    summary = pipe.stream.summary()
    if stats:
        if sys.stderr.isatty():
            click.echo("", err=True)
        click.echo(json.dumps(asdict(summary)), err=True)
    if summary.n_side:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in summary.reasons.items())
        click.echo(f"{summary.n_side:,} of {summary.n_in:,} tuples could not be released ({reasons}).", err=True)
    if ending is Ending.CLOSED:
        click.echo(
            f"The reader of the output is gone; {summary.n_buffered:,} tuples that waited were not released.", err=True
        )
        # Python would fail on the closed pipe again at exit.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if ending is Ending.STOPPED:
        where = f"{summary.n_buffered:,} tuples wait in the checkpoint" if pipe.ends.checkpoint else "all is released"
        cut = f" The beginning of that line ({pipe.n_cut:,} bytes) was read and dropped." if pipe.n_cut else ""
        click.echo(f"Stopped before line {pipe.next_line:,} of the input; {where}.{cut}", err=True)
