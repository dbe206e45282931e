"""Clock: the time of a stream, which goes on where a clock was set back.

Ages are differences of times. If a clock jumps ahead and comes back, the times of the tuples that wait lie in its
future, and none of them would grow old until the clock is there again.
"""

import math
from collections.abc import Callable


class Clock:
    """Readings of a clock, moved ahead by as much as it was set back so far.

    The reading that shows it is returned as it is: the window holds it, and counts it.
    """

    def __init__(self, read: Callable[[], float], ahead: float = 0.0) -> None:
        self._read = read
        self.ahead = ahead
        self._latest = -math.inf

    def __call__(self) -> float:
        """Read the clock."""
        reading = self._read()
        time = reading + self.ahead
        if time < self._latest:
            self.ahead = self._latest - reading
        self._latest = max(self._latest, time)
        return time

    def resume(self, time: float) -> None:
        """Go on from the time at which a stream was saved, perhaps by another clock."""
        self._latest = max(self._latest, time)
