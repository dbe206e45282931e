"""A stream seen from outside: metrics, health, logs, and the job file that describes it."""

import json
import logging
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

from shoal import Job, ParameterError, cli, run
from shoal.cli import stream as stream_command
from shoal.models import LDiversity
from shoal.stream import Stream, monitor
from shoal.stream.from_job import stream_of
from shoal.stream.logs import logging_to_stderr
from shoal.stream.monitor import Monitor, Status
from shoal.stream.pipe import Pipe

SAMPLE = re.compile(r'shoal_[a-z_]+(\{[a-z]+="[a-z-]+"\})? -?[0-9.e+-]+')


@pytest.fixture
def watched():
    one = Monitor(0)
    yield one
    one.close()


def asked(watched, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{watched.port}{path}") as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def after_some_tuples():
    stream = Stream(3, delay=4, quasi_identifiers=["x"], on_error="side")
    stream.push(pa.table({"x": [1.0, 2.0, None, 4.0, 5.0, 6.0, 7.0, 8.0]}), now=100.0)
    return stream


def test_metrics_are_prometheus_text_with_the_figures_of_the_summary(watched):
    stream = after_some_tuples()
    watched.turn(Status.WORKING, stream, 0.25, lag_entries=7, pending_entries=2, lost_entries_total=0)
    code, text = asked(watched, "/metrics")
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    summary = stream.summary()

    assert code == 200
    assert all(SAMPLE.fullmatch(line) for line in samples), samples
    for expected in (
        f"shoal_tuples_in_total {summary.n_in}",
        f"shoal_tuples_released_total {summary.n_released}",
        'shoal_tuples_side_total{reason="missing-value"} 1',
        f"shoal_tuples_waiting {summary.n_buffered}",
        f"shoal_smallest_cell {summary.smallest_cell}",
        "shoal_lag_entries 7",
        "shoal_pending_entries 2",
        "shoal_steps_total 1",
        "shoal_step_seconds_total 0.25",
        'shoal_status{status="working"} 1',
    ):
        assert expected in samples


def test_the_age_of_the_oldest_tuple_is_that_by_the_clock_of_the_stream():
    now = Monitor(clock=lambda: 130.0)
    now.turn(Status.WORKING, after_some_tuples())

    assert "shoal_oldest_tuple_age_seconds 30\n" in monitor.exposition(now.figures, 130.0)


def test_the_age_grows_also_after_the_clock_was_set_back(watched):
    now = [5000.0]
    stream = Stream(3, delay=4, quasi_identifiers=["x"], clock=lambda: now[0])
    stream.push(pa.table({"x": [1.0]}), now=stream.clock())
    now[0] = 100.0
    watched.turn(Status.WORKING, stream)
    asked(watched, "/metrics")
    now[0] = 130.0

    assert "shoal_oldest_tuple_age_seconds 30\n" in asked(watched, "/metrics")[1]


def test_ready_is_who_works_and_healthy_who_turns(watched, monkeypatch):
    stream = after_some_tuples()
    assert asked(watched, "/ready")[0] == 503
    for status, code in ((Status.WORKING, 200), (Status.STANDING_BY, 503), (Status.OUTAGE, 503)):
        watched.turn(status, stream)
        assert asked(watched, "/ready")[0] == code
        assert asked(watched, "/health")[0] == 200
    monkeypatch.setattr(monitor, "STUCK", 0.0)

    assert asked(watched, "/health")[0] == 503
    assert asked(watched, "/else")[0] == 404


def test_only_this_machine_can_ask_and_a_port_in_use_is_refused(watched):
    assert watched._server.server_address[0] == "127.0.0.1"
    with pytest.raises(ParameterError, match="cannot be used for metrics"):
        Monitor(watched.port)


@pytest.mark.parametrize("form", ["json", "text"])
def test_an_event_is_one_line(form, capsys):
    with logging_to_stderr(form):
        logging.getLogger("shoal.stream.worker").warning("outage", extra={"facts": {"reason": "two words", "n": 3}})
    (line,) = capsys.readouterr().err.splitlines()

    if form == "json":
        assert {**json.loads(line), "time": ""} == {
            "time": "", "level": "warning", "event": "outage", "reason": "two words", "n": 3
        }  # fmt: skip
    else:
        assert line.endswith('warning outage reason="two words" n=3')


JOB = """
k = 2
missing = "own-value"

[roles]
quasi_identifiers = ["x", "day"]
confidential = ["d"]

[columns.day]
kind = "date"
weight = 2.0

[[models]]
model = "l-diversity"
column = "d"
l = 2

[stream]
delay = 4
on_error = "side"

[stream.ranges]
x = [0, 10]

[stream.redis]
from = "visits"
to = "visits-safe"
"""


def test_a_job_file_describes_a_stream():
    job = Job.from_toml(JOB)
    stream = stream_of(job, "line")
    expected = Stream(
        2,
        quasi_identifiers=["x", "day"],
        confidential=["d"],
        columns={"day": {"kind": "date", "weight": 2}},
        models=LDiversity("d", l=2),
        delay=4,
        on_error="side",
        missing="own-value",
        ranges={"x": (0, 10)},
        tracked=["line"],
    )

    assert stream.rules == expected.rules
    assert Job.from_toml(job.to_toml()) == job
    assert job.stream.redis.batch == 1000


def test_the_job_of_the_examples_is_one_for_a_worker():
    job = Job.load(Path(__file__).parents[2] / "examples" / "operations" / "visits.toml")

    assert stream_of(job, "id").rules.diverse == {"diagnosis": 3}
    assert job.stream.redis.side == "visits-aside"


def lines():
    return "".join(json.dumps({"x": i % 5, "day": f"2020-01-{i + 1:02}", "d": i % 3}) + "\n" for i in range(20))


def test_the_pipe_takes_a_job_file_and_logs_json_without_values(tmp_path):
    (tmp_path / "job.toml").write_text(JOB)
    (tmp_path / "in").write_text(lines() + '{"x": "s3cret"}\n')
    arguments = ["stream", "--job", tmp_path / "job.toml", "-i", tmp_path / "in", "-o", tmp_path / "out"]
    done = CliRunner().invoke(cli.main, list(map(str, [*arguments, "--log", "json", "--metrics", "0"])))
    events = [json.loads(line) for line in done.stderr.splitlines()]

    assert done.exit_code == 0, done.stderr
    assert events[-1]["event"] == "ended"
    assert events[-1]["n_in"] == 21
    assert events[-1]["reasons"]["not-a-number"] == 1
    assert "s3cret" not in done.stderr
    refused = CliRunner().invoke(cli.main, list(map(str, [*arguments, "--log", "json"])))
    assert refused.exit_code == 2
    assert json.loads(refused.stderr)["event"] == "failed"


@pytest.mark.parametrize("log", [["--log", "json"], ["--log=json"]])
@pytest.mark.parametrize(
    ("wrong", "words", "code"),
    [
        (["-k", "two"], "'two' is not a valid integer", 2),
        (["--bogus"], "No such option", 2),
        (["-k", "3", "--quasi", "x"], "when a tuple is due", 2),
        (["-k", "3", "--quasi", "x", "--delay", "9", "-i", "absent"], "cannot be read", 2),
    ],
)
def test_a_refusal_is_an_event_where_events_are_json(wrong, words, code, log):
    done = CliRunner().invoke(cli.main, ["stream", *log, *wrong])
    event = json.loads(done.stderr)

    assert done.exit_code == event["exit_code"] == code
    assert (event["event"], event["level"]) == ("failed", "error")
    assert words in event["reason"]


def test_a_fault_is_an_event_where_events_are_json_and_so_is_progress(tmp_path, monkeypatch):
    (tmp_path / "in").write_text('{"x": 1}\n' * 9)
    command = ["stream", "-k", "3", "--quasi", "x", "--delay", "9", "-i", str(tmp_path / "in"), "--log", "json"]
    monkeypatch.setattr(stream_command, "watch_every", lambda _, tell: lambda summary: tell(summary, 1.0))
    done = CliRunner().invoke(cli.main, [*command, "--stats"])

    assert {json.loads(line)["event"] for line in done.stderr.splitlines()} == {"progress", "ended"}
    monkeypatch.setattr(Pipe, "run", lambda pipe: 1 / 0)
    done = CliRunner().invoke(cli.main, command)

    assert done.exit_code == 70
    assert "ZeroDivisionError" in json.loads(done.stderr)["reason"]


def test_every_metric_names_its_stream():
    names = {"stream": 'a"b\\c\n', "group": "shoal"}
    one = Monitor(labels=names)
    one.turn(Status.WORKING, after_some_tuples(), 0.25, lag_entries=7)
    samples = [line for line in monitor.exposition(one.figures, 0.0).splitlines() if not line.startswith("#")]

    assert all('{stream="a\\"b\\\\c\\n",group="shoal"' in sample for sample in samples)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool on this machine")
def test_prometheus_reads_the_metrics():
    one = Monitor(labels={"stream": 'a "b"\n', "group": "shoal"})
    one.turn(Status.WORKING, after_some_tuples(), 0.25, lag_entries=7, pending_entries=2, lost_entries_total=0)
    text = monitor.exposition(one.figures, 130.0)
    checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)

    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_job_says_everything_once(tmp_path):
    (tmp_path / "job.toml").write_text(JOB)
    done = CliRunner().invoke(cli.main, ["stream", "--job", str(tmp_path / "job.toml"), "--delay", "9"])

    assert done.exit_code == 2
    assert "--delay beside it" in done.stderr


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("k = 2", 'k = 2\nmethod = "mdav"'), "method is set in the job"),
        (("[stream]\ndelay", "[strem]\ndelay"), "stream"),
        (("delay = 4", "dealy = 4"), "delay"),
    ],
)
def test_a_key_that_would_do_nothing_is_refused(change, words):
    with pytest.raises(ParameterError, match=words):
        stream_of(Job.from_toml(JOB.replace(*change)), "line")


def test_a_stream_job_is_not_run_as_a_release_nor_the_other_way_round():
    with pytest.raises(ParameterError, match="shoal worker"):
        run(Job.from_toml(JOB), pa.table({"x": [1.0] * 9}))
    with pytest.raises(ParameterError, match="shoal run"):
        stream_of(Job.from_toml(JOB[: JOB.index("[stream]")]), "line")
