"""Ends: where lines come from and go to, all of them different files, and where a stopped pipe leaves its state."""

import os
import stat
import sys
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from shoal.errors import FileError, ParameterError
from shoal.files.locks import lock_file, locked_folders, sweep
from shoal.stream import Stream
from shoal.stream.pipe.sink import is_packed
from shoal.system import system

STATE, LOCK = "stream.state", "stream.lock"


@dataclass(frozen=True)
class PipeEnds:
    """Where lines come from and go to; None is stdin or stdout."""

    input: str | None = None
    output: str | None = None
    side: str | None = None
    checkpoint: Path | None = None
    every: int = 1_000_000
    """Number of tuples between two checkpoints."""
    force: bool = False
    """Replace existing files."""
    drain: float = 10.0
    """Seconds after a stop within which what was read has to be delivered."""
    job: str | None = None
    """The file that describes the stream."""

    def check(self) -> None:
        """Refuse ends that are the same file, and files that cannot be resumed from a checkpoint."""
        if self.checkpoint is not None and (is_packed(self.output) or is_packed(self.side)):
            raise ParameterError("A compressed file cannot be cut and continued; with a checkpoint, write plain files.")
        state = None if self.checkpoint is None else str(self.checkpoint / STATE)
        places = [
            (f"input {self.input or 'stdin'!r}", _place(self.input, sys.stdin)),
            (f"job {self.job!r}", _place(self.job, None)),
            (f"output {self.output or 'stdout'!r}", _place(self.output, sys.stdout)),
            (f"side output {self.side!r}", _place(self.side, None)),
            (f"checkpoint {state!r}", _place(state, None)),
        ]
        for (one, place), (other, there) in combinations(places, 2):
            if place is not None and place == there:
                raise FileError(
                    f"{one[0].upper()}{one[1:]} and {other} are the same file. Give each its own; nothing was read or "
                    "written."
                )


def _place(path: str | None, standard: Any) -> tuple[object, ...] | None:
    """Return what identifies a file, None if it does not exist."""
    if path is not None and not os.path.exists(path):
        return (os.path.realpath(path),)
    try:
        found = os.stat(standard.fileno() if path is None else path)
    except (OSError, ValueError, AttributeError):
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


class Checkpoint:
    """A folder for the state of one pipe at a time, created if needed for its owner alone; locked until `close`."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / STATE
        busy = f"Another pipe is using the checkpoint folder {folder.name}. Wait until it has ended, or use another."
        try:
            system.make_private_folder(folder, parents=True, exist_ok=True)
            self._descriptor = lock_file(folder / LOCK, 0.0, busy)
        except OSError as error:
            raise FileError(f"The checkpoint folder {folder.name} cannot be used: {error.strerror}.") from error
        with locked_folders([folder]):
            # Partial files of a killed run hold unprotected tuples and cannot be used.
            sweep(self.path)

    def load(self, stream: Stream) -> Stream | None:
        """Return the saved stream, if there is one."""
        return Stream.load(self.path, clock=stream.clock) if self.path.exists() else None

    def save(self, stream: Stream) -> None:
        """Write the state; the old one stays until the new one is on disk."""
        stream.save(self.path)

    def remove(self) -> None:
        """Remove the state, since the stream has ended."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Release the lock."""
        os.close(self._descriptor)
