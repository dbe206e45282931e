"""What every privacy model is: a promise about each class of a release that can be recounted, and that has a veto."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from fractions import Fraction
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from shoal import kernels
from shoal.models.codes import Codes
from shoal.typing import Labels


@dataclass(frozen=True)
class Reached:
    """What a recount found.

    Attributes
    ----------
    model : Model
        What was asked.
    value : float
        What the worst class reaches, in the unit of the model: its t, its l, its smallest size.
    mean : float
        The same on average over the classes.
    n_classes, n_failing : int
        How many classes there are, and how many break the promise.
    holds : bool
        Whether none does.
    note : str
        What to know when reading it, or nothing.
    """

    model: "Model"
    value: float
    mean: float
    n_classes: int
    n_failing: int
    holds: bool
    note: str = ""
    values: NDArray[np.float64] = field(repr=False, compare=False, default_factory=lambda: np.empty(0))

    @property
    def kept(self) -> bool:
        """Whether what was promised was found; a model that promises nothing is never broken."""
        return self.holds or not self.model.promised

    def to_dict(self) -> dict[str, Any]:
        """Return the recount as plain values, for JSON: what was asked, and what was found."""
        return {
            "model": self.model.name,
            **{each.name: plain(getattr(self.model, each.name)) for each in fields(self.model)},  # type: ignore[arg-type]
            "promise": self.model.promise,
            "promised": self.model.promised,
            "holds": self.holds,
            "measures": self.model.unit,
            "reached": self.value if np.isfinite(self.value) else None,
            "mean": self.mean if np.isfinite(self.mean) else None,
            "classes": self.n_classes,
            "classes_failing": self.n_failing,
            "note": self.note,
        }


class Model(ABC):
    """A promise about the confidential values in every class. Frozen: its fields are what the user asked for."""

    name: ClassVar[str]
    """As people call it."""

    column: str
    """The confidential column it is about."""

    merges_lookalikes: ClassVar[bool] = False
    """Whether values count as one that some readers cannot tell apart. What a model promises has to hold for those who
    can and for those who cannot: fewer values are worse for diversity, more are for closeness."""

    best: ClassVar[Literal["low", "high"]] = "high"
    """Which of two values is the better one."""

    @property
    def by_frequency(self) -> bool:
        """Whether it matters how often a value occurs in a class, and not only whether it does."""
        return True

    @property
    def promised(self) -> bool:
        """Whether the release is refused if it does not hold; else what was reached is only reported."""
        return True

    @property
    def unit(self) -> str:
        """What is bounded, by the name of its setting: the first after the column."""
        return fields(self)[1].name  # type: ignore[arg-type]

    @property
    def promise(self) -> str:
        """What is promised, in a sentence for readers of a report."""
        return f"{self.name} of {self.column!r} with {self.unit} = {getattr(self, self.unit):g}."

    @abstractmethod
    def measure(self, class_ids: Labels, column: Codes) -> Reached:
        """Recount from the classes and the codes alone."""

    @abstractmethod
    def guard(self, guarantees: kernels.Guarantees, column: Codes, counts: Labels) -> None:
        """Add the veto. `counts`: how often each code occurs in the whole table, of which `column` may be a part."""

    @abstractmethod
    def why_impossible(self, column: Codes) -> str:
        """Say in counts, without a value, why the records of `column` as one class break it."""


def reached(model: Model, values: NDArray[np.float64], kept: NDArray[np.bool_], *, note: str = "") -> Reached:
    """Sum up the classes."""
    worst = float(values.max() if model.best == "low" else values.min()) if len(values) else 0.0
    mean = float(values.mean()) if len(values) else 0.0
    failing = int(np.count_nonzero(~kept))
    return Reached(model, worst, mean, len(values), failing, failing == 0, note, values)


def worse(one: Reached, other: Reached) -> Reached:
    """Return the recount with more failing classes, or else with the worse value, of the same model."""
    sign = 1 if one.model.best == "low" else -1
    return max(one, other, key=lambda found: (found.n_failing, sign * found.value))


def plain(value: Any) -> Any:
    """Return a number of NumPy as one of Python, anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def is_number(value: object) -> bool:
    """Tell whether a setting is a finite number, and not a truth value or a text that could be taken for one."""
    return isinstance(value, Real) and not isinstance(value, bool) and bool(np.isfinite(float(value)))


def as_fraction(number: float) -> Fraction:
    """Take a number at its word: 0.3 is three tenths, not the float nearest to it."""
    return Fraction(repr(float(number)))


class Sorted:
    """The records of each class, sorted by code: what all recounts walk through.

    Attributes
    ----------
    codes, classes : ndarray of shape (n_records,)
        Code and class of the records, by class and then by code.
    starts, sizes : ndarray of shape (n_classes,)
        Where each class begins and how many records it has.
    """

    def __init__(self, class_ids: Labels, codes: Labels) -> None:
        order = np.lexsort((codes, class_ids))
        self.codes = codes[order]
        self.classes = np.unique(class_ids[order], return_inverse=True)[1]
        self.sizes = np.bincount(self.classes)
        self.starts = np.cumsum(self.sizes) - self.sizes

    def runs(self) -> tuple[Labels, Labels, Labels]:
        """Return class, code and count of each value of each class."""
        new = np.ones(len(self.codes), dtype=bool)
        new[1:] = (self.codes[1:] != self.codes[:-1]) | (self.classes[1:] != self.classes[:-1])
        begins = np.flatnonzero(new)
        return self.classes[begins], self.codes[begins], np.diff(np.append(begins, len(self.codes)))
