"""``shoal worker``: a k-anonymous stream between two Redis Streams."""

import os
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from shoal.cli import options
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
  shoal worker --url redis://localhost:6379 --from visits --to safe -k 10 --delay 100 --quasi-identifiers age,income
  shoal worker --from visits --to safe --side aside -k 10 --delay 1000 --quasi-identifiers age --subject id
"""
URL, USER, PASSWORD = "SHOAL_REDIS_URL", "SHOAL_REDIS_USERNAME", "SHOAL_REDIS_PASSWORD"
_ANSWER = 5.0  # seconds without an answer from Redis that count as an outage


@click.command("worker", cls=options.JobCommand, epilog=EXAMPLES)
@click.option(
    "--url",
    "url",
    envvar=URL,
    help=f"Address of Redis, by default redis://localhost:6379; or {URL}. A password comes from {PASSWORD}.",
)
@options.settings(RedisSettings)
@click.option("--until-empty", is_flag=True, help="End when nothing is left: release everything and stop.")
@click.option(
    "--finish",
    is_flag=True,
    help="Read nothing, release what waits and end. The next worker may have other rules, in the same group.",
)
@click.option("--begin", metavar="first|group|ID", help="Where to begin if Redis does not say; see the message.")
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
        from shoal.stream.redis_worker import ID, Worker
    except ModuleNotFoundError:
        raise ParameterError(f"The worker needs redis: {install('redis')}.") from None

    places = options.settings_of(given, RedisSettings)
    lacking = [f"--{name}" for name in ("from", "to") if name not in places]
    if given["job"] is None and lacking:
        raise click.UsageError(f"Name the streams of Redis that are read and written; missing: {' and '.join(lacking)}")
    if given["finish"] and given["until_empty"]:
        raise click.UsageError("--finish reads nothing, and --until-empty reads everything. Give one of them.")
    job = job_of(given, beside=("until_empty", "finish", "begin", "url"), redis=places)
    stream = stream_of(job, ID)
    redis_of = None if job.stream is None else job.stream.redis
    if redis_of is None:
        raise ParameterError("The job has no table [stream.redis]. Say there which stream is read and which written.")
    observing = observed(given["log_form"], given["metrics"], stream=redis_of.source, group=redis_of.group)
    with observing as monitor, _connection(given["url"] or redis_of.url) as redis:
        worker = Worker(redis, stream, redis_of, begin=given["begin"], monitor=monitor)
        with asking(worker.stop):
            worker.run(until_empty=given["until_empty"], finish=given["finish"])


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
