"""Pipe: lines in, k-anonymous lines out, for ``shoal stream``.

`source` reads bytes, `lines` turns lines into columns and back, `sink` writes, and `loop` connects them and resumes
where it was stopped.
"""

from shoal.stream.pipe.lines import LineForm
from shoal.stream.pipe.loop import Ending, Pipe, Watching

__all__ = ["Ending", "LineForm", "Pipe", "Watching"]
