"""A sound Mondrian in NumPy, as a rival: cut the widest column at its median while both halves keep k records.

LeFevre, DeWitt and Ramakrishnan, "Mondrian multidimensional k-anonymity", ICDE 2006. It is the strict form, which never
separates equal values, with the cut nearest to the median that leaves k records on both sides. Categories are ordered
by how often they occur in the part that is cut, so that a cut parts the frequent ones from the rest.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from shoal.typing import Labels, Matrix, Vector


def mondrian(numbers: Matrix, codes: NDArray[np.int64], k: int) -> Labels:
    """Return the class of each record, from columns of numbers and columns of codes from 0."""
    whole = np.maximum(np.concatenate([np.ptp(numbers, axis=0), codes.max(axis=0)]), 1e-300)
    labels = np.empty(len(numbers), dtype=np.int64)
    parts, n_classes = [np.arange(len(numbers))], 0
    while parts:
        part = parts.pop()
        halves = (_lower_half(values, k) for values in _widest_first(numbers[part], codes[part], whole))
        lower = next((half for half in halves if half is not None), None)
        if lower is None:
            labels[part], n_classes = n_classes, n_classes + 1
        else:
            parts += [part[lower], part[~lower]]
    return labels


def _widest_first(numbers: Matrix, codes: NDArray[np.int64], whole: Vector) -> Iterator[Vector]:
    """Yield the columns of a part that have two values, the one with the largest share of its whole range first."""
    counts = [np.bincount(column) for column in codes.T]
    spans = np.concatenate([np.ptp(numbers, axis=0), [np.count_nonzero(count) - 1 for count in counts]]) / whole
    for column in np.argsort(-spans, kind="stable")[: np.count_nonzero(spans)]:
        if column < numbers.shape[1]:
            yield numbers[:, column]
        else:
            category = column - numbers.shape[1]
            yield np.argsort(np.argsort(-counts[category], kind="stable"))[codes[:, category]].astype(np.float64)


def _lower_half(values: Vector, k: int) -> NDArray[np.bool_] | None:
    """Return which values lie below the cut nearest to the median that leaves k on both sides, if there is one."""
    ordered = np.sort(values)
    cuts = np.flatnonzero(np.diff(ordered)) + 1  # numbers of records below
    cuts = cuts[(cuts >= k) & (cuts <= len(values) - k)]
    return values < ordered[cuts[np.argmin(np.abs(cuts - len(values) / 2))]] if len(cuts) else None
