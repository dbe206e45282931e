"""Top-down: c-means++ into c parts, then each part is split around its two farthest records until cells are small.

The partition of the random aggregation paper, section 3.2, as interpreted in ``docs/topdown.md``.
"""

import operator

import numpy as np

from shoal import kernels
from shoal.errors import ParameterError
from shoal.typing import Labels, Matrix, Seed

_MOST_PARTS = 256
"""Maximum default of `c`: the initial draw and every step take O(n c)."""

_MOST_STEPS = 10
"""Maximum number of c-means steps; on the three CASC sets more steps changed the loss by at most about 1%."""


def topdown(X: Matrix, k: int, seed: Seed = None, *, c: int | None = None) -> Labels:
    """Return cells of k to 2k-1 records, found top-down: c parts, each split recursively around its farthest pair.

    Parameters
    ----------
    X : ndarray of shape (n_records, n_dims)
        Records in the space. The paper scales columns to [0, 1].
    k : int
        Smallest cell size.
    seed : int, optional
        Makes the draw of the initial centroids reproducible. Records are drawn by position in the space, so that their
        order in the table does not matter.
    c : int, optional
        Number of initial parts, at least 1. By default one for every 3k records, and at most 256. With one part the
        method is deterministic.

    Returns
    -------
    labels : ndarray of shape (n_records,), int64
        Cells are numbered in the order of their first records.

    Raises
    ------
    ParameterError
        If `c` is not a whole number of at least 1.

    Notes
    -----
    Takes O(n c) time in records for the parts. A split of s records takes O(s log s) if some lie far out, as in most
    data, and O(s^2) if all are equally far from their centre; outliers are split off k at a time, so a part of s
    records may need s / k splits. Needs memory for two or three copies of the matrix, and no distance matrix.

    References
    ----------
    Yang, "Random aggregation: differential privacy in k-anonymity", algorithms 1 to 3.
    Arthur, Vassilvitskii (2007), "k-means++: the advantages of careful seeding".

    Examples
    --------
    >>> topdown(np.array([[1.0], [9.0], [2.0], [8.0], [3.0]]), k=2, seed=0)
    array([0, 1, 0, 1, 0])
    """
    n_parts = _n_parts(c, len(X), k)
    # By an exact power of two, so that squares neither vanish nor overflow.
    X = np.ldexp(X, -np.frexp(np.abs(X).max())[1])
    return kernels.split(X, parts(X, k, n_parts, seed), k)


def parts(X: Matrix, k: int, c: int, seed: Seed = None) -> Labels:
    """Return the initial part of each record: about `c` clusters, none of fewer than `k` records."""
    return _merge_small(X, _cmeans(X, c, np.random.default_rng(seed)), k)


def _n_parts(c: int | None, n_records: int, k: int) -> int:
    """Return the number of initial parts."""
    if c is None:
        return min(max(n_records // (3 * k), 1), _MOST_PARTS)
    try:
        number = operator.index(c)
    except TypeError:
        number = 0
    if number < 1:
        raise ParameterError(f"c, the number of initial parts, must be a whole number of at least 1; got {c!r}.")
    return number


def _cmeans(X: Matrix, c: int, rng: np.random.Generator) -> Labels:
    """Cluster by c-means++: return the part of each record; at most `c` parts, none empty."""
    if c == 1:
        return np.zeros(len(X), dtype=np.int64)
    # From the centre outwards, so that the draw does not depend on the order of the records.
    middle = _centroids(X, np.zeros(len(X), dtype=np.int64))[0]
    outwards = np.argsort(kernels.distances(X, middle), kind="stable")
    records = X[outwards]
    parts = _without_gaps(kernels.assign(records, _first_centroids(records, c, rng)))
    for _ in range(_MOST_STEPS):
        before, parts = parts, _without_gaps(kernels.assign(records, _centroids(records, parts)))
        if np.array_equal(parts, before):
            break
    labels = np.empty_like(parts)
    labels[outwards] = parts
    return labels


def _first_centroids(X: Matrix, c: int, rng: np.random.Generator) -> Matrix:
    """Draw records, each with probability proportional to its squared distance from the nearest one already drawn."""
    drawn = [X[rng.integers(len(X))]]
    squared = kernels.distances(X, drawn[0])
    # With fewer than `c` distinct records, all distances become 0 earlier.
    while len(drawn) < c and squared.any():
        wheel = np.cumsum(squared)
        at = np.searchsorted(wheel, rng.random() * wheel[-1], side="right")
        drawn.append(X[min(at, len(X) - 1)])
        squared = np.minimum(squared, kernels.distances(X, drawn[-1]))
    return np.stack(drawn)


def _centroids(X: Matrix, parts: Labels) -> Matrix:
    """Return the mean of each part."""
    sizes = np.bincount(parts)
    return kernels.cell_sums(X, parts, len(sizes)) / sizes[:, None]


def _merge_small(X: Matrix, parts: Labels, k: int) -> Labels:
    """Merge parts of fewer than `k` records, the smallest first, each into the one with the nearest centroid."""
    sizes = np.bincount(parts)
    sums = kernels.cell_sums(X, parts, len(sizes))
    number = np.arange(len(sizes))
    while sizes.min() < k:
        small = int(np.argmin(sizes))
        centroids = sums / sizes[:, None]
        squared = kernels.distances(centroids, centroids[small])
        squared[small] = np.inf
        other = int(np.argmin(squared))
        sizes[other] += sizes[small]
        sums[other] += sums[small]
        number[number == small] = other
        number[number > small] -= 1
        sizes = np.delete(sizes, small)
        sums = np.delete(sums, small, axis=0)
    return number[parts]


def _without_gaps(labels: Labels) -> Labels:
    """Return the labels renumbered without gaps."""
    numbers: Labels = np.cumsum(np.bincount(labels) > 0) - 1
    return numbers[labels]
