"""p-sensitive k-anonymity: every class of at least k records has at least p different confidential values.

References
----------
Truta, Vinay (2006), "Privacy protection: p-sensitive k-anonymity property".
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal import kernels
from shoal.errors import ParameterError
from shoal.models.codes import Codes
from shoal.models.l_diversity import LDiversity
from shoal.models.model import Model, Reached, reached
from shoal.typing import Labels


@dataclass(frozen=True)
class PSensitive(Model):
    """At least `p` different values.

    Use one model per confidential column.

    Parameters
    ----------
    column : str
        A confidential column.
    p : int
        At least 2.

    Examples
    --------
    >>> PSensitive("diagnosis", p=2)
    PSensitive(column='diagnosis', p=2)
    """

    column: str
    p: int
    name: ClassVar[str] = "p-sensitivity"
    merges_lookalikes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if isinstance(self.p, bool) or not isinstance(self.p, int | np.integer) or self.p < 2:
            raise ParameterError(f"p must be a whole number of at least 2; got {self.p!r}.")

    @property
    def by_frequency(self) -> bool:
        """False: frequencies are ignored."""
        return False

    @property
    def promise(self) -> str:
        """Minimum number of values in a group."""
        return f"Every group has at least {self.p} different values of {self.column!r} (p-sensitivity)."

    def measure(self, class_ids: Labels, column: Codes) -> Reached:
        """Recount the different values of every class."""
        found = self._as_diversity().measure(class_ids, column)
        return reached(self, found.values, found.values >= self.p)

    def guard(self, guarantees: kernels.Guarantees, column: Codes, counts: Labels) -> None:
        """Forbid steps after which a class has too few values."""
        self._as_diversity().guard(guarantees, column, counts)

    def why_impossible(self, column: Codes) -> str:
        """Explain the violation: all records together have fewer values."""
        return self._as_diversity().why_impossible(column).replace("Lower l", "Lower p")

    def _as_diversity(self) -> LDiversity:
        return LDiversity(self.column, self.p)
