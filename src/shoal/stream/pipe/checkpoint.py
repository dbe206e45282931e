"""Checkpoint: the folder in which a stopped pipe leaves its state, for one pipe at a time and for its owner alone."""

import os
from pathlib import Path

from shoal.errors import FileError
from shoal.files.locks import lock, locked_folders, sweep
from shoal.stream import Stream

STATE, LOCK = "stream.state", "stream.lock"


class Checkpoint:
    """A folder, created if needed, that is locked for one pipe until `close`."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / STATE
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._descriptor = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise FileError(f"The checkpoint folder {folder.name} cannot be used: {error.strerror}.") from error
        try:
            busy = (
                f"Another pipe is using the checkpoint folder {folder.name}. Wait until it has ended, or use another."
            )
            lock(self._descriptor, 0.0, busy)
        except FileError:
            self.close()
            raise
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
