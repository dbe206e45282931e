"""Commits of the worker are all or nothing, whatever Redis refuses, and however large they are."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from shoal.errors import OutageError, ParameterError

redis = pytest.importorskip("redis")

from redis_streams import KEYS, aside, by_object, fill, running, use_up, worker_on, written  # noqa: E402 - only with redis
from shoal.stream.redis_worker import FIELD, scripts, worker  # noqa: E402

TEXTS = " ".join(text for name, text in vars(scripts).items() if name.isupper())
COMMANDS = [*sorted(set(re.findall(r"(?:call|attempt)\('([A-Z]+)'", TEXTS))), "XREAD"]
TIDY = {"to_length": 10**6, "side_length": 10**6, "trim_source": True, "on_error": "side"}
NEWEST = "18446744073709551615-18446744073709551610"
"""An id after which only five more can follow."""


@pytest.fixture
def user(connection, server):
    """Connect as a user whose rights a test may change: a function that takes rules of ACL SETUSER."""

    def may(*rules):
        connection.execute_command("ACL", "SETUSER", "shoal", "reset", "on", ">secret", "~*", "&*", "+@all", *rules)
        return redis.Redis(unix_socket_path=server, username="shoal", password="secret")

    yield may
    connection.execute_command("ACL", "DELUSER", "shoal")


def kept(connection):
    """Return all that a commit writes: both outputs, and the state without the lease and what is staged."""
    beside = (b"token", b"released:", b"aside:")
    state = {name: text for name, text in connection.hgetall(KEYS.state).items() if not name.startswith(beside)}
    return connection.xrange("out"), connection.xrange("aside"), state


def begun(connection):
    """Fill the source, bad entries included, and commit one step with all rights."""
    records = fill(connection, 100)
    bad = connection.xadd("in", {FIELD: "nonsense"})
    return records + fill(connection, 100), bad


def refusal(connection, someone):
    """Let a worker work until it is refused, and return the reason; check that this left everything as it was."""
    before = kept(connection)
    try:
        while someone.step(0):
            before = kept(connection)
        someone.finish()
    except ParameterError as error:
        assert kept(connection) == before
        return str(error)
    return ""


@pytest.mark.parametrize("command", COMMANDS)
def test_without_the_right_to_a_command_nothing_is_committed_and_nothing_lost(command, connection, user):
    records, bad = begun(connection)
    one = worker_on(user(), batch=50, **TIDY)
    one.step(0)
    user(f"-{command}")
    reason = refusal(connection, one)
    connection.delete(KEYS.lease)
    other = worker_on(user(f"-{command}"), batch=50, **TIDY)

    assert "denied" in refusal(connection, other)
    assert "denied" in reason or command == "HINCRBY"  # which only the beginning of a lease needs
    user()
    connection.delete(KEYS.lease)
    use_up(worker_on(user(), batch=50, **TIDY))
    assert written(connection) == by_object(records)
    assert [number for _, number, _ in aside(connection)] == [bad]


@pytest.mark.parametrize("command", ["EXISTS", "HINCRBY", "XADD", "XTRIM"])
def test_a_command_that_redis_lacks_is_refused_before_anything_is_committed(command, tmp_path):
    with running(tmp_path, "--rename-command", command, "") as path, redis.Redis(unix_socket_path=path) as connection:
        one = worker_on(connection, **TIDY)

        with pytest.raises(ParameterError, match=r"lacks a command.*rename-command"):
            use_up(one)
        assert not connection.hexists(KEYS.state, "step")


@pytest.mark.parametrize(
    "keys",
    [
        ["~in*", "~aside"],
        ["~in*", "~out", "%R~aside"],
        ["~in*", "%R~out", "~aside"],
        ["~in:*", "%R~in", "~out", "~aside"],
        ["%R~in:*", "~in", "~out", "~aside"],
    ],
)
def test_without_the_right_to_a_key_nothing_is_committed_and_nothing_lost(keys, connection, user):
    records, bad = begun(connection)
    one = worker_on(user(), batch=50, **TIDY)
    one.step(0)
    user("resetkeys", *keys)

    assert "denied" in refusal(connection, one)
    user()
    connection.delete(KEYS.lease)
    use_up(worker_on(user(), batch=50, **TIDY))
    assert written(connection) == by_object(records)
    assert [number for _, number, _ in aside(connection)] == [bad]


def test_a_worker_that_trims_nothing_needs_no_right_to_trim(connection, user):
    records = fill(connection, 100)
    use_up(worker_on(user("-xtrim")))

    assert written(connection) == by_object(records)


@pytest.mark.parametrize(("name", "size"), [("out", 1 << 24), ("out", 600), ("aside", 1 << 24)])
def test_a_stream_whose_ids_run_out_within_a_commit_takes_nothing_of_it(name, size, connection, monkeypatch):
    monkeypatch.setattr(worker, "STEP_BYTES", size)
    records = fill(connection, 100)
    bad = [connection.xadd("in", {FIELD: "nonsense"}) for _ in range(9)]
    connection.xadd(name, {FIELD: "{}"}, id=NEWEST)

    assert f"XADD {name}" in refusal(connection, worker_on(connection, on_error="side", delay=200))
    connection.delete(name, KEYS.lease)
    use_up(worker_on(connection, on_error="side", delay=200))
    assert written(connection) == by_object(records, delay=200)
    assert [number for _, number, _ in aside(connection)] == bad


def test_a_redis_that_has_become_a_replica_is_an_outage_that_passes(connection):
    records = fill(connection, 300)
    one = worker_on(connection, batch=100)
    one.step(0)
    before = kept(connection)
    connection.replicaof("127.0.0.1", "1")
    try:
        with pytest.raises(OutageError, match="read only"):
            one.step(0)
    finally:
        connection.replicaof("NO", "ONE")

    assert kept(connection) == before
    use_up(one)
    assert written(connection) == by_object(records)


# Sizes. These tests lower the limits. tests/soak/worker.py takes entries of a megabyte.


def test_a_step_takes_no_more_than_some_bytes_and_everything_arrives_once(connection, monkeypatch):
    monkeypatch.setattr(worker, "STEP_BYTES", 2000)
    records = fill(connection, 300)
    one = worker_on(connection)
    steps = []
    while n := one.step(0):
        steps.append(n)
    one.finish()

    assert max(steps) < 2000 / 20
    assert written(connection) == by_object(records)


def test_one_large_entry_among_small_ones_does_not_bring_many_others_with_it(connection, monkeypatch):
    monkeypatch.setattr(worker, "STEP_BYTES", 10_000)
    for i in range(60):
        connection.xadd("in", {FIELD: json.dumps({"x": i, "y": 0, "n": "n" * 3000 * (i >= 20)})})
    one = worker_on(connection)
    one.acquire()
    sizes = []
    while (taken := one._next or one._take(0)).ids:
        sizes.append(len(taken.lines))
        one._commit(taken, None)

    assert max(sizes) < 10_000 + 16 * 3100


def test_an_entry_that_is_too_long_goes_aside_by_its_id(connection, monkeypatch):
    monkeypatch.setattr(worker, "LONGEST", 1000)
    records = fill(connection, 50)
    long = connection.xadd("in", {FIELD: json.dumps({"x": 1, "y": 1, "n": "n" * 1000})})
    records += fill(connection, 50)
    use_up(worker_on(connection, on_error="side"))

    assert written(connection) == by_object(records)
    assert [(reason, number) for reason, number, _ in aside(connection)] == [("line-too-long", long)]


def lost(committed):
    raise OutageError("lost")


def test_what_a_worker_staged_and_did_not_commit_is_not_written(connection, monkeypatch):
    monkeypatch.setattr(worker, "STEP_BYTES", 600)
    records = fill(connection, 100)
    one = worker_on(connection, delay=200)
    while one.step(0):
        pass
    monkeypatch.setattr(one, "_ask", lost)
    with pytest.raises(OutageError):
        one.finish()
    assert any(name.startswith(b"released:") for name in connection.hkeys(KEYS.state))
    connection.delete(KEYS.lease)
    use_up(worker_on(connection, delay=200))

    assert written(connection) == by_object(records, delay=200)
    assert set(connection.hkeys(KEYS.state)) == {b"token", b"step", b"head"}


def test_where_a_worker_begins_is_counted_some_bytes_at_a_time(connection, monkeypatch):
    monkeypatch.setattr(worker, "STEP_BYTES", 200)
    fill(connection, 200)
    after = connection.xrange("in")[49][0].decode()
    one = use_up(worker_on(connection, begin=after))

    assert len(written(connection)) == 150
    assert (one.lag, one.n_lost) == (0, 0)


RESUMED = """
import re, sys
from pathlib import Path
import redis
from redis_streams import worker_on

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) << 10

with redis.Redis(unix_socket_path=sys.argv[1]) as connection:
    worker = worker_on(connection, delay=200)
    before = peak()
    worker.acquire()
    print(len(worker.stream), peak() - before)
    worker.release()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="no peak of memory in /proc")
def test_a_worker_begins_with_no_more_memory_than_it_had_when_it_ended(connection, server):
    n, size = 80, 800_000
    one = worker_on(connection, delay=200)
    for i in range(n):
        connection.xadd("in", {FIELD: json.dumps({"x": i, "y": i % 7, "n": "n" * size})})
    while one.step(0):
        pass
    one.release()
    command = [sys.executable, "-c", RESUMED, server]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    n_waiting, grown = map(int, done.stdout.split())

    assert n_waiting == n
    assert grown < 3.5 * n * size  # the rows of Redis, the copy that waits, and what does not depend on them
