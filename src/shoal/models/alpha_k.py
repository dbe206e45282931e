"""(alpha, k)-anonymity: in every class of at least k records no confidential value has more than a share of alpha.

References
----------
Wong, Li, Fu, Wang (2006), "(alpha, k)-anonymity: an enhanced k-anonymity model for privacy preserving data publishing".
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from shoal import kernels
from shoal.errors import ParameterError
from shoal.models.codes import Codes
from shoal.models.model import Model, Reached, Sorted, as_fraction, is_number, reached
from shoal.models.share_limits import ShareLimits
from shoal.typing import Labels


@dataclass(frozen=True)
class AlphaK(Model):
    """No value has a share above `alpha`.

    The general model of the paper, in which every value is confidential.

    Parameters
    ----------
    column : str
        A confidential column.
    alpha : float
        Above 0 and below 1.

    Examples
    --------
    >>> AlphaK("diagnosis", alpha=0.5)
    AlphaK(column='diagnosis', alpha=0.5)
    """

    column: str
    alpha: float
    name: ClassVar[str] = "alpha-k"
    best: ClassVar[Literal["low", "high"]] = "low"
    merges_lookalikes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (is_number(self.alpha) and 0 < self.alpha < 1):
            raise ParameterError(f"alpha must be a number above 0 and below 1; got {self.alpha!r}.")

    @property
    def promise(self) -> str:
        """Largest share of a value in a group."""
        return (
            f"In every group no value of {self.column!r} belongs to more than {100 * self.alpha:g} % of the records "
            "(alpha-k: (alpha, k)-anonymity)."
        )

    def measure(self, class_ids: Labels, column: Codes) -> Reached:
        """Recount the largest share of a value in every class."""
        by_class = Sorted(*column.counted_once(class_ids))
        classes, values, occurs = by_class.runs()
        sizes = by_class.sizes[classes]
        worst, kept = np.zeros(len(by_class.sizes)), np.ones(len(by_class.sizes), dtype=bool)
        np.maximum.at(worst, classes, occurs / sizes)
        kept[classes[self._limits(column).exceeded(values, occurs, sizes)]] = False
        return reached(self, worst, kept)

    def guard(self, guarantees: kernels.Guarantees, column: Codes, counts: Labels) -> None:
        """Forbid steps after which the share of a value is above alpha."""
        self._limits(column).guard(guarantees, column.codes)

    def why_impossible(self, column: Codes) -> str:
        """Explain the violation: one value is too frequent in all records together."""
        counts = column._replace(whole=None).counts()
        return (
            f"of the {counts.sum()} records, taken together, {counts.max()} have the same value in column "
            f"{self.column!r}, a share of {counts.max() / counts.sum():.3g}. Raise alpha"
        )

    def _limits(self, column: Codes) -> ShareLimits:
        return ShareLimits.of([as_fraction(self.alpha)] * column.n_values)
