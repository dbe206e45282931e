import csv
import gzip
import io
import itertools
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from shoal import cli, kernels
from shoal.stream import Stream
from shoal.stream.pipe.lines import LineForm, LineReading, Reader, Writer
from waits import LIMIT, wait_until

QUASI = ("--quasi-identifiers", "x,y", "--confidential", "note", "--identifiers", "id")
COMMON = ("-k", "3", "--delay", "20", *QUASI)


def rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return [
        {"id": f"p{i}", "x": float(x), "y": float(y), "note": f'says "{i}", é'}
        for i, (x, y) in enumerate(rng.random((n, 2)).round(5))
    ]


def as_ndjson(records):
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def as_csv(records):
    out = io.StringIO()
    writer = csv.DictWriter(out, records[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return out.getvalue().encode()


def from_lines(content, form=LineForm.NDJSON):
    if form is LineForm.CSV:
        return [{**r, "x": float(r["x"]), "y": float(r["y"])} for r in csv.DictReader(io.StringIO(content.decode()))]
    return [json.loads(line) for line in content.splitlines()]


def shoal_stream(*arguments, text=b"", **options):
    command = [sys.executable, "-m", "shoal.cli", "stream", *map(str, arguments)]
    return subprocess.run(command, input=text, capture_output=True, timeout=LIMIT, check=False, **options)


def here(tmp_path, *arguments, text=b""):
    """Run the command in this process, on files."""
    (tmp_path / "in").write_bytes(text)
    command = ["stream", *map(str, arguments), "-i", str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--force"]
    done = CliRunner().invoke(cli.main, command)
    return done.exit_code, (tmp_path / "out").read_bytes() if (tmp_path / "out").exists() else b"", done.stderr


def by_object(records, **options):
    """What the object makes of the same tuples."""
    table = pa.Table.from_pylist(records)
    given = {"quasi_identifiers": ["x", "y"], "confidential": ["note"], "identifiers": ["id"], "delay": 20, **options}
    stream = Stream(3, **given)
    return pa.concat_tables([stream.push(table), stream.flush()]).to_pylist()


@pytest.mark.parametrize("form", LineForm)
def test_the_pipe_makes_what_the_object_makes(form):
    records = rows()
    text, flags = (as_csv(records), ("--csv",)) if form is LineForm.CSV else (as_ndjson(records), ())
    done = shoal_stream(*COMMON, *flags, text=text)

    assert done.returncode == 0, done.stderr
    assert from_lines(done.stdout, form) == by_object(records)
    assert done.stderr == b""


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_files_are_read_and_written_plain_and_packed(ending, tmp_path):
    records = rows()
    plain = as_ndjson(records)
    packed = {"": plain, ".gz": gzip.compress(plain[:500]) + gzip.compress(plain[500:])}
    content = packed[ending] if ending in packed else pa.Codec("zstd").compress(plain, asbytes=True)
    (tmp_path / f"in.ndjson{ending}").write_bytes(content)
    out = tmp_path / f"out.ndjson{ending}"
    done = shoal_stream(*COMMON, "-i", tmp_path / f"in.ndjson{ending}", "-o", out)
    unpack = {
        "": lambda b: b,
        ".gz": gzip.decompress,
        ".zst": lambda b: pa.input_stream(pa.py_buffer(b), compression="zstd").read(),
    }

    assert done.returncode == 0, done.stderr
    assert from_lines(unpack[ending](out.read_bytes())) == by_object(records)


def test_a_packed_file_that_is_cut_off_is_refused(tmp_path):
    content = gzip.compress(as_ndjson(rows(5000)))
    (tmp_path / "in.gz").write_bytes(content[: len(content) // 2])
    done = shoal_stream(*COMMON, "-i", tmp_path / "in.gz")

    assert done.returncode == 65
    assert b"cut off" in done.stderr


BAD_LINES = {
    "malformed-line": [
        b'{"id":"a","x":1,"y":2,"note":"s3cret"',
        b"s3cret",
        b'["s3cret"]',
        b'{"id":"a","x":1,"x":1,"y":2,"note":"s3cret"}',
        b'{"id":"a","x":NaN,"y":2,"note":"s3cret"}',
        b'{"id":"a","x":1,"y":-Infinity,"note":"s3cret"}',
        b'{"id":"a","x":01,"y":2,"note":"s3cret"}',
        b'{"id":"a","x":1,"y":+2,"note":"s3cret"}',
        b'{"id":"a","x":1,"y":2,"note":[.5, "s3cret"]}',
        b'{"id":"a","x":1,"y":2,"note":"s3cret \\ud800"}',
        b'{"id":"a","x":1,"y":2,"note":"s3cret \\ude00\\ud800"}',
    ],
    "not-utf-8": [b'{"id":"a","x":1,"y":2,"note":"s3cret \xff"}', b'{"id":"\xc0\x80","x":1,"y":2,"note":"s3cret"}'],
    "missing-key": [b'{"id":"a","x":1,"note":"s3cret"}', b"{}"],
    "unknown-key": [b'{"id":"a","x":1,"y":2,"note":"s3cret","new":1}'],
    "not-a-number": [b'{"id":"a","x":"s3cret","y":2,"note":""}', b'{"id":"a","x":[1],"y":2,"note":"s3cret"}'],
    "missing-value": [b'{"id":"a","x":null,"y":2,"note":"s3cret"}'],
    "infinite-value": [b'{"id":"a","x":1e999,"y":1,"note":"s3cret"}'],
}


@pytest.mark.parametrize(("reason", "line"), [(reason, line) for reason, lines in BAD_LINES.items() for line in lines])
def test_a_bad_line_fails_by_its_number_or_goes_to_the_side_and_is_never_shown(reason, line, tmp_path):
    records = rows(60)
    lines = as_ndjson(records).splitlines(keepends=True)
    text = b"".join([*lines[:10], b"\n", line + b"\r\n", *lines[10:]])
    failed, _, said = here(tmp_path, *COMMON, text=text)
    side = tmp_path / "side.ndjson"
    passed, out, said_too = here(tmp_path, *COMMON, "--on-error", "side", "--side", side, text=text)

    assert failed == 65
    assert "Line 12 of in" in said
    assert reason in said
    assert "s3cret" not in said + said_too
    assert passed == 0, said_too
    assert f"1 of 61 tuples could not be released ({reason} 1)" in said_too
    (aside,) = from_lines(side.read_bytes())
    assert aside["reason"] == reason
    assert from_lines(out) == by_object(records)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"p,1,2", "malformed-line"),
        (b"p,1,2,note,more", "malformed-line"),
        (b'p,1,2,"open', "malformed-line"),
        (b'p,1,2,no"te', "malformed-line"),
        (b"p,s3cret,2,n", "not-a-number"),
        (b"p,,2,n", "missing-value"),
        (b"p,1,inf,n", "infinite-value"),
    ],
)
def test_a_bad_record_of_csv_is_known_by_its_line(line, reason, tmp_path):
    code, _, said = here(tmp_path, *COMMON, "--csv", text=as_csv(rows(30)) + line + b"\n")

    assert code == 65
    assert "Line 32 of in" in said
    assert reason in said
    assert "s3cret" not in said


@pytest.mark.parametrize("arguments", [(), ("--csv",)])
def test_an_empty_input_is_an_empty_stream(arguments):
    done = shoal_stream("-k", 2, "--delay", 5, "--quasi-identifiers", "x", *arguments)

    assert (done.returncode, done.stdout) == (0, b"")


@pytest.mark.parametrize("line", ["s3cret,44", '{"x": "s3cret"}'])
def test_a_first_line_that_is_a_record_is_not_shown(line):
    done = shoal_stream("-k", 2, "--delay", 5, "--quasi-identifiers", "x", "--csv", text=f"{line}\n".encode())

    assert done.returncode == 2
    assert b"it seems to be a record" in done.stderr
    assert b"s3cret" not in done.stderr


def test_columns_without_a_role_are_refused_by_name(tmp_path):
    code, _, said = here(
        tmp_path, "-k", "3", "--delay", "20", "--quasi-identifiers", "x", "--csv", text=as_csv(rows(5))
    )

    assert code == 2
    assert "id, y, note have no role" in said


def test_delay_below_k_minus_1_is_refused_with_the_reason(tmp_path):
    code, _, said = here(tmp_path, "-k", "10", "--delay", "5", "--quasi-identifiers", "x")

    assert code == 2
    assert "--delay 5 is too short for k=10" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--delimiter", ";"), "--delimiter has no effect without --csv"),
        (("--checkpoint-every", "5"), "--checkpoint-every has no effect without --checkpoint"),
        (("-i", "people.CSV.gz"), "'people.CSV.gz', says that it is CSV, and lines are read as NDJSON. Add --csv"),
    ],
)
def test_an_option_without_effect_and_csv_read_as_ndjson_are_refused(arguments, words):
    done = CliRunner().invoke(cli.main, ["stream", "-k", "2", "--delay", "5", "--quasi-identifiers", "x", *arguments])

    assert done.exit_code == 2
    assert words in done.stderr


