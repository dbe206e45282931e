"""The two partitions that the paper compares, in NumPy over a matrix of all distances, as in the paper.

Top-down is its algorithm 3, as explained in ``docs/topdown.md``. Bottom-up comes from another paper and is not
described in this one; we take it as: the same parts, and in each, repeatedly, a record drawn at random with the k - 1
nearest to it, until fewer than 2k are left, which form the last cell.
"""

from collections.abc import Callable

import numpy as np

from papers.plain import numbered
from shoal.methods.cell_building import members_of
from shoal.methods.topdown import parts
from shoal.typing import Labels, Matrix, Seed

Cut = Callable[[Matrix, int, np.random.Generator], list[Labels]]
"""Splits records, given by their distances from each other, into cells of at least k."""


def distances(X: Matrix) -> Matrix:
    """Return the squared distances of all records from each other."""
    squares = np.square(X).sum(axis=1)
    return np.asarray(np.maximum(squares[:, None] + squares - 2 * X @ X.T, 0.0))


def partitioned(X: Matrix, k: int, c: int, seed: Seed, cut: Cut) -> Labels:
    """Return the cells: c parts, each of them split into cells."""
    start, M = parts(X, k, c, seed), distances(X)
    rng = np.random.default_rng(seed)
    cells = (here[cell] for here in members_of(start) for cell in cut(M[np.ix_(here, here)], k, rng))
    return numbered(len(X), cells)


def top_down(M: Matrix, k: int, rng: np.random.Generator) -> list[Labels]:
    """Split around the farthest pair, repeatedly, until all parts have fewer than 2k records."""
    waiting, done = [np.arange(len(M))], []
    while waiting:
        piece = waiting.pop()
        if len(piece) < 2 * k:
            done.append(piece)
            continue
        D = M[np.ix_(piece, piece)]
        i, j = np.unravel_index(D.argmax(), D.shape)
        first = np.argsort(D[i], kind="stable")[:k]
        rest = np.setdiff1d(np.arange(len(piece)), first)
        second = rest[np.argsort(D[j][rest], kind="stable")[:k]]
        rest = np.setdiff1d(rest, second)
        # The squared distance from a centroid is the mean squared distance from the members minus their variance.
        far = [D[np.ix_(rest, group)].mean(axis=1) - D[np.ix_(group, group)].mean() / 2 for group in (first, second)]
        near = far[0] <= far[1]
        waiting += [piece[np.concatenate([first, rest[near]])], piece[np.concatenate([second, rest[~near]])]]
    return done


def bottom_up(M: Matrix, k: int, rng: np.random.Generator) -> list[Labels]:
    """Form cells of a random record and its k - 1 nearest, repeatedly."""
    left, done = np.arange(len(M)), []
    while len(left) >= 2 * k:
        centre = left[rng.integers(len(left))]
        near = np.argsort(M[centre][left], kind="stable")[:k]
        done.append(left[near])
        left = np.delete(left, near)
    return [*done, left]


METHODS: dict[str, Cut] = {"top-down": top_down, "bottom-up": bottom_up}
