"""Planning: when to start with the records that have arrived, so that the release is ready in time with minimal loss.

Nothing here needs the records. `Quadratic` follows the thesis; `Measured` takes times from a calibration on this
machine (`shoal.incremental.calibrate`), because our default method is not quadratic.
"""

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.errors import ParameterError
from shoal.incremental.planning.arrivals import Arrivals
from shoal.incremental.planning.durations import as_seconds, spoken
from shoal.incremental.planning.run_times import ALPHA, Measured, NearestNeighbours, Quadratic, Run, Times

__all__ = [
    "ALPHA",
    "Arrivals",
    "Measured",
    "NearestNeighbours",
    "Plan",
    "Quadratic",
    "Run",
    "Times",
    "as_seconds",
    "plan",
    "spoken",
]

_STEPS = 1_000


@dataclass(frozen=True)
class Plan:
    """A schedule. Times are in seconds relative to the end of the collection.

    Attributes
    ----------
    late_share : float
        Share of the records that arrives after the base has started: nu. 0 is the ordinary job on all records.
    start : float
        Start of the base; negative before the end of the collection.
    base_seconds, late_seconds : float
        Duration of the base and of the late records.
    wait : float
        Time between the end of the base and the end of the collection, available for more refinement.
    finish : float
        Time at which the release is ready.
    finish_between : tuple of float
        Best and worst case of `finish`, as measured; equal where times follow a formula.
    ordinary : float
        Time at which the ordinary job, without a head start, is ready.
    deadline : float or None
        Required time.
    extra_loss : float or None
        Extra loss relative to the ordinary job, as a fraction; None where it was not measured.
    variant : str
        Variant by which the late records join.
    collection : float
        Duration of the collection.
    """

    late_share: float
    start: float
    base_seconds: float
    late_seconds: float
    wait: float
    finish: float
    finish_between: tuple[float, float]
    ordinary: float
    deadline: float | None
    extra_loss: float | None
    variant: str
    collection: float

    def json(self) -> dict[str, float | str | tuple[float, float] | None]:
        """Return all fields by name."""
        return asdict(self)

    def text(self) -> str:
        """Return the plan as a few lines of text."""
        if self.late_share == 0:
            why = "nothing is ready before" if self.deadline is None else "there is time for"
            return "\n".join(
                [
                    f"start        when the collection ends: {why} the ordinary job",
                    f"finish       {spoken(self.finish)} later{self._between()}",
                    "extra loss   none",
                    *self._doubt(),
                ]
            )
        head_start, arrived = spoken(-self.start), f"{1 - self.late_share:.1%}"
        loss = "not measured" if self.extra_loss is None else f"about {100 * self.extra_loss:.1f} %"
        waits = f", then {spoken(self.wait)} to spare for refining it" if self.wait > 0.5 else ""
        return "\n".join(
            [
                f"start        {head_start} before the collection ends, with {arrived} arrived",
                f"base         {spoken(self.base_seconds)}{waits}",
                f"late         {self.late_share:.1%} of the records, {spoken(self.late_seconds)} by {self.variant}",
                f"finish       {spoken(self.finish)} after the collection{self._between()} "
                f"(ordinary job: {spoken(self.ordinary)})",
                f"extra loss   {loss}",
                *self._doubt(),
                f"advice       {advice(self.late_share)}",
            ]
        )

    def _between(self) -> str:
        """Return the range of the finish, if known."""
        low, high = self.finish_between
        return "" if low == high else f", between {spoken(low)} and {spoken(high)}"

    def _doubt(self) -> list[str]:
        """Return a warning line if the worst case misses the deadline."""
        if self.deadline is None or self.finish_between[1] <= self.deadline:
            return []
        return ["doubt        in the worst case measured, the deadline is missed; plan for an earlier one to be safe"]