def test_fewer_than_k_subjects_leave_everything_aside(tmp_path):
    records = [{**row, "id": "same"} for row in rows(30)]
    side = tmp_path / "side.ndjson"
    roles = ("--quasi-identifiers", "x,y", "--confidential", "note", "--subject", "id")
    code, out, _ = here(tmp_path, "-k", 3, "--delay", 10, *roles, "--side", side, text=as_ndjson(records))

    assert code == 0
    assert out == b""
    assert [line["tuple"] for line in from_lines(side.read_bytes())] == [
        {name: row[name] for name in ("x", "y", "note", "id")} for row in records
    ]


def test_one_subject_spelled_in_several_ways_is_one_subject(tmp_path):
    spellings = [b'"A"', b'"\\u0041"'] * 10
    text = b"".join(b'{"who":%s,"x":%d}\n' % (who, i) for i, who in enumerate(spellings))
    numbers = b"".join(b'{"who":%s,"x":%d}\n' % (who, i) for i, who in enumerate([b"7", b"7.0", b"70e-1"] * 6))
    for lines in (text, numbers):
        code, out, said = here(
            tmp_path, "-k", 2, "--delay", 5, "--quasi-identifiers", "x", "--subject", "who", text=lines
        )
        assert (code, out) == (0, b"")
        assert "could not be released" in said


