import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from shoal.stream.waiting import Waiting


def rows(numbers):
    return pa.RecordBatch.from_pydict({"x": pa.array(numbers, pa.int64()), "text": [f"t{n}" for n in numbers]})


def test_rows_wait_in_order_of_arrival_whatever_leaves_before_them():
    rng = np.random.default_rng(0)
    waiting, expected, n = Waiting(rows([])), [], 0
    for size in rng.integers(0, 400, 30):
        waiting.add(rows(range(n, n + size)))
        expected, n = [*expected, *range(n, n + size)], n + size
        some = rng.permutation(len(expected))[:7]
        assert waiting.take(some)["x"].to_pylist() == [expected[row] for row in some]

        kept = np.flatnonzero(rng.random(len(expected)) < 0.5)
        waiting.keep(kept)
        expected = [expected[row] for row in kept]

        assert len(waiting) == len(expected)
        assert waiting.all()["text"].to_pylist() == [f"t{number}" for number in expected]
        assert waiting.last(3)["x"].to_pylist() == expected[-3:] or len(expected) < 3


@pytest.mark.parametrize("size", [1, 10, 5000])
def test_rows_that_left_do_not_fill_the_memory(size):
    waiting = Waiting(rows([]))
    for begin in range(0, 20_000, size):
        waiting.add(rows(range(begin, begin + size)))
        waiting.keep(np.arange(max(0, len(waiting) - 100), len(waiting)))

    assert waiting._batch.num_rows <= 1200


def test_large_rows_that_left_do_not_fill_the_memory():
    waiting = Waiting(rows([]))
    for n in range(60):
        waiting.add(pa.RecordBatch.from_pydict({"x": pa.array([n], pa.int64()), "text": ["t" * 1_000_000]}))
        waiting.keep(np.arange(max(0, len(waiting) - 4), len(waiting)))

        assert waiting._batch.nbytes < 40_000_000
    assert waiting.all()["x"].to_pylist() == [56, 57, 58, 59]


def test_lines_go_through_a_stream_without_pandas():
    code = (
        "import sys; from shoal.stream import Stream; from shoal.stream.pipe.lines import *\n"
        "stream = Stream(2, quasi_identifiers=['x'], other=['y'], delay=3)\n"
        'text = b\'\'.join(b\'{"x":%d,"y":"t"}\\n\' % i for i in range(9))\n'
        "read = Reader(LineReading(stream.rules, LineForm.NDJSON)).read(text, True, 0)\n"
        "released = stream.push_rows(read.rows)\n"
        "lines = Writer(LineForm.NDJSON, released.schema.names).write(released)\n"
        "assert lines.count(b'\\n') == released.num_rows >= 2\n"
        "assert 'pandas' not in sys.modules"
    )

    subprocess.run([sys.executable, "-c", code], check=True)
