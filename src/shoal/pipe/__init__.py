"""Pipe: lines in, k-anonymous lines out, for ``shoal stream``.

Reading (`shoal.pipe.source`), lines as columns and back (`shoal.pipe.lines`), places to write to (`shoal.pipe.sink`),
and the loop that goes on where it was stopped (`shoal.pipe.loop`).
"""

from shoal.pipe.lines import Form
from shoal.pipe.loop import Ending, Pipe, Watching

__all__ = ["Ending", "Form", "Pipe", "Watching"]
