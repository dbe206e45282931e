"""Progress: what several parts of a work report, as one share of one total that only grows."""

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
