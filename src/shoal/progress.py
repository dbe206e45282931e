"""Progress: what several parts of a work report, as one share of one total that only grows."""

import threading

from shoal.typing import Progress


class OneTotal:
    """Reports parts that count in units of their own as records done out of all.

    Parameters
    ----------
    progress : callable or None
        Called as ``progress(done, n_records)``: at once with 0, with growing numbers, and with `n_records` in the end.
    n_records : int
        The total, the same in every call.

    Examples
    --------
    >>> calls = []
    >>> whole = OneTotal(lambda done, total: calls.append((done, total)), 100)
    >>> whole.part(0.1, 0.9)(1, 4)
    >>> whole.part(0.1, 0.9)(1, 8)
    >>> whole.finish()
    >>> calls
    [(0, 100), (10, 100), (30, 100), (100, 100)]
    """

    def __init__(self, progress: Progress | None, n_records: int) -> None:
        self._progress, self._n_records, self._done = progress, n_records, -1
        self._report(0.0)

    def part(self, begin: float, end: float) -> Progress | None:
        """Return the callback of a part that takes the work from one share of it to another."""
        if self._progress is None:
            return None
        self._report(begin)
        return lambda done, total: self._report(begin + (end - begin) * done / max(total, 1))

    def finish(self) -> None:
        """Report that all is done."""
        self._report(1.0)

    def _report(self, share: float) -> None:
        done = int(share * self._n_records)
        if self._progress is not None and done > self._done:
            self._done = done
            self._progress(done, self._n_records)


class TotalProgress:
    """Sums what pieces report that are worked on at the same time, each in units of its own; calls on one thread."""

    def __init__(self, progress: Progress | None, n_records: int) -> None:
        self._progress = progress
        self._n_records = n_records
        self._done: dict[int, int] = {}
        self._caller = threading.get_ident()

    def of(self, number: int, n_here: int, check: Progress | None = None) -> Progress | None:
        """Return the callback of one piece of `n_here` records; `check` stops it when another has failed."""
        if self._progress is None and check is None:
            return None

        def report(done: int, total: int) -> None:
            if check is not None:
                check(done, total)
            self._done[number] = n_here * done // max(total, 1)
            if self._progress is not None and threading.get_ident() == self._caller:
                self._progress(sum(list(self._done.values())), self._n_records)

        return report

    def finish(self) -> None:
        """Report that all records are done."""
        if self._progress is not None:
            self._progress(self._n_records, self._n_records)
