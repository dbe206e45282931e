"""Disclosure: what the records near a person tell about that person, without finding out which record is theirs.

The intruder knows the original quasi-identifiers of somebody, takes the class of published records that is nearest, and
reads the confidential values there. In homogeneous classes that is all it takes; in skewed ones it makes surer.
"""

from typing import NamedTuple

import numpy as np

from shoal import kernels
from shoal.metrics.linkage import distinct_rows
from shoal.typing import Labels, Matrix


class Classes(NamedTuple):
    """Published records that look alike, and the class nearest to each original."""

    of_published: Labels
    nearest: Labels


def classes_near(X: Matrix, Y: Matrix) -> Classes:
    """Find the classes of the published records, and the one nearest to each original; the first of several."""
    points, labels = distinct_rows(Y)
    return Classes(labels, kernels.assign(X, points))


class Disclosed(NamedTuple):
    """What classes tell about one confidential column; shares of the originals.

    Attributes
    ----------
    homogeneous : float
        Share of the people whose class shows one value only, and it is theirs.
    guessed : float
        Share of the people whose value is the most frequent one of their class: one guess each.
    prior : float
        The same share without the release, by the most frequent value of the table.
    gain : float
        How much more frequent a person's own value is in their class than in the table, on average: skewness.
    largest_gain : float
        The same for the person who loses most.
    """

    homogeneous: float
    guessed: float
    prior: float
    gain: float
    largest_gain: float


def disclosed(classes: Classes, own: Labels, published: Labels) -> Disclosed:
    """Measure what classes tell about one column.

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
    pairs, counts = np.unique(classes.of_published * n_values + published, return_counts=True)
    owners, values = np.divmod(pairs, n_values)
    at = np.minimum(np.searchsorted(pairs, classes.nearest * n_values + own), len(pairs) - 1)
    there = np.where(pairs[at] == classes.nearest * n_values + own, counts[at], 0)
    share = there / sizes[classes.nearest]
    # Of equally frequent values the lowest number is guessed.
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
    """Return the share of the people whose value is the only one that two releases have in common for them.

    Parameters
    ----------
    first, second : Classes
        Of the two releases, for the same originals.
    own : ndarray of shape (n_records,)
        Codes of the confidential values of the originals.
    published : pair of ndarray
        Codes of the confidential values in the two releases.
    """
    seen = [_values_of(classes.of_published, codes) for classes, codes in zip((first, second), published, strict=True)]
    found = 0
    for a, b, value in zip(first.nearest.tolist(), second.nearest.tolist(), own.tolist(), strict=True):
        found += seen[0][a] & seen[1][b] == {value}
    return found / len(own)


def _values_of(classes: Labels, codes: Labels) -> list[set[int]]:
    members = np.split(codes[np.argsort(classes, kind="stable")], np.cumsum(np.bincount(classes))[:-1])
    return [set(values.tolist()) for values in members]
