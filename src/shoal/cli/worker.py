"""``shoal worker``: a k-anonymous stream between two Redis Streams."""

import signal
from typing import Any

import click

from shoal.cli.stream import asked_for, rules
from shoal.errors import ParameterError

EXAMPLES = """\b
Examples:
  shoal worker --redis redis://localhost:6379 --from visits --to visits-safe -k 10 --delay 100 --quasi age,income
  shoal worker --from visits --to visits-safe --side visits-aside -k 10 --delay 1000 --quasi age --subject id
"""


@click.command("worker", epilog=EXAMPLES)
@click.option("--redis", "url", default="redis://localhost:6379", show_default=True, help="Where Redis is.")
@click.option("--from", "source", required=True, help="Stream to read; each entry has a JSON object in its field data.")
@click.option("--to", "target", required=True, help="Stream to write.")
@click.option("--side", help="Stream for tuples that cannot be released, with the reason. They are unprotected.")
@click.option("--group", default="shoal", show_default=True, help="Consumer group; one worker serves it.")
@click.option("--batch", type=click.IntRange(min=1), default=1000, show_default=True, help="Entries per step.")
@click.option("--until-empty", is_flag=True, help="End when nothing is left: release everything and stop.")
@rules
def command(k: int, **given: Any) -> int:
    """Make a Redis Stream k-anonymous.

    What is released, the state and the acknowledgement are committed together, so that a crash at any moment neither
    loses nor doubles a tuple. Start the worker again, and it goes on.
    """
    try:
        from redis import Redis
        from redis.exceptions import ConnectionError as Lost
    except ModuleNotFoundError:
        raise ParameterError("The worker needs redis: pip install 'shoal[redis]'") from None
    from shoal.stream.redis_worker import ID, Names, Worker

    stream, dates = asked_for(k, given, tracked=ID)
    names = Names(given["source"], given["target"], given["side"], given["group"])
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with Redis.from_url(given["url"]) as redis:
            worker = Worker(redis, stream, names, dates=dates, batch=given["batch"])
            if not given["until_empty"]:
                worker.run()
            while worker.step(0.2):
                pass
            worker.finish()
    except Lost:
        raise ParameterError("Redis cannot be reached at the address given with --redis.") from None
    except KeyboardInterrupt:
        click.echo("Stopped; what was not committed comes again.", err=True)
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0
