"""Redis keys: the names of a worker in Redis, and its limits."""

from dataclasses import dataclass

ID = "shoal:id"
"""The column that holds the entry id of a tuple. It appears in the side output only."""

FIELD = b"data"
"""The field of an entry that holds a tuple, as one JSON object."""

STEP_BYTES = 1 << 22
"""Size from which on a step takes no further entry, and of the pieces in which much is sent to Redis."""


@dataclass(frozen=True)
class Names:
    """The keys of a worker in Redis. A cluster needs all in one slot: names with a tag, as in ``{visits}-safe``."""

    source: str
    target: str
    side: str | None = None
    group: str = "shoal"

    @property
    def state(self) -> str:
        """The key of the state: one for each group on a stream."""
        return f"{self.source}:{self.group}:state"

    @property
    def lease(self) -> str:
        """The key of the lease, which holds the name of the worker that serves the group."""
        return f"{self.source}:{self.group}:lease"

    @property
    def keys(self) -> list[str]:
        """The keys of the scripts, in their order; without a side output the last one is not touched."""
        return [self.state, self.lease, self.source, self.target, self.side or self.target]


@dataclass(frozen=True)
class Limits:
    """Limits of a worker: batch sizes, stream lengths and waiting times.

    Attributes
    ----------
    batch : int
        Maximum number of entries in a step.
    lease : float
        Seconds after which another worker takes over from one that no longer responds.
    patience : float
        Seconds of an outage after which the worker gives up.
    target_length, side_length : int, optional
        Approximate length to which the streams are trimmed (``MAXLEN ~``).
    trim_source : bool
        Remove entries from the source once they are committed, unless other groups read it.
    """

    batch: int = 1000
    lease: float = 10.0
    patience: float = 900.0
    target_length: int | None = None
    side_length: int | None = None
    trim_source: bool = False
