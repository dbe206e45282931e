import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from click.testing import CliRunner

from shoal import cli
from shoal.errors import InputError, OutageError, ParameterError
from shoal.stream.monitor import Status
from waits import LIMIT, wait_until

redis = pytest.importorskip("redis")

from redis_streams import KEYS, aside, by_object, fill, running, use_up, worker_on, written  # noqa: E402 - only with redis
from shoal.stream.redis_worker import FIELD  # noqa: E402
from shoal.stream.redis_worker.replies import FencedError  # noqa: E402

KILLS = int(os.environ.get("SHOAL_KILLS", "6"))


def work_until_empty(socket, batch):
    """Run a worker in a process of its own, until the input is used up."""
    with redis.Redis(unix_socket_path=socket) as connection:
        worker = worker_on(connection, batch=batch)
        while worker.step(0.2):
            pass


def test_the_worker_makes_what_the_object_makes(connection):
    records = fill(connection, 500)
    use_up(worker_on(connection, batch=37))

    assert written(connection) == by_object(records)
    assert connection.xinfo_groups("in")[0]["lag"] == 0


def test_killed_at_random_moments_it_neither_loses_nor_doubles_a_tuple(connection, server):
    records = fill(connection, 100 * KILLS)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["shoal.stream.redis_worker", "redis", "pyarrow"])
    rng = np.random.default_rng(1)
    for kill in range(KILLS):
        before = connection.xlen("out")
        process = context.Process(target=work_until_empty, args=(server, 10))
        process.start()
        if kill:
            wait_until(lambda before=before, process=process: connection.xlen("out") > before or not process.is_alive())
        time.sleep(float(rng.random()) * 0.03)
        process.kill()
        process.join()
        process.close()
        wait_until(lambda: not connection.exists(KEYS.lease))
    use_up(worker_on(connection))

    assert written(connection) == by_object(records)


@pytest.mark.parametrize("learned", [True, False])
def test_after_every_step_another_worker_can_go_on_from_the_state(learned, connection):
    records = fill(connection, 400)
    ranges = {} if learned else {"ranges": {"x": (0, 1), "y": (0, 1)}}
    last = None
    for _ in range(16):
        last = worker_on(connection, batch=25, **ranges)
        last.step(0)
        last.release()
    worker = use_up(worker_on(connection, **ranges))

    assert written(connection) == by_object(records, **ranges)
    assert worker.stream.summary().n_in == 400


def test_a_step_writes_what_has_changed_and_not_the_whole_state(connection):
    fill(connection, 3000)
    worker = worker_on(connection, batch=1000, delay=2000)
    worker.step(0)
    worker.step(0)
    worker.settings = worker.settings.model_copy(update={"batch": 10, "lease": 1})
    worker._next = None
    before = {name: len(content) for name, content in connection.hgetall(KEYS.state).items()}
    worker.step(0)
    after = {name: len(content) for name, content in connection.hgetall(KEYS.state).items()}
    changed = sum(size for name, size in after.items() if before.get(name) != size or name == b"head")

    assert sum(after.values()) > 50_000
    assert changed < 8_000


def test_a_carriage_return_within_an_entry_makes_no_second_line(connection):
    for i in range(9):
        record = f'{{"x":{i},"y":0,\r"n":{{"a":\r{i},\r"b":\r"forged"}}}}'
        connection.xadd("in", {FIELD: record.replace(",", ",\n", 1)})
    use_up(worker_on(connection, k=3, delay=5))
    raw = [fields[FIELD] for _, fields in connection.xrange("out")]

    assert sorted(json.loads(line)["n"]["a"] for line in raw) == list(range(9))
    assert not any(b"\r" in line or b"\n" in line for line in raw)


def test_a_group_that_was_deleted_comes_back_where_the_state_stands(connection):
    records = fill(connection, 600)
    worker = worker_on(connection, batch=100)
    for _ in range(3):
        worker.step(0)
    worker.release()
    connection.xgroup_destroy("in", "shoal")
    use_up(worker_on(connection))

    assert written(connection) == by_object(records)
    assert connection.xinfo_groups("in")[0]["lag"] == 0