SPELLED = [
    [b'{"x":1,"y":[2]}', b'{"y": [2.0], "x": 1e0}', b'{"x":1,"y":[2],"z":null}'],
    [b'{"\\u00c4":"a"}', '{"Ä":"a "}'.encode()],
    [b"1", b"1.0", b'"1"'],
    [b'"flu"', b'"flu "', b'"fl\\u0075"'],
    [b'""', b"null", b'" "'],
    [b"10000000000000001", b"1.0000000000000001e16"],
]


@pytest.mark.parametrize("spellings", SPELLED)
@pytest.mark.parametrize(
    "rule", [("--subject", "who", "--other", "d"), ("--confidential", "d", "--l-diversity", "d=2")]
)
def test_one_value_spelled_in_several_ways_is_one_value(rule, spellings, tmp_path):
    roles = rule if "who" in rule else (*rule, "--identifiers", "who")
    text = b"".join(b'{"who":%s,"d":%s,"x":%d}\n' % (value, value, i) for i, value in enumerate(spellings * 4))
    code, out, said = here(tmp_path, "-k", 2, "--delay", 5, "--quasi-identifiers", "x", *roles, text=text)

    assert (code, out) == (0, b""), said


def test_a_value_that_has_to_differ_leaves_as_it_is_spelled(tmp_path):
    values = [b'{"b": 1.50,"a":"\\u00c4"}', b"1.0", b'"1e0"', b"null"] * 3
    text = b"".join(b'{"x":%d,"d":%s}\n' % (i, value) for i, value in enumerate(values))
    options = ("-k", 2, "--delay", 5, "--quasi-identifiers", "x", "--confidential", "d", "--l-diversity", "d=2")
    code, out, said = here(tmp_path, *options, text=text)

    assert code == 0, said
    assert sorted(line.partition(b'"d":')[2][:-1] for line in out.splitlines()) == sorted(values)


