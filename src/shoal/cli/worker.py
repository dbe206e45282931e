"""``shoal worker``: a k-anonymous stream between two Redis Streams."""

import os
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from shoal.cli.stream import job_of, observed, rules
from shoal.distribution import install
from shoal.errors import ParameterError
from shoal.interrupts import asking
from shoal.job import RedisSettings
from shoal.stream.from_job import stream_of

if TYPE_CHECKING:
    from redis import Redis

EXAMPLES = """\b
Examples:
  shoal worker --redis redis://localhost:6379 --from visits --to visits-safe -k 10 --delay 100 --quasi age,income
  shoal worker --from visits --to visits-safe --side visits-aside -k 10 --delay 1000 --quasi age --subject id
"""
URL, USER, PASSWORD = "SHOAL_REDIS_URL", "SHOAL_REDIS_USERNAME", "SHOAL_REDIS_PASSWORD"
_ANSWER = 5.0  # seconds without an answer from Redis that count as an outage


@click.command("worker", epilog=EXAMPLES)
@click.option(
    "--redis",
    "url",
    envvar=URL,
    help=f"Address of Redis, by default redis://localhost:6379; or {URL}. A password comes from {PASSWORD}.",
)
@click.option("--from", "source", help="Stream to read; each entry holds a JSON object in its field `data`.")
@click.option("--to", "target", help="Stream to write.")
@click.option("--side", help="Stream for tuples that cannot be released, with the reason. They are unprotected.")
@click.option("--group", default="shoal", show_default=True, help="Consumer group; one worker at a time serves it.")
@click.option("--batch", type=click.IntRange(min=1), default=1000, show_default=True, help="Entries per step.")
@click.option("--until-empty", is_flag=True, help="End when nothing is left: release everything and stop.")
@click.option(
    "--finish",
    is_flag=True,
    help="Read nothing, release what waits and end. The next worker may have other rules, in the same group.",
)
@click.option("--begin", metavar="first|group|ID", help="Where to begin if Redis does not say; see the message.")
@click.option(
    "--lease",
    type=click.FloatRange(min=0.05),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Time after which another worker takes over from one that no longer responds.",
)
@click.option(
    "--patience",
    type=click.FloatRange(min=0),
    default=900.0,
    show_default=True,
    metavar="SECONDS",
    help="Maximum time to wait out an outage of Redis.",
)
@click.option(
    "--to-length",
    "target_length",
    type=click.IntRange(min=1),
    help="Trim the stream that is written to about this length.",
)
@click.option("--side-length", type=click.IntRange(min=1), help="Trim the side stream to about this length.")
@click.option("--trim-source", is_flag=True, help="Remove entries from the source once they are committed.")
@click.option(
    "--log",
    "log_form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Format of the events on stderr, one per line.",
)
@rules
def command(**given: Any) -> None:
    """Make a Redis Stream k-anonymous.

    Released tuples, side output and state are committed together, so that a crash at any moment neither loses nor
    duplicates a tuple. A worker that is started again resumes; a second one stands by. SIGTERM and Ctrl-C end it after
    the current step; waiting tuples are kept in Redis.
    """
    try:
        from shoal.stream.redis_worker import ID, Limits, Names, Worker
    except ModuleNotFoundError:
        raise ParameterError(f"The worker needs redis: {install('redis')}.") from None

    lacking = [flag for name, flag in (("source", "--from"), ("target", "--to")) if given[name] is None]
    if given["job"] is None and lacking:
        raise click.UsageError(f"Name the streams of Redis that are read and written; missing: {' and '.join(lacking)}")
    if given["finish"] and given["until_empty"]:
        raise click.UsageError("--finish reads nothing, and --until-empty reads everything. Give one of them.")
    job = job_of(given, beside=("until_empty", "finish", "begin", "url"), redis=_places(given))
    stream = stream_of(job, ID)
    places = None if job.stream is None else job.stream.redis
    if places is None:
        raise ParameterError("The job has no table [stream.redis]. Say there which stream is read and which written.")
    limits = Limits(**{name: getattr(places, name) for name in Limits.__dataclass_fields__})
    names = Names(places.source, places.target, places.side, places.group)
    observing = observed(given["log_form"], given["metrics"], stream=names.source, group=names.group)
    with observing as monitor, _connection(given["url"] or places.url) as redis:
        worker = Worker(redis, stream, names, limits=limits, begin=given["begin"], monitor=monitor)
        with asking(worker.stop):
            worker.run(until_empty=given["until_empty"], finish=given["finish"])


def _places(given: dict[str, Any]) -> dict[str, Any]:
    """Return the Redis options as the table of a job."""
    names = {name: field.alias or name for name, field in RedisSettings.model_fields.items() if name != "url"}
    return {alias: given[name] for name, alias in names.items() if given[name] is not None}


def _connection(url: str) -> "Redis":
    """Connect without retries: the worker itself handles outages."""
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    said_here = click.get_current_context().get_parameter_source("url") is ParameterSource.COMMANDLINE
    if said_here and "@" in url.split("://", 1)[-1].split("/", 1)[0]:
        raise ParameterError(
            f"The address of Redis holds a user or password, which everybody on this machine can see on the command "
            f"line. Put the address into the environment ({URL}), or only the password ({PASSWORD}, {USER})."
        )
    secret = {"username": os.environ.get(USER), "password": os.environ.get(PASSWORD)}
    try:
        return Redis.from_url(
            url,
            retry=Retry(NoBackoff(), 0),
            socket_timeout=_ANSWER,
            socket_connect_timeout=_ANSWER,
            **{name: value for name, value in secret.items() if value},
        )
    except ValueError:
        raise ParameterError(
            "The address of Redis is redis://, rediss:// or unix://, as in redis://host:6379."
        ) from None
