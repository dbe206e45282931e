"""The naive twins: what each kernel computes, slow and obvious. They are the definition."""

import math

import numpy as np


def unit_scale(X):
    """Return the power of two that brings the largest magnitude into [1/2, 1)."""
    largest = float(np.abs(X).max(initial=0.0))
    return 1.0 if largest == 0 else math.ldexp(1.0, min(-math.frexp(largest)[1], 1023))


def distances(X, point):
    """Return squared distances, added column by column: NumPy's own sum adds in another order."""
    total = np.zeros(len(X))
    for j in range(X.shape[1]):
        difference = X[:, j] - point[j]
        total += difference * difference
    return total


def centroid(X):
    """Return the correctly rounded sums, divided."""
    return np.array([math.fsum(column) / len(X) for column in X.T])


def farthest(X, point, records):
    """Return the farthest of some records; of equally far ones the lowest number."""
    records = np.sort(records)
    return int(records[np.argmax(distances(X[records], point))])


def nearest(X, point, k, records):
    """Return the k nearest of some records, nearest first, ties by number."""
    records = np.sort(records)
    return records[np.argsort(distances(X[records], point), kind="stable")[:k]]


def mdav(X, k):
    """Partition by MDAV as read in docs/design.md."""
    X = X * unit_scale(X)
    remaining = np.arange(len(X))
    cells = []

    def form_cell(record):
        nonlocal remaining
        remaining = remaining[remaining != record]
        members = nearest(X, X[record], k - 1, remaining)
        remaining = np.setdiff1d(remaining, members)
        cells.append([record, *members])

    while len(remaining) >= 2 * k:
        p = farthest(X, centroid(X[remaining]), remaining)
        form_cell(p)
        form_cell(farthest(X, X[p], remaining))
    labels = np.empty(len(X), dtype=np.int64)
    for number, cell in enumerate(cells):
        labels[cell] = number
    if len(remaining) >= k:
        labels[remaining] = len(cells)
    elif len(remaining):
        centroids = np.array([centroid(X[cell]) for cell in cells])
        for record in remaining:
            labels[record] = np.argmin(distances(centroids, X[record]))
    return labels


def cell_sums(X, labels, n_cells):
    """Return the sum of the records of each cell."""
    return np.array([[math.fsum(column) for column in X[labels == c].T] for c in range(n_cells)])


def cell_spread(X, labels, n_cells):
    """Return the sum of squared distances to the cell's mean, for each cell."""
    return np.array([distances(X[labels == c], centroid(X[labels == c])).sum() for c in range(n_cells)])
