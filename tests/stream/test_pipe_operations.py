"""What an operator meets in the first week: full pipes, signals, wrong paths, lines that are none."""

import io
import json
import os
import select
import stat
import subprocess
import sys
import threading
import time
from array import array

import numpy as np
import pytest
from click.testing import CliRunner

from shoal import cli
from shoal.errors import InputError, OutageError, ParameterError
from shoal.stream import Stream
from shoal.stream.monitor import Monitor, Status
from shoal.stream.pipe import loop, source
from shoal.stream.pipe.ends import PipeEnds
from shoal.stream.pipe.lines import LINE, LineForm, LineReading
from shoal.stream.pipe.loop import Ending, Pipe
from shoal.stream.pipe.sink import Sink
from waits import wait_until

OPTIONS = ("-k", "2", "--delay", "4", "--quasi-identifiers", "x", "--other", "n")


def lines(n):
    return b"".join(b'{"x":%d,"n":%d}\n' % (i % 7, i) for i in range(n))


def pipe(form=LineForm.NDJSON, ends=None, watching=None, separator=",", **rules):
    rules = {"quasi_identifiers": ["x"], "other": ["n"], "delay": 4, "tracked": [LINE], "on_error": "side", **rules}
    stream = Stream(2, **rules)
    return Pipe(stream, LineReading(stream.rules, form, separator), ends, watching)


def through(folder, text, **options):
    """Let a text go through a pipe between files; return the pipe, the output, and what went aside."""
    (folder / "in").write_bytes(text)
    ends = PipeEnds(str(folder / "in"), str(folder / "out"), str(folder / "side"), force=True)
    one = pipe(ends=ends, **options)
    one.run()
    return one, numbers_in((folder / "out").read_bytes()), aside_in(folder)


def aside_in(folder):
    return [json.loads(line) for line in (folder / "side").read_text().split("\n")[:-1]]


def numbers_in(content):
    return [json.loads(line, parse_constant=pytest.fail)["n"] for line in content.decode().split("\n")[:-1]]


def invoke(*arguments):
    return CliRunner().invoke(cli.main, ["stream", *OPTIONS, *map(str, arguments)])


def test_a_stdout_that_takes_little_at_a_time_gets_every_byte(tmp_path):
    (tmp_path / "in").write_bytes(lines(20_000))
    end, begin = os.pipe()
    os.set_blocking(begin, False)
    command = [sys.executable, "-m", "shoal.cli", "stream", *OPTIONS, "-i", str(tmp_path / "in")]
    with subprocess.Popen(command, stdout=begin, env={**os.environ, "PYTHONUNBUFFERED": "1"}) as process:
        os.close(begin)
        content = b""
        while piece := os.read(end, 1 << 14):
            content += piece
            time.sleep(0.001)
        os.close(end)

    assert process.returncode == 0
    assert sorted(numbers_in(content)) == list(range(20_000))


def test_a_write_that_is_cut_short_goes_on_with_the_rest(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, content: write(descriptor, bytes(content)[:7]))
    sink = Sink(str(tmp_path / "out"))
    sink.write(lines(50))
    sink.finish()
    sink.let_go()

    assert (tmp_path / "out").read_bytes() == lines(50)


@pytest.mark.parametrize(
    "places",
    [
        ("-i", "f", "-o", "f"),
        ("-i", "f", "-o", "link"),
        ("-i", "g", "-o", "f", "--side", "f"),
        ("-i", "f", "--side", "f"),
    ],
)
def test_ends_that_are_the_same_file_are_refused_and_the_file_stays(places, tmp_path):
    (tmp_path / "f").write_bytes(lines(9))
    (tmp_path / "g").write_bytes(lines(9))
    (tmp_path / "link").symlink_to(tmp_path / "f")
    done = invoke(*(place if place.startswith("-") else tmp_path / place for place in places), "--force")

    assert done.exit_code == 2
    assert "the same file" in done.stderr
    assert (tmp_path / "f").read_bytes() == lines(9)