def plan(times: Times, arrivals: Arrivals, deadline: float | None = None, latest_start: float | None = None) -> Plan:
    """Choose the late share.

    Parameters
    ----------
    times : Times
        Duration of base and late records for a share: `Quadratic` or `Measured`.
    arrivals : Arrivals
        Arrival curve.
    deadline : float, optional
        Seconds after the end of the collection. With a deadline, the smallest share that meets it is chosen, since it
        loses least; without one, the share that is ready first.
    latest_start : float, optional
        Seconds from now until the end of the collection: the base cannot start earlier than now.

    Returns
    -------
    Plan

    Raises
    ------
    ParameterError
        If the deadline lies before the end of the collection or cannot be met; the message gives the earliest finish.

    Notes
    -----
    The release is ready ``max(base - head start, 0) + late`` seconds after the end. The thesis minimises this in
    closed form for two steps of MDAV and uniform arrivals (`papers.incremental.formulas`); here it is searched
    numerically, for any running times and any arrival curve.

    Examples
    --------
    >>> two_hours, ten_hours = Quadratic(7_200), Arrivals.uniform(36_000)
    >>> fastest = plan(two_hours, ten_hours)
    >>> round(fastest.late_share, 3), round(fastest.finish)
    (0.146, 153)
    >>> round(plan(two_hours, ten_hours, deadline=3_600).late_share, 4)
    0.0729
    """
    if deadline is not None and not deadline > 0:
        raise ParameterError(
            f"The deadline lies {spoken(-deadline)} before the end of the collection, when records are still arriving. "
            f"The earliest release is {spoken(plan(times, arrivals, None, latest_start).finish)} after the end."
        )
    most = 1.0 if latest_start is None else arrivals.open_share(max(latest_start, 0.0))
    shares = np.linspace(0, most, _STEPS + 1)
    finishes = np.array([_finish(times, arrivals, share) for share in shares])
    best = int(np.argmin(finishes))
    if deadline is None:
        return _plan(times, arrivals, _fastest(times, arrivals, shares, best), None)
    if finishes[best] > deadline:
        share = _fastest(times, arrivals, shares, best)
        earliest = _finish(times, arrivals, share)
        if earliest > deadline * (1 + 1e-9):
            raise ParameterError(
                f"The release cannot be ready {spoken(deadline)} after the collection: the earliest is "
                f"{spoken(earliest)}, with {share:.1%} of the records late. The ordinary job would take "
                f"{spoken(_finish(times, arrivals, 0.0))}. Choose a later deadline, or a longer collection."
            )
        return _plan(times, arrivals, share, deadline)
    first = int(np.argmax(finishes <= deadline))
    share = 0.0 if first == 0 else _crossing(times, arrivals, shares[first - 1], shares[first], deadline)
    return _plan(times, arrivals, share, deadline)


def advice(late: float) -> str:
    """Return advice on the variant for a late share, from measurements (docs/incremental.md, figure 6.3)."""
    if late >= 0.5:
        return "with half of the records late or more, run everything again: it takes no longer and loses less"
    return "two-step is fastest and loses most; reopen loses least, less than MDAV of everything"


def _finish(times: Times, arrivals: Arrivals, late: float) -> float:
    """Return when the release is ready, in seconds after the end of the collection."""
    if late == 0:
        return times.base(0.0)
    return max(times.base(late) - arrivals.head_start(late), 0.0) + times.late(late)


def _fastest(times: Times, arrivals: Arrivals, shares: NDArray[np.float64], best: int) -> float:
    """Refine the fastest share between its neighbours in the grid by golden-section search."""
    low, high = float(shares[max(best - 1, 0)]), float(shares[min(best + 1, len(shares) - 1)])
    ratio = (5**0.5 - 1) / 2
    for _ in range(60):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if _finish(times, arrivals, left) <= _finish(times, arrivals, right):
            high = right
        else:
            low = left
    candidates = [float(shares[best]), (low + high) / 2]
    return min(candidates, key=lambda share: _finish(times, arrivals, share))


def _crossing(times: Times, arrivals: Arrivals, late: float, in_time: float, deadline: float) -> float:
    """Bisect between a share that misses the deadline and one that meets it."""
    for _ in range(60):
        middle = (late + in_time) / 2
        if _finish(times, arrivals, middle) <= deadline:
            in_time = middle
        else:
            late = middle
    return float(in_time)


def _plan(times: Times, arrivals: Arrivals, late: float, deadline: float | None) -> Plan:
    head_start = 0.0 if late == 0 else arrivals.head_start(late)
    base = times.base(late)
    late_seconds = 0.0 if late == 0 else times.late(late)
    low, high = (max(factor * base - head_start, 0.0) + factor * late_seconds for factor in times.margin)
    return Plan(
        late_share=late,
        start=-head_start,
        base_seconds=base,
        late_seconds=late_seconds,
        wait=max(head_start - base, 0.0),
        finish=_finish(times, arrivals, late),
        finish_between=(low, high),
        ordinary=times.base(0.0),
        deadline=deadline,
        extra_loss=0.0 if late == 0 else times.loss(late),
        variant=times.variant,
        collection=arrivals.duration,
    )
