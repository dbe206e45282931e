"""Rules, sources and servers of a worker that change, or are not what it expects."""

import json
import socket
from collections import Counter
from contextlib import closing, contextmanager

import pytest
from click.testing import CliRunner

from shoal import cli
from shoal.errors import OutageError, ParameterError
from shoal.stream.monitor import Monitor, exposition
from waits import wait_until

redis = pytest.importorskip("redis")

import redis_streams  # noqa: E402 - only with redis
from redis_streams import by_object, fill, use_up, worker_on, written  # noqa: E402
from shoal.stream.redis_worker import FIELD  # noqa: E402


def command(socket, *more, k=5):
    roles = ["--quasi-identifiers", "x,y", "--confidential", "n", "-k", str(k), "--delay", "40"]
    given = ["worker", "--url", f"unix://{socket}", "--from", "in", "--to", "out", *roles, *more]
    return CliRunner().invoke(cli.main, given)


def cells(rows):
    return Counter((row["x"], row["y"]) for row in rows)


# New rules.


def test_new_rules_come_after_a_finish_and_no_tuple_is_released_twice(connection, server):
    fill(connection, 100)
    old = worker_on(connection, batch=50)
    old.step(0)
    old.release()
    refused = command(server, "--until-empty", k=8)
    assert refused.exit_code == 2
    assert "shoal worker --finish" in refused.stderr
    assert "same group" in refused.stderr

    finished = command(server, "--finish")
    assert finished.exit_code == 0, finished.stderr
    before = written(connection)
    assert len(before) == 50
    assert min(cells(before).values()) >= 5
    done = command(server, "--until-empty", k=8)
    assert done.exit_code == 0, done.stderr
    after = written(connection)[50:]
    assert sorted(row["n"] for row in before + after) == list(range(100))
    assert min(cells(after).values()) >= 8


def test_another_group_is_refused_unless_told_where_to_begin(connection, server):
    fill(connection, 200)
    worker = worker_on(connection, batch=150)
    worker.step(0)
    worker.release()
    n_before = len(written(connection))
    refused = command(server, "--until-empty", "--group", "new", k=8)

    assert refused.exit_code == 2
    assert "a second time" in refused.stderr
    assert "--finish" in refused.stderr
    assert len(written(connection)) == n_before
    last = connection.xrange("in")[149][0].decode()
    assert command(server, "--until-empty", "--group", "new", "--begin", last, k=8).exit_code == 0
    assert len(written(connection)) == n_before + 50


def test_a_group_that_no_worker_serves_refuses_nothing(connection):
    records = fill(connection, 100)
    connection.xgroup_create("in", "others", "0")
    use_up(worker_on(connection))

    assert written(connection) == by_object(records)


def test_finish_needs_a_stream_and_no_until_empty(connection, server):
    fill(connection, 100)
    nothing, both = command(server, "--finish"), command(server, "--finish", "--until-empty")

    assert (nothing.exit_code, both.exit_code) == (2, 2)
    assert "nothing to finish" in nothing.stderr
    assert connection.xlen("out") == 0


# A source that was deleted and filled again.


def refill(connection, ids):
    """Delete the source and fill it with entries of these ids."""
    connection.delete("in")
    for i in ids:
        connection.xadd("in", {FIELD: json.dumps({"x": i % 7, "y": i % 3, "n": i})}, id=f"{i}-0")


def numbers(connection):
    return sorted(row["n"] for row in written(connection))


@pytest.mark.parametrize(("n_new", "n_trimmed"), [(50, 0), (100, 0), (150, 0), (150, 30)])
def test_a_source_filled_again_with_new_ids_is_read_and_counted_from_its_beginning(n_new, n_trimmed, connection):
    refill(connection, range(1, 101))
    worker = worker_on(connection)
    while worker.step(0):
        pass
    refill(connection, range(1000, 1000 + n_new))
    connection.xtrim("in", maxlen=n_new - n_trimmed, approximate=False)
    use_up(worker)

    assert numbers(connection) == [*range(1, 101), *range(1000 + n_trimmed, 1000 + n_new)]
    assert (worker.lag, worker.n_lost) == (0, n_trimmed)
    assert connection.xinfo_groups("in")[0]["lag"] == 0


def test_entries_that_were_not_read_when_the_source_was_deleted_are_lost(connection, caplog):
    refill(connection, range(1, 101))
    worker = worker_on(connection, batch=60)
    worker.step(0)
    worker._next = None
    refill(connection, range(1000, 1020))
    use_up(worker)

    assert worker.n_lost == 40
    assert numbers(connection) == [*range(1, 61), *range(1000, 1020)]
    assert {"source-replaced", "entries-lost"} <= {record.message for record in caplog.records}


@pytest.mark.parametrize(("ids", "skipped"), [(range(1, 101), "100-0"), (range(950, 1101), "1050-0")])
def test_a_source_with_ids_below_those_that_were_read_is_never_passed_over(ids, skipped, connection, server):
    refill(connection, range(1001, 1051))
    assert command(server, "--until-empty").exit_code == 0
    refill(connection, ids)
    before = written(connection)
    refused = command(server, "--until-empty")

    assert refused.exit_code == 2
    assert "deleted and filled again" in refused.stderr
    assert f"--begin {skipped}" in refused.stderr
    assert written(connection) == before
    assert command(server, "--until-empty", "--begin", "first").exit_code == 0
    assert sorted(row["n"] for row in written(connection)[50:]) == list(ids)
    assert command(server, "--until-empty").exit_code == 0
    assert len(written(connection)) == 50 + len(ids)