@pytest.mark.parametrize("which", ["-o", "--side"])
def test_a_file_that_is_there_is_replaced_on_request_only(which, tmp_path):
    (tmp_path / "in").write_bytes(lines(9))
    (tmp_path / "old").write_text("precious")
    done = invoke("-i", tmp_path / "in", which, tmp_path / "old")

    assert done.exit_code == 2
    assert "old exists already" in done.stderr
    assert (tmp_path / "old").read_text() == "precious"


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_bad_first_line_leaves_the_old_output_and_makes_no_new_one(ending, tmp_path):
    (tmp_path / "in").write_bytes(b"nonsense\n" + lines(9))
    old, new = tmp_path / f"old{ending}", tmp_path / f"new{ending}"
    old.write_text("precious")
    for path in (old, new):
        assert invoke("-i", tmp_path / "in", "-o", path, "--force").exit_code == 65

    assert old.read_text() == "precious"
    assert not new.exists()


@pytest.mark.parametrize("line", [b"\n", b"nonsense\n", b'{"x":null,"n":0}\n', b'{"n":'])
def test_tuples_grow_old_also_while_lines_keep_coming_that_are_none(line, tmp_path):
    end, begin = os.pipe()
    out, clock, left = tmp_path / "out", iter(range(1000)), iter([line] * 60)

    def keep_busy(summary):
        if not summary.n_in:  # the source has not read yet, however long that takes
            return
        if out.stat().st_size or (text := next(left, None)) is None:
            one._stop()
        else:
            os.write(begin, text)

    os.write(begin, lines(2))
    ends = PipeEnds(f"/dev/fd/{end}", str(out))
    one = pipe(ends=ends, watching=keep_busy, delay=None, max_age=20.0, clock=lambda: float(next(clock)))
    one.run()
    os.close(begin)
    os.close(end)

    assert next(left, None) is not None  # what waited was released before these had come


def test_a_stop_loses_nothing_that_was_read(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "CHUNK", 100)
    end, begin = os.pipe()
    os.write(begin, lines(1000))

    def stop_once_the_source_has_read_ahead(summary):
        wait_until(lambda: n_unread(end) <= len(lines(1000)) - 400)
        one._stop()

    one = pipe(ends=PipeEnds(f"/dev/fd/{end}", str(tmp_path / "out")), watching=stop_once_the_source_has_read_ahead)
    ending = one.run()
    os.close(begin)
    unread = b""
    while piece := os.read(end, 1 << 16):
        unread += piece
    released = numbers_in((tmp_path / "out").read_bytes())

    assert ending is Ending.STOPPED
    assert sorted(released) == list(range(len(released)))
    assert one.next_line == len(released) + 1
    assert one.n_cut + len(unread) == len(lines(1000)) - len(lines(len(released)))
    assert len(unread) < len(lines(1000)) - 300


def n_unread(end):
    """Return the number of bytes that lie in a pipe."""
    import fcntl
    import termios

    count = array("i", [0])
    fcntl.ioctl(end, termios.FIONREAD, count)
    return count[0]


def test_a_consumer_that_is_stuck_does_not_keep_a_stopped_pipe(tmp_path):
    (tmp_path / "in").write_bytes(lines(20_000))
    end, begin = os.pipe()
    one = pipe(ends=PipeEnds(str(tmp_path / "in"), f"/dev/fd/{begin}", drain=0.0))

    def stop_once_the_consumer_is_stuck():
        wait_until(lambda: not select.select([], [begin], [], 0)[1])
        one._stop()

    threading.Thread(target=stop_once_the_consumer_is_stuck).start()
    with pytest.raises(OutageError, match=r"stuck|no longer reads: [\d,]+ released lines \([\d,]+ bytes\)"):
        one.run()
    os.close(end)
    os.close(begin)


STRANGE = [
    b'{"x":01,"n":1}', b'{"x":+1,"n":1}', b'{"x":nan,"n":1}', b'{"x":1,"n":nan}', b'{"x":1,"n":[01]}', b'{"x":1,"n":-}',
    b'{"x":1,"n":"\xff"}', b'{"x":1,"n":"\\ud800"}', b'{"x":1,"n":1.}', b'{"x":1,"n":1e}', b'{"x":1,"n":.5}',
]  # fmt: skip


@pytest.mark.parametrize("line", STRANGE)
def test_what_is_not_json_goes_aside_whole(line, tmp_path):
    one, out, side = through(tmp_path, lines(6) + line + b"\n")
    (aside,) = side

    assert sorted(out) == list(range(6))
    assert aside["line"] == 7
    assert aside.get("text", "").encode() == line or "base64" in aside
    assert one.stream.summary().n_side == 1