def test_entries_that_are_removed_before_they_are_read_are_counted(connection, caplog):
    fill(connection, 300)
    worker = worker_on(connection, batch=100)
    worker.step(0)
    worker._next = None
    connection.xtrim("in", maxlen=120, approximate=False)
    connection.xdel("in", connection.xrange("in")[50][0])
    worker.resume()
    use_up(worker)

    assert worker.n_lost == 81
    assert len(written(connection)) + len(aside(connection)) == 219
    assert any(record.message == "entries-lost" for record in caplog.records)


def test_entries_removed_before_a_worker_began_or_after_it_has_read_them_are_not_missed(connection):
    fill(connection, 100)
    connection.xtrim("in", maxlen=90, approximate=False)
    connection.xdel("in", connection.xrange("in")[50][0])
    worker = use_up(worker_on(connection, batch=30, trim_source=True))

    assert worker.n_lost == 0
    assert connection.xlen("in") == 0
    assert len(written(connection)) == 89


def test_a_state_that_was_lost_is_not_taken_for_a_beginning(connection):
    fill(connection, 200)
    worker_on(connection, batch=150).step(0)
    connection.delete(KEYS.state, KEYS.lease)
    with pytest.raises(ParameterError, match="no state"):
        worker_on(connection).step(0)
    before = connection.xlen("out")
    worker = use_up(worker_on(connection, begin="group"))

    assert connection.xlen("out") - before == 50
    assert worker.n_lost == 0


@pytest.mark.parametrize("name", ["in", "out", "aside", KEYS.state, KEYS.lease])
def test_a_key_of_another_type_is_refused_before_anything_is_taken(name, connection):
    if name != "in":
        fill(connection, 50)
    connection.rpush(name, "a list")
    with pytest.raises(ParameterError, match=f"{name!r} in Redis is a list"):
        worker_on(connection).step(0)


@pytest.mark.parametrize("name", ["out", "aside"])
def test_a_key_that_changes_its_type_later_costs_nothing(name, connection):
    records = fill(connection, 400)
    worker = worker_on(connection, batch=100)
    worker.step(0)
    worker.step(0)
    kept = connection.dump("out") if name == "out" else None
    connection.delete(name)
    connection.set(name, "a text")
    for _ in range(2):
        with pytest.raises(ParameterError, match="WRONGTYPE"):
            worker.step(0)
    connection.delete(name)
    if kept:
        connection.restore("out", 0, kept)
    use_up(worker)

    assert written(connection) == by_object(records)


def test_what_went_aside_comes_once_though_the_connection_was_lost(connection, monkeypatch):
    fill(connection, 20)
    connection.xadd("in", {FIELD: "nonsense"})
    worker = worker_on(connection, on_error="side")
    ask = worker._ask
    lost = iter([True, False])

    def fail_before(committed):
        if committed and next(lost, False):
            raise OutageError("lost")
        return ask(committed)

    monkeypatch.setattr(worker, "_ask", fail_before)
    with pytest.raises(OutageError):
        worker.step(0)
    use_up(worker)

    assert [(reason, data) for reason, _, data in aside(connection)] == [("malformed-line", b"nonsense")]


def test_a_commit_whose_answer_was_lost_is_not_made_twice(connection, monkeypatch):
    records = fill(connection, 200)
    worker = worker_on(connection, batch=50)
    ask = worker._ask
    lost = iter([False, True])

    def fail_after(committed):
        answer = ask(committed)
        if committed and next(lost, False):
            raise OutageError("lost")
        return answer

    worker.step(0)
    monkeypatch.setattr(worker, "_ask", fail_after)
    worker.step(0)
    with pytest.raises(OutageError):
        worker.step(0)
    use_up(worker)

    assert written(connection) == by_object(records)


