"""Real child processes: results, refusals, cancelling, crashes, and the end of the server."""

import json
import os
import subprocess
import sys
import time

import pytest
from steward import PEOPLE, SECRETS

from shoal.app import runs as module
from shoal.app.runs import Runs
from shoal.system import system
from waits import LIMIT, wait_until

JOB = 'input = {path = "people.csv"}\n'

# A child that says that it has begun, and then does nothing.
IDLE = """
import json, sys, time
asked = json.loads(sys.stdin.readline())
with open(asked["file"], "a") as file:
    print(json.dumps({"stage": "working", "share": 0.5}), file=file)
time.sleep(600)
"""
DEAF = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n{IDLE}"


def wait(runs, number, seconds):
    """Return a run when it has ended, or after some seconds as it stands."""
    until = time.monotonic() + seconds
    while (found := runs.run(number)).running and time.monotonic() < until:
        time.sleep(0.02)
    return found


@pytest.fixture
def runs(tmp_path):
    (tmp_path / "people.csv").write_text("\n".join(PEOPLE) + "\n", encoding="utf-8")
    found = Runs(tmp_path / "runs", tmp_path)
    yield found
    found.close()


def started(runs, monkeypatch, code, *verbs):
    """Start children that run some code in place of the worker."""
    real = subprocess.Popen
    monkeypatch.setattr(
        module.subprocess, "Popen", lambda command, **settings: real([sys.executable, "-c", code], **settings)
    )
    numbers = [runs.start(verb, "", 1, "") for verb in verbs]
    monkeypatch.undo()
    runs.drop_spare()
    return numbers


def test_a_run_gives_its_result_and_its_file_is_private(runs, tmp_path):
    number = runs.start("inspect", "key", 3, JOB)
    done = wait(runs, number, LIMIT)
    refused = wait(runs, runs.start("check", "", 3, 'input = {path = "none.csv"}\n'), LIMIT)

    assert (done.outcome, done.verb, done.key, done.job) == ("done", "inspect", "key", 3)
    assert done.result["n_records"] == 60
    assert refused.outcome == "refused"
    assert "'none.csv' does not exist" in refused.message
    assert all(map(system.is_private, (tmp_path / "runs").iterdir()))
    assert Runs(tmp_path / "runs", tmp_path).run(number) == done


def test_python_files_in_the_folder_of_the_data_are_not_run(runs, tmp_path):
    for name in ("csv.py", "json.py", "numpy.py"):
        (tmp_path / name).write_text("open('executed', 'w')\nraise SystemExit(1)\n")

    assert wait(runs, runs.start("inspect", "", 1, JOB), LIMIT).outcome == "done"
    assert not (tmp_path / "executed").exists()


def test_a_cancelled_run_ends_within_a_second_even_if_it_does_not_listen(runs, monkeypatch):
    for code in (IDLE, DEAF):
        (number,) = started(runs, monkeypatch, code, "release")
        wait_until(lambda number=number: runs.run(number).share == 0.5)
        child = runs._children[number]
        runs.cancel(number)

        assert child.returncode is not None
        assert runs.run(number).outcome == "cancelled"
    assert module.GRACE < 1


def test_a_new_run_of_a_verb_ends_the_older_one(runs, monkeypatch):
    first, other, second = started(runs, monkeypatch, IDLE, "check", "release", "check")

    assert runs.run(first).outcome == "cancelled"
    assert runs.run(other).running
    assert runs.run(second).running


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os; os.kill(os.getpid(), 9)", "not enough memory"),
        ("import os; os.kill(os.getpid(), 11)", "signal 11"),
        ("raise SystemExit(3)", "exit code 3"),
    ],
)
def test_a_child_that_crashes_leaves_a_message(runs, monkeypatch, code, words):
    (number,) = started(runs, monkeypatch, code, "release")
    found = wait(runs, number, LIMIT)

    assert found.outcome == "failed"
    assert words in found.message
    assert "ry again." in found.message
    assert found.written == []


def test_a_run_whose_server_is_gone_is_interrupted_and_says_how_far_it_was(runs, monkeypatch, tmp_path):
    (number,) = started(runs, monkeypatch, IDLE, "release")
    wait_until(lambda: runs.run(number).share == 0.5)
    later = Runs(tmp_path / "runs", tmp_path)

    assert later.run(number).outcome == "interrupted"
    assert later.run(number).share == 0.5


def test_a_child_ends_when_its_server_is_killed(tmp_path):
    code = "import shoal.app.child_process as w, time; w.VERBS['check'] = lambda *a, **b: time.sleep(600); w.main()"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, cwd=tmp_path)
    child.stdin.write(
        json.dumps({"verb": "check", "job": "", "options": {}, "file": str(tmp_path / "run")}).encode() + b"\n"
    )
    child.stdin.close()  # as the system does when the server ends

    assert child.wait(LIMIT) == 1


# A child that holds its file as the real one does, writes one of two files, and does nothing more.
WRITING = """
import json, sys, time
from pathlib import Path
from shoal.app.runs import stamp_of
from shoal.files.locks import hold
asked = json.loads(sys.stdin.readline())
hold(Path(asked["file"]))
with open(asked["file"], "a") as file:
    print(json.dumps({"writes": {name: stamp_of(Path(name)) for name in ("old.csv", "new.csv")}}), file=file)
Path("new.csv").write_text("a")
with open(asked["file"], "a") as file:
    print(json.dumps({"stage": "working", "share": 0.5}), file=file)
time.sleep(600)
"""


def test_a_server_started_again_sees_a_child_that_is_still_there_and_what_it_has_written(runs, monkeypatch, tmp_path):
    (tmp_path / "old.csv").write_text("a")
    (number,) = started(runs, monkeypatch, WRITING, "release")
    wait_until(lambda: runs.run(number).share == 0.5)
    again = Runs(tmp_path / "runs", tmp_path)
    while_it_is_there = again.run(number)
    runs._children[number].kill()
    runs._children[number].wait()
    wait_until(lambda: not again.run(number).running)

    assert while_it_is_there.running
    assert again.run(number).outcome == "interrupted"
    assert again.run(number).written == ["new.csv"]


def test_a_child_that_listens_to_nothing_ends_with_the_server():
    code = (
        "import signal, threading, time; from shoal.app.child_process import _end_with_the_server as ending\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "threading.Thread(target=ending, daemon=True).start(); time.sleep(600)"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    child.stdin.close()

    assert child.wait(LIMIT) == 1


def test_a_fault_of_a_child_shows_no_value(runs):
    number = runs.start("records", "", 1, JOB, records=[1], files={})
    found = wait(runs, number, LIMIT)

    assert found.outcome == "failed"
    assert "fault of shoal" in found.message
    assert [secret for secret in SECRETS if secret in found.message] == []


def test_a_line_that_is_cut_off_does_no_harm(runs, tmp_path):
    path = tmp_path / "runs" / "000007.jsonl"
    path.write_text('{"verb": "check", "key": "", "job": 1, "options": {}}\n{"stage": "a", "share": 0.2}\n{"don')

    assert runs.run(7).outcome == "interrupted"
    assert runs.run(7).share == 0.2


def test_signals_of_the_terminal_are_for_the_server(runs, monkeypatch):
    (number,) = started(runs, monkeypatch, IDLE, "release")

    assert os.getpgid(runs._children[number].pid) != os.getpgid(0)
