"""File locks, and hidden temporary names whose leftovers the next run removes.

A lock belongs to an open file and ends with it, so a process releases its locks however it ends. A file system without
locks is used without them; files that cannot be locked there are never considered abandoned.
"""

import fcntl
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from shoal.errors import FileError

_WAIT = 60.0  # seconds; a folder is locked only while files are renamed


def lock(descriptor: int, wait: float, busy: str) -> None:
    """Lock an open file within `wait` seconds, or raise `FileError` with the text `busy`."""
    until = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= until:
                raise FileError(busy) from None
            time.sleep(0.02)


@contextmanager
def locked_folders(folders: Iterable[Path]) -> Iterator[None]:
    """Lock these folders against other processes that use this function."""
    with ExitStack() as stack:
        # Every process locks them in the same order, so that no deadlock can occur.
        for folder in sorted(set(folders)):
            with suppress(OSError):  # a folder that cannot be opened, or a file system without locks
                descriptor = os.open(folder, os.O_RDONLY)
                stack.callback(os.close, descriptor)
                lock(descriptor, _WAIT, f"Another process is writing to the folder {str(folder)!r}. Try again later.")
        yield


def hidden_beside(target: Path) -> Path:
    """Return a unique hidden name in the same folder that `sweep` recognises."""
    return target.with_name(f".{secrets.token_hex(6)}.{target.name}")


def hold(path: Path, flags: int = os.O_RDONLY) -> int:
    """Open and lock a file or folder with a hidden name, so that `sweep` does not remove it until it is closed."""
    descriptor = os.open(path, flags, 0o600)
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def sweep(target: Path) -> None:
    """Remove temporary files that killed processes have left beside `target`; its folder must be locked."""
    hidden = re.compile(rf"(\.[0-9a-f]{{12}}\.)+{re.escape(target.name)}")
    with suppress(OSError):
        for path in target.parent.iterdir():
            if hidden.fullmatch(path.name):
                with suppress(OSError):
                    _remove_abandoned(path)


def _remove_abandoned(path: Path) -> None:
    """Remove a file or folder unless a process holds its lock."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
    finally:
        os.close(descriptor)
