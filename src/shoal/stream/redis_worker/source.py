"""Source: what Redis counts of the stream that is read, and what that says about entries that were not read."""

from typing import NamedTuple

Id = tuple[int, int]


class StreamCounts(NamedTuple):
    """The stream that is read, when it was asked for the entries after the last one."""

    n_added: int
    """Entries that were ever added."""
    length: int
    first: Id
    newest: Id
    """The largest id that was ever given."""
    at_end: bool
    """Whether all entries after the last one were returned."""

    def is_other(self, last: Id, n_read: int, n_taken: int) -> bool:
        """Return whether this cannot be the stream of which `n_read` entries were added up to the last one.

        Then it was deleted and filled again. One that has the same ids again is taken for the same stream.
        """
        if self.is_after(last):
            n_before, n_after = 0, self.length
        elif self.at_end:
            n_before, n_after = self.length - n_taken, n_taken
        else:
            n_before, n_after = 1, n_taken
        goes_back = self.length > 0 and self.newest < last
        return goes_back or n_before > n_read or n_after > self.n_added - n_read

    def is_after(self, last: Id) -> bool:
        """Return whether all entries come after the last one, or there are none."""
        return not self.length or self.first > last

    def n_gone(self, last: Id, n_read: int, n_taken: int) -> int:
        """Return how many entries after the last one were removed before they were read, where that is known."""
        if n_taken and not self.is_after(last):
            return 0
        return max(0, self.n_added - n_read - (self.length if n_taken else 0))


def as_pair(number: str) -> Id:
    """Return the two parts of an id, to be compared."""
    milliseconds, _, sequence = number.partition("-")
    return int(milliseconds or 0), int(sequence or 0)


def after(number: str) -> str:
    """Return the smallest id above a given one."""
    milliseconds, sequence = as_pair(number)
    return f"{milliseconds}-{sequence + 1}"
