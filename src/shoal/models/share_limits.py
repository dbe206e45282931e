"""Share limits: the largest share of each value in a class, as (alpha, k)-anonymity and beta-likeness bound it."""

from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal import kernels
from shoal.typing import Labels

_FINEST = 1 << 31
"""Largest denominator of a limit. Its product with a number of records fits into 64 bits."""


class ShareLimits(NamedTuple):
    """For each code the largest share of the records of a class, as a fraction of whole numbers."""

    over: Labels
    under: Labels

    @staticmethod
    def of(limits: Iterable[Fraction]) -> "ShareLimits":
        """Return limits as they are or, where the denominator is too large, rounded down."""
        fractions = [_representable(min(limit, Fraction(1))) for limit in limits]
        over, under = ([getattr(each, side) for each in fractions] for side in ("numerator", "denominator"))
        return ShareLimits(np.array(over, dtype=np.int64), np.array(under, dtype=np.int64))

    def exceeded(self, codes: Labels, counts: Labels, sizes: Labels) -> NDArray[np.bool_]:
        """Return where so many records with a code, in a class of this size, are more than its limit."""
        return np.asarray(counts * self.under[codes] > self.over[codes] * sizes)

    def guard(self, guarantees: kernels.Guarantees, codes: Labels) -> None:
        """Forbid steps after which the share of a value exceeds its limit."""
        guarantees.share_limits(codes, self.over, self.under)


def _representable(limit: Fraction) -> Fraction:
    return limit if limit.denominator <= _FINEST else Fraction(int(limit * _FINEST), _FINEST)