def test_what_a_replaced_source_holds_can_be_skipped(connection, server):
    refill(connection, range(1001, 1051))
    assert command(server, "--until-empty").exit_code == 0
    refill(connection, range(1, 101))
    assert command(server, "--until-empty", "--begin", "100-0").exit_code == 0
    for i in range(101, 121):
        connection.xadd("in", {FIELD: json.dumps({"x": i, "y": 1, "n": i})}, id=f"{i}-0")
    assert command(server, "--until-empty").exit_code == 0

    assert numbers(connection) == [*range(101, 121), *range(1001, 1051)]


@pytest.mark.parametrize(("begin", "words"), [("5000-0", "Use --begin 50-0"), ("soon", "the id of an entry")])
def test_a_beginning_that_would_never_come_is_refused(begin, words, connection, server):
    refill(connection, range(1, 51))
    refused = command(server, "--until-empty", "--begin", begin)

    assert refused.exit_code == 2
    assert words in refused.stderr
    assert connection.xlen("out") == 0


# Two workers.


def test_a_worker_that_stands_by_reports_no_figures_of_the_stream(connection):
    fill(connection, 100)
    one, other = worker_on(connection, lease=600), worker_on(connection, lease=600)
    monitors = one._monitor, other._monitor = Monitor(), Monitor()
    one._turn(0)
    connection.xtrim("in", maxlen=0, approximate=False)
    one._next = None
    one.step(0)
    one._monitor.look(one.stream, **one._gauges())
    assert "shoal_tuples_waiting" in exposition(one._monitor.figures, 0.0)
    one.release()
    assert other._stand_by()
    other._turn(0)
    one._stand_by()
    text = exposition(one._monitor.figures, 0.0)

    assert 'shoal_status{status="standing-by"} 1' in text
    for figure in ("waiting", "oldest", "lost", "lag", "side", "tuples_in"):
        assert figure not in text
    assert "shoal_tuples_waiting" in exposition(other._monitor.figures, 0.0)
    assert len(monitors) == 2


# A cluster.


@contextmanager
def cluster_node(folder, first_slot, last_slot):
    """Run a node of a cluster that has these slots; return a connection and its address."""
    with closing(socket.socket()) as one, closing(socket.socket()) as bus:
        for each in (one, bus):
            each.bind(("127.0.0.1", 0))
        port, bus_port = (each.getsockname()[1] for each in (one, bus))
    options = ["--port", str(port), "--cluster-port", str(bus_port), "--bind", "127.0.0.1", "--cluster-enabled", "yes"]
    with redis_streams.running(folder, *options) as path, redis.Redis(unix_socket_path=path) as connection:
        connection.execute_command("CLUSTER", "ADDSLOTSRANGE", first_slot, last_slot)
        yield connection, ("127.0.0.1", port, bus_port)


def wait_for_cluster(connection):
    wait_until(lambda: b"cluster_state:ok" in connection.execute_command("CLUSTER", "INFO"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with cluster_node(tmp_path_factory.mktemp("cluster"), 0, 16383) as (connection, _):
        wait_for_cluster(connection)
        yield connection


def test_a_cluster_is_served_where_the_names_have_a_tag_and_refused_otherwise(cluster):
    records = fill(cluster, 300, name="{in}")
    with pytest.raises(ParameterError, match=r"cluster.*same slot.*\{in\}-safe"):
        worker_on(cluster, names=("in", "out", "aside")).step(0)
    names = ("{in}", "{in}-safe", "{in}-aside")
    one = worker_on(cluster, names=names, batch=50, trim_source=True)
    one.step(0)
    one.step(0)
    one.release()
    use_up(worker_on(cluster, names=names, batch=50))

    assert written(cluster, "{in}-safe") == by_object(records)


def test_a_cluster_that_lacks_a_slot_is_an_outage_that_passes(cluster):
    cluster.flushall()
    records = fill(cluster, 100, name="{in}")
    names = ("{in}", "{in}-safe", "{in}-aside")
    one = worker_on(cluster, names=names, batch=50)
    one.step(0)
    slot = cluster.execute_command("CLUSTER", "KEYSLOT", "{in}")
    cluster.execute_command("CLUSTER", "DELSLOTS", slot)
    try:
        with pytest.raises(OutageError, match="does not accept"):
            one.step(0)
    finally:
        cluster.execute_command("CLUSTER", "ADDSLOTS", slot)
        wait_for_cluster(cluster)
    use_up(one)

    assert written(cluster, "{in}-safe") == by_object(records)


def test_a_worker_at_the_wrong_node_of_a_cluster_waits_and_names_the_right_one(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
    with (
        cluster_node(tmp_path / "a", 0, 8191) as (one, _),
        cluster_node(tmp_path / "b", 8192, 16383) as (other, address),
    ):
        one.execute_command("CLUSTER", "MEET", *address)
        wait_for_cluster(one)
        wait_for_cluster(other)
        slot = one.execute_command("CLUSTER", "KEYSLOT", "{in}")
        wrong, right = (one, other) if slot > 8191 else (other, one)
        names = ("{in}", "{in}-safe", "{in}-aside")
        records = fill(right, 100, name="{in}")
        with pytest.raises(OutageError, match=f"another node .*:{address[1]}" if wrong is one else "another node"):
            worker_on(wrong, names=names).step(0)
        use_up(worker_on(right, names=names))

        assert written(right, "{in}-safe") == by_object(records)
