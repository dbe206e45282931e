"""Summary: what a stream has done so far, in counts, loss, order and delay."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Summary:
    """What a stream has done so far; ``n_in == n_released + n_side + n_buffered`` at every moment."""

    n_in: int
    n_released: int
    n_side: int
    n_buffered: int
    n_cells: int
    smallest_cell: int | None
    """Size of the smallest released cell; None as long as there is none."""
    reasons: dict[str, int]
    """Number of tuples sent to the side output, by reason."""
    n_outside: dict[str, int]
    """Number of values outside the range of their column; distances treat them as lying at its end."""
    n_clock_held: int
    """How often the clock went backwards; the last time was used instead."""
    mse: float
    """Mean squared distance of released tuples from their centroids, every column of range 1."""
    mae: float
    il: float | None
    """Information loss, from 0 to 1: squared distances from the centroids divided by those from the mean of all, over
    numbers, dates and ordered levels; None as long as there are none."""
    spread_max: int
    """Last position in a cell minus the first."""
    spread_mean: float
    displacement_max: int
    """How far a tuple was moved: its rank on release minus its rank on arrival."""
    displacement_mean: float
    delay_max: int
    """Number of tuples that arrived while one waited."""
    delay_mean: float
    delay_counts: dict[str, int]
    """Number of tuples that waited for none, 1, 2 to 3, 4 to 7, ... others."""
    seconds_max: float
    seconds_mean: float

    @classmethod
    def of(
        cls,
        tally: dict[str, Any],
        n_in: int,
        n_buffered: int,
        reasons: dict[str, int],
        outside: dict[str, int],
        smallest: int | None,
    ) -> "Summary":
        """Make a summary from the window's tally and what the stream counted itself."""
        n_released, n_cells = tally["n_released"], tally["n_cells"]
        sst = sum(tally["sst_x"])
        tuples, cells = max(n_released, 1), max(n_cells, 1)
        return cls(
            n_in=n_in,
            n_released=n_released,
            n_side=sum(reasons.values()),
            n_buffered=n_buffered,
            n_cells=n_cells,
            smallest_cell=smallest,
            reasons=dict(reasons),
            n_outside=dict(outside),
            n_clock_held=tally["n_clock_held"],
            mse=tally["sse"] / tuples,
            mae=tally["sae"] / tuples,
            il=tally["sse_x"] / sst if sst > 0 else None,
            spread_max=tally["spread_max"],
            spread_mean=tally["spread_sum"] / cells,
            displacement_max=tally["moved_max"],
            displacement_mean=tally["moved_sum"] / tuples,
            delay_max=tally["waited_max"],
            delay_mean=tally["waited_sum"] / tuples,
            delay_counts=_counts(tally["waited"]),
            seconds_max=tally["seconds_max"],
            seconds_mean=tally["seconds_sum"] / tuples,
        )


def _counts(waited: list[int]) -> dict[str, int]:
    """Name the bins that are not empty by their limits."""
    limits = ["0", "1", *(f"{2 ** (digits - 1)}-{2**digits - 1}" for digits in range(2, len(waited)))]
    return {limit: count for limit, count in zip(limits, waited, strict=True) if count}
