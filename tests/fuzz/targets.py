"""What is fuzzed: bytes go in, and a result or a refusal comes out. Anything else is an error of shoal.

Each function takes any bytes and raises whatever is wrong; `ShoalError` never leaves it. `fuzz.py` calls them with
mutated inputs for as long as asked, `test_corpus.py` with the files of `corpus/`, which hold what was once interesting.
"""

import tempfile
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from shoal import kernels
from shoal.errors import ShoalError
from shoal.job import Job
from shoal.output.manifest import read_internal
from shoal.sources import read, write

CORPUS = Path(__file__).with_name("corpus")
SECRET = b"SECRET"
"""What stands for private values in the corpus: no message shows it, unless it is in a header."""

_NAMES = ["a", "b", "c", "d"]
_READS = [0, 1, 2, 3]


def lines(data: bytes) -> None:
    """Read lines of a stream whole and in two pieces, write them, and read them again; as in fuzz_lines.cpp."""
    if len(data) < 2:
        return
    is_csv, separator, text = bool(data[0] & 1), ",;\t "[data[0] >> 1 & 3], data[2:]
    whole = kernels.TextReader(_NAMES, _READS, is_csv, separator).read(text, True)
    assert whole[0] == len(text)
    assert all(begin <= end <= len(text) for _, _, begin, end in whole[4])

    reader = kernels.TextReader(_NAMES, _READS, is_csv, separator)
    first = reader.read(text[: len(text) * data[1] // 255], False)
    second = reader.read(text[first[0] :], True)
    assert first[1] + second[1] == whole[1]
    assert len(first[4]) + len(second[4]) == len(whole[4])
    for one, other, both in zip(_values(first), _values(second), _values(whole), strict=True):
        assert _same(one + other, both)

    out = kernels.TextWriter(_NAMES[:3], is_csv, separator).write(whole[3][:3], len(whole[2]))
    again = kernels.TextReader(_NAMES[:3], _READS[:3], is_csv, separator).read(out, True)
    assert not again[4]
    numbers, *texts = _values(whole)
    assert _same(_values(again)[0], [value if np.isfinite(value) else np.nan for value in numbers])
    assert _values(again)[1:] == texts


def _values(parsed) -> list[list]:
    """Return the first three columns: the numbers, and two of texts, None where missing."""
    numbers, *texts = parsed[3][:3]
    out = [numbers.tolist()]
    for offsets, content, there in texts:
        content = content.tobytes()
        out.append(
            [
                content[begin:end] if is_there else None
                for begin, end, is_there in zip(offsets[:-1], offsets[1:], there, strict=True)
            ]
        )
    return out


def _same(ones: list, others: list) -> bool:
    return len(ones) == len(others) and all(
        one == other or (one != one and other != other) for one, other in zip(ones, others, strict=True)
    )


def csv(data: bytes) -> None:
    """Read a CSV file; what was read can be written, and read again with as many records."""
    with _file(data, "in.csv") as path, _refusals(data):
        table = read(path)
        arrow = table.arrow
        back = path.with_name("out.csv")
        write(arrow, back)
        assert read(back).arrow.num_rows == arrow.num_rows


def jobs(data: bytes) -> None:
    """Read a job file; a job that was read is the job that is written."""
    with _file(data, "job.toml") as path, _refusals(b""):
        job = Job.load(path)
        assert Job.from_toml(job.to_toml()) == job


def manifests(data: bytes) -> None:
    """Read an internal manifest."""
    with _file(data, "release.csv.internal.json") as path, _refusals(data):
        read_internal(path)


@contextmanager
def _file(data: bytes, name: str):
    with tempfile.TemporaryDirectory(prefix="shoal-fuzz-") as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        yield path


@contextmanager
def _refusals(data: bytes):
    """Let refusals pass that say something and show no value."""
    said = "nothing was refused"
    try:
        yield
    except ShoalError as error:
        said = str(error)
    header = data.replace(b"\r", b"\n").split(b"\n")[0]
    assert said.strip()
    assert SECRET in header or SECRET.decode() not in said


TARGETS: dict[str, Callable[[bytes], None]] = {"lines": lines, "csv": csv, "jobs": jobs, "manifests": manifests}
