"""Names: what the worker's things are called in Redis, and how large they may become."""

from dataclasses import dataclass

ID = "shoal:id"
"""The column that holds the id of the entry of a tuple. It comes back on the side output only."""

FIELD = b"data"
"""The field of an entry that holds a tuple, as one JSON object."""


@dataclass(frozen=True)
class Names:
    """What the worker's things are called in Redis."""

    source: str
    target: str
    side: str | None = None
    group: str = "shoal"

    @property
    def state(self) -> str:
        """Where the state is kept: one for each group on a stream."""
        return f"{self.source}:{self.group}:state"

    @property
    def lease(self) -> str:
        """Where the worker that serves the group has written its name."""
        return f"{self.source}:{self.group}:lease"

    @property
    def keys(self) -> list[str]:
        """The keys of the scripts, in their order; without a side output the last one is not touched."""
        return [self.state, self.lease, self.source, self.target, self.side or self.target]


@dataclass(frozen=True)
class Limits:
    """How much a worker takes, keeps and waits.

    Attributes
    ----------
    batch : int
        Entries of a step, at most.
    lease : float
        Seconds after which another worker takes the place of one that is not heard of.
    patience : float
        Seconds of an outage after which the worker gives up.
    target_length, side_length : int, optional
        Length at which the streams are trimmed, about (``MAXLEN ~``).
    trim_source : bool
        Remove entries from the source once they are committed. Not where other groups read it.
    """

    batch: int = 1000
    lease: float = 10.0
    patience: float = 900.0
    target_length: int | None = None
    side_length: int | None = None
    trim_source: bool = False
