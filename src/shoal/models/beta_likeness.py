"""beta-likeness: no value is much more frequent in a class than in the table.

References
----------
Cao, Karras (2012), "Publishing microdata with a robust privacy guarantee".
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, get_args

import numpy as np

from shoal import kernels
from shoal.errors import ParameterError
from shoal.models.codes import Codes
from shoal.models.model import Model, Reached, Sorted, as_fraction, is_number, reached
from shoal.models.share_limits import ShareLimits
from shoal.typing import Labels

Likeness = Literal["basic", "enhanced"]


@dataclass(frozen=True)
class BetaLikeness(Model):
    """The share of no value is more than 1 + `beta` times that in the table.

    A value that is rarer in a class than in the table, or absent, is no violation. Rare values gain little in absolute
    terms, as they should: of a share of 0.01 a beta of 1 makes 0.02 at most.

    Parameters
    ----------
    column : str
        A confidential column.
    beta : float
        Above 0: the largest relative gain of a share, (q - p) / p for p in the table and q in the class.
    kind : {"basic", "enhanced"}
        The enhanced kind bounds the gain also by -log(p), so that frequent values do not fill a class: of a share of
        0.5 it never makes more than 0.85.

    Examples
    --------
    >>> BetaLikeness("diagnosis", beta=1.0)
    BetaLikeness(column='diagnosis', beta=1.0, kind='basic')
    """

    column: str
    beta: float
    kind: Likeness = "basic"
    name: ClassVar[str] = "beta-likeness"
    best: ClassVar[Literal["low", "high"]] = "low"

    def __post_init__(self) -> None:
        if not (is_number(self.beta) and self.beta > 0):
            raise ParameterError(f"beta must be a number above 0; got {self.beta!r}.")
        if self.kind not in get_args(Likeness):
            raise ParameterError(f"kind must be one of {', '.join(get_args(Likeness))}; got {self.kind!r}.")

    @property
    def promise(self) -> str:
        """Largest gain of the share of a value in a group."""
        also = ", and less where it is frequent" if self.kind == "enhanced" else ""
        return (
            f"In every group every value of {self.column!r} is at most {1 + self.beta:.3g} times as frequent as in the "
            f"whole table{also} ({self.kind} beta-likeness)."
        )

    def measure(self, class_ids: Labels, column: Codes) -> Reached:
        """Recount the largest gain in every class; of the enhanced kind infinite if one is above -log(p)."""
        by_class = Sorted(*column.counted_once(class_ids))
        counts = column.counts()
        classes, values, occurs = by_class.runs()
        sizes = by_class.sizes[classes]
        gains = occurs / sizes / (counts[values] / counts.sum()) - 1
        if self.kind == "enhanced":
            gains[ShareLimits.of(_caps(counts)).exceeded(values, occurs, sizes)] = np.inf
        worst, kept = np.zeros(len(by_class.sizes)), np.ones(len(by_class.sizes), dtype=bool)
        np.maximum.at(worst, classes, gains)
        kept[classes[self._limits(counts).exceeded(values, occurs, sizes)]] = False
        return reached(self, worst, kept)

    def guard(self, guarantees: kernels.Guarantees, column: Codes, counts: Labels) -> None:
        """Forbid steps after which the share of a value has gained too much."""
        self._limits(counts).guard(guarantees, column.codes)

    def why_impossible(self, column: Codes) -> str:
        """Explain the violation; only a stratum can differ from the table."""
        return (
            f"the {len(column.codes)} records of a stratum, taken together, have a value in column {self.column!r} "
            f"whose share gains more than beta={self.beta:g} over the table, and so does at least one cell of every "
            "partition of them. Raise beta, or merge strata"
        )

    def _limits(self, counts: Labels) -> ShareLimits:
        most = 1 + as_fraction(self.beta)
        limits = [Fraction(int(count), int(counts.sum())) * most for count in counts]
        return ShareLimits.of(map(min, limits, _caps(counts)) if self.kind == "enhanced" else limits)


def _caps(counts: Labels) -> list[Fraction]:
    """Return p (1 - log(p)) for the share p of each value, with the logarithm to 30 binary digits."""
    shares = [Fraction(int(count), int(counts.sum())) for count in counts]
    return [p * (1 + Fraction(math.floor(-math.log(p) * 2**30), 2**30)) if p else p for p in shares]
