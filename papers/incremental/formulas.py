"""The thesis's formulas for two steps of MDAV, with quadratic running time and uniform arrivals.

All times are fractions of the time of the ordinary job on all records. `head_start` is the head-start coefficient: the
duration of the collection in that unit. A share `nu` of the records comes late.
"""

from math import sqrt

from shoal.errors import ParameterError

CRITICAL_HEAD_START = 2 * (2 / sqrt(3) - 1)
"""Up to this head-start coefficient, about 0.309, the base of the fastest plan ends after the collection."""


def critical_share(head_start: float) -> float:
    """Return the share at which the base is done exactly when the collection ends.

    Examples
    --------
    >>> round(critical_share(5), 4)
    0.1459
    """
    _check(head_start)
    # (2 + s - sqrt(s (4 + s))) / 2, rewritten to avoid cancellation for long collections.
    return 2 / (2 + head_start + sqrt(head_start * (4 + head_start)))


def optimal_share(head_start: float) -> float:
    """Return the share for which the release is ready first.

    Examples
    --------
    >>> round(optimal_share(5), 3), optimal_share(0)
    (0.146, 0.5)
    """
    _check(head_start)
    return (2 + head_start) / 4 if head_start <= CRITICAL_HEAD_START else critical_share(head_start)


def earliest(head_start: float) -> float:
    """Return the earliest time after the collection at which a release can be ready, over all shares.

    Examples
    --------
    >>> round(7200 * earliest(5))
    153
    """
    _check(head_start)
    return 1 - (2 + head_start) ** 2 / 8 if head_start <= CRITICAL_HEAD_START else critical_share(head_start) ** 2


def deadline_share(head_start: float, deadline: float) -> float:
    """Return the share for which the release is ready exactly at the deadline: the smallest, which loses least.

    Examples
    --------
    >>> round(deadline_share(5, 0.5), 4)
    0.0729
    """
    _check(head_start)
    if deadline >= 1:
        return 0.0
    if deadline < earliest(head_start) * (1 - 1e-12):
        raise ParameterError(
            f"A release {deadline:.4g} of the ordinary job's time after the collection is not reachable with the "
            f"head-start coefficient {head_start:g}; the earliest is {earliest(head_start):.4g}."
        )
    root = sqrt(max((2 + head_start) ** 2 - 8 * (1 - deadline), 0.0))
    # (2 + s - root) / 4, again rewritten to avoid cancellation.
    return 2 * (1 - deadline) / (2 + head_start + root)


def _check(head_start: float) -> None:
    if not 0 <= head_start < float("inf"):
        raise ParameterError(f"The head-start coefficient must be a number of at least 0; got {head_start!r}.")
