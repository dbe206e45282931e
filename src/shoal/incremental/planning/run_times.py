"""Running times of the base and the late records: by the thesis's formulas, or as measured on this machine."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from shoal.errors import ParameterError


class Times(Protocol):
    """Running times in seconds for a share `late` of the records, as the planner needs them."""

    @property
    def variant(self) -> str:
        """Variant by which late records join; see `shoal.incremental.VARIANTS`."""

    def base(self, late: float) -> float:
        """Return the time of the base."""

    def late(self, late: float) -> float:
        """Return the time of joining the late records."""

    def loss(self, late: float) -> float | None:
        """Return the extra loss as a fraction of the ordinary job's loss; None where it was not measured."""

    @property
    def margin(self) -> tuple[float, float]:
        """Best-case and worst-case factors on the times."""


SHARES = (0.0, 0.1, 0.3, 0.5)
MEASURED_LOSS = {
    "two-step": (0.0, 0.0481, 0.0863, 0.0966),
    "nearest": (0.0, 0.0217, 0.0775, 0.1570),
    "split-mid": (0.0, 0.0217, 0.0737, 0.0904),
    "split-end": (0.0, 0.0217, 0.0736, 0.0812),
}
"""Extra loss of a variant with MDAV over MDAV of everything, Gaussian records, 50,000 x 15, k = 10, for these shares.

From benchmarks/results/incremental.json.
"""


@dataclass(frozen=True)
class Quadratic:
    """Two steps of MDAV, whose time is quadratic in the records, as in the thesis.

    Attributes
    ----------
    everything : float
        Seconds of the ordinary job on all records.
    """

    everything: float
    variant: str = "two-step"

    def __post_init__(self) -> None:
        if not 0 < self.everything < float("inf"):
            raise ParameterError(f"The time of the ordinary job must be above 0 seconds; got {self.everything!r}.")

    def base(self, late: float) -> float:
        """Return the time of the base in seconds."""
        return self.everything * (1 - late) ** 2

    def late(self, late: float) -> float:
        """Return the time of the late records in seconds."""
        return self.everything * late**2

    def loss(self, late: float) -> float | None:
        """Return the extra loss as measured on Gaussian records, up to a share of one half."""
        return None if late > SHARES[-1] else float(np.interp(late, SHARES, MEASURED_LOSS[self.variant]))

    @property
    def margin(self) -> tuple[float, float]:
        """Best-case and worst-case factors: 1, since a formula has no measurement error."""
        return 1.0, 1.0


ALPHA = 0.4
"""Coefficient that follows from the thesis's statements about nearest neighbours with splits at the end.

Its figures 5.9 and 5.10 have tau_+ = alpha nu (1 - nu) not above 10 %, so alpha / 4 = 0.1; and below nu^2 from about
30 % on, which is alpha / (1 + alpha) = 0.29.
"""


@dataclass(frozen=True)
class NearestNeighbours(Quadratic):
    """Late records that join the nearest of (1 - nu) n / k centroids: tau_+ = alpha nu (1 - nu), section 4.2.2.

    Attributes
    ----------
    everything : float
        Seconds of the ordinary job on all records, by MDAV.
    variant : str
        "nearest", "split-mid" or "split-end".
    alpha : float
        Depends on the implementation.

    Examples
    --------
    >>> hour = NearestNeighbours(3600)
    >>> hour.late(0.5), hour.late(0.1) > Quadratic(3600).late(0.1), hour.late(0.3) < Quadratic(3600).late(0.3)
    (360.0, True, True)
    """

    variant: str = "split-end"
    alpha: float = ALPHA

    def __post_init__(self) -> None:
        super().__post_init__()
        nearest = [name for name in MEASURED_LOSS if name != Quadratic.variant]
        if self.variant not in nearest:
            raise ParameterError(f"Unknown variant {self.variant!r}. Variants: {', '.join(nearest)}.")
        if not 0 < self.alpha < float("inf"):
            raise ParameterError(f"alpha must be a number above 0; got {self.alpha!r}.")

    def late(self, late: float) -> float:
        """Return the time of the late records in seconds."""
        return self.everything * self.alpha * late * (1 - late)


@dataclass(frozen=True)
class Run:
    """Measured times of one shape: a number of records and a late share."""

    n_records: int
    late_share: float
    base_seconds: float
    """Time of the base; with late share 0, of the ordinary job."""
    late_seconds: float
    extra_loss: float
    """Relative to the same method on all records; a fraction, 0.01 for one percent more."""


REFERENCE = 0.1
"""Late share that is measured at every size."""

LEAST_POWER, USUAL_POWER, MOST_POWER = 1.0, 1.1, 2.0
"""Exponents of the running time in the number of records: all our methods are between linear and quadratic."""

DOUBT = 0.3
"""Margin on the exponent when extrapolating beyond the largest run, since tables outgrow the caches."""


