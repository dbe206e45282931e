"""Plan: when to start on what has arrived, so that the release is ready in time and loses as little as it can.

Nothing here looks at records. `Quadratic` follows the thesis; `Measured` reads times off a calibration on this machine
(`shoal.batches.calibrate`), because our base algorithm is not quadratic.
"""

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.batches.planning.arrivals import Arrivals
from shoal.batches.planning.durations import as_seconds, spoken
from shoal.batches.planning.run_times import ALPHA, Measured, NearestNeighbours, Quadratic, Run, Times
from shoal.errors import ParameterError

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
    """When to do what. Seconds count from the moment when the collection ends.

    Attributes
    ----------
    late_share : float
        Share of the records that comes after the base has started: nu. 0 is the ordinary job on everything.
    start : float
        When to start on the base; before the end of the collection it is negative.
    base_seconds, late_seconds : float
        How long the base and the late records take.
    wait : float
        How long the base, once done, waits for the end of the collection: time for more refinement.
    finish : float
        When the release is ready.
    finish_between : tuple of float
        The same, at the best and at the worst that was seen; equal where times follow a rule.
    ordinary : float
        When it would be ready without a head start.
    deadline : float or None
        When it has to be.
    extra_loss : float or None
        How much more is lost than by the ordinary job, as a share; None where nobody has measured it.
    variant : str
        How the late records join.
    collection : float
        How long the collection takes.
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
        """Return all numbers by name."""
        return asdict(self)

    def text(self) -> str:
        """Say it in a few lines."""
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
        """Say how far off it may be, where that is known."""
        low, high = self.finish_between
        return "" if low == high else f", between {spoken(low)} and {spoken(high)}"

    def _doubt(self) -> list[str]:
        """Say that the deadline is not safe, if so."""
        if self.deadline is None or self.finish_between[1] <= self.deadline:
            return []
        return [
            "doubt        at the worst that was measured the deadline is missed; plan for an earlier one to be safe"
        ]


def plan(times: Times, arrivals: Arrivals, deadline: float | None = None, latest_start: float | None = None) -> Plan:
    """Choose the share of records that may come late.

    Parameters
    ----------
    times : Times
        How long base and late records take for a share: `Quadratic` or `Measured`.
    arrivals : Arrivals
        When records arrive.
    deadline : float, optional
        Seconds after the end of the collection. Given one, the smallest share that meets it, as it loses least;
        without, the share that is ready first.
    latest_start : float, optional
        So many seconds before the end it is now: the base cannot start earlier than that.

    Returns
    -------
    Plan

    Raises
    ------
    ParameterError
        If the deadline lies before the end of the collection or no share meets it; the message gives the earliest.

    Notes
    -----
    Ready is ``max(base - head start, 0) + late`` seconds after the end. The thesis solves this in closed form for two
    steps of MDAV and even arrivals (`shoal.batches.planning.formulas`); here it is searched, for any times and any
    curve.

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
            f"The deadline lies {spoken(-deadline)} before the end of the collection, when records are still to come. "
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
                f"{spoken(_finish(times, arrivals, 0.0))}. Give it more time, or collect for longer."
            )
        return _plan(times, arrivals, share, deadline)
    first = int(np.argmax(finishes <= deadline))
    share = 0.0 if first == 0 else _crossing(times, arrivals, shares[first - 1], shares[first], deadline)
    return _plan(times, arrivals, share, deadline)


def advice(late: float) -> str:
    """Say which variant suits a share of late records, from what was measured (docs/incremental.md, figure 6.3)."""
    if late >= 0.5:
        return "at half of the records and more, run everything again: it takes no longer and loses less"
    return "two-step is the quickest and loses most; reopen loses least, less than MDAV of everything"


def _finish(times: Times, arrivals: Arrivals, late: float) -> float:
    """Say when the release is ready, in seconds after the end of the collection."""
    if late == 0:
        return times.base(0.0)
    return max(times.base(late) - arrivals.head_start(late), 0.0) + times.late(late)


def _fastest(times: Times, arrivals: Arrivals, shares: NDArray[np.float64], best: int) -> float:
    """Narrow the fastest share down between its neighbours in the grid, by golden sections."""
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
    """Halve the way between a share that is too late and one that is in time."""
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
