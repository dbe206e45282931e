"""Axes: how one column becomes coordinates, so that all columns have the same variance.

A number, a rank or a date becomes one coordinate. A nominal column becomes a few, placed so that two categories are as
far apart as any two others: exactly where the dimensions allow it (`docs/space.md` says what happens where not).
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa

from shoal.arrays import times_power_of_two
from shoal.columns.categories import category_codes, code_counts, sorted_categories
from shoal.columns.numbers import Numbers, Present, halfway, less
from shoal.columns.prepare import categories_in_order, decoded
from shoal.columns.schema import Column, Kind
from shoal.errors import SchemaError
from shoal.typing import Labels, Matrix, Vector

Scaling = Literal["zscore", "minmax", "none"]
"""How columns are scaled: to unit variance, to range 1, or not at all."""

MOST_DIMS = 16
"""Maximum number of coordinates of a nominal column; `benchmarks/bench_nominal.py` measures what that costs."""


def fit_axis(
    values: pa.ChunkedArray, column: Column, scaling: Scaling, shown: pa.ChunkedArray | None = None
) -> "NumberAxis | NominalAxis":
    """Return the axis of a prepared column, with places for values that are only `shown`; these are not measured."""
    if column.kind is not Kind.NOMINAL:
        return NumberAxis.fit(values, column, scaling, shown)
    if column.hierarchy is not None:
        from shoal.space.tree_axis import TreeAxis

        return TreeAxis.fit(values, column, scaling, shown)
    return NominalAxis.fit(values, column, scaling, shown)


class Moments(NamedTuple):
    """What an axis needs to know about numbers that are not in memory together; exact."""

    ends: Numbers
    """The lowest and the highest number; empty if all are missing."""

    mean: Fraction
    variance: Fraction
    n_missing: int


@dataclass(frozen=True)
class NumberAxis:
    """Numbers, ranks and dates: one coordinate, and a second one where values are missing.

    A missing value lies at the mean, and apart from the others in the second coordinate: by as much as two records of
    the column differ in the root mean square, or by the range under min-max.
    """

    column: Column
    order: pa.Array | None  # the categories of an ordinal column
    pivot: int | float  # subtracted first, so that a large offset costs no digits
    exponent: int  # then scaled by this power of two, so that nothing overflows when squared
    shift: float
    spread: float  # 0 if all present values are equal
    mean: float  # of the present values, after scaling
    apart: float  # distance of missing values from the others; 0 if none was missing
    is_constant: bool  # whether all records have the same value, so that the column does not affect distances

    @staticmethod
    def fit(
        values: pa.ChunkedArray, column: Column, scaling: Scaling, shown: pa.ChunkedArray | None = None
    ) -> "NumberAxis":
        """Measure centre and scale of the values; those that are only `shown` may be missing."""
        order = categories_in_order(values, column) if column.kind is Kind.ORDINAL else None
        present = Present.of(values, order).numbers
        n_missing = len(values) - len(present) + (0 if shown is None else shown.null_count)
        pivot, exponent = _pivot_and_exponent(_ends(present), column, scaling)
        moved = times_power_of_two(less(present, pivot), -exponent)
        shift, spread = _shift_and_spread(moved, scaling)
        scaled = (moved - shift) / (spread or 1.0)
        mean = float(scaled.mean()) if len(scaled) else 0.0
        apart = missing_apart(scaled - mean, scaling) if n_missing else 0.0
        constant = len(present) == 0 or (n_missing == 0 and present.min() == present.max())
        return NumberAxis(column, order, pivot, exponent, shift, spread, mean, apart, bool(constant))

    @staticmethod
    def from_moments(moments: Moments, column: Column, order: pa.Array | None, scaling: Scaling) -> "NumberAxis":
        """Return the axis of numbers, or of ranks in an order, of which only the moments are known."""
        pivot, exponent = _pivot_and_exponent(moments.ends, column, scaling)
        unit = Fraction(2) ** -exponent
        mean = (moments.mean - Fraction(pivot)) * unit
        deviation = float(np.sqrt(float(moments.variance * unit**2)))
        shift, spread = _shift_and_spread(np.ldexp(less(moments.ends, pivot), -exponent), scaling)
        if scaling == "zscore" and spread:
            shift, spread = float(mean), deviation
        scaled_mean = float(mean - Fraction(shift)) / (spread or 1.0)
        apart = missing_apart(np.array([deviation / (spread or 1.0)]), scaling) if moments.n_missing else 0.0
        constant = len(moments.ends) == 0 or (moments.n_missing == 0 and moments.ends[0] == moments.ends[1])
        return NumberAxis(column, order, pivot, exponent, shift, spread, scaled_mean, apart, bool(constant))

    @property
    def n_dims(self) -> int:
        """One, or two where values are missing."""
        return 2 if self.apart else 1

    def encode(self, values: pa.ChunkedArray) -> Matrix:
        """Return the coordinates of prepared values, shape (n_records, n_dims)."""
        present, where = Present.of(values, self.order)
        if not (self.apart or where.all()):
            raise SchemaError(
                f"Column {self.column.name!r} has missing values, but none was missing when the space was fixed."
            )
        weight = self.column.settings.weight
        moved = times_power_of_two(less(present, self.pivot), -self.exponent)
        scaled = (moved - self.shift) / self.spread * weight if self.spread else np.zeros(len(moved))
        if not self.apart:
            return np.asarray(scaled.reshape(-1, 1))
        X = np.tile([self.mean * weight, self.apart * weight], (len(values), 1))
        X[where, 0] = scaled
        X[where, 1] = 0.0
        return X

    def lookup(self, values: pa.ChunkedArray) -> "Lookup":
        """Return the coordinates of all records."""
        return Lookup(self.encode(values), None)


class Lookup(NamedTuple):
    """Points, and the number of each record's point; None where every record has its own."""

    points: Matrix
    numbers: Labels | None


