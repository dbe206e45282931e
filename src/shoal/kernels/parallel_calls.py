"""Side by side: several kernel calls at a time, one thread each, for work that is split into many pieces."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

from shoal import kernels

Item = TypeVar("Item")
Result = TypeVar("Result")

Call = Callable[[Item], Result]
"""Processes one piece. Where the work is to stop, its progress callback raises `StoppedError`."""


class StoppedError(Exception):
    """Another piece of the work has failed, or the work was interrupted."""


def side_by_side(call: Call[Item, Result], items: Iterable[Item], at_once: int, threads: int = 1) -> list[Result]:
    """Return the result for each item, in order, `at_once` at a time; the calling thread is one of the workers.

    Each call is made with so many `threads` (`shoal.kernels.using`). The first exception, or Ctrl-C, is raised when all
    threads have ended. If a thread cannot be started, fewer threads are used.
    """
    work = _Work(call, items, threads)
    try:
        work.call_helpers(at_once - 1)
        work.run()
    except BaseException as failure:  # Ctrl-C between items
        work.stop(failure)
    work.wait_for_helpers()
    if work.failure is not None:
        raise work.failure
    return [work.results[number] for number in range(len(work.results))]


MANY_RECORDS = 1 << 18
"""Of fewer records, a thread for each column saves little time, and takes more of that of the processor."""


def column_by_column(call: Callable[[Item], Result], columns: Sequence[Item], n_records: int) -> Iterator[Result]:
    """Yield the result for each column, in order; of many records for several columns at a time, one thread each.

    As many results are in memory as there are threads. They do not depend on the number of threads.
    """
    threads = min(kernels.n_threads(), len(columns)) if n_records >= MANY_RECORDS else 1
    if threads <= 1:
        yield from map(call, columns)
        return
    for start in range(0, len(columns), threads):
        yield from side_by_side(call, columns[start : start + threads], threads)


class _Work(Generic[Item, Result]):
    """Items that threads take one by one, and their results."""

    def __init__(self, call: Call[Item, Result], items: Iterable[Item], threads: int) -> None:
        self._call = call
        self._threads = threads
        self._items = enumerate(items)
        self._lock = threading.RLock()
        self._helping: list[threading.RLock] = []  # each is held by its helper while that is at work
        self.results: dict[int, Result] = {}
        self.failure: BaseException | None = None

    def call_helpers(self, n: int) -> None:
        """Start threads, or as many as the system allows."""
        with suppress(RuntimeError):
            for _ in range(n):
                self._helping.append(threading.RLock())
                threading.Thread(target=self._help, args=(self._helping[-1],), daemon=True).start()

    def _help(self, helping: threading.RLock) -> None:
        with helping:
            self.run()

    def wait_for_helpers(self) -> None:
        """Wait for helpers that are at work, also after Ctrl-C; one that comes later finds nothing to do.

        Their locks are waited for: up to Python 3.12 a thread counts as ended once waiting for it was interrupted. If
        one of them went on inside a kernel when Python ends, the process would be aborted.
        """
        while True:
            try:
                for helping in self._helping:
                    _alone(helping, lambda: None)
                return
            except BaseException as failure:
                self.stop(failure)

    def run(self) -> None:
        try:
            while (taken := self._next()) is not None:
                number, item = taken
                with kernels.using(self._threads, self._check):
                    self.results[number] = self._call(item)
        except BaseException as failure:
            self.stop(failure)  # keeps the first; a StoppedError comes first if this work is a piece of another

    def stop(self, failure: BaseException) -> None:
        def keep_first() -> None:
            self.failure = self.failure or failure

        _alone(self._lock, keep_first)

    def _next(self) -> tuple[int, Item] | None:
        return _alone(self._lock, lambda: None if self.failure else next(self._items, None))

    def _check(self, done: int, total: int) -> None:
        if self.failure is not None:
            raise StoppedError


def _alone(lock: threading.RLock, call: Callable[[], Result]) -> Result:
    """Return the result of a call that holds the lock, which is free again after Ctrl-C at any moment.

    In Python 3.14, Ctrl-C may be raised between `__enter__` and the block of a `with`: the lock would stay held.
    """
    try:
        lock.acquire()
        return call()
    finally:
        try:  # noqa: SIM105 - a call before the release could be interrupted
            lock.release()
        except RuntimeError:
            pass  # interrupted before the lock was acquired
