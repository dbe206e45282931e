"""The interface of a privacy model: a condition on each class of a release, its recount, and its veto in searches."""

import math
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
    """The result of a recount.

    Attributes
    ----------
    model : Model
        The model recounted.
    value : float
        Value of the worst class, in the unit of the model: its t, its l, its smallest size.
    mean : float
        Mean value over the classes.
    n_classes, n_failing : int
        Number of classes, and number of those that violate the model.
    holds : bool
        Whether no class violates the model.
    note : str
        A remark for readers, or an empty string.
    """

    model: "Model"
    value: float
    mean: float
    n_classes: int
    n_failing: int
    holds: bool
    note: str = ""
    values: NDArray[np.float64] = field(repr=False, compare=False, default_factory=lambda: np.empty(0))
    failing: NDArray[np.bool_] = field(repr=False, compare=False, default_factory=lambda: np.empty(0, dtype=bool))

    @property
    def is_broken(self) -> bool:
        """Whether the model promises something that does not hold."""
        return self.model.promised and not self.holds

    def to_dict(self) -> dict[str, Any]:
        """Return the model and the recount as plain values, for JSON."""
        return {
            "model": self.model.name,
            **{each.name: plain(getattr(self.model, each.name)) for each in fields(self.model)},  # type: ignore[arg-type]
            "promise": self.model.promise,
            "promised": self.model.promised,
            "holds": self.holds,
            "unit": self.model.unit,
            "value": self.value if np.isfinite(self.value) else None,
            "mean": self.mean if np.isfinite(self.mean) else None,
            "n_classes": self.n_classes,
            "n_failing": self.n_failing,
            "note": self.note,
        }


class Model(ABC):
    """A condition on the confidential values in every class. Frozen: its fields are the settings given by the user."""

    name: ClassVar[str]
    """Name of the model in the literature."""

    column: str
    """The confidential column it is about."""

    merges_lookalikes: ClassVar[bool] = False
    """Whether values that look the same to some readers count as one. A model must hold whether or not readers can
    distinguish them: for diversity fewer values are the worse case, for closeness more values."""

    best: ClassVar[Literal["low", "high"]] = "high"
    """Which of two values is the better one."""

    @property
    def by_frequency(self) -> bool:
        """Whether the frequencies of values in a class matter, and not only which values occur."""
        return True

    @property
    def promised(self) -> bool:
        """Whether a release that violates the model is refused; otherwise the value reached is only reported."""
        return True

    def __str__(self) -> str:
        """Return the model in words that fit Python, a job and the command line."""
        given = ((each.name, getattr(self, each.name), each.default) for each in fields(self)[1:])  # type: ignore[arg-type]
        settings = ", ".join(f"{name} = {value}" for name, value, default in given if value != default)
        return f"{self.name} of {self.column!r} with {settings}"

    @property
    def unit(self) -> str:
        """Name of the bounded quantity: the first setting after the column."""
        return fields(self)[1].name  # type: ignore[arg-type]

    @property
    def promise(self) -> str:
        """The guarantee, in a sentence for readers of a report."""
        return f"{self.name} of {self.column!r} with {self.unit} = {getattr(self, self.unit):g}."

    @abstractmethod
    def measure(self, class_ids: Labels, column: Codes) -> Reached:
        """Recount from the classes and the codes alone."""

    @abstractmethod
    def guard(self, guarantees: kernels.Guarantees, column: Codes, counts: Labels) -> None:
        """Add the veto. `counts` are the frequencies of the codes in the whole table; `column` may be a part of it."""

    @abstractmethod
    def why_impossible(self, column: Codes) -> str:
        """Explain in counts, without values, why the records of `column` as one class violate the model."""


def reached(model: Model, values: NDArray[np.float64], kept: NDArray[np.bool_], *, note: str = "") -> Reached:
    """Summarize the recounts of all classes."""
    worst = float(values.max() if model.best == "low" else values.min()) if len(values) else 0.0
    mean = math.fsum(values) / len(values) if len(values) else 0.0  # the same in whatever order the classes are
    failing = int(np.count_nonzero(~kept))
    return Reached(model, worst, mean, len(values), failing, failing == 0, note, values, ~kept)


def worse(one: Reached, other: Reached) -> Reached:
    """Return the recount with more failing classes, or with the worse value if they have as many."""
    sign = 1 if one.model.best == "low" else -1
    return max(one, other, key=lambda found: (found.n_failing, sign * found.value))


def plain(value: Any) -> Any:
    """Convert a NumPy scalar to a Python number; return anything else unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def is_number(value: object) -> bool:
    """Return whether a setting is a finite number, and not a bool or a string."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return bool(np.isfinite(float(value)))
    except OverflowError:  # a whole number beyond float64
        return False


def as_fraction(number: float) -> Fraction:
    """Return a number as the fraction it is written as: 0.3 is three tenths, not the nearest float."""
    return Fraction(repr(float(number)))


class Sorted:
    """The records of each class, sorted by code, as used by all recounts.

    Attributes
    ----------
    codes, classes : ndarray of shape (n_records,)
        Code and class of the records, sorted by class and then by code.
    starts, sizes : ndarray of shape (n_classes,)
        First position and number of records of each class.
    """

    def __init__(self, class_ids: Labels, codes: Labels) -> None:
        # Class and code as one number, which is sorted in a fraction of the time.
        n_codes = int(codes.max(initial=0)) + 1
        ordered, self.codes = np.divmod(np.sort(np.asarray(class_ids, dtype=np.int64) * n_codes + codes), n_codes)
        self.classes = np.cumsum(np.diff(ordered, prepend=ordered[:1]) != 0)
        self.sizes = np.bincount(self.classes)
        self.starts = np.cumsum(self.sizes) - self.sizes

    def runs(self) -> tuple[Labels, Labels, Labels]:
        """Return class, code and count of each value of each class."""
        new = np.ones(len(self.codes), dtype=bool)
        new[1:] = (self.codes[1:] != self.codes[:-1]) | (self.classes[1:] != self.classes[:-1])
        begins = np.flatnonzero(new)
        return self.classes[begins], self.codes[begins], np.diff(np.append(begins, len(self.codes)))
