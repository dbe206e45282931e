"""Attribute disclosure: what the nearest class reveals about a person, without linking the person's own record.

The intruder knows the original quasi-identifiers of a person, finds the nearest equivalence class of the release and
reads its confidential values. A homogeneous class reveals the value; a skewed one makes it more probable.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from shoal import kernels
from shoal.columns.coarse import Coarse
from shoal.measures.containment import AT_ONCE, apart, without_coarse
from shoal.measures.linkage import distinct_rows
from shoal.measures.pairs import one_of_each
from shoal.space.space import Space
from shoal.typing import Labels, Matrix


class Classes(NamedTuple):
    """The equivalence class of each published record, and the class nearest to each original.

    Where classes overlap, a record is in several: then `records` are those that `of_published` is about.
    """

    of_published: Labels
    nearest: Labels
    records: Labels | None = None

    def of_members(self, published: Labels) -> Labels:
        """Return the values of the records that `of_published` is about, from those of all published records."""
        return published if self.records is None else published[self.records]


def classes_near(X: Matrix, Y: Matrix) -> Classes:
    """Find the classes of the published records and the one nearest to each original; ties go to the first."""
    points, labels = distinct_rows(Y)
    return Classes(labels, kernels.assign(X, points))


def own_classes(X: Matrix, people: Labels) -> Classes:
    """Return the classes of originals published unchanged; the nearest class is a person's own."""
    labels = distinct_rows(X).labels
    return Classes(labels, labels[people])


class Shown(NamedTuple):
    """A release as an intruder reads it.

    Attributes
    ----------
    table : pyarrow.Table
        The published quasi-identifiers.
    coarse : mapping of str to Coarse
        Those that are published as intervals, sets, ancestors or periods, read.
    classes : ndarray of shape (n_records,)
        The class of each published record.
    """

    table: pa.Table
    coarse: Mapping[str, Coarse]
    classes: Labels


def classes_holding(people: pa.Table, shown: Shown, space: Space) -> Classes:
    """Find the classes that may be those of some people; equally near ones count as one class.

    Parameters
    ----------
    people : pyarrow.Table
        The prepared originals of the people attacked.
    shown : Shown
        The release.
    space : Space
        The space in which columns that are not coarse are compared.
    """
    plain, first = without_coarse(space, shown.coarse), one_of_each(shown.classes)
    X, Y = (plain.encode(table) for table in (people, shown.table.take(pa.array(first))))
    coarse = {name: values.take(first) for name, values in shown.coarse.items()}
    step = max(AT_ONCE // len(first), 1)
    found: list[Labels] = []
    for start in range(0, people.num_rows, step):
        far = apart(people.slice(start, step), X[start : start + step], coarse, Y)
        # If no class holds a person, all are equally far.
        found += [np.flatnonzero(row == row.min()) for row in far]
    return _as_classes(found, shown.classes)


def _as_classes(candidates: list[Labels], classes: Labels) -> Classes:
    """Return what people may be in as classes: those with the same candidates have one, with the records of all."""
    groups: dict[tuple[int, ...], int] = {}
    nearest = [groups.setdefault(tuple(found.tolist()), len(groups)) for found in candidates]
    members = np.split(np.argsort(classes, kind="stable"), np.cumsum(np.bincount(classes))[:-1])
    records = [np.concatenate([members[number] for number in group]) for group in groups]
    of_published = np.repeat(np.arange(len(groups)), [len(own) for own in records])
    return Classes(of_published, np.array(nearest), np.concatenate(records))


def share_linked(classes: Classes, rows: Labels) -> float:
    """Return the expected share of people who pick their own record among those that may be theirs.

    `rows` are the records of the people in the release.
    """
    assert classes.records is not None
    n_records = int(max(rows.max(), classes.records.max())) + 1
    theirs = np.isin(classes.nearest * n_records + rows, classes.of_published * n_records + classes.records)
    return float((theirs / np.bincount(classes.of_published)[classes.nearest]).mean())


class Disclosed(NamedTuple):
    """What classes reveal about one confidential column, as shares of the originals.

    Attributes
    ----------
    homogeneous : float
        Share of the people whose class has a single value, which is their own.
    guessed : float
        Share of the people whose value is the most frequent one of their class.
    prior : float
        The same share without the release, guessing the most frequent value of the table.
    gain : float
        Mean difference between the share of a person's own value in their class and in the table: skewness.
    largest_gain : float
        Largest such difference.
    """

    homogeneous: float
    guessed: float
    prior: float
    gain: float
    largest_gain: float


def disclosed(classes: Classes, own: Labels, published: Labels) -> Disclosed:
    """Measure what classes reveal about one column.

    Parameters
    ----------
    classes : Classes
        As `classes_near` returns them.
    own, published : ndarray
        Codes of the confidential values of the originals, and of the published records.

    Examples
    --------
    >>> X = np.array([[1.0], [2.0], [8.0], [9.0]])
    >>> classes = classes_near(X, np.array([[1.5], [1.5], [8.5], [8.5]]))
    >>> disclosed(classes, np.array([0, 0, 0, 1]), np.array([0, 0, 0, 1]))
    Disclosed(homogeneous=0.5, guessed=0.75, prior=0.75, gain=0.125, largest_gain=0.25)
    """
    n_values = int(max(own.max(), published.max())) + 1
    sizes = np.bincount(classes.of_published)
    pairs, counts = np.unique(classes.of_published * n_values + classes.of_members(published), return_counts=True)
    owners, values = np.divmod(pairs, n_values)
    at = np.minimum(np.searchsorted(pairs, classes.nearest * n_values + own), len(pairs) - 1)
    there = np.where(pairs[at] == classes.nearest * n_values + own, counts[at], 0)
    share = there / sizes[classes.nearest]
    # Of equally frequent values the lowest code is guessed.
    order = np.lexsort((values, -counts, owners))
    first = order[np.cumsum(np.bincount(owners)) - np.bincount(owners)]
    table = np.bincount(published, minlength=n_values) / len(published)
    gain = share - table[own]
    return Disclosed(
        homogeneous=float(np.mean(share == 1)),
        guessed=float(np.mean(values[first][classes.nearest] == own)),
        prior=float(np.mean(own == table.argmax())),
        gain=float(gain.mean()),
        largest_gain=float(gain.max()),
    )


def intersected(first: Classes, second: Classes, own: Labels, published: tuple[Labels, Labels]) -> float:
    """Return the share of the people whose value is the only one common to their classes in two releases.

    Parameters
    ----------
    first, second : Classes
        The classes of the two releases, for the same originals.
    own : ndarray of shape (n_records,)
        Codes of the confidential values of the originals.
    published : pair of ndarray
        Codes of the confidential values in the two releases.
    """
    seen = [
        _values_of(classes.of_published, classes.of_members(codes))
        for classes, codes in zip((first, second), published, strict=True)
    ]
    found = 0
    for a, b, value in zip(first.nearest.tolist(), second.nearest.tolist(), own.tolist(), strict=True):
        found += seen[0][a] & seen[1][b] == {value}
    return found / len(own)


def _values_of(classes: Labels, codes: Labels) -> list[set[int]]:
    members = np.split(codes[np.argsort(classes, kind="stable")], np.cumsum(np.bincount(classes))[:-1])
    return [set(values.tolist()) for values in members]