def test_our_json_is_that_of_the_standard_library(tmp_path):
    rng = np.random.default_rng(0)
    parts = [
        b"0",
        b"1",
        b"-",
        b"+",
        b".",
        b"e",
        b"E",
        b"9",
        b"12",
        b'"a"',
        b"[",
        b"]",
        b"{",
        b"}",
        b":",
        b",",
        b" ",
        b"\r",
    ]
    parts += [b"true", b"null", b"NaN", b'"\\u00e9"', b'"\\ud83d\\ude00"', b'"\\ude00"', b'"\\x"', b'"k":1', b'"\t"']
    values = [b"".join(parts[i] for i in rng.integers(len(parts), size=rng.integers(1, 6))) for _ in range(4000)]

    def is_json(value):
        try:
            text = json.dumps(json.loads(value, parse_constant=lambda word: 1 / 0), ensure_ascii=False)
            text.encode()
        except (ValueError, ZeroDivisionError):
            return False
        return True

    text = b"".join(b'{"x":%d,"n":%s}\n' % (i, value) for i, value in enumerate(values))
    _, _, side = through_raw(tmp_path, text)
    aside = {entry["line"] - 1 for entry in side}

    assert {i for i, value in enumerate(values) if not is_json(value)} == aside
    assert 100 < len(aside) < 3990


def through_raw(folder, text):
    (folder / "in").write_bytes(text)
    one = pipe(ends=PipeEnds(str(folder / "in"), str(folder / "out"), str(folder / "side"), force=True))
    one.run()
    content = (folder / "out").read_bytes()
    for line in content.split(b"\n")[:-1]:
        json.loads(line)
    return one, content, aside_in(folder)


def test_a_released_line_is_one_line_whatever_ends_a_line_elsewhere(tmp_path):
    text = b"".join(b'{"x":%d,"n":{"a":\r[%d,\r"forged"]}}\n' % (i, i) for i in range(9))
    _, content, _ = through_raw(tmp_path, text)

    assert b"\r" not in content
    assert len(content.splitlines()) == 9


def test_a_record_of_empty_fields_is_counted(tmp_path):
    records = b"x\tn\n" + b"".join(b"%d\t%d\n" % (i, i) for i in range(6)) + b"\t\n\n"
    (tmp_path / "in").write_bytes(records)
    one = pipe(LineForm.CSV, PipeEnds(str(tmp_path / "in"), str(tmp_path / "out")), separator="\t")
    one.run()
    summary = one.stream.summary()

    assert (summary.n_in, summary.n_released, summary.reasons) == (7, 6, {"missing-value": 1})


def test_tuples_that_go_aside_say_which_line_they_were(tmp_path):
    _, out, side = through(tmp_path, lines(3) + b'{"x":null,"n":3}\n' + lines(2))

    assert len(out) == 5
    assert side == [{"reason": "missing-value", "line": 4, "tuple": {"x": None, "n": 3}}]


def test_side_file_and_checkpoint_are_for_their_owner_alone(tmp_path):
    end, begin = os.pipe()
    os.write(begin, lines(50))
    state = tmp_path / "state"
    state.mkdir()
    (state / ".0123456789ab.stream.state").write_text("half a state")
    before = os.umask(0o022)
    ends = PipeEnds(f"/dev/fd/{end}", str(tmp_path / "out"), str(tmp_path / "side"), state)
    one = pipe(ends=ends, watching=lambda summary: one._stop() if summary.n_in else None)
    try:
        one.run()
    finally:
        os.umask(before)
        os.close(begin)
        os.close(end)
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "out", tmp_path / "side", *state.iterdir())}

    assert modes == {"out": 0o644, "side": 0o600, "stream.state": 0o600, "stream.lock": 0o600}


def test_two_pipes_do_not_share_a_checkpoint(tmp_path):
    (tmp_path / "in").write_bytes(lines(5))
    first = pipe(ends=PipeEnds(str(tmp_path / "in"), str(tmp_path / "out"), checkpoint=tmp_path / "state"))
    with pytest.raises(Exception, match="Another pipe"):
        pipe(ends=PipeEnds(str(tmp_path / "in"), str(tmp_path / "out2"), checkpoint=tmp_path / "state"))

    assert first.run() is Ending.DONE