LARGEST_UNSCALED = 1e100
"""Larger numbers have to be scaled: the squares of a hundred columns and a billion records still fit a float64."""


def _ends(numbers: Numbers) -> Numbers:
    """Return the lowest and the highest number, or nothing of nothing."""
    return np.array([numbers.min(), numbers.max()]) if len(numbers) else numbers


def _pivot_and_exponent(ends: Numbers, column: Column, scaling: Scaling) -> tuple[int | float, int]:
    """Return what to subtract from numbers, and the power of two that brings the largest below 1."""
    pivot = halfway(ends) if scaling != "none" else 0
    largest = np.abs(less(ends, pivot)).max(initial=0.0)
    if scaling == "none" and largest > LARGEST_UNSCALED:
        raise SchemaError(f"Column {column.name!r} has numbers too large to be squared. Choose a scaling for it.")
    return pivot, int(np.frexp(largest)[1]) if scaling != "none" else 0


def _shift_and_spread(numbers: Vector, scaling: Scaling) -> tuple[float, float]:
    """Return the offset and the divisor of the numbers."""
    if scaling == "none":
        return 0.0, 1.0
    if len(numbers) == 0 or numbers.min() == numbers.max():
        return 0.0, 0.0
    if scaling == "minmax":
        return float(numbers.min()), float(numbers.max() - numbers.min())
    mean = float(numbers.mean())
    return mean, float(np.sqrt(np.square(numbers - mean).mean()))


def missing_apart(deviations: Vector, scaling: Scaling) -> float:
    """Return the distance of missing values from the others: 1 where the others do not differ."""
    if scaling == "minmax" or len(deviations) == 0:
        return 1.0
    return float(np.sqrt(2 * np.square(deviations).mean())) or 1.0  # squares of very small numbers underflow


