"""Closer: the classes of a release and the records that lost most or are easiest to find, by number. Never a value."""

from typing import Any

import numpy as np

from shoal.columns.equivalence import class_ids
from shoal.output.release import Release
from shoal.typing import Labels, Matrix, Vector

MOST = 50
"""Classes and records that are listed."""


def look_closer(release: Release) -> dict[str, Any]:
    """Return the classes of a release and its most affected records as plain values, for JSON.

    Distances are those of the space in which records were grouped: one unit is the usual spread of a column. Records
    are numbered from 1, in the order of the input.
    """
    classes = class_ids(release.replaced.select(release.schema.quasi_names))
    sizes = np.bincount(classes)
    moved = _distances(release.X, release.labels)
    spread = np.sqrt(np.bincount(classes, moved**2) / sizes)
    farthest = np.zeros(len(sizes))
    np.maximum.at(farthest, classes, moved)
    widest = np.lexsort((np.arange(len(sizes)), -spread))[:MOST]
    lost = np.lexsort((np.arange(len(moved)), -moved))[:MOST]
    risky = np.lexsort((np.arange(len(moved)), moved, sizes[classes]))[:MOST]
    taken = None if release.linking is None else release.linking.taken
    numbers = np.arange(len(moved)) if taken is None else taken
    return {
        "n_classes": len(sizes),
        "n_records": len(moved),
        "mean_moved": float(moved.mean()),
        "classes": [
            {"class": int(c) + 1, "size": int(sizes[c]), "spread": float(spread[c]), "farthest": float(farthest[c])}
            for c in widest
        ],
        "lost": [_record(int(i), int(numbers[i]), classes, sizes, moved) for i in lost],
        "risky": [_record(int(i), int(numbers[i]), classes, sizes, moved) for i in risky],
    }


def _distances(X: Matrix, labels: Labels) -> Vector:
    """Return how far each record is from the mean of its cell."""
    sizes = np.bincount(labels)
    squares = np.zeros(len(X))
    for column in X.T:
        squares += (column - (np.bincount(labels, column) / sizes)[labels]) ** 2
    return np.sqrt(squares)


def _record(record: int, number: int, classes: Labels, sizes: Labels, moved: Vector) -> dict[str, Any]:
    size = int(sizes[classes[record]])
    return {
        "record": number + 1,
        "class": int(classes[record]) + 1,
        "size": size,
        "risk": 1 / size,
        "moved": float(moved[record]),
    }
