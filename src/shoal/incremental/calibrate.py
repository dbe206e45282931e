"""Calibration: measure on this machine how long a method takes on similar records, for the planner.

Other load on the machine varies and makes wall-clock times unreliable. So the median processor time of several runs is
measured and, over all runs together, the ratio of wall-clock to processor time. The forecast is their product.
"""

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from time import perf_counter, process_time
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from shoal import kernels
from shoal.arrays import as_cell_size, as_matrix
from shoal.errors import ParameterError
from shoal.incremental import join
from shoal.incremental.planning import Measured, Run
from shoal.incremental.planning.run_times import REFERENCE, on_curve
from shoal.incremental.reopen import neighbours_of
from shoal.incremental.sample_enlarged import enlarged
from shoal.measures import loss
from shoal.methods import partition
from shoal.typing import Matrix, Seed

SHARES = (REFERENCE, 0.0, 0.5, 0.02)
"""Late shares to measure; 0 is the ordinary job."""

LEAST = 6_000
"""Smallest useful sample size: on smaller inputs the default method runs an additional search."""

FEW = 300
"""Number of records at which the time is practically all fixed cost."""

STEP = 4
"""Ratio of successive sample sizes."""

MOST_TURNS = 7
"""Maximum number of runs of one shape (size and late share)."""

CAUTION = 1.2
"""Safety factor on the expected time of a run when deciding whether it fits into the time left."""


class PartTimes(NamedTuple):
    """Processor time and wall-clock time of one part of the work, in seconds."""

    cpu: float
    wall: float


class Measurement(NamedTuple):
    """One measurement of a shape."""

    base: PartTimes
    late: PartTimes
    loss: float
    """Loss of the release; the unit does not matter, since only ratios are used."""

    @property
    def work(self) -> float:
        """Approximate wall-clock seconds on an otherwise idle machine."""
        return sum(min(part) for part in (self.base, self.late))


class Nothing(NamedTuple):
    """Runs with very few records: the time that does not depend on the size."""

    ordinary: Measurement
    reference: Measurement


Turns = dict[tuple[int, float], list[Measurement]]
"""Measurements by number of records and late share."""

Rehearse = Callable[[int, float], Measurement]
"""Runs the given number of records with the given late share; with share 0 the ordinary job, reported as the base."""


def calibrate(
    X: ArrayLike,
    n_records: int,
    k: int,
    *,
    method: str = "auto",
    variant: str = "reopen",
    seconds: float = 60.0,
    seed: Seed = None,
    threads: int | None = None,
) -> Measured:
    """Time partitioning and joining on arrays; `shoal.incremental.rehearsal.rehearse` times the whole release.

    Parameters
    ----------
    X : array_like of shape (n_sample, n_dims)
        Records similar to those expected, in the space: those that have arrived so far, or last year's. At least 8 `k`
        records. If there are fewer than `n_records`, similar records are generated.
    n_records : int
        Number of records to plan for.
    k : int
        Smallest cell size.
    method, variant : str
        Method for the base and variant for the late records.
    seconds : float
        Approximate measuring time, longer on a busy machine. Sizes that would take longer are skipped, and times are
        extrapolated by a power law.
    seed : int, optional
        Seed of the samples. Times still differ from run to run.
    threads : int, optional
        Maximum number of threads, as in the planned run.

    Returns
    -------
    Measured
        For `shoal.incremental.planning.plan`.
    """
    matrix = as_matrix(X)
    k = as_cell_size(k, len(matrix))
    refuse_few(len(matrix), k)
    seed = secrets.randbits(63) if seed is None else seed
    samples = _Samples(matrix, k, seed)

    def rehearse(n: int, share: float) -> Measurement:
        return samples.turn(n, share, method, variant, threads)

    return measure(rehearse, n_records, k, variant, seconds)


def refuse_few(n_records: int, k: int) -> None:
    """Raise if a sample is too small for a calibration."""
    if n_records < 8 * k:
        raise ParameterError(f"A calibration with k={k} needs at least {8 * k} records; there are {n_records}.")


def measure(rehearse: Rehearse, n_records: int, k: int, variant: str, seconds: float) -> Measured:
    """Find the largest size that fits into the time, run all shares at that size, and repeat until the time is spent.

    Time is counted as on an idle machine, so that other load does not lead to smaller sizes.
    """
    few = max(8 * k, FEW)
    nothing = Nothing(rehearse(few, 0.0), rehearse(few, REFERENCE))
    turns: Turns = {}

    def fits(n: int, times: float = 1.0) -> bool:
        spent = sum(turn.work for some in [nothing, *turns.values()] for turn in some)
        return spent + times * _expected(turns, nothing, n) <= seconds

    sizes = _sizes(n_records, k)
    next_size: int | None = sizes[0]
    while next_size is not None:
        largest = next_size
        turns[largest, REFERENCE] = [rehearse(largest, REFERENCE)]
        next_size = next((n for n in reversed(sizes) if largest < n <= largest * STEP**2 and fits(n)), None)
    # All shares at that size, or at half of it, at a quarter ...
    smaller = (largest >> halvings for halvings in range(largest.bit_length()))
    whole = next((n for n in smaller if n <= sizes[0] or fits(n, len(SHARES) - ((n, REFERENCE) in turns))), sizes[0])
    whole = max(whole, sizes[0])
    for share in SHARES:
        if (whole, share) not in turns:
            turns[whole, share] = [rehearse(whole, share)]
    # Interleaved, so that varying load on the machine affects all shapes equally.
    last = [shape for shape in turns if shape[0] in (whole, largest)]
    for shape in last * (MOST_TURNS - 1):
        if fits(shape[0]):
            turns[shape].append(rehearse(*shape))
    return _summary(turns, nothing, n_records, variant)