def test_fields_of_csv_that_look_alike_are_one_value(tmp_path):
    text = "x,d\n" + "".join(f"{i},{d}\n" for i, d in enumerate(["Zürich", "Zu\u0308rich ", "Zürich"] * 4))
    options = (
        "-k",
        2,
        "--delay",
        5,
        "--quasi-identifiers",
        "x",
        "--confidential",
        "d",
        "--l-diversity",
        "d=2",
        "--csv",
    )
    code, out, said = here(tmp_path, *options, text=text.encode())

    assert (code, out) == (0, b"x,d\n"), said
    odd = "x,d\n" + "".join(f"{i},{d}\n" for i, d in enumerate(["null", "01", '"""a"""', "\\u00c4"] * 4))
    code, out, said = here(tmp_path, *options, text=odd.encode())

    assert (code, len(out.splitlines())) == (0, 17), said


NUMERALS = [["1", "1.0", "1e0", "01", "+1", "10e-1"], ["0", "-0", "0.0", ".0"], ["1.5", "1.50", "15E-1"]]
NUMERALS += [["10000000000000001", "010000000000000001", "1.0000000000000001e16"]]


@pytest.mark.parametrize("numerals", NUMERALS)
@pytest.mark.parametrize("rule", [("--subject", "d"), ("--confidential", "d", "--l-diversity", "d=2")])
def test_one_number_spelled_in_several_ways_in_csv_is_one_value(rule, numerals, tmp_path):
    options = ("-k", 2, "--delay", 5, "--quasi-identifiers", "x", *rule, "--csv")
    text = "x,d\n" + "".join(f"{i},{d}\n" for i, d in enumerate(numerals * 4))
    code, out, said = here(tmp_path, *options, text=text.encode())

    assert (code, len(out.splitlines())) == (0, 1), said
    others = "x,d\n" + "".join(f"{i},{d}\n" for i, d in enumerate([numerals[0], "7", "1e400", "1.2.3"] * 4))
    code, out, said = here(tmp_path, *options, text=others.encode())
    assert (code, len(out.splitlines())) == (0, 17), said


def test_every_kind_of_column_goes_through_the_pipe(tmp_path):
    rng = np.random.default_rng(3)
    records = [
        {
            "zip": rng.choice(["a", "b"]),
            "school": str(rng.choice(["low", "high"])),
            "day": f"2020-01-{d:02}",
            "nested": {"a": [1, "}"]},
        }
        for d in rng.integers(1, 29, 60)
    ]
    code, content, said = here(
        tmp_path, "-k", 4, "--delay", 30, "--quasi-identifiers", "zip,school,day", "--other", "nested",
        "--kind", "zip=nominal",
        "--categories", "school=low,high", "--kind", "school=ordinal", "--kind", "day=date",
        "--ranges", "day=2020-01-01..2020-01-31", text=as_ndjson(records),
    )  # fmt: skip
    out = from_lines(content)

    assert code == 0, said
    assert len(out) == 60
    assert all(row["nested"] == {"a": [1, "}"]} for row in out)
    cells = {}
    for row in out:
        cells[row["zip"], row["school"], row["day"]] = cells.get((row["zip"], row["school"], row["day"]), 0) + 1
    assert min(cells.values()) >= 4


