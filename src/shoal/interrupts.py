"""Interrupts: what Ctrl-C and SIGTERM do while the command is imported, and while nothing may be left half done.

Only `shoal.cli` can catch what happens in a command, and it is imported last. So the package looks first whether it is
imported by the command; in a program of somebody else nothing changes.
"""

# ruff: noqa: E402 - what takes time is imported when Ctrl-C is caught

import signal
import sys

STOPPED, MESSAGE = 130, "Stopped."


def end_imports_quietly() -> None:
    """Let Ctrl-C during imports end the process as it does later, if this is the command `shoal`."""
    program = (sys.argv[0] if sys.argv else "").replace("\\", "/").rpartition("/")[2].removesuffix(".exe")
    # While Python looks for the module of `python -m shoal`, the first word is "-m".
    is_command = program == "shoal" or (program == "-m" and not {"shoal", "shoal.cli"}.isdisjoint(sys.orig_argv))
    if is_command and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end)


def end(number: int, frame: object) -> None:
    """End at once: nothing has begun. An exception would become another one in a module that is written in C."""
    os.write(2, f"\n{MESSAGE}\n".encode())  # below the ^C on a terminal, as click does
    os._exit(STOPPED)


end_imports_quietly()

# isort: split
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from shoal.system import system

_SIGNALS = (signal.SIGINT, system.TERMINATION)
_before: dict[int, Any] = {}
"""The handlers that `held` has replaced."""
_in_command = _only_reports = False


@contextmanager
def command() -> Iterator[None]:
    """Run a command, which may end with `report_what_is_written`."""
    global _in_command, _only_reports
    _in_command = True
    try:
        yield
    finally:
        _in_command = _only_reports = False


def report_what_is_written() -> None:
    """From the moment the next files have their names, let signals come too late: the command only reports them.

    Somebody else's program, which calls a command as a function, goes on, and keeps its handlers.
    """
    global _only_reports
    _only_reports = _in_command


@contextmanager
def held(*, publishing: bool = False) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM wait for the end of the block; if it has published, perhaps for ever."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def note(number: int, frame: object) -> None:
        came.append(number)

    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    replaced: dict[int, Any] = {
        number: handler for number, handler in handlers.items() if handler not in (None, signal.SIG_IGN)
    }
    _before.update(replaced)
    for number in replaced:
        signal.signal(number, note)
    try:
        yield
        if publishing and _only_reports:
            for number in replaced:
                signal.signal(number, signal.SIG_IGN)
    finally:
        _before.clear()
        for number, handler in replaced.items():
            if signal.getsignal(number) is note:  # Spark sets a handler of its own, which cancels its jobs
                signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


@contextmanager
def free() -> Iterator[None]:
    """Within a block of `held`, let signals come at once: for what may wait for somebody else."""
    notes = {number: signal.signal(number, handler) for number, handler in _before.items()}
    try:
        yield
    finally:
        for number, note in notes.items():
            signal.signal(number, note)


@contextmanager
def asking(stop: Callable[[], None]) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM ask a loop to end, in the main thread; in others they are somebody else's."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, lambda *_: stop()) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
