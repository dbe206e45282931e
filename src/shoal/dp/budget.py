"""Budget: epsilon, what has been spent of it, and the only place where noise comes from.

Whole numbers go in and out: how much one record can change them is then exact, and rounding cannot break a proof.
Noise is OpenDP's, drawn from the machine's own source of randomness; nothing here takes a seed.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import inf, nextafter
from typing import Any, Literal

import numpy as np

from shoal.errors import ParameterError
from shoal.extras import install
from shoal.typing import Labels

_LARGEST_SCALE = 2.0**52
"""Noise beyond this would not fit into 64 bits."""


Entry = tuple[Literal["columns", "cells"], str]
"""A book, and what is paid for in it."""

Spent = dict[str, dict[str, float]]
"""What was paid for the values of each column, and for each step that finds the cells."""


def total(spent: Spent) -> Fraction:
    """Return what all steps cost together, exactly.

    Examples
    --------
    >>> float(total({"columns": {"age": 0.5}, "cells": {"sizes": 0.25}}))
    0.75
    """
    return sum((Fraction(cost) for book in spent.values() for cost in book.values()), Fraction(0))


def as_epsilon(epsilon: float) -> float:
    """Return epsilon, or say why it cannot be."""
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float | np.integer | np.floating):
        raise ParameterError(f"epsilon must be a number above 0, not {type(epsilon).__name__}.")
    if not 0 < epsilon < inf:
        raise ParameterError(
            f"epsilon must be a finite number above 0; got {float(epsilon):g}. It says how much the release may depend "
            "on one record: usual values are 0.1 to 10, and smaller ones protect more."
        )
    return float(epsilon)


class Budget:
    """What may be spent, and what has been; counted exactly.

    There are two books, so that no name of a column is that of a step: one for the columns, one for the cells.

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
        _opendp()  # missing: say so before anything is done

    def laplace(self, what: Entry, values: Labels, sensitivity: int, share: Fraction) -> Labels:
        """Add discrete Laplace noise to whole numbers that one record changes by `sensitivity` in all."""
        dp = _opendp()
        allowed = self._at_most(share)
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")

        def make(scale: float) -> Any:
            return dp.m.make_laplace(*space, scale=scale)

        measurement, cost = _within(make, sensitivity / allowed, allowed, lambda found: found.map(sensitivity))
        self._spend(what, cost)
        return np.array(measurement(values.tolist()), dtype=np.int64)

    def choose(self, what: Entry, scores: Sequence[Labels], share: Fraction) -> list[int]:
        """Choose a place with a high score in each of several lists.

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
        """Return the largest number that is not above a share of epsilon."""
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
    """Return the mechanism with the least scale found whose price, as OpenDP states it, is within what is allowed."""
    while scale < _LARGEST_SCALE:
        mechanism = make(scale)
        cost = float(price(mechanism))
        if cost <= allowed:
            return mechanism, cost
        scale *= 1 + 2.0**-45  # OpenDP rounds its price up
    raise ParameterError(
        "epsilon is so small, or shared by so many columns, that the noise would not fit into a 64-bit number. Raise "
        "epsilon, or publish fewer columns."
    )


@cache
def _opendp() -> Any:
    """Import OpenDP, or say which extra brings it."""
    try:
        import opendp.prelude as dp
    except ModuleNotFoundError as error:
        raise ParameterError(
            f"Differential privacy takes its noise from OpenDP, which is not installed: {install('dp')}."
        ) from error
    dp.enable_features("contrib")  # OpenDP's word for mechanisms whose proofs are still being vetted
    return dp
