"""Reserve: how many people a cell needs beyond k, so that k stay when some leave."""

import math

SHARE = 0.01
"""Share of the people who stay that may have to be withheld, where none was allowed."""


def cell_size(k: int, leaving: float, share: float = SHARE) -> int:
    """Return the smallest cell size with which at most such a share of those who stay is expected to be withheld.

    Parameters
    ----------
    k : int
    leaving : float
        The share of people who are expected to leave, each by chance.
    share : float
        The share of those who stay whose cell may fall below k; `SHARE` if it is 0.

    Examples
    --------
    >>> cell_size(10, 0.05), cell_size(10, 0.05, 0.02), cell_size(10, 0.0)
    (13, 12, 10)
    """
    size = k
    while expected_withheld(size, k, leaving) > (share or SHARE):
        size += 1
    return size


def expected_withheld(size: int, k: int, leaving: float) -> float:
    """Return the expected share of those who stay who are in cells that fall below k, for cells of one size.

    Examples
    --------
    >>> round(expected_withheld(13, 10, 0.05), 4)
    0.0022
    """
    staying = 1 - leaving
    lost = sum(
        stay * math.comb(size, stay) * staying**stay * leaving ** (size - stay) for stay in range(min(k, size + 1))
    )
    return lost / (size * staying) if staying else 1.0
