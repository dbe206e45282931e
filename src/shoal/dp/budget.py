"""Budget: epsilon, the amount spent, and the only source of noise.

All inputs and outputs are whole numbers: sensitivities are then exact, and rounding cannot invalidate a proof. The
noise is OpenDP's, drawn from the operating system's source of randomness; nothing here takes a seed.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import inf, nextafter
from typing import Any, Literal

import numpy as np

from shoal.distribution import optional
from shoal.errors import ParameterError
from shoal.typing import Labels

_LARGEST_SCALE = 2.0**52
"""Noise beyond this would not fit into 64 bits."""


Entry = tuple[Literal["columns", "cells"], str]
"""An account, and the item charged to it."""

Spent = dict[str, dict[str, float]]
"""Epsilon spent on the values of each column, and on each step that finds the cells."""


def total(spent: Spent) -> Fraction:
    """Return the exact total cost of all steps.

    Examples
    --------
    >>> float(total({"columns": {"age": 0.5}, "cells": {"sizes": 0.25}}))
    0.75
    """
    return sum((Fraction(cost) for book in spent.values() for cost in book.values()), Fraction(0))


def as_epsilon(epsilon: float) -> float:
    """Return epsilon, or raise ParameterError if it is invalid."""
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float | np.integer | np.floating):
        raise ParameterError(f"epsilon must be a number above 0, not {type(epsilon).__name__}.")
    if not 0 < epsilon < inf:
        raise ParameterError(
            f"epsilon must be a finite number above 0; got {float(epsilon):g}. It bounds how much the release may "
            "depend on one record: typical values are 0.1 to 10, and smaller ones protect more."
        )
    return float(epsilon)


class Budget:
    """The budget and the amount spent, counted exactly.

    Columns and cells have separate accounts, so that names of columns and of steps cannot collide.

    Examples
    --------
    >>> budget = Budget(1.0)
    >>> len(budget.laplace(("columns", "age"), np.array([3, 4]), sensitivity=2, share=Fraction(1, 2)))
    2
    >>> budget.spent
    {'columns': {'age': 0.5}, 'cells': {}}
    """

    def __init__(self, epsilon: float) -> None:
        self.epsilon = as_epsilon(epsilon)
        self.spent: Spent = {"columns": {}, "cells": {}}
        _opendp()  # fail early if it is not installed

    def laplace(self, what: Entry, values: Labels, sensitivity: int, share: Fraction) -> Labels:
        """Add discrete Laplace noise to whole numbers of L1 sensitivity `sensitivity`."""
        dp = _opendp()
        allowed = self._at_most(share)
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")

        def make(scale: float) -> Any:
            return dp.m.make_laplace(*space, scale=scale)

        measurement, cost = _within(make, sensitivity / allowed, allowed, lambda found: found.map(sensitivity))
        self._spend(what, cost)
        return np.array(measurement(values.tolist()), dtype=np.int64)

    def choose(self, what: Entry, scores: Sequence[Labels], share: Fraction) -> list[int]:
        """Choose an index with a high score in each of several lists.

        One record may change the scores of one list by 2, or those of two lists by 1 each.
        """
        dp = _opendp()
        allowed = self._at_most(share)
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64"), dp.max_divergence()

        def make(scale: float) -> Any:
            return dp.m.make_noisy_max(*space, scale=scale)

        def price(found: Any) -> float:
            return float(max(found.map(2), 2 * found.map(1)))

        measurement, cost = _within(make, 4 / allowed, allowed, price)
        self._spend(what, cost)
        return [int(measurement(places.tolist())) for places in scores]

    def _at_most(self, share: Fraction) -> float:
        """Return the largest float that does not exceed a share of epsilon."""
        exact = Fraction(self.epsilon) * share
        allowed = float(exact)
        return allowed if Fraction(allowed) <= exact else nextafter(allowed, 0.0)

    def _spend(self, what: Entry, cost: float) -> None:
        book, name = what
        if name in self.spent[book]:
            raise AssertionError("The same step was paid for twice.")
        self.spent[book][name] = cost
        if total(self.spent) > Fraction(self.epsilon):
            raise AssertionError("More epsilon was spent than there is.")


def _within(make: Any, scale: float, allowed: float, price: Any) -> tuple[Any, float]:
    """Return the mechanism of smallest scale found whose cost, as stated by OpenDP, is at most `allowed`."""
    while scale < _LARGEST_SCALE:
        mechanism = make(scale)
        cost = float(price(mechanism))
        if cost <= allowed:
            return mechanism, cost
        scale *= 1 + 2.0**-45  # OpenDP rounds the cost up
    raise ParameterError(
        "epsilon is too small for this number of columns: the noise would not fit into a 64-bit number. Raise epsilon, "
        "or publish fewer columns."
    )


@cache
def _opendp() -> Any:
    """Import OpenDP, or raise ParameterError with the command that installs it."""
    dp = optional("opendp.prelude", "Differential privacy takes its noise from OpenDP", "dp")
    dp.enable_features("contrib")  # OpenDP's word for mechanisms whose proofs are still being vetted
    return dp
