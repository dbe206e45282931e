"""How long the base and the late records take: by the thesis's rule, or as measured on this machine."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from shoal.errors import ParameterError


class Times(Protocol):
    """What a planner must know, in seconds, for a share `late` of the records."""

    @property
    def variant(self) -> str:
        """How late records join; see `shoal.incremental.VARIANTS`."""

    def base(self, late: float) -> float:
        """Say how long the base takes."""

    def late(self, late: float) -> float:
        """Say how long it takes to bring the late records in."""

    def loss(self, late: float) -> float | None:
        """Say how much more is lost, as a share of the ordinary job's loss; None where nobody has measured it."""


SHARES = (0.0, 0.1, 0.3, 0.5)
MEASURED_LOSS = (0.0, 0.0481, 0.0863, 0.0966)
"""Extra loss of two steps of MDAV over MDAV of everything, Gaussian records, 50,000 x 15, k = 10, for these shares.

From benchmarks/results/incremental.json.
"""


@dataclass(frozen=True)
class Quadratic:
    """Two steps of MDAV, whose time grows with the square of the records, as in the thesis.

    Attributes
    ----------
    everything : float
        Seconds that the ordinary job takes on all records.
    """

    everything: float
    variant: str = "two-step"

    def __post_init__(self) -> None:
        if not 0 < self.everything < float("inf"):
            raise ParameterError(f"The ordinary job takes a number of seconds above 0; got {self.everything!r}.")

    def base(self, late: float) -> float:
        """Say how long the base takes, in seconds."""
        return self.everything * (1 - late) ** 2

    def late(self, late: float) -> float:
        """Say how long the late records take, in seconds."""
        return self.everything * late**2

    def loss(self, late: float) -> float | None:
        """Say how much more is lost: as measured on Gaussian records, up to one half."""
        if late > SHARES[-1]:
            return None
        return float(np.interp(late, SHARES, MEASURED_LOSS))


@dataclass(frozen=True)
class Run:
    """One calibration run: seconds for so many records, of which a share came late."""

    n_records: int
    late_share: float
    base_seconds: float
    late_seconds: float
    extra_loss: float
    """Over the same method on everything; a share, 0.01 for one percent more."""


@dataclass(frozen=True)
class Measured:
    """Times read off runs on samples of growing size, by the power law through the largest of them.

    Attributes
    ----------
    n_records : int
        What to plan for.
    runs : tuple of Run
        At least two sizes, each with the same shares; share 0 is the ordinary job.
    """

    n_records: int
    runs: tuple[Run, ...]
    variant: str = "reopen"

    def __post_init__(self) -> None:
        sizes = {run.n_records for run in self.runs}
        if len(sizes) < 2 or {(n, share) for n in sizes for share in self._shares()} != {
            (run.n_records, run.late_share) for run in self.runs
        }:
            raise ParameterError("A calibration needs runs of at least two sizes, each with the same late shares.")

    def _shares(self) -> list[float]:
        return sorted({run.late_share for run in self.runs})

    def base(self, late: float) -> float:
        """Say how long the base takes, in seconds."""
        ordinary = [(run.n_records, run.base_seconds) for run in self.runs if run.late_share == 0]
        return power_law(ordinary, self.n_records * (1 - late))

    def late(self, late: float) -> float:
        """Say how long the late records take, in seconds; between the measured shares the time grows evenly."""
        shares = self._shares()
        if late == 0:
            return 0.0
        times = [
            power_law([(r.n_records, r.late_seconds) for r in self.runs if r.late_share == share], self.n_records)
            for share in shares
            if share > 0
        ]
        # A single late record costs nearly as much fixed work as the smallest share that was measured.
        return float(np.interp(late, shares[1:], times))

    def loss(self, late: float) -> float | None:
        """Say how much more is lost, as in the largest runs."""
        largest = max(run.n_records for run in self.runs)
        points = sorted((run.late_share, run.extra_loss) for run in self.runs if run.n_records == largest)
        if late > points[-1][0]:
            return None
        return float(np.interp(late, [share for share, _ in points], [loss for _, loss in points]))


def power_law(points: Sequence[tuple[float, float]], n: float) -> float:
    """Read a time off the straight line, on logarithmic axes, through the points of the three largest sizes.

    Examples
    --------
    >>> round(power_law([(1000, 0.1), (2000, 0.4), (4000, 1.6)], 8000), 6)
    6.4
    """
    if n <= 0:
        return 0.0
    by_size = sorted(points)[-3:]
    sizes, times = np.log([size for size, _ in by_size]), np.log([max(time, 1e-9) for _, time in by_size])
    # No method of ours is quicker than linear or slower than quadratic; what lies outside is noise.
    slope = float(np.clip(np.polyfit(sizes, times, 1)[0], 1.0, 2.0))
    # Through the largest, which is nearest to what is asked and suffers least from noise.
    return float(np.exp(times[-1] + slope * (np.log(n) - sizes[-1])))