def started(*arguments, **options):
    command = [sys.executable, "-m", "shoal.cli", "stream", *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, **options)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_releases_everything_and_ends(number, tmp_path):
    out = tmp_path / "out.ndjson"
    records = rows(50)
    with started(*COMMON, "-o", out) as process:
        process.stdin.write(as_ndjson(records))
        process.stdin.flush()
        wait_until(lambda: out.exists() and out.stat().st_size > 0)
        process.send_signal(number)

        assert process.wait(LIMIT) == 0, process.stderr.read()
    assert from_lines(out.read_bytes()) == by_object(records)


def test_stopped_with_a_checkpoint_and_started_again_it_gives_the_same_bytes(tmp_path):
    records = rows(120)
    lines = as_ndjson(records).splitlines(keepends=True)
    out, state = tmp_path / "out.ndjson", tmp_path / "state"
    for begin, end in ((0, 50), (50, 51), (51, 120)):
        with started(*COMMON, "-o", out, "--checkpoint", state, "--checkpoint-every", 1) as process:
            process.stdin.write(b"".join(lines[begin:end]))
            process.stdin.flush()
            if end < 120:
                wait_until(lambda end=end: n_saved(state) == end)
                process.send_signal(signal.SIGTERM)
            else:
                process.stdin.close()
            assert process.wait(LIMIT) == 0, process.stderr.read()

    assert from_lines(out.read_bytes()) == by_object(records)
    assert [path.name for path in state.iterdir()] == ["stream.lock"]


def n_saved(folder):
    try:
        content = (folder / "stream.state").read_bytes()
    except FileNotFoundError:  # also of a pipe that has just ended
        return 0
    return Stream.restore(content).summary().n_in


def test_killed_in_mid_stream_it_goes_on_from_the_last_checkpoint_with_nothing_lost_or_doubled(tmp_path):
    records = rows(60_000)
    source, out, side, state = (tmp_path / name for name in ("in.ndjson", "out.ndjson", "side.ndjson", "state"))
    source.write_bytes(as_ndjson(records))
    arguments = (*COMMON, "-i", source, "-o", out, "--side", side, "--checkpoint", state, "--checkpoint-every", 5000)
    rng = np.random.default_rng(1)
    reached = 0
    for _ in range(3):
        with started(*arguments) as process:
            wait_until(lambda reached=reached, p=process: n_saved(state) > reached or p.poll() is not None)
            time.sleep(float(rng.random()) * 0.05)
            process.kill()
        has_ended = not (state / "stream.state").exists()
        if has_ended:  # before it could be killed
            break
        reached = n_saved(state)
    if not has_ended:
        done = shoal_stream(*arguments)
        assert done.returncode == 0, done.stderr
    plain = shoal_stream(*COMMON, text=source.read_bytes())

    assert out.read_bytes() == plain.stdout


def test_a_checkpoint_of_other_options_is_refused(tmp_path):
    roles = {"quasi_identifiers": ["x", "y"], "confidential": ["note"], "identifiers": ["id"]}
    Stream(3, delay=20, **roles).save(tmp_path / "stream.state")
    code, _, said = here(tmp_path, "-k", "4", "--delay", "20", *QUASI, "--checkpoint", tmp_path)

    assert code == 2
    assert "other options" in said


def test_a_damaged_checkpoint_is_refused(tmp_path):
    (tmp_path / "stream.state").write_bytes(b"shoal stream, version 2\nnonsense")
    code, _, said = here(tmp_path, *COMMON, "--checkpoint", tmp_path, text=as_ndjson(rows(5)))

    assert code == 2
    assert "damaged" in said