def test_a_second_worker_stands_by_and_one_that_was_replaced_commits_nothing(connection):
    records = fill(connection, 300)
    one, other = worker_on(connection, batch=100, lease=600), worker_on(connection, batch=100)
    one.step(0)

    assert other.acquire() == one.name
    connection.delete(KEYS.lease)  # it was not heard of for too long
    assert other.acquire() is None
    before = connection.xlen("out")
    with pytest.raises(FencedError):
        one.step(0)
    assert connection.xlen("out") == before
    use_up(other)
    assert written(connection) == by_object(records)
    assert connection.xpending("in", "shoal")["pending"] == 0


def test_other_rules_than_those_of_the_state_are_refused(connection):
    fill(connection, 100)
    worker = worker_on(connection)
    worker.step(0)
    worker.release()
    with pytest.raises(ParameterError, match="other rules"):
        worker_on(connection, k=6).step(0)


@pytest.mark.parametrize("field", [b"head", b"chunk:60"])
def test_a_damaged_state_is_refused(field, connection):
    fill(connection, 100)
    worker = worker_on(connection)
    worker.step(0)
    worker.release()
    fields = connection.hgetall(KEYS.state)
    name = next(name for name in fields if name.startswith(field[:5]))
    connection.hset(KEYS.state, name, fields[name][:-1] + b"?")
    with pytest.raises(Exception, match="damaged"):
        worker_on(connection).step(0)


def test_bad_entries_fail_by_their_id_or_go_aside_with_it(connection):
    records = fill(connection, 60)
    poison = connection.xadd("in", {FIELD: '{"x": "s3cret"}'})
    empty = connection.xadd("in", {"other": "1"})
    missing = connection.xadd("in", {FIELD: '{"x": null, "y": 1, "n": -1}'})
    with pytest.raises(InputError, match=poison.decode()) as error:
        worker_on(connection).step()
    assert "s3cret" not in str(error.value)
    worker = use_up(worker_on(connection, on_error="side"))

    assert written(connection) == by_object(records)
    assert [(reason, number) for reason, number, _ in aside(connection)] == [
        ("not-a-number", poison),
        ("malformed-line", empty),
        ("missing-value", missing),
    ]
    summary = worker.stream.summary()
    assert summary.n_in == 63 == summary.n_released + summary.n_side


def test_one_person_spelled_in_several_ways_is_one_person(connection):
    for i, who in enumerate(['{"id":1,"at":"x"}', '{"at": "x", "id": 1.0}', '{"id":1e0,"at":"\\u0078"}'] * 8):
        connection.xadd("in", {FIELD: f'{{"x":{i},"y":{i},"n":1,"who":{who}}}'})
    use_up(worker_on(connection, k=2, subject="who", delay=5))

    assert connection.xlen("out") == 0
    assert {reason for reason, _, _ in aside(connection)} == {"too-few-subjects", "too-few-tuples"}


def test_what_the_window_gives_up_goes_aside_with_its_id(connection):
    fill(connection, 3)
    ids = [number for number, _ in connection.xrange("in")]
    use_up(worker_on(connection))

    assert [(reason, number) for reason, number, _ in aside(connection)] == [("too-few-tuples", i) for i in ids]


def test_an_age_is_kept_while_bad_entries_keep_coming(connection):
    now = [0.0]
    worker = worker_on(connection, delay=None, max_age=10.0, on_error="side", clock=lambda: now[0])
    fill(connection, 20)
    worker.step(0)
    for _ in range(3):
        now[0] += 5
        connection.xadd("in", {FIELD: "nonsense"})
        worker.step(0)

    assert connection.xlen("out") == 20


def test_the_streams_are_trimmed_on_request(connection):
    fill(connection, 2000)
    worker = use_up(worker_on(connection, batch=100, to_length=100, trim_source=True))

    assert connection.xlen("in") == 0
    assert connection.xlen("out") < 500
    assert worker.n_lost == 0


def test_a_source_that_others_read_is_not_trimmed(connection):
    fill(connection, 100)
    connection.xgroup_create("in", "others", "0")
    use_up(worker_on(connection, trim_source=True))

    assert connection.xlen("in") == 100


def test_a_stream_that_was_ended_begins_anew_where_it_was(connection):
    first = fill(connection, 100)
    use_up(worker_on(connection))
    second = fill(connection, 80, seed=1)
    use_up(worker_on(connection))

    assert written(connection) == by_object(first) + by_object(second)


