"""l-diversity: in every equivalence class the confidential column has several values, none of them too frequent.

References
----------
Machanavajjhala, Gehrke, Kifer, Venkitasubramaniam (2007), "l-Diversity: privacy beyond k-anonymity".
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from shoal import kernels
from shoal.errors import ParameterError
from shoal.models.codes import Codes
from shoal.models.model import Model, Reached, Sorted, as_fraction, is_number, reached
from shoal.typing import Labels

KINDS = ("distinct", "entropy", "recursive")


@dataclass(frozen=True)
class LDiversity(Model):
    """At least `l` well-represented values: distinct, by entropy, or recursive (c, l).

    Parameters
    ----------
    column : str
        A confidential column.
    l : int
        At least 2.
    kind : {"distinct", "entropy", "recursive"}
        Well-represented means: at least `l` different values; an entropy of at least log(l); or that the most frequent
        value is rarer than `c` times all from the l-th most frequent on, taken together.
    c : float, optional
        Above 0; required by the recursive kind, and by no other.

    Examples
    --------
    >>> LDiversity("diagnosis", l=3)
    LDiversity(column='diagnosis', l=3, kind='distinct', c=None)
    """

    column: str
    l: int  # noqa: E741 (the name in the literature)
    kind: Literal["distinct", "entropy", "recursive"] = "distinct"
    c: float | None = None
    name: ClassVar[str] = "l-diversity"
    merges_lookalikes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if isinstance(self.l, bool) or not isinstance(self.l, int | np.integer) or self.l < 2:
            raise ParameterError(f"l must be a whole number of at least 2; got {self.l!r}.")
        if self.kind not in KINDS:
            raise ParameterError(f"kind must be one of {', '.join(KINDS)}; got {self.kind!r}.")
        if (self.c is not None) != (self.kind == "recursive"):
            raise ParameterError("The kind 'recursive' of l-diversity needs a number c, and no other kind takes one.")
        if self.c is not None and not (is_number(self.c) and self.c > 0):
            raise ParameterError(f"c must be a number above 0; got {self.c!r}.")

    @property
    def by_frequency(self) -> bool:
        """False for the distinct kind, which ignores frequencies."""
        return self.kind != "distinct"

    @property
    def promise(self) -> str:
        """The diversity of every group."""
        how = {
            "distinct": f"at least {self.l} different values of {self.column!r}",
            "entropy": f"values of {self.column!r} as varied as {self.l} equally frequent ones, measured by entropy",
            "recursive": f"a most frequent value of {self.column!r} rarer than {self.c} times all from the "
            f"{self.l}th most frequent on",
        }[self.kind]
        return f"Every group has {how} ({self.kind} l-diversity)."

    def measure(self, class_ids: Labels, column: Codes) -> Reached:
        """Recount every class: the number of values, e to the entropy, or the l that is reached with this c."""
        by_class = Sorted(*column.counted_once(class_ids))
        classes, _, counts = by_class.runs()
        if self.kind == "distinct":
            values = np.bincount(classes, minlength=len(by_class.sizes)).astype(np.float64)
            return reached(self, values, values >= self.l)
        ends = np.cumsum(np.bincount(classes, minlength=len(by_class.sizes)))[:-1]
        each = np.split(counts, ends) if len(by_class.sizes) else []
        if self.kind == "entropy":
            values = np.array([np.exp(_entropy(occurs)) for occurs in each])
            kept = np.array([_has_entropy(occurs, int(self.l)) for occurs in each], dtype=bool)
            return reached(self, values, kept)
        assert self.c is not None
        values = np.array([_recursive_l(occurs, self.c) for occurs in each], dtype=np.float64)
        return reached(self, values, values >= self.l)

    def guard(self, guarantees: kernels.Guarantees, column: Codes, counts: Labels) -> None:
        """Forbid steps after which a class is not diverse enough."""
        if self.kind == "distinct":
            guarantees.distinct(column.codes, self.l)
        elif self.kind == "entropy":
            guarantees.entropy(column.codes, self.l)
        else:
            assert self.c is not None
            c = as_fraction(self.c)
            guarantees.recursive(column.codes, self.l, c.numerator, c.denominator)

    def why_impossible(self, column: Codes) -> str:
        """Explain the violation: all records together are not diverse enough."""
        counts = column._replace(whole=None).counts()
        counts = counts[counts > 0]
        found = {
            "distinct": f"have {len(counts)} different values",
            "entropy": f"have the entropy of {np.exp(_entropy(counts)):.2f} equally frequent values",
            "recursive": f"are recursively diverse only for l={_recursive_l(counts, self.c or 1.0)} with c={self.c}",
        }[self.kind]
        return f"the {len(column.codes)} records, taken together, {found} in column {self.column!r}. Lower l"


def _entropy(counts: NDArray[np.int64]) -> float:
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def _has_entropy(counts: NDArray[np.int64], l: int) -> bool:  # noqa: E741
    """Return whether the entropy is at least log(l), in float64, and in exact integers if that is too close."""
    difference = _entropy(counts) - np.log(l)
    if abs(difference) > 1e-9:
        return bool(difference > 0)
    size = int(counts.sum())
    product = l**size
    for count in counts:
        product *= int(count) ** int(count)
    return bool(product <= size**size)


def _recursive_l(counts: NDArray[np.int64], c: float) -> int:
    """Return the largest l for which r_1 < c (r_l + r_(l+1) + ...), r the counts in descending order, or 0."""
    descending = np.sort(counts)[::-1]
    tails = np.cumsum(descending[::-1])[::-1]
    share = as_fraction(c)
    kept = [int(descending[0]) * share.denominator < share.numerator * int(tail) for tail in tails]
    return int(np.count_nonzero(kept))
