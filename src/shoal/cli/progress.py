"""Progress of work that takes more than a second: a bar on a terminal, plain lines elsewhere."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, Timer
from time import monotonic
from typing import Any

import click

from shoal.cli.printing import is_quiet

PATIENCE = 1.0
"""Seconds before anything is shown."""

_BETWEEN_LINES = 5.0


class Meter(ABC):
    """Shows the progress of ``meter(done, total)`` calls, a stage before the first one and a stage after the last."""

    def __init__(self, before: str, during: str, after: str) -> None:
        self._before, self._during, self._after = before, during, after
        self._stage = before
        self._share: float | None = None
        self._shown = False
        self._lock = Lock()
        self._timer = Timer(PATIENCE, self._begin)
        self._timer.daemon = True

    def __call__(self, done: int, total: int) -> None:
        """Record the progress."""
        with self._lock:
            finished = done >= total
            self._stage = self._after if finished else self._during
            # Never backwards: a method may count its parts in different units.
            self._share = None if finished else max(done / total, self._share or 0.0)
            if self._shown:
                self._show()

    def stage(self, name: str) -> None:
        """Take the name of the stage that begins, of work that has several."""
        with self._lock:
            self._during = name

    def __enter__(self) -> "Meter":
        self._timer.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._timer.cancel()
        with self._lock:
            if self._shown:
                self._end()
            self._shown = False

    def _begin(self) -> None:
        with self._lock:
            if self._timer.finished.is_set():  # the work has ended while the timer went off
                return
            self._shown = True
            self._show()

    @abstractmethod
    def _show(self) -> None:
        """Show the stage and the share."""

    @abstractmethod
    def _end(self) -> None:
        """Erase what was shown, where possible."""


class Lines(Meter):
    """A line when a stage begins and every few seconds, for logs."""

    _said: tuple[str, float] = ("", 0.0)

    def _show(self) -> None:
        stage, when = self._said
        if stage == self._stage and (self._share is None or monotonic() < when + _BETWEEN_LINES):
            return
        share = "" if self._share is None else f": {self._share:.0%}"
        click.echo(f"{self._stage}{share} ...", err=True)
        self._said = (self._stage, monotonic())

    def _end(self) -> None:
        """Keep the lines, since a log is kept."""


class Silent(Meter):
    """Nothing, for those who asked for it."""

    def _show(self) -> None:
        """Show nothing."""

    def _end(self) -> None:
        """Leave nothing."""


class Bar(Meter):
    """A bar that is erased when the work is done."""

    _bar: Any = None
    _task: Any = None

    def _show(self) -> None:
        if self._bar is None:
            self._bar = _rich_bar()
            self._task = self._bar.add_task(self._stage, total=None)
            self._bar.start()
        self._bar.update(
            self._task, description=self._stage, total=None if self._share is None else 1.0, completed=self._share or 0
        )

    def _end(self) -> None:
        self._bar.stop()


def _rich_bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)


@contextmanager
def showing(before: str, during: str, after: str = "finishing") -> Iterator[Meter]:
    """Show the progress of some work, once it has taken a second."""
    kind = Silent if is_quiet() else Bar if sys.stderr.isatty() else Lines
    with kind(before, during, after) as meter:
        yield meter
