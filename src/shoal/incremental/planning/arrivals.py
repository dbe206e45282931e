"""Arrival curves: uniform, or given by points."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shoal.errors import ParameterError


@dataclass(frozen=True)
class Arrivals:
    """The share of the records that has arrived over time.

    Attributes
    ----------
    seconds : tuple of float
        Points in time since the collection began, ascending from 0; the last is its end.
    shares : tuple of float
        Share that has arrived by then, ascending; the last is 1. Linear in between.

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
        """Return uniform arrivals over a number of seconds."""
        if not 0 <= seconds < float("inf"):
            raise ParameterError(f"The duration of a collection must be at least 0 seconds; got {seconds!r}.")
        return cls((0.0, float(seconds)), (0.0, 1.0))

    @classmethod
    def of(cls, points: Sequence[tuple[float, float]]) -> "Arrivals":
        """Return the curve through points (seconds, share)."""
        return cls(tuple(seconds for seconds, _ in points), tuple(share for _, share in points))

    @property
    def duration(self) -> float:
        """Duration of the collection in seconds."""
        return float(self.seconds[-1])

    def head_start(self, late: float) -> float:
        """Return how many seconds before the end all but a share `late` have arrived."""
        if late >= 1 - self.shares[0]:
            return self.duration
        # Where the curve is flat, the first moment at which the share is reached.
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
        """Return the share that is still to come `before_end` seconds before the end."""
        return float(1 - np.interp(self.duration - before_end, self.seconds, self.shares))

    def _flat_until(self, share: float) -> float:
        """Return the last moment at which exactly this share had arrived."""
        return max(moment for moment, there in zip(self.seconds, self.shares, strict=True) if there == share)
