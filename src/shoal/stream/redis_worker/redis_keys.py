"""Redis keys: what a worker uses in Redis, and how entries and steps are made of bytes."""

from typing import NamedTuple

from shoal.job import RedisSettings

ID = "shoal:id"
"""The column that holds the entry id of a tuple. It appears in the side output only."""

FIELD = b"data"
"""The field of an entry that holds a tuple, as one JSON object."""

STEP_BYTES = 1 << 22
"""Size from which on a step takes no further entry, and of the pieces in which much is sent to Redis."""


class RedisKeys(NamedTuple):
    """The keys of the scripts, in their order. A cluster needs all in one slot: a tag in them, as in ``{visits}-safe``.

    Each group on a stream has a state, and a lease with the name of the worker that serves it. Without a side output
    its place is the target's, and is not touched.
    """

    state: str
    lease: str
    source: str
    target: str
    side: str

    @staticmethod
    def of(settings: RedisSettings) -> "RedisKeys":
        """Return the keys of a worker."""
        source, target = settings.source, settings.target
        begin = f"{source}:{settings.group}"
        return RedisKeys(f"{begin}:state", f"{begin}:lease", source, target, settings.side or target)
