"""Containment: which published values may be a person's, where intervals, sets, ancestors or periods are published.

A coarse value has no distance from a person: it holds the person's value or it does not. Whoever links people to a
release rules out every class of which a published value does not hold the person's own, and has nothing to choose
between the others by, except for columns that are published close to the originals.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal import kernels
from shoal.columns.coarse import Coarse, Ranges
from shoal.columns.hierarchy.calendar import months_of
from shoal.columns.hierarchy.tree import leaf_texts
from shoal.columns.numbers import as_numbers
from shoal.columns.prepare import is_present
from shoal.measures.linkage import Linkage, linkage_of
from shoal.space.space import Space
from shoal.typing import Labels, Matrix

AT_ONCE = 1 << 23
"""Number of pairs of a person and a class that are compared at once."""

_MOST_PAIRS = 100_000_000
"""Number of pairs of records up to which all are linked; of a larger table, a sample is."""


def without_coarse(space: Space, coarse: Mapping[str, Coarse]) -> Space:
    """Return the space of the columns that are not coarse."""
    return Space(tuple(axis for axis in space.axes if axis.column.name not in coarse))


def apart(people: pa.Table, X: Matrix, coarse: Mapping[str, Coarse], Y: Matrix) -> Matrix:
    """Return how far people are from classes: infinitely, where a published value does not hold theirs.

    Parameters
    ----------
    people : pyarrow.Table
        Their prepared values.
    X, Y : ndarray of shape (n_people, n_dims) and (n_classes, n_dims)
        The people, and the published values of the classes, in the columns that are not coarse.
    coarse : mapping of str to Coarse
        The published values of the classes in those that are.

    Returns
    -------
    ndarray of shape (n_people, n_classes)
        Squared distances.
    """
    found = np.zeros((len(X), len(Y)))
    for one, other in zip(X.T, Y.T, strict=True):
        found += np.square(one[:, None] - other)
    for name, values in coarse.items():
        found[~_held(people[name], values)] = np.inf
    return found


def _held(own: pa.ChunkedArray, shown: Coarse) -> NDArray[np.bool_]:
    """Return which published values hold which people's own; shape (n_people, n_values)."""
    if isinstance(shown, Ranges):
        numbers = np.full(len(own), np.nan)
        present = own.drop_null()
        numbers[is_present(own)] = months_of(present) if shown.is_period else as_numbers(present)
        inside = (shown.low <= numbers[:, None]) & (numbers[:, None] <= shown.high)
        return np.where(np.isnan(numbers)[:, None], shown.missing | np.isnan(shown.low), inside)
    texts = leaf_texts(own)
    different = pc.unique(texts)
    number = {text: place for place, text in enumerate(different.to_pylist())}
    held = np.zeros((len(different), len(shown.members)), dtype=bool)
    for place, members in enumerate(shown.members):
        held[[number[text] for text in members if text in number], place] = True
    if None in number:
        held[number[None]] = shown.has_missing | np.array([not members for members in shown.members])
    return held[np.asarray(pc.index_in(texts, value_set=different), dtype=np.int64)][:, shown.codes]


def coarse_linkage(
    people: pa.Table, X: Matrix, coarse: Mapping[str, Coarse], Y: Matrix, labels: Labels, seed: int = 0
) -> Linkage:
    """Link people and published records as `shoal.measures.linkage` does by distance, by containment.

    Parameters
    ----------
    people, X, coarse, Y
        As for `apart`, of all people and all classes.
    labels : ndarray of shape (n_people,)
        The class of each.
    seed : int
        Draws the records that are ranked, if there are too many.
    """
    n_records, sizes = len(labels), np.bincount(labels)
    n_asked = min(n_records, max(_MOST_PAIRS // n_records, 100))
    asked = np.sort(np.random.default_rng(seed).permutation(n_records)[:n_asked])
    from_original, from_released = np.zeros((2, 2, n_asked), dtype=np.int64)
    for rows in _blocks(n_asked, len(Y)):
        those = asked[rows]
        found = apart(people.take(pa.array(those)), X[those], coarse, Y)
        own = found[np.arange(len(those)), labels[those]][:, None]
        from_original[:, rows] = (found < own) @ sizes, (found == own) @ sizes
    classes = np.unique(labels[asked])
    for block in _blocks(len(classes), n_records):
        there = classes[block]
        found = apart(people, X, {name: values.take(there) for name, values in coarse.items()}, Y[there])
        for place, number in enumerate(there):
            ascending, its = np.sort(found[:, place]), np.flatnonzero(labels[asked] == number)
            ahead, up_to = (np.searchsorted(ascending, found[asked[its], place], side) for side in ("left", "right"))
            from_released[:, its] = ahead, up_to - ahead
    return linkage_of(kernels.Ranks(*from_released), kernels.Ranks(*from_original), n_records)


def _blocks(n: int, width: int) -> list[slice]:
    """Return consecutive parts of n rows of this width."""
    step = max(AT_ONCE // max(width, 1), 1)
    return [slice(start, start + step) for start in range(0, n, step)]
