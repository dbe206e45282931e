"""t-closeness: in every class the confidential column is distributed much as in the whole table.

References
----------
Li, Li, Venkatasubramanian (2007), "t-Closeness: privacy beyond k-anonymity and l-diversity".
"""

from dataclasses import dataclass
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
    """The earth mover's distance between any class and the table is at most `t`.

    Parameters
    ----------
    column : str
        A confidential column: by the ordered distance if it is numeric, ordinal or a date (one step between
        neighbouring values that occur, the whole way being 1), by half the absolute differences if it is nominal.
    t : float
        Above 0 and at most 1.
    weight : float, optional
        Steers only, as in Domingo-Ferrer and Soria-Comas (2017): the larger, the closer to `t`, and the more loss.
        What is reached is then reported, not promised. By default t is kept to the letter.

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
        """With a weight of one's own nothing is promised."""
        return self.weight is None

    @property
    def promise(self) -> str:
        """How far a group may be from the table; or was led to be, if nothing is promised."""
        led = "" if self.promised else f", as far as steering with a weight of {self.weight:g} leads there"
        return (
            f"In every group the values of {self.column!r} are spread much as in the whole table: at most {self.t:g} "
            f"apart, where 0 is the same and 1 the opposite (t-closeness){led}."
        )

    def measure(self, class_ids: Labels, column: Codes) -> Reached:
        """Recount the distance of every class from the table, in whole numbers."""
        work, whole = _work(class_ids, column)
        t = as_fraction(self.t)
        kept = np.array([w * t.denominator <= a * t.numerator for w, a in zip(work, whole, strict=True)], dtype=bool)
        values = _divided(work, whole)
        note = ""
        if column.n_values < 2:
            note = (
                f"Column {self.column!r} has one and the same value everywhere: every class is like the table, and "
                "everybody's value is known."
            )
        return reached(self, values, kept, note=note)

    def guard(self, guarantees: kernels.Guarantees, column: Codes, counts: Labels) -> None:
        """Forbid steps after which a class is farther than t from the table."""
        t = as_fraction(self.t)
        add = guarantees.ordered_closeness if column.ordered else guarantees.nominal_closeness
        add(column.codes, counts, t.numerator, t.denominator)

    def why_impossible(self, column: Codes) -> str:
        """Only a part of the table can be unlike the table."""
        return (
            f"the {len(column.codes)} records of a stratum, taken together, are farther than t={self.t:g} from the "
            f"table in column {self.column!r}, and so is at least one cell of every partition of them. Raise t, or "
            "merge strata"
        )


Work = tuple[list[int], list[int]]
"""Of each class, the distance as a fraction of two whole numbers."""


def earth_movers_distance(class_ids: Labels, column: Codes) -> Vector:
    """Return the distance of each class from all records: over the ranks, or with all values equally far apart."""
    return _divided(*_work(class_ids, column))


def _work(class_ids: Labels, column: Codes) -> Work:
    return (ordered_work if column.ordered else nominal_work)(*column.counted_once(class_ids), column.counts())


def _divided(work: list[int], whole: list[int]) -> Vector:
    return np.array([w / a if a else 0.0 for w, a in zip(work, whole, strict=True)])


def ordered_work(class_ids: Labels, codes: Labels, counts: Labels) -> Work:
    """Return the earth mover's distance of each class from the table, over the ranks (equation 1 of the paper).

    With N_i records up to value i in the table and u in the class, the distance is the sum of abs(c N_i - n u) over all
    i, divided by c n (M - 1). Between two neighbouring records of the class u stays, and c N_i - n u turns from
    negative to positive at one place; sums of N on both sides are looked up. So a class costs its size, not M.
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
    # What is multiplied by n and by c is summed apart: the products may need more than 64 bits.
    by_n = _class_sums(u * (2 * turn - begin - end), by_class)
    by_c = _class_sums(below[begin] + below[end] - 2 * below[turn], by_class) + below[begin[by_class.starts]]
    work = [n * int(a) + int(c) * int(b) for a, b, c in zip(by_n, by_c, by_class.sizes, strict=True)]
    return work, [int(c) * n * (n_values - 1) for c in by_class.sizes]


def _class_sums(values: Labels, by_class: Sorted) -> Labels:
    return np.asarray(np.add.reduceat(values, by_class.starts) if len(values) else values, dtype=np.int64)


def nominal_work(class_ids: Labels, codes: Labels, counts: Labels) -> Work:
    """Return half the sum of the absolute differences between shares in each class and in the table."""
    n = int(counts.sum())
    by_class = Sorted(class_ids, codes)
    classes, values, occurs = by_class.runs()
    # What is too much in one place is missing in another: half the sum is that of the positive differences.
    more = np.maximum(occurs * n - by_class.sizes[classes] * counts[values], 0)
    work: NDArray[np.int64] = np.zeros(len(by_class.sizes), dtype=np.int64)
    np.add.at(work, classes, more)
    return [int(w) for w in work], [int(c) * n for c in by_class.sizes]
