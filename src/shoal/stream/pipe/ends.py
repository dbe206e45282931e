"""Ends: where lines come from and go to, each a place of its own."""

import os
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.errors import ParameterError
from shoal.stream.pipe.checkpoint import STATE
from shoal.stream.pipe.sink import is_packed


@dataclass(frozen=True)
class Ends:
    """Where lines come from and go to; None is stdin or stdout."""

    input: str | None = None
    output: str | None = None
    side: str | None = None
    checkpoint: Path | None = None
    every: int = 1_000_000
    """How many tuples between two checkpoints."""
    force: bool = False
    """Replace files that are there already."""
    drain: float = 10.0
    """How many seconds, once stopped, what was read may take to be delivered."""

    def check(self) -> None:
        """Refuse ends that are one and the same file, and files that a checkpoint cannot go on with."""
        if self.checkpoint is not None and (is_packed(self.output) or is_packed(self.side)):
            raise ParameterError("A packed file cannot be cut and written on; with a checkpoint, write plain files.")
        places = [
            ("the input", _place(self.input, sys.stdin)),
            ("the output", _place(self.output, sys.stdout)),
            ("the side output", _place(self.side, None)),
            ("the checkpoint", _place(None if self.checkpoint is None else str(self.checkpoint / STATE), None)),
        ]
        for i, (one, place) in enumerate(places):
            for other, there in places[:i]:
                if place is not None and place == there:
                    raise ParameterError(
                        f"{one.capitalize()} and {other} are the same file. Each needs a file of its own; nothing was "
                        "read or written."
                    )


def _place(path: str | None, standard: Any) -> tuple[object, ...] | None:
    """Return what tells one file from another, None where there is no file."""
    if path is not None and not os.path.exists(path):
        return (os.path.realpath(path),)
    try:
        found = os.stat(standard.fileno() if path is None else path)
    except (OSError, ValueError, AttributeError):
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None
