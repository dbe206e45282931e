"""When records arrive: evenly, or by a curve that is given."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shoal.errors import ParameterError


@dataclass(frozen=True)
class Arrivals:
    """How much has arrived by when.

    Attributes
    ----------
    seconds : tuple of float
        Points in time since the collection began, ascending from 0; the last is its end.
    shares : tuple of float
        What has arrived by then, ascending; the last is 1. In between it grows evenly.

    Examples
    --------
    >>> ten_hours = Arrivals.uniform(36_000)
    >>> ten_hours.head_start(0.1)
    3600.0
    >>> late_rush = Arrivals((0, 30_000, 36_000), (0, 0.5, 1))
    >>> late_rush.head_start(0.1), late_rush.open_share(6_000)
    (1200.0, 0.5)
    """

    seconds: tuple[float, ...]
    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        seconds, shares = np.asarray(self.seconds, dtype=float), np.asarray(self.shares, dtype=float)
        if len(seconds) < 2 or len(seconds) != len(shares):
            raise ParameterError("An arrival curve needs as many shares as points in time, and at least two of each.")
        if not (np.isfinite(seconds).all() and (np.diff(seconds) >= 0).all() and seconds[0] == 0):
            raise ParameterError("The points in time of an arrival curve must ascend from 0.")
        if not (np.isfinite(shares).all() and (np.diff(shares) >= 0).all() and shares[0] >= 0 and shares[-1] == 1):
            raise ParameterError("The shares of an arrival curve must ascend, from 0 or more to 1.")

    @classmethod
    def uniform(cls, seconds: float) -> "Arrivals":
        """Let records arrive evenly for so many seconds."""
        if not 0 <= seconds < float("inf"):
            raise ParameterError(f"A collection takes a number of seconds of at least 0; got {seconds!r}.")
        return cls((0.0, float(seconds)), (0.0, 1.0))

    @classmethod
    def of(cls, points: Sequence[tuple[float, float]]) -> "Arrivals":
        """Make a curve of points (seconds, share)."""
        return cls(tuple(seconds for seconds, _ in points), tuple(share for _, share in points))

    @property
    def duration(self) -> float:
        """How long the collection takes, in seconds."""
        return float(self.seconds[-1])

    def head_start(self, late: float) -> float:
        """Say how long before the end all but a share `late` have arrived, in seconds."""
        if late >= 1 - self.shares[0]:
            return self.duration
        # Where the curve is flat, the first moment at which the share is there.
        rising = np.concatenate([[True], np.diff(self.shares) > 0])
        shares, seconds = np.array(self.shares)[rising], np.array(self.seconds)[rising]
        at = 1 - late
        place = max(int(np.searchsorted(shares, at)), 1)
        if place >= len(shares):
            return float(self.duration - seconds[-1])
        before = self._flat_until(float(shares[place - 1]))
        part = (at - shares[place - 1]) / (shares[place] - shares[place - 1])
        moment = seconds[place] if part >= 1 else before + part * (seconds[place] - before)
        return float(self.duration - moment)

    def open_share(self, before_end: float) -> float:
        """Say what share is still to come so many seconds before the end."""
        return float(1 - np.interp(self.duration - before_end, self.seconds, self.shares))

    def _flat_until(self, share: float) -> float:
        """Return the last moment at which exactly this share was there."""
        return max(moment for moment, there in zip(self.seconds, self.shares, strict=True) if there == share)
