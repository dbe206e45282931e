"""File locks, and hidden temporary names whose leftovers the next run removes.

A lock belongs to an open file and ends with it, so a process releases its locks however it ends. A file system without
locks is used without them; files that cannot be locked there are never considered abandoned.
"""

import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from shoal.errors import FileError
from shoal.system import system

_WAIT = 60.0  # seconds; a folder is locked only while files are renamed

_Found = TypeVar("_Found")


def lock_file(path: Path, wait: float, busy: str) -> int:
    """Lock a file that is there to be locked, within `wait` seconds; return its descriptor, or raise `FileError(busy)`.

    It is made, for its owner alone, if it does not exist.
    """
    descriptor = system.open_bytes(path, os.O_CREAT | os.O_RDWR, private=True)
    try:
        _within(wait, busy, partial(system.lock, descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def locked_folders(folders: Iterable[Path]) -> Iterator[None]:
    """Lock these folders against other processes that use this function."""
    with ExitStack() as stack:
        # Every process locks them in the same order, so that no deadlock can occur.
        for folder in sorted(set(folders)):
            busy = f"Another process is writing to the folder {str(folder)!r}. Try again later."
            with suppress(OSError):  # a folder that cannot be opened, or a file system without locks
                stack.callback(os.close, _within(_WAIT, busy, partial(system.lock_folder, folder)))
        yield


def _within(wait: float, busy: str, locking: Callable[[], _Found]) -> _Found:
    """Lock within so many seconds."""
    until = time.monotonic() + wait
    while True:
        try:
            return locking()
        except BlockingIOError:
            if time.monotonic() >= until:
                raise FileError(busy) from None
            time.sleep(0.02)


def hidden_beside(target: Path) -> Path:
    """Return a unique hidden name in the same folder that `sweep` recognises."""
    return target.with_name(f".{secrets.token_hex(6)}.{target.name}")


def hold(path: Path, busy: str | None = None) -> int | None:
    """Lock a file or folder, so that `sweep` does not remove it if its name is hidden; `release` ends the lock.

    If another process holds it, raise `FileError(busy)`, or go without the lock if there is no such text.
    """
    try:
        return system.hold(path)
    except BlockingIOError:
        if busy is not None:
            raise FileError(busy) from None
    except OSError:
        pass  # a file system without locks
    return None


def release(held: int | None) -> None:
    """End a lock of `hold`."""
    if held is not None:
        os.close(held)


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
    held = system.hold(path)
    try:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
    finally:
        os.close(held)