def test_a_consumer_that_goes_away_ends_the_pipe_quietly():
    source, sink = os.pipe()
    with started(*COMMON, stdout=sink) as process:
        os.close(sink)
        os.close(source)
        with suppress(BrokenPipeError):
            process.stdin.write(as_ndjson(rows(5000)))
        with suppress(BrokenPipeError):
            process.stdin.close()
        said = process.stderr.read()
        process.stdin = None

        assert process.wait(LIMIT) == 0
    assert b"The reader of the output is gone" in said
    assert b"Traceback" not in said


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="memory is read from /proc")
def test_a_consumer_that_does_not_read_makes_the_pipe_wait_without_growing():
    text = as_ndjson(rows(2000))
    with started(*COMMON, stdout=subprocess.PIPE) as process:
        os.set_blocking(process.stdin.fileno(), False)
        process.stdin.write(text[:5000])
        process.stdin.flush()
        wait_until(lambda: select.select([process.stdout], [], [], 0)[0])
        taken, last = 5000, time.monotonic()
        while time.monotonic() < last + 4 and taken < 60_000_000:  # until it has taken nothing for a while
            try:
                taken, last = taken + os.write(process.stdin.fileno(), text[taken % len(text) :]), time.monotonic()
            except BlockingIOError:
                time.sleep(0.05)
        size = int(Path(f"/proc/{process.pid}/status").read_text().split("VmRSS:")[1].split()[0])
        process.kill()

    assert taken < 30_000_000  # the source reads ahead a bounded number of pieces, then it stops
    assert size < 300_000


def test_seconds_release_what_waits_while_nothing_comes():
    options = ("-k", 2, "--max-age", 0.5, "--quasi-identifiers", "x", "--ranges", "x=0:1")
    with started(*options, stdout=subprocess.PIPE) as process:
        process.stdin.write(b'{"x":0.25}\n{"x":0.75}\n')
        process.stdin.flush()
        first = process.stdout.readline()
        process.stdin.close()

        assert json.loads(first) == {"x": 0.5}
        assert process.wait(LIMIT) == 0


def test_text_is_read_and_written_back_without_loss():
    stream = Stream(2, quasi_identifiers=["a"], other=["b"], delay=2)
    awkward = ["plain", 'with "quotes"', "with, comma", "line\nbreak", "", "ünïcode", " spaces "]
    for form in LineForm:
        reading = LineReading(stream.rules, form)
        records = [{"a": 0.1 * i, "b": text} for i, text in enumerate(awkward)]
        text = as_csv(records) if form is LineForm.CSV else as_ndjson(records)
        reader = Reader(reading)
        used = reader.header(text, True) if form is LineForm.CSV else 0
        read = reader.read(text[used:], True, 0)
        writer = Writer(form, ["a", "b"])
        back = writer.header() + writer.write(read.rows)

        assert read.bad == []
        if form is LineForm.CSV:
            found = list(csv.DictReader(io.StringIO(back.decode())))
            assert [{"a": float(row["a"]), "b": row["b"]} for row in found] == records
        else:
            assert [json.loads(line) for line in back.splitlines()] == records


def test_numbers_are_read_as_python_reads_them_and_written_so_that_nothing_is_lost():
    rng = np.random.default_rng(0)
    texts = ["0", "-0.0", "1e22", "1e23", "123456789012345678901234567890", "5e-324", "1.7976931348623157e308", "0.1e1"]
    texts += [repr(float(x)) for x in rng.normal(size=500) * 10.0 ** rng.integers(-300, 300, 500)]
    stream = Stream(2, quasi_identifiers=["a"], delay=2)
    content = "".join(f'{{"a":{text}}}\n' for text in texts).encode()
    read = Reader(LineReading(stream.rules, LineForm.NDJSON)).read(content, True, 0)
    back = Writer(LineForm.NDJSON, ["a"]).write(read.rows)

    assert read.rows["a"].to_pylist() == [float(text) for text in texts]
    assert [json.loads(line)["a"] for line in back.splitlines()] == [float(text) for text in texts]


