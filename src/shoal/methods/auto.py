"""Auto: the default method. Refined MDAV in blocks; near-linear in time, with less loss than exact MDAV.

The initial partition is MDAV in blocks, refined across block boundaries. Up to some tens of thousands of records there
is one block, so the loss is at most that of exact MDAV by construction. Small inputs are improved further by a short
simulated annealing; `effort="best"` anneals for a given budget.
"""

from numbers import Real

import numpy as np

from shoal import kernels
from shoal.errors import ParameterError
from shoal.methods.blocks import blocks
from shoal.methods.refine import refined
from shoal.typing import Labels, Matrix, Seed

# Maximum number of records for which a short search follows by default, and its number of steps per record.
SMALL = 5_000
SHORT_SEARCH = 1_000
# Number of steps per record from which a higher initial temperature pays off.
LONG_SEARCH = 4_000
# The budget is counted in steps, not in time, so that a seed gives the same result on any machine.
STEPS_PER_SECOND = 6_000_000
MOST_SECONDS = 1_000_000_000


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
        Makes the search of small inputs and of ``effort="best"`` reproducible.
    effort : {"quick", "normal", "best"}
        "quick" leaves out the short search of small inputs; "best" continues with simulated annealing.
    seconds : float, optional
        Budget of ``effort="best"``, 60 by default: seconds on a typical core, converted into a number of search steps,
        so that the result does not depend on the speed or load of the machine.
    interrupt : {"raise", "keep"}
        Effect of Ctrl-C: with "keep" it ends the search and returns the best partition found so far, which a seed does
        not reproduce.
    """
    check_effort(effort, seconds, interrupt)
    schedule = _schedule(len(X), k, effort, seconds)
    share = 0.1 if schedule.steps else 1.0
    with kernels.stage(0.0, 0.4 * share):
        labels = blocks(X, k)
    try:
        with kernels.stage(0.4 * share, share):
            labels = refined(X, labels, k)
        return _searched(X, labels, k, schedule, seed) if schedule.steps else labels
    except kernels.Interrupted as stopped:
        if interrupt == "raise":
            raise
        return _better(X, labels, stopped.labels)


def check_effort(effort: str, seconds: float | None, interrupt: str) -> None:
    """Refuse options of the search that have no meaning."""
    if effort not in ("quick", "normal", "best"):
        raise ParameterError(f"effort must be 'quick', 'normal' or 'best'; got {effort!r}.")
    if seconds is not None and effort != "best":
        raise ParameterError("seconds is the budget of the effort 'best' and has no effect otherwise. Leave it out.")
    if seconds is not None and not (isinstance(seconds, Real) and 0 <= seconds <= MOST_SECONDS):
        raise ParameterError(f"seconds must be a number from 0 to {MOST_SECONDS:,}; got {seconds!r}.")
    if interrupt not in ("raise", "keep"):
        raise ParameterError(f"interrupt must be 'raise' or 'keep'; got {interrupt!r}.")


def _searched(X: Matrix, labels: Labels, k: int, schedule: kernels.Schedule, seed: Seed) -> Labels:
    """Anneal, then refine once more."""
    with kernels.stage(0.1, 1.0):
        found = kernels.anneal(X, labels, k, schedule, entropy_of(seed))
    with kernels.stage(1.0, 1.0):
        found = refined(X, found, k, least_gain=0.0, thorough=True)
    return _better(X, labels, found)


def _schedule(n_records: int, k: int, effort: str, seconds: float | None) -> kernels.Schedule:
    """Return the annealing schedule; a long search starts at a higher temperature."""
    # A step visits all records of a cell.
    ease = min(1.0, 10 / k)
    if effort == "best":
        n_steps = int((60 if seconds is None else seconds) * STEPS_PER_SECOND * ease)
    else:
        n_steps = int(SHORT_SEARCH * n_records * ease) if n_records <= SMALL and effort == "normal" else 0
    return (
        kernels.Schedule(n_steps, hot=20, fall=11)
        if n_steps > LONG_SEARCH * n_records
        else kernels.Schedule(n_steps, hot=4, fall=7)
    )


def entropy_of(seed: Seed) -> int:
    """Return a 64-bit number derived from the seed, or from the operating system if there is no seed."""
    return int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])


def _better(X: Matrix, labels: Labels, found: Labels) -> Labels:
    """Return the partition found if it has a lower SSE than the initial one, else the initial one."""
    spread, found_spread = (kernels.cell_spread(X, cells, int(cells.max()) + 1).sum() for cells in (labels, found))
    return found if found_spread < spread else labels