@pytest.mark.parametrize(("setting", "words"), [("maxmemory", "memory"), ("min-replicas-to-write", "replicas")])
def test_a_redis_that_takes_nothing_is_an_outage_that_passes(setting, words, connection, caplog):
    records = fill(connection, 300)
    worker = worker_on(connection, batch=100, patience=60, lease=1)
    worker.step(0)
    connection.config_set(setting, "1")
    try:
        with pytest.raises(OutageError, match=words):
            worker.step(0)
        worker.settings = worker.settings.model_copy(update={"batch": 100, "lease": 1, "patience": 0})
        with pytest.raises(OutageError, match="Nothing is lost"):
            worker.run()
    finally:
        connection.config_set(setting, "0")
    worker.run(until_empty=True)

    assert written(connection) == by_object(records)


def test_when_the_address_leads_to_a_new_master_the_worker_goes_on_there(connection, server, tmp_path):
    (tmp_path / "address").symlink_to(server)
    with redis.Redis(unix_socket_path=str(tmp_path / "address")) as moving, running(tmp_path) as promoted:
        worker = worker_on(moving, lease=1.0, patience=LIMIT)
        working = threading.Thread(target=worker.run, args=(LIMIT,))
        working.start()
        wait_until(lambda: connection.info("clients")["blocked_clients"])
        connection.replicaof("127.0.0.1", 1)  # demoted: it sends waiting clients away, and accepts no writes
        try:
            wait_until(lambda: worker._monitor.figures.status is Status.OUTAGE)
            with redis.Redis(unix_socket_path=promoted) as master:
                fill(master, 100)
                os.symlink(promoted, tmp_path / "new")
                os.replace(tmp_path / "new", tmp_path / "address")
                wait_until(lambda: master.xlen("out") or not working.is_alive())
                worker.stop()
                fill(master, 1)
                working.join()

                assert master.xlen("out") >= 60
        finally:
            connection.replicaof("NO", "ONE")


def command(socket, *more):
    roles = ["--quasi-identifiers", "x,y", "--confidential", "n", "-k", "5", "--delay", "40"]
    return ["worker", "--url", f"unix://{socket}", "--from", "in", "--to", "out", *roles, *more]


def test_the_command_does_the_same(connection, server):
    records = fill(connection, 200)
    done = CliRunner().invoke(cli.main, command(server, "--until-empty"))

    assert done.exit_code == 0, done.stderr
    assert written(connection) == by_object(records)


def test_sigterm_ends_the_command_after_a_step_and_lets_the_next_one_in(connection, server):
    records = fill(connection, 200)
    with subprocess.Popen([sys.executable, "-m", "shoal.cli", *command(server)]) as process:
        wait_until(lambda: connection.xlen("out") > 0)
        process.send_signal(signal.SIGTERM)

        assert process.wait(LIMIT) == 0
    assert connection.exists(KEYS.lease) == 0
    use_up(worker_on(connection, names=("in", "out")))
    assert written(connection) == by_object(records)


def test_a_redis_that_is_not_there_is_an_outage(tmp_path):
    done = CliRunner().invoke(cli.main, command(tmp_path / "none", "--patience", "0"))

    assert done.exit_code == 75
    assert "cannot be reached" in done.stderr


def test_a_bad_entry_ends_the_command_with_a_code_of_its_own(connection, server):
    connection.xadd("in", {FIELD: "nonsense"})
    done = CliRunner().invoke(cli.main, command(server, "--until-empty"))

    assert done.exit_code == 65


def test_a_password_on_the_command_line_is_refused():
    arguments = [
        "worker",
        "--url",
        "redis://:s3cret@localhost",
        "--from",
        "a",
        "--to",
        "b",
        "-k",
        "3",
        "--quasi-identifiers",
        "x",
    ]
    done = CliRunner().invoke(cli.main, [*arguments, "--delay", "9"])

    assert done.exit_code == 2
    assert "SHOAL_REDIS_PASSWORD" in done.stderr
    assert "s3cret" not in done.stderr
