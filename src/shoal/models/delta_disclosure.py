"""delta-disclosure privacy: no value is much more or much less frequent in a class than in the table.

References
----------
Brickell, Shmatikov (2008), "The cost of privacy: destruction of data-mining utility in anonymized data publishing".
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from shoal import kernels
from shoal.errors import ParameterError
from shoal.models.codes import Codes
from shoal.models.model import Model, Reached, Sorted, is_number, reached
from shoal.typing import Labels


@dataclass(frozen=True)
class DeltaDisclosure(Model):
    """The share of every value is between exp(-delta) and exp(delta) times that in the table.

    Every value must occur in every class, so this suits columns with few values, none of them rare.

    Parameters
    ----------
    column : str
        A confidential column.
    delta : float
        Above 0.

    Examples
    --------
    >>> DeltaDisclosure("smoker", delta=1.0)
    DeltaDisclosure(column='smoker', delta=1.0)
    """

    column: str
    delta: float
    name: ClassVar[str] = "delta-disclosure"
    best: ClassVar[Literal["low", "high"]] = "low"

    def __post_init__(self) -> None:
        if not (is_number(self.delta) and self.delta > 0):
            raise ParameterError(f"delta must be a number above 0; got {self.delta!r}.")

    @property
    def promise(self) -> str:
        """Bounds on the frequency of a value in a group."""
        most = np.exp(self.delta)
        return (
            f"In every group every value of {self.column!r} is less than {most:.3g} times as frequent, and more than "
            f"1/{most:.3g} times, as in the whole table (delta-disclosure privacy)."
        )

    def measure(self, class_ids: Labels, column: Codes) -> Reached:
        """Recount the largest log ratio of every class; infinite if a value of the table does not occur in it."""
        by_class = Sorted(*column.counted_once(class_ids))
        counts = column.counts()
        classes, values, occurs = by_class.runs()
        shares = occurs / by_class.sizes[classes]
        worst = np.zeros(len(by_class.sizes))
        np.maximum.at(worst, classes, np.abs(np.log(shares / (counts[values] / counts.sum()))))
        worst[np.bincount(classes, minlength=len(worst)) < np.count_nonzero(counts)] = np.inf
        return reached(self, worst, worst < self.delta)

    def guard(self, guarantees: kernels.Guarantees, column: Codes, counts: Labels) -> None:
        """Forbid steps after which the share of a value is out of bounds."""
        guarantees.delta(column.codes, counts, float(np.exp(-self.delta)), float(np.exp(self.delta)))

    def why_impossible(self, column: Codes) -> str:
        """Explain the violation; only a stratum can differ from the table."""
        return (
            f"the {len(column.codes)} records of a stratum, taken together, differ from the table by more than "
            f"delta={self.delta:g} in column {self.column!r}, and so does at least one cell of every partition of "
            "them. Raise delta, or merge strata"
        )
