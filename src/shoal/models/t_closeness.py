"""t-closeness: in every equivalence class the confidential column is distributed nearly as in the whole table.

References
----------
Li, Li, Venkatasubramanian (2007), "t-Closeness: privacy beyond k-anonymity and l-diversity".
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from shoal import kernels
from shoal.errors import ParameterError
from shoal.models.codes import Codes
from shoal.models.model import Model, Reached, Sorted, as_fraction, is_number, reached
from shoal.typing import Labels, Vector


@dataclass(frozen=True)
class TCloseness(Model):
    """The distance (EMD) of its values from those of the table is at most `t`.

    Parameters
    ----------
    column : str
        A confidential column. The ordered distance is used if it is numeric, ordinal or a date (one step between
        neighbouring values that occur, 1 from the lowest to the highest), the total variation distance if it is
        nominal.
    t : float
        Above 0 and at most 1.
    weight : float, optional
        Only steer the partition, as in Domingo-Ferrer and Soria-Comas (2017): a larger weight comes closer to `t`, at
        more loss. The t reached is then reported, not guaranteed. By default t is enforced exactly.

    Examples
    --------
    >>> TCloseness("salary", t=0.1)
    TCloseness(column='salary', t=0.1, weight=None)
    """

    column: str
    t: float
    weight: float | None = None
    name: ClassVar[str] = "t-closeness"
    best: ClassVar[Literal["low", "high"]] = "low"

    def __post_init__(self) -> None:
        if not (is_number(self.t) and 0 < self.t <= 1):
            raise ParameterError(f"t must be above 0 and at most 1; got {self.t!r}.")
        if self.weight is not None and not (is_number(self.weight) and self.weight >= 0):
            raise ParameterError(f"weight must be a finite number of at least 0; got {self.weight!r}.")

    @property
    def promised(self) -> bool:
        """False with a weight: steering guarantees nothing."""
        return self.weight is None

    @property
    def promise(self) -> str:
        """Largest distance of a group from the table; with a weight, a target that is not guaranteed."""
        goal = "" if self.promised else f"; a target of steering with a weight of {self.weight:g}, not a guarantee"
        return (
            f"In every group the values of {self.column!r} are distributed much as in the whole table: at most "
            f"{self.t:g} apart, where 0 is the same and 1 the opposite (t-closeness){goal}."
        )

    def measure(self, class_ids: Labels, column: Codes) -> Reached:
        """Recount the distance of every class from the table, in exact integers."""
        work, whole = _work(class_ids, column)
        t = as_fraction(self.t)
        kept = np.array([w * t.denominator <= a * t.numerator for w, a in zip(work, whole, strict=True)], dtype=bool)
        values = _divided(work, whole)
        note = ""
        if column.n_values < 2:
            note = (
                f"Column {self.column!r} has a single value: every class is distributed like the table, and "
                "everybody's value is known."
            )
        return reached(self, values, kept, note=note)

    def guard(self, guarantees: kernels.Guarantees, column: Codes, counts: Labels) -> None:
        """Forbid steps after which a class is farther than t from the table."""
        t = as_fraction(self.t)
        add = guarantees.ordered_closeness if column.ordered else guarantees.nominal_closeness
        add(column.codes, counts, t.numerator, t.denominator)

    def why_impossible(self, column: Codes) -> str:
        """Explain the violation; only a stratum can differ from the table."""
        return (
            f"the {len(column.codes)} records of a stratum, taken together, are farther than t={self.t:g} from the "
            f"table in column {self.column!r}, and so is at least one cell of every partition of them. Raise t, or "
            "merge strata"
        )


Work = tuple[list[int], list[int]]
"""The distance of each class, as numerators and denominators."""


def earth_movers_distance(class_ids: Labels, column: Codes) -> tuple[Vector, Fraction]:
    """Return the distance of each class from all records, and its mean over them.

    It is measured over the ranks, or with values equally far apart. A denominator is a multiple of the size of its
    class, the same for all, so that the mean over the records needs no further weights.
    """
    work, whole = _work(class_ids, column)
    return _divided(work, whole), Fraction(sum(work), sum(whole) or 1)


def _work(class_ids: Labels, column: Codes) -> Work:
    return (ordered_work if column.ordered else nominal_work)(*column.counted_once(class_ids), column.counts())


def _divided(work: list[int], whole: list[int]) -> Vector:
    return np.array([w / a if a else 0.0 for w, a in zip(work, whole, strict=True)])


def ordered_work(class_ids: Labels, codes: Labels, counts: Labels) -> Work:
    """Return the earth mover's distance of each class from the table, over the ranks (equation 1 of the paper).

    With N_i records up to value i in the table and u in the class, the distance is the sum of abs(c N_i - n u) over all
    i, divided by c n (M - 1). Between two neighbouring records of the class u is constant, and c N_i - n u changes sign
    at one place; the sums of N on both sides are looked up. The cost of a class is therefore its size, not M.
    """
    n, n_values = int(counts.sum()), len(counts)
    up_to = np.cumsum(counts)
    below = np.concatenate([[0], np.cumsum(up_to)])
    by_class = Sorted(class_ids, codes)
    size = by_class.sizes[by_class.classes]
    u = np.arange(len(codes)) - by_class.starts[by_class.classes] + 1
    begin = by_class.codes
    end = np.where(u == size, n_values, np.append(begin[1:], n_values))
    turn = np.clip(np.repeat(np.arange(n_values), counts)[-(-u * n // size) - 1], begin, end)
    # The factors of n and of c are summed separately: the products may need more than 64 bits.
    by_n = _class_sums(u * (2 * turn - begin - end), by_class)
    by_c = _class_sums(below[begin] + below[end] - 2 * below[turn], by_class) + below[begin[by_class.starts]]
    sizes = by_class.sizes.tolist()
    work = [n * a + c * b for a, b, c in zip(by_n.tolist(), by_c.tolist(), sizes, strict=True)]
    return work, [c * n * (n_values - 1) for c in sizes]


def _class_sums(values: Labels, by_class: Sorted) -> Labels:
    return np.asarray(np.add.reduceat(values, by_class.starts) if len(values) else values, dtype=np.int64)


def nominal_work(class_ids: Labels, codes: Labels, counts: Labels) -> Work:
    """Return half the sum of the absolute differences between shares in each class and in the table."""
    n = int(counts.sum())
    by_class = Sorted(class_ids, codes)
    classes, values, occurs = by_class.runs()
    # The differences sum to 0, so half the sum of their absolute values is the sum of the positive ones.
    more = np.maximum(occurs * n - by_class.sizes[classes] * counts[values], 0)
    work: NDArray[np.int64] = np.zeros(len(by_class.sizes), dtype=np.int64)
    np.add.at(work, classes, more)
    return work.tolist(), [c * n for c in by_class.sizes.tolist()]
