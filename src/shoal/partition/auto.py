"""Auto: the default. A good start, refined; near-linear in time, and with less loss than exact MDAV.

The start is MDAV in blocks, refined across their borders; up to some tens of thousands of records there is one block,
so that the loss is below exact MDAV's by construction. Small inputs are searched a little further by simulated
annealing; `effort="best"` searches as long as it is told to.
"""

import numpy as np

from shoal import kernels
from shoal.errors import ParameterError
from shoal.partition.blocks import blocks
from shoal.partition.refine import refine
from shoal.typing import Labels, Matrix, Seed

# Up to so many records a short search follows by default, with so many steps for each.
SMALL = 5_000
SHORT_SEARCH = 1_000
# From so many steps a record on, a hotter start pays.
LONG_SEARCH = 4_000
# What one second of budget buys. Counted in steps, not in time, so that a seed repeats a result on any machine.
STEPS_PER_SECOND = 6_000_000


def auto(
    X: Matrix,
    k: int,
    seed: Seed = None,
    *,
    effort: str = "normal",
    seconds: float | None = None,
    interrupt: str = "raise",
) -> Labels:
    """Return a partition with less loss than MDAV's, in near-linear time.

    Parameters
    ----------
    X : ndarray of shape (n_records, n_dims)
        Records in the space.
    k : int
        Smallest cell size.
    seed : int, optional
        Repeats the search of small inputs and of ``effort="best"``.
    effort : {"normal", "best"}
        "best" searches on by simulated annealing.
    seconds : float, optional
        Budget of ``effort="best"``, 60 if not given: so many seconds of a common core, counted in steps of the search
        so that the result does not depend on how fast or busy the machine is.
    interrupt : {"raise", "keep"}
        What Ctrl-C does: with "keep" it ends the search, and the best partition found so far is the result. A seed does
        not repeat that one.
    """
    if effort not in ("normal", "best"):
        raise ParameterError(f"effort must be 'normal' or 'best'; got {effort!r}.")
    if seconds is not None and effort != "best":
        raise ParameterError("seconds is the budget of effort='best' and has no meaning otherwise. Leave it out.")
    if seconds is not None and not (np.isfinite(seconds) and seconds >= 0):
        raise ParameterError(f"seconds must be a number of at least 0; got {seconds!r}.")
    if interrupt not in ("raise", "keep"):
        raise ParameterError(f"interrupt must be 'raise' or 'keep'; got {interrupt!r}.")
    schedule = _schedule(len(X), k, effort, seconds)
    refined = 0.1 if schedule.steps else 1.0
    with kernels.stage(0.0, 0.4 * refined):
        labels = blocks(X, k)
    try:
        with kernels.stage(0.4 * refined, refined):
            labels = refine(X, labels, k)
        return _searched(X, labels, k, schedule, seed) if schedule.steps else labels
    except kernels.Interrupted as stopped:
        if interrupt == "raise":
            raise
        return _better(X, labels, stopped.labels)


def _searched(X: Matrix, labels: Labels, k: int, schedule: kernels.Schedule, seed: Seed) -> Labels:
    """Search on at random, then refine once more."""
    with kernels.stage(0.1, 1.0):
        found = kernels.anneal(X, labels, k, schedule, _entropy(seed))
    with kernels.stage(1.0, 1.0):
        found = refine(X, found, k, least_gain=0.0, thorough=True)
    return _better(X, labels, found)


def _schedule(n_records: int, k: int, effort: str, seconds: float | None) -> kernels.Schedule:
    """Return the search that follows; a long one starts hotter."""
    # A step looks at all records of a cell.
    ease = min(1.0, 10 / k)
    if effort == "best":
        n_steps = int((60 if seconds is None else seconds) * STEPS_PER_SECOND * ease)
    else:
        n_steps = int(SHORT_SEARCH * n_records * ease) if n_records <= SMALL else 0
    return (
        kernels.Schedule(n_steps, hot=20, fall=11)
        if n_steps > LONG_SEARCH * n_records
        else kernels.Schedule(n_steps, hot=4, fall=7)
    )


def _entropy(seed: Seed) -> int:
    """Return a 64-bit number from the seed, or from the operating system if there is none."""
    return int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])


def _better(X: Matrix, labels: Labels, found: Labels) -> Labels:
    """Return what was found, unless the search was too short and the start loses no more."""
    spread, found_spread = (kernels.cell_spread(X, cells, int(cells.max()) + 1).sum() for cells in (labels, found))
    return found if found_spread < spread else labels