@dataclass(frozen=True)
class NominalAxis:
    """Categories: points at equal distances from one another, where missing is one of the categories.

    With z-score their distance is such that the column has unit variance over all its coordinates together, as a
    numeric column has; otherwise it is 1.
    """

    column: Column
    categories: pa.Array  # sorted; the last is null where values were missing
    points: Matrix  # of shape (n_categories, n_dims)
    apart: float  # intended distance of two categories

    @staticmethod
    def fit(
        values: pa.ChunkedArray, column: Column, scaling: Scaling, shown: pa.ChunkedArray | None = None
    ) -> "NominalAxis":
        """Find the categories, also those that are only `shown`, and place them."""
        categories = with_shown(sorted_categories(values), shown)
        counts = np.bincount(category_codes(values, categories), minlength=len(categories))
        return NominalAxis.from_counts(categories, counts, column, scaling)

    @staticmethod
    def from_counts(categories: pa.Array, counts: Labels, column: Column, scaling: Scaling) -> "NominalAxis":
        """Place categories, null last, that occur so often."""
        shares = counts / max(int(counts.sum()), 1)
        unlike = 1 - np.square(shares).sum()  # how often two records differ
        apart = float(np.sqrt(2 / unlike)) if scaling == "zscore" and unlike > 0 else 1.0
        return NominalAxis(column, categories, apart * _places(shares), apart)

    @property
    def n_dims(self) -> int:
        """Number of coordinates of the points."""
        return int(self.points.shape[1])

    @property
    def is_constant(self) -> bool:
        """Whether all records have the same value, so that the column does not affect distances."""
        return len(self.categories) <= 1

    def codes(self, values: pa.ChunkedArray) -> Labels:
        """Return the number of each record's category, shape (n_records,)."""
        return category_codes(values, self.categories)

    def lookup(self, values: pa.ChunkedArray) -> Lookup:
        """Return the points of the categories, and the number of each record's category."""
        codes, points = self.codes(values), self.points * self.column.settings.weight
        unknown = codes < 0
        if not unknown.any():
            return Lookup(points, codes)
        if (unknown & np.asarray(decoded(values).is_valid())).any():
            raise SchemaError(
                f"Column {self.column.name!r} has categories that did not occur when the space was fixed."
            )
        # A withheld category says nothing: it lies in the middle of all of them.
        return Lookup(np.vstack([points, np.zeros(self.n_dims)]), np.where(unknown, len(points), codes))

    def squared_apart(self, one: Labels, other: Labels) -> Vector:
        """Return the exact squared distance between pairs of categories, given by their numbers."""
        return np.asarray((self.apart * self.column.settings.weight) ** 2 * (one != other))

    def spread_within(self, codes: Labels, labels: Labels | None) -> float:
        """Return the exact sum of squares within cells: half the squared distances of all pairs, over the size.

        Without labels all records are one cell.
        """
        return (self.apart * self.column.settings.weight) ** 2 / 2 * unlike(codes, labels)

    def encode(self, values: pa.ChunkedArray) -> Matrix:
        """Return the coordinates of prepared values, shape (n_records, n_dims)."""
        points, codes = self.lookup(values)
        assert codes is not None
        return np.asarray(points[codes])


def with_shown(categories: pa.Array, shown: pa.ChunkedArray | None) -> pa.Array:
    """Return sorted categories, null last, with those that are only shown."""
    if shown is None:
        return categories
    both = pa.chunked_array([categories, *decoded(shown).cast(categories.type).chunks])
    return sorted_categories(both)


def unlike(codes: Labels, labels: Labels | None, weights: Vector | None = None) -> float:
    """Return, summed over the cells, the size less the sum of the squared counts of the values over the size.

    Without labels all records are one cell. With `weights`, one for each value, its records count so much.
    """
    n_values = int(codes.max()) + 1
    if labels is None:
        pairs, counts = code_counts(codes, n_values)
        squares = np.square(counts) / len(codes)
    else:
        sizes = np.bincount(labels)
        pairs, counts = code_counts(labels * n_values + codes, len(sizes) * n_values)
        squares = np.square(counts) / sizes[pairs // n_values]
    if weights is None:
        return float(len(codes) - squares.sum())
    return float((weights[pairs % n_values] * (counts - squares)).sum())


def _places(shares: Vector) -> Matrix:
    """Return points for categories, 1 apart from one another, in at most `MOST_DIMS` dimensions.

    More categories than dimensions cannot all be equally far apart: the frequent ones are, exactly; the others lie in
    random directions, the same in every run, and are 1 apart on average.
    """
    n = len(shares)
    n_dims = min(max(n - 1, 1), MOST_DIMS)
    exact = min(n, n_dims + 1)
    places = np.empty((n, n_dims))
    by_share = np.argsort(-shares, kind="stable")
    places[by_share[:exact]] = _simplex(exact, n_dims)
    directions = np.random.default_rng(1).standard_normal((n - exact, n_dims))
    directions /= np.sqrt(np.square(directions).sum(axis=1, keepdims=True))
    places[by_share[exact:]] = directions * np.sqrt(0.5)
    return places


def _simplex(n_points: int, n_dims: int) -> Matrix:
    """Return points that are exactly 1 apart from one another, around the origin."""
    points = np.zeros((n_points, n_dims))
    for i in range(1, n_points):
        # The new point lies above the centre of the earlier ones, 1 away from each of them.
        points[i] = points[:i].mean(axis=0)
        points[i, i - 1] += np.sqrt(1 - np.square(points[0] - points[i]).sum())
    return np.asarray(points - points.mean(axis=0))
