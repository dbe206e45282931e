"""The files of a pipe: each its own."""

import pytest

from shoal import FileError
from shoal.stream import Stream
from shoal.stream.pipe.ends import PipeEnds
from shoal.stream.pipe.lines import LineForm, LineReading
from shoal.stream.pipe.loop import Pipe


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        ({"input": "in", "output": "in"}, "Input 'in' and output 'in' are the same file"),
        ({"input": "in", "output": "hard"}, "Input 'in' and output 'hard' are the same file"),
        ({"input": "in", "output": "out", "side": "symbolic"}, "Input 'in' and side output 'symbolic'"),
        ({"output": "new", "side": "./new"}, "Output 'new' and side output './new'"),
    ],
)
def test_no_end_of_a_pipe_is_another_one(tmp_path, monkeypatch, ends, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").write_text('{"x": 1}\n')
    (tmp_path / "hard").hardlink_to("in")
    (tmp_path / "symbolic").symlink_to("in")
    stream = Stream(2, quasi_identifiers=["x"], delay=5)
    with pytest.raises(FileError, match=message):
        Pipe(stream, LineReading(stream.rules, LineForm.NDJSON), PipeEnds(**ends))

    assert (tmp_path / "in").read_text() == '{"x": 1}\n'