def test_a_line_that_cannot_be_used_ends_the_stream_and_what_came_before_is_released(tmp_path):
    for bad in (b"nonsense", b'{"x":null,"n":0}'):
        (tmp_path / "in").write_bytes(lines(30) + bad + b"\n" + lines(5))
        ends = PipeEnds(str(tmp_path / "in"), str(tmp_path / "out"), force=True)
        with pytest.raises(InputError, match=r"Line 31 of in .* what came before was released"):
            pipe(ends=ends, on_error="fail").run()

        assert sorted(numbers_in((tmp_path / "out").read_bytes())) == list(range(30))


def test_with_a_checkpoint_a_bad_line_can_be_corrected_and_the_stream_goes_on(tmp_path):
    text = lines(60)
    ends = PipeEnds(str(tmp_path / "in"), str(tmp_path / "out"), checkpoint=tmp_path / "state")
    for bad in (b'{"x":"bad","n":29}\n', b'{"x":null,"n":29}\n'):
        (tmp_path / "in").write_bytes(text.replace(b'{"x":1,"n":29}\n', bad))
        with pytest.raises(InputError, match="Line 30 of in"):
            pipe(ends=ends, on_error="fail").run()
    (tmp_path / "in").write_bytes(text)
    pipe(ends=ends, on_error="fail").run()

    assert sorted(numbers_in((tmp_path / "out").read_bytes())) == list(range(60))


KILLED = """
import os, signal, sys
from shoal.cli import main
from shoal.stream.pipe import ends, loop
places = {"before the first state": (ends.Checkpoint, "save"), "after the first lines": (loop.Pipe, "_turn")}
place = places[sys.argv.pop(1)]
setattr(*place, lambda *_: os.kill(os.getpid(), 9))
main(prog_name="shoal")
"""


@pytest.mark.parametrize(("place", "form"), [("before the first state", ()), ("after the first lines", ("--csv",))])
def test_a_run_killed_before_its_first_checkpoint_goes_on_with_the_same_command(place, form, tmp_path):
    (tmp_path / "in").write_bytes(
        b"x,n\n" + b"".join(b"%d,%d\n" % (i % 7, i) for i in range(50)) if form else lines(50)
    )
    places = [f"{option}={tmp_path / option[2:]}" for option in ("--side", "--output", "--checkpoint")]
    command = [*OPTIONS, *form, "-i", str(tmp_path / "in"), *places]
    killed = subprocess.run([sys.executable, "-c", KILLED, place, "stream", *command], check=False)
    assert abs(killed.returncode) == 9
    assert (tmp_path / "output").exists()
    done = CliRunner().invoke(cli.main, ["stream", *command])
    plain = CliRunner().invoke(cli.main, ["stream", *OPTIONS, *form, "-i", str(tmp_path / "in")])

    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "output").read_bytes() == plain.stdout_bytes
    assert stat.S_IMODE((tmp_path / "side").stat().st_mode) == 0o600
    assert not (tmp_path / "checkpoint" / "stream.state").exists()


def test_a_run_that_is_refused_leaves_no_checkpoint_behind(tmp_path):
    (tmp_path / "in").write_bytes(b"x,n\n1,2\n")
    places = ("-i", tmp_path / "in", "-o", tmp_path / "out", "--checkpoint", tmp_path / "state")

    assert invoke(*places).exit_code == 65
    assert not (tmp_path / "out").exists()
    assert invoke(*places, "--csv").exit_code == 0


def test_a_csv_stopped_before_its_first_tuple_has_its_header_once(tmp_path, monkeypatch):
    ends = PipeEnds(str(tmp_path / "in"), str(tmp_path / "out"), checkpoint=tmp_path / "state")
    for text in (b"x,n\n", b"0,0\n1,1\n2,2\n", b"3,3\n"):
        with open(tmp_path / "in", "ab") as file:
            file.write(text)
        one = pipe(LineForm.CSV, ends)
        monkeypatch.setattr(one._source, "was_cut", text != b"3,3\n")  # as where a signal comes after the last byte
        one.run()

    assert (tmp_path / "out").read_bytes().splitlines() == [b"x,n", b"0.5,0", b"0.5,1", b"2.5,2", b"2.5,3"]