def _sizes(n_records: int, k: int) -> list[int]:
    """Return increasing sample sizes up to `n_records`, starting from at least `LEAST` where possible."""
    sizes = [n_records]
    while sizes[0] // STEP >= max(8 * k, LEAST):
        sizes.insert(0, sizes[0] // STEP)
    return sizes


def _expected(turns: Turns, nothing: Nothing, n: int) -> float:
    """Estimate the time of a run of this size from those of the reference share, slightly pessimistically."""
    fixed = nothing.reference.work
    known = [
        (size, max(median(turn.work for turn in some) - fixed, 0.05 * fixed))
        for (size, share), some in sorted(turns.items())
        if share == REFERENCE
    ]
    return CAUTION * (fixed + on_curve(known, n))


def _summary(turns: Turns, nothing: Nothing, n_records: int, variant: str) -> Measured:
    """Return median processor times scaled by the wall-clock ratio of all large runs, and the spread of single runs."""
    largest = max(n for n, _ in turns)
    # At least as many runs as there are shares.
    large = [turn for (n, _), some in turns.items() if n * STEP >= largest for turn in some]
    loads = _load([turn.base for turn in large]), _load([turn.late for turn in large])
    runs, apart = [], [1.0]
    for (n, share), some in sorted(turns.items()):
        base, late = median(turn.base.cpu for turn in some), median(turn.late.cpu for turn in some)
        base, late = loads[0] * base, loads[1] * late
        runs.append(Run(n, share, base, late, _extra_loss(turns, n, share)))
        if n * STEP >= largest:
            apart += [(turn.base.wall + turn.late.wall) / (base + late) for turn in some]
    ordinary, reference = nothing
    fixed = loads[0] * reference.base.cpu, loads[1] * reference.late.cpu, loads[0] * ordinary.base.cpu
    return Measured(n_records, tuple(runs), variant, (min(apart), max(apart)), loads, fixed)


def _load(parts: Sequence[PartTimes]) -> float:
    """Return the ratio of wall-clock to processor time; less than 1 where several threads ran in parallel."""
    return sum(part.wall for part in parts) / max(sum(part.cpu for part in parts), 1e-9)


def _extra_loss(turns: Turns, n: int, share: float) -> float:
    """Return the extra loss over the ordinary job, at this size or at the size at which the ordinary job was run."""
    size = n if (n, 0.0) in turns else next(m for m, s in turns if s == 0)
    ordinary = turns[size, 0.0][0].loss
    return turns[size, share][0].loss / ordinary - 1 if ordinary > 0 else 0.0


@contextmanager
def timing(into: list[PartTimes]) -> Iterator[None]:
    """Append the processor and wall-clock time of the block to `into`."""
    cpu, wall = process_time(), perf_counter()
    yield
    into.append(PartTimes(max(process_time() - cpu, 1e-9), perf_counter() - wall))


class _Samples:
    """Arrays of any size; the last one is cached."""

    def __init__(self, X: Matrix, k: int, seed: int) -> None:
        self._X, self._k, self._seed = X, k, seed
        self._latest: tuple[int, Matrix] = (0, X)

    def _of(self, n: int) -> Matrix:
        if self._latest[0] != n:
            self._latest = n, enlarged(self._X, n, self._seed)
        return self._latest[1]

    def turn(self, n: int, share: float, method: str, variant: str, threads: int | None) -> Measurement:
        """Time the base and the late records, or the ordinary job."""
        X, k = self._of(n), self._k
        parts: list[PartTimes] = []
        n_base = n if share == 0 else round(n * (1 - share))
        options: dict[str, Any] = {}
        with timing(parts):
            labels = partition(X[:n_base], k, method, self._seed, threads=threads)
            if share and variant == "reopen":
                with kernels.using(threads=threads):
                    options["neighbours"] = neighbours_of(X[:n_base], labels, k)
        if share == 0:
            return Measurement(parts[0], PartTimes(0.0, 0.0), loss(X, labels).sse)
        with timing(parts):
            labels = join(X, labels, k, variant, self._seed, threads=threads, **options)
        return Measurement(parts[0], parts[1], loss(X, labels).sse)
