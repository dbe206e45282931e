import json
import multiprocessing
import os
import shutil
import subprocess
import time

import numpy as np
import pytest
from click.testing import CliRunner

from shoal import cli
from shoal.errors import GuaranteeError, ParameterError, SchemaError
from shoal.stream import Stream

redis = pytest.importorskip("redis")

from shoal.stream.redis_worker import FIELD, Names, Worker  # noqa: E402 - only where redis is installed

NAMES = Names("in", "out", "aside")
RULES = {"quasi_identifiers": ["x", "y"], "confidential": ["n"], "delay": 40}
KILLS = int(os.environ.get("SHOAL_KILLS", "12"))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    if shutil.which("redis-server") is None:
        pytest.skip("no redis-server on this machine")
    folder = tmp_path_factory.mktemp("redis")
    socket = str(folder / "socket")
    command = ["redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        with redis.Redis(unix_socket_path=socket) as connection:
            for _ in range(200):
                try:
                    connection.ping()
                    break
                except redis.exceptions.ConnectionError:
                    time.sleep(0.05)
        yield socket
        process.terminate()


@pytest.fixture
def connection(server):
    with redis.Redis(unix_socket_path=server) as connection:
        connection.flushall()
        yield connection


def fill(connection, n, seed=0):
    rng = np.random.default_rng(seed)
    records = [{"x": float(x), "y": float(y), "n": i} for i, (x, y) in enumerate(rng.random((n, 2)).round(4))]
    with connection.pipeline() as pipeline:
        for record in records:
            pipeline.xadd("in", {FIELD: json.dumps(record)})
        pipeline.execute()
    return records


def written(connection, name="out"):
    return [json.loads(fields[FIELD]) for _, fields in connection.xrange(name)]


def by_object(records, k=5, **rules):
    import pyarrow as pa

    stream = Stream(k, **{**RULES, **rules})
    return pa.concat_tables([stream.push(pa.Table.from_pylist(records)), stream.flush()]).to_pylist()


def work_until_empty(socket, batch):
    """Run a worker in a process of its own, until the input is used up."""
    with redis.Redis(unix_socket_path=socket) as connection:
        worker = Worker(connection, Stream(5, **RULES), NAMES, batch=batch)
        while worker.step(0.2):
            pass


def test_the_worker_makes_what_the_object_makes(connection):
    records = fill(connection, 500)
    worker = Worker(connection, Stream(5, **RULES), NAMES, batch=37)
    while worker.step(0.01):
        pass
    worker.finish()

    assert written(connection) == by_object(records)
    assert connection.xpending("in", "shoal")["pending"] == 0
    assert connection.get(NAMES.state) is None


def test_killed_at_random_moments_it_neither_loses_nor_doubles_a_tuple(connection, server):
    records = fill(connection, 100 * KILLS)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["shoal.stream.redis_worker", "redis", "pyarrow"])
    rng = np.random.default_rng(1)
    for kill in range(KILLS):
        before = connection.xlen("out")
        process = context.Process(target=work_until_empty, args=(server, 10))
        process.start()
        deadline = time.monotonic() + 30
        while connection.xlen("out") == before and process.is_alive() and time.monotonic() < deadline and kill:
            time.sleep(0.002)
        time.sleep(float(rng.random()) * 0.03)
        process.kill()
        process.join()
        process.close()
    worker = Worker(connection, Stream(5, **RULES), NAMES)
    while worker.step(0.01):
        pass
    worker.finish()

    assert written(connection) == by_object(records)


def test_what_was_read_but_not_committed_comes_again(connection):
    records = fill(connection, 200)
    crashed = Worker(connection, Stream(5, **RULES), NAMES, batch=50)
    crashed.step()
    crashed._take(0.01)
    again = Worker(connection, Stream(5, **RULES), NAMES, batch=50)
    while again.step(0.01):
        pass
    again.finish()

    assert written(connection) == by_object(records)


def test_a_second_worker_on_the_same_group_is_found_out_and_commits_nothing(connection):
    fill(connection, 300)
    one, other = (Worker(connection, Stream(5, **RULES), NAMES, batch=100) for _ in range(2))
    one.step()
    before = connection.xlen("out")
    with pytest.raises(GuaranteeError, match="another worker"):
        other.step()

    assert connection.xlen("out") == before


def test_other_rules_than_those_of_the_state_are_refused(connection):
    fill(connection, 100)
    Worker(connection, Stream(5, **RULES), NAMES).step()
    with pytest.raises(ParameterError, match="other rules"):
        Worker(connection, Stream(6, **RULES), NAMES)


def test_bad_entries_fail_or_go_aside(connection):
    records = fill(connection, 60)
    connection.xadd("in", {FIELD: '{"x": "s3cret"}'})
    connection.xadd("in", {"other": "1"})
    with pytest.raises(SchemaError) as error:
        Worker(connection, Stream(5, **RULES), NAMES).step()
    assert "s3cret" not in str(error.value)
    worker = Worker(connection, Stream(5, on_error="side", **RULES), NAMES)
    while worker.step(0.01):
        pass
    worker.finish()
    aside = [fields[b"reason"] for _, fields in connection.xrange("aside")]

    assert written(connection) == by_object(records)
    assert aside == [b"not-a-number", b"malformed-line"]
    summary = worker.stream.summary()
    assert summary.n_in == 62 == summary.n_released + summary.n_side


def test_the_command_does_the_same(connection, server):
    records = fill(connection, 200)
    roles = ["--quasi", "x,y", "--confidential", "n", "-k", "5", "--delay", "40"]
    done = CliRunner().invoke(
        cli.main, ["worker", "--redis", f"unix://{server}", "--from", "in", "--to", "out", "--until-empty", *roles]
    )

    assert done.exit_code == 0, done.stderr
    assert written(connection) == by_object(records)


def test_a_redis_that_is_not_there_is_said_so(tmp_path):
    done = CliRunner().invoke(
        cli.main,
        [
            "worker",
            "--redis",
            f"unix://{tmp_path}/none",
            "--from",
            "a",
            "--to",
            "b",
            "-k",
            "3",
            "--delay",
            "9",
            "--quasi",
            "x",
        ],
    )

    assert done.exit_code == 2
    assert "cannot be reached" in done.stderr