@pytest.mark.parametrize("form", LineForm)
def test_a_text_may_be_cut_anywhere(form):
    records = [{"a": i / 8, "b": f'x"{i}\n,y'} for i in range(30)]
    text = as_csv(records) if form is LineForm.CSV else as_ndjson(records)
    stream = Stream(2, quasi_identifiers=["a"], other=["b"], delay=2)
    rng = np.random.default_rng(0)
    for _ in range(30):
        reader = Reader(LineReading(stream.rules, form))
        used = reader.header(text, True) if form is LineForm.CSV else 0
        rest, lines, batches = b"", 0, []
        cuts = [used, *np.sort(rng.integers(used, len(text), 6)), len(text)]
        for begin, end in itertools.pairwise(cuts):
            rest += text[begin:end]
            read = reader.read(rest, bool(end == len(text)), lines)
            rest, lines = rest[read.n_bytes :], lines + read.n_lines
            batches.append(read.rows)
            assert read.bad == []

        assert pa.Table.from_batches(batches)["a"].to_pylist() == [record["a"] for record in records]
        assert rest == b""


def test_zstd_on_the_command_line_can_read_what_was_written(tmp_path):
    if shutil.which("zstd") is None:
        pytest.skip("no zstd command on this machine")
    done = shoal_stream(*COMMON, "-o", tmp_path / "out.zst", text=as_ndjson(rows(50)))
    unpacked = subprocess.run(["zstd", "-dc", tmp_path / "out.zst"], capture_output=True, check=True)

    assert done.returncode == 0
    assert from_lines(unpacked.stdout) == by_object(rows(50))


def test_a_range_that_is_not_finite_is_refused_in_one_paragraph(tmp_path):
    lines = as_ndjson(rows(40))
    code, out, said = here(
        tmp_path, "-k", 3, "--delay", 9, "--quasi-identifiers", "x", "--ranges", "x=-inf:0", text=lines
    )

    assert (code, out) == (2, b"")
    assert "column 'x' has an end that is not finite" in said
    assert "\n\n" not in said.strip()


def test_a_record_of_empty_fields_between_tabs_is_a_record_and_a_blank_line_is_none():
    reader = kernels.TextReader(["a", "b"], [0, 1], True, "\t")
    n_bytes, n_lines, lines, columns, bad, begins = reader.read(b"1\tx\n\t\n\n  \n2\ty\n", True)

    assert (n_bytes, n_lines, bad) == (14, 5, [])
    assert lines.tolist() == [0, 1, 4]
    assert begins.tolist() == [0, 4, 10]
    assert columns[1][2].tolist() == [1, 0, 1]


@pytest.mark.parametrize("text", [b'"\\\0"', b'"\\x"', b'"\\"', b'"\\u12g4"', b'"\x01"'])
def test_a_string_with_an_escape_that_json_does_not_know_is_refused(text):
    reader = kernels.TextReader(["a"], [1], False, ",")

    assert [fault for _, fault, _, _ in reader.read(b'{"a":' + text + b"}\n", True)[4]] == [0]


def test_half_a_surrogate_pair_is_refused_and_takes_nothing_from_what_follows():
    reader = kernels.TextReader(["a"], [1], False, ",")
    _, _, _, [(_, content, _)], bad, _ = reader.read(b'{"a":"\\ud800\\u0041"}\n{"a":"\\ud83d\\ude00"}\n', True)

    assert [(line, fault) for line, fault, _, _ in bad] == [(0, 0)]
    assert content.tobytes().decode() == '"\U0001f600"'


def test_csv_that_is_taken_for_json_is_refused_with_the_option_for_csv(tmp_path):
    wrong = here(tmp_path, *COMMON, text=as_csv(rows(30)))
    right = here(tmp_path, *COMMON, "--csv", text=as_csv(rows(30)))

    assert (wrong[0], right[0]) == (65, 0)
    assert "for CSV add --csv" in wrong[2]


@pytest.mark.parametrize("command", ["stream", "worker"])
def test_the_help_says_that_a_stream_is_not_random(command):
    assert "nothing here is random" in " ".join(CliRunner().invoke(cli.main, [command, "--help"]).output.split())