@dataclass(frozen=True)
class Measured:
    """Times from measured runs: each share at its largest size, scaled to the full size by the reference share.

    Attributes
    ----------
    n_records : int
        Number of records to plan for.
    runs : tuple of Run
        The ordinary job (share 0) and some late shares; `REFERENCE` must be measured at every size.
    variant : str
        Variant by which late records join.
    spread : tuple of float
        Smallest and largest ratio of the time of a single run to the summary.
    load : tuple of float
        Ratio of wall-clock to processor time for the base and for the late records: above 1 where other processes ran,
        below 1 where several threads ran in parallel.
    fixed : tuple of float
        Seconds of the base, of the late records and of the ordinary job that do not depend on the number of records.
    """

    n_records: int
    runs: tuple[Run, ...]
    variant: str = "reopen"
    spread: tuple[float, float] = (1.0, 1.0)
    load: tuple[float, float] = (1.0, 1.0)
    fixed: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        sizes = {run.n_records for run in self.runs}
        if not any(run.late_share == 0 for run in self.runs) or {run.n_records for run in self._reference} != sizes:
            raise ParameterError(
                f"A calibration needs runs of the ordinary job, and of {REFERENCE:.0%} late records at every size."
            )

    @property
    def _reference(self) -> list[Run]:
        return sorted((run for run in self.runs if run.late_share == REFERENCE), key=lambda run: run.n_records)

    @property
    def _largest(self) -> list[Run]:
        """The run of the largest size for each share."""
        last = {run.late_share: run for run in sorted(self.runs, key=lambda run: run.n_records)}
        return [last[share] for share in sorted(last)]

    def _grown(self, run: Run, base: bool = False, late: bool = False) -> float:
        """Scale the time of a run to the planned size, in proportion to the reference share."""

        def took(each: Run) -> float:
            return base * each.base_seconds + late * each.late_seconds

        fixed = base * self.fixed[0] + late * self.fixed[1]
        curve = {each.n_records: max(took(each) - fixed, 0.05 * took(each)) for each in self._reference}
        growth = on_curve(list(curve.items()), self.n_records) / max(curve[run.n_records], 1e-9)
        mine = self.fixed[2] if run.late_share == 0 else fixed
        return mine + max(took(run) - mine, 0.0) * growth

    def base(self, late: float) -> float:
        """Return the time of the base, or without late records of the ordinary job, in seconds."""
        ordinary, *runs = self._largest
        if late == 0:
            return self._grown(ordinary, base=True, late=True)
        last = runs[-1].late_share
        times = [self._grown(run, base=True) for run in runs]
        if late > last:
            return times[-1] * (1 - late) / (1 - last)
        return float(np.interp(late, [run.late_share for run in runs], times))

    def late(self, late: float) -> float:
        """Return the time of the late records in seconds; linear between the measured shares."""
        if late == 0:
            return 0.0
        runs = self._largest[1:]
        times = [self._grown(run, late=True) for run in runs]
        # More late records never take less time. A single one takes nearly as long as the smallest measured share.
        return float(np.interp(late, [run.late_share for run in runs], ascending(times)))

    def loss(self, late: float) -> float | None:
        """Return the extra loss, interpolated from the largest runs."""
        runs = self._largest
        if late > runs[-1].late_share:
            return None
        return float(np.interp(late, [run.late_share for run in runs], [run.extra_loss for run in runs]))

    @property
    def margin(self) -> tuple[float, float]:
        """Best-case and worst-case factors: the spread of single runs, widened beyond the largest run."""
        beyond = max(self.n_records / self._reference[-1].n_records, 1.0)
        return self.spread[0] * beyond ** (LEAST_POWER - USUAL_POWER), self.spread[1] * beyond**DOUBT


def ascending(times: Sequence[float]) -> list[float]:
    """Return the isotonic regression of the times: the nearest non-decreasing sequence.

    Examples
    --------
    >>> ascending([1.0, 3.0, 2.0, 5.0])
    [1.0, 2.5, 2.5, 5.0]
    """
    pools: list[list[float]] = []
    for time in times:
        pools.append([time])
        while len(pools) > 1 and np.mean(pools[-2]) > np.mean(pools[-1]):
            last = pools.pop()
            pools[-1] += last
    return [float(np.mean(pool)) for pool in pools for _ in pool]


def on_curve(points: Sequence[tuple[float, float]], n: float) -> float:
    """Interpolate a time between points in ascending order of size on logarithmic axes; extrapolate by a power law.

    Beyond the last point, the power law of the last two is used; or, if its exponent is below the usual one because of
    fixed costs, a constant plus the usual power.

    Examples
    --------
    >>> round(on_curve([(1000, 0.1), (2000, 0.4), (4000, 1.6)], 8000), 6)
    6.4
    >>> round(on_curve([(1000, 1 + 1000**1.1), (2000, 1 + 2000**1.1)], 8000) - 8000**1.1, 6)
    1.0
    """
    sizes, times = [size for size, _ in points], [max(time, 1e-9) for _, time in points]
    if n <= sizes[-1]:
        return float(np.exp(np.interp(np.log(n), np.log(sizes), np.log(times))))
    if len(points) == 1:
        return float(times[0] * (n / sizes[0]) ** USUAL_POWER)
    power = np.log(times[-1] / times[-2]) / np.log(sizes[-1] / sizes[-2])
    if power >= USUAL_POWER:
        return float(times[-1] * (n / sizes[-1]) ** min(power, MOST_POWER))
    before, last, then = (size**USUAL_POWER for size in (*sizes[-2:], n))
    return float(times[-1] + max(times[-1] - times[-2], 0.0) * (then - last) / (last - before))