@pytest.mark.parametrize("chunk", [1, 1 << 20])
@pytest.mark.parametrize("form", LineForm)
def test_a_byte_order_mark_is_no_part_of_the_first_line(form, chunk, tmp_path, monkeypatch):
    monkeypatch.setattr(source, "CHUNK", chunk)
    text = lines(9) if form is LineForm.NDJSON else b"x,n\n" + b"".join(b"%d,%d\n" % (i % 7, i) for i in range(9))
    outputs = []
    for mark in (b"", b"\xef\xbb\xbf"):
        (tmp_path / "in").write_bytes(mark + text)
        one = pipe(form, PipeEnds(str(tmp_path / "in"), str(tmp_path / "out"), force=True), on_error="fail")
        one.run()
        outputs.append((tmp_path / "out").read_bytes())

        assert one._n_bytes == len(mark + text)
    assert outputs[0] == outputs[1]


def test_a_pipe_behind_a_slow_consumer_is_alive(tmp_path, monkeypatch):
    (tmp_path / "in").write_bytes(lines(20_000))
    end, begin = os.pipe()
    watched = Monitor(0)
    stream = Stream(2, quasi_identifiers=["x"], other=["n"], delay=4, tracked=[LINE])
    ends = PipeEnds(str(tmp_path / "in"), f"/dev/fd/{begin}", drain=0.0)
    one = Pipe(stream, LineReading(stream.rules, LineForm.NDJSON), ends, monitor=watched)
    beats = []

    def look_while_the_consumer_is_stuck():
        wait_until(lambda: watched.figures.status is Status.BLOCKED)
        for _ in range(2):
            last = watched._turned
            wait_until(lambda last=last: watched._turned > last)
            beats.append((watched._answer("/health")[0], watched._answer("/ready")[0]))
        os.close(end)

    threading.Thread(target=look_while_the_consumer_is_stuck).start()
    ending = one.run()
    watched.close()
    os.close(begin)

    assert ending is Ending.CLOSED
    assert beats == [(200, 503)] * 2


@pytest.mark.parametrize("cut", [100, 7, 1 << 20])
def test_a_line_without_an_end_goes_aside_and_the_next_one_is_read(cut, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "LONGEST", 500)
    monkeypatch.setattr(source, "CHUNK", cut)
    endless = b'{"x":1,"n":"' + b"y" * 3000
    one, out, side = through(tmp_path, lines(6) + endless + b"\n" + lines(4) + endless)

    assert len(out) == 10
    assert [entry["line"] for entry in side] == [7, 12]
    assert one.stream.summary().n_side == 2


def test_a_quote_that_nobody_closes_costs_one_line(tmp_path, monkeypatch):
    records = [b"%d,%d\n" % (i, i) for i in range(40)]
    records[20] = b'1,"open\n'
    for longest in (1 << 24, 60):
        monkeypatch.setattr(loop, "LONGEST", longest)
        (tmp_path / "in").write_bytes(b"x,n\n" + b"".join(records))
        one = pipe(
            LineForm.CSV, PipeEnds(str(tmp_path / "in"), str(tmp_path / "out"), str(tmp_path / "side"), force=True)
        )
        one.run()
        (aside,) = aside_in(tmp_path)

        assert aside == {"reason": "malformed-line", "line": 22, "text": '1,"open'}
        assert one.stream.summary().n_released == 39


def test_a_line_whose_date_is_none_goes_aside_whole(tmp_path):
    text = b"".join(b'{"x":"2020-01-%02d","n":%d}\n' % (i + 1, i) for i in range(6)) + b'{"x":"soon","n":6}\r\n'
    _, out, side = through(tmp_path, text, columns={"x": {"kind": "date"}})

    assert sorted(out) == list(range(6))
    assert side == [{"reason": "not-a-date", "line": 7, "text": '{"x":"soon","n":6}'}]


def test_what_fails_says_what_becomes_of_those_that_wait(tmp_path, monkeypatch):
    (tmp_path / "in").write_bytes(lines(30))
    one = pipe(ends=PipeEnds(str(tmp_path / "in"), str(tmp_path / "out")))
    monkeypatch.setattr(one._out, "_offer", lambda piece: (_ for _ in ()).throw(OSError(28, "No space")))
    with pytest.raises(Exception, match=r"no space left on device. \d+ tuples that waited were not released"):
        one.run()


def test_other_ends_than_files_are_no_quarrel():
    assert PipeEnds("/dev/null", "/dev/null").check() is None
    with pytest.raises(ParameterError, match="compressed"):
        PipeEnds("/dev/null", "out.gz", checkpoint=io).check()
