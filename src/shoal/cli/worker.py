"""``shoal worker``: a k-anonymous stream between two Redis Streams."""

import os
import signal
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from shoal.cli.stream import asked_for, rules
from shoal.errors import ParameterError
from shoal.extras import install

if TYPE_CHECKING:
    from redis import Redis

EXAMPLES = """\b
Examples:
  shoal worker --redis redis://localhost:6379 --from visits --to visits-safe -k 10 --delay 100 --quasi age,income
  shoal worker --from visits --to visits-safe --side visits-aside -k 10 --delay 1000 --quasi age --subject id
"""
URL, USER, PASSWORD = "SHOAL_REDIS_URL", "SHOAL_REDIS_USERNAME", "SHOAL_REDIS_PASSWORD"
_ANSWER = 5.0  # seconds in which Redis answers, or it counts as an outage


@click.command("worker", epilog=EXAMPLES)
@click.option(
    "--redis",
    "url",
    envvar=URL,
    default="redis://localhost:6379",
    show_default=True,
    help=f"Where Redis is; or {URL}. A password comes from {PASSWORD}, never from here.",
)
@click.option("--from", "source", required=True, help="Stream to read; each entry has a JSON object in its field data.")
@click.option("--to", "target", required=True, help="Stream to write.")
@click.option("--side", help="Stream for tuples that cannot be released, with the reason. They are unprotected.")
@click.option("--group", default="shoal", show_default=True, help="Consumer group; one worker at a time serves it.")
@click.option("--batch", type=click.IntRange(min=1), default=1000, show_default=True, help="Entries per step.")
@click.option("--until-empty", is_flag=True, help="End when nothing is left: release everything and stop.")
@click.option("--begin", metavar="first|group|ID", help="Where to begin if the state was lost; see the message.")
@click.option(
    "--lease",
    type=click.FloatRange(min=0.05),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="After which another worker takes the place of one that is not heard of.",
)
@click.option(
    "--patience",
    type=click.FloatRange(min=0),
    default=900.0,
    show_default=True,
    metavar="SECONDS",
    help="How long an outage of Redis is waited out.",
)
@click.option("--to-length", type=click.IntRange(min=1), help="Trim the stream that is written to about this length.")
@click.option("--side-length", type=click.IntRange(min=1), help="Trim the side stream to about this length.")
@click.option("--trim-source", is_flag=True, help="Remove entries from the source once they are committed.")
@rules
def command(k: int, **given: Any) -> int:
    """Make a Redis Stream k-anonymous.

    What is released, what goes aside and the state are committed together, so that a crash at any moment neither loses
    nor doubles a tuple. Start the worker again, and it goes on; start a second one, and it stands by. SIGTERM and
    Ctrl-C end it after the step that is under way: what waits is in Redis.
    """
    try:
        from shoal.stream.redis_worker import ID, Limits, Names, Worker
    except ModuleNotFoundError:
        raise ParameterError(f"The worker needs redis: {install('redis')}.") from None

    stream, dates = asked_for(k, given, tracked=ID)
    limits = Limits(
        batch=given["batch"],
        lease=given["lease"],
        patience=given["patience"],
        target_length=given["to_length"],
        side_length=given["side_length"],
        trim_source=given["trim_source"],
    )
    names = Names(given["source"], given["target"], given["side"], given["group"])
    with _connection(given["url"]) as redis:
        worker = Worker(redis, stream, names, dates=dates, limits=limits, begin=given["begin"])
        before = {number: signal.signal(number, lambda *_: worker.stop()) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            worker.run(until_empty=given["until_empty"])
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    return 0


def _connection(url: str) -> "Redis":
    """Connect without retries: the worker decides itself what to do after an outage."""
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
