"""For tests of the worker: a Redis of their own, and what is in its streams."""

import json
import shutil
import subprocess
from contextlib import contextmanager, suppress

import numpy as np
import pyarrow as pa
import pytest

from shoal.stream import Stream
from waits import wait_until

redis = pytest.importorskip("redis")

from shoal.stream.redis_worker import FIELD, ID, RedisSettings, Worker  # noqa: E402 - only where redis is installed
from shoal.stream.redis_worker.redis_keys import RedisKeys  # noqa: E402

NAMES = ("in", "out", "aside")
LIMITS = ("patience", "to_length", "side_length", "trim_source")
KEYS = RedisKeys.of(RedisSettings.of("in", "out", side="aside"))
RULES = {"quasi_identifiers": ["x", "y"], "confidential": ["n"], "delay": 40}


@contextmanager
def running(folder, *options):
    """Run a Redis, without a port if none is given; return its socket."""
    if shutil.which("redis-server") is None:
        pytest.skip("no redis-server on this machine")
    socket = str(folder / "socket")
    command = ["redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", str(folder), *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: answers(socket))
            yield socket
        finally:
            process.terminate()


def answers(socket):
    with redis.Redis(unix_socket_path=socket) as connection, suppress(redis.exceptions.ConnectionError):
        return connection.ping()


def fill(connection, n, seed=0, name="in"):
    rng = np.random.default_rng(seed)
    records = [{"x": float(x), "y": float(y), "n": i} for i, (x, y) in enumerate(rng.random((n, 2)).round(4))]
    with connection.pipeline() as pipeline:
        for record in records:
            pipeline.xadd(name, {FIELD: json.dumps(record)})
        pipeline.execute()
    return records


def written(connection, name="out"):
    return [json.loads(fields[FIELD]) for _, fields in connection.xrange(name)]


def by_object(records, k=5, **rules):
    stream = Stream(k, **{**RULES, **rules})
    return pa.concat_tables([stream.push(pa.Table.from_pylist(records)), stream.flush()]).to_pylist()


def worker_on(connection, k=5, names=NAMES, begin=None, batch=1000, lease=0.05, **rules):
    limits = {name: rules.pop(name) for name in list(rules) if name in LIMITS}
    stream = Stream(k, tracked=[ID], **{**RULES, **rules})
    source, target, *side = names
    limits |= {"batch": batch, "lease": lease, "side": side[0] if side else None}
    return Worker(connection, stream, RedisSettings.of(source, target, **limits), begin=begin)


def use_up(worker):
    """Work until nothing is left, and end the stream; the lease of a worker that was killed is waited for."""
    wait_until(lambda: worker._token is not None or worker.acquire() is None)
    while worker.step(0):
        pass
    worker.finish()
    return worker


def aside(connection):
    return [(fields[b"reason"].decode(), fields[b"id"], fields[FIELD]) for _, fields in connection.xrange("aside")]
