"""Blocks: cut the records into blocks along principal axes, and partition each block separately.

Time becomes near-linear in the records. The cuts cost a little loss, which refining across them recovers.
"""

from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from shoal import kernels
from shoal.arrays import times_power_of_two
from shoal.errors import ParameterError
from shoal.kernels.parallel_calls import side_by_side
from shoal.methods.mdav import mdav
from shoal.typing import Labels, Matrix, Seed

# Maximum size of a block, in numbers and in records. At this size MDAV takes a little less time per record than the
# refinement that follows. Larger blocks cost more time than they gain; smaller ones lose more and save little
# (benchmarks/bench_auto.py).
BLOCK_NUMBERS = 1_000_000
BLOCK_RECORDS = 64_000

# Number of records, about, that a principal direction is found from. Above so many dimensions fewer records do, since
# an eigenvector takes cubic time in the smaller of the two.
_SAMPLE = 4096
_WIDE = 1024


def blocks(X: Matrix, k: int, seed: Seed = None, *, size: int | None = None) -> Labels:
    """Partition blocks of at most `size` records, or 8 `k` if that is more, by MDAV.

    By default blocks have at most 64,000 records and a million numbers. If all records fit into one block, the result
    is that of exact MDAV. Takes O(n log n) time in records; deterministic.
    """
    if size is not None and not (isinstance(size, Integral) and size >= 1):
        raise ParameterError(f"size must be a whole number of at least 1; got {size!r}.")
    size = max(size or min(BLOCK_RECORDS, BLOCK_NUMBERS // X.shape[1]), 8 * k)
    if len(X) <= size:
        return mdav(X, k)
    parts = cut(X, size)
    # One thread a block does most; where there are fewer blocks than threads, a block has several.
    at_once = min(kernels.n_threads(), len(parts))
    threads = kernels.n_threads() // at_once
    found = side_by_side(lambda part: kernels.mdav(X, k, part), parts, at_once, threads)
    labels = np.empty(len(X), dtype=np.int64)
    n_cells = 0
    for part, cells in zip(parts, found, strict=True):
        labels[part] = cells + n_cells
        n_cells += int(cells.max()) + 1
    return labels


def cut(X: Matrix, size: int) -> list[Labels]:
    """Halve the records recursively across their principal direction into blocks of at most `size`.

    Returns the indices of the records of each block, ascending.
    """
    threads = kernels.n_threads()
    blocks = [np.arange(len(X))]
    scale = kernels.unit_scale(X)

    def halved(block: Labels) -> tuple[Labels, ...]:
        if len(block) <= size:
            return (block,)
        step = len(block) // _SAMPLE if X.shape[1] <= _WIDE else -(-len(block) // _WIDE)
        direction = main_direction(X[block[:: max(step, 1)]])
        return kernels.halves(X, block, direction, scale)

    while max(len(block) for block in blocks) > size:
        # At first all threads halve one block together; in the end each thread halves its own.
        at_once = min(threads, len(blocks))
        blocks = [half for halves in side_by_side(halved, blocks, at_once, threads // at_once) for half in halves]
    return blocks


def main_direction(X: Matrix) -> NDArray[np.float64]:
    """Return the unit vector of largest variance, without overflow."""
    centred = times_power_of_two(X, -int(np.frexp(np.abs(X).max(initial=0.0))[1]))
    centred -= centred.mean(axis=0)
    largest = np.abs(centred).max(initial=0.0)
    if largest == 0:
        return np.asarray(np.eye(X.shape[1])[0])
    centred /= largest
    direction: NDArray[np.float64]
    if X.shape[1] <= max(len(X), _WIDE):
        direction = np.linalg.eigh(centred.T @ centred)[1][:, -1]
    else:
        # The products of the records have the same largest eigenvalue, and are fewer than those of the dimensions.
        direction = np.linalg.eigh(centred @ centred.T)[1][:, -1] @ centred
        direction /= np.linalg.norm(direction)
    # The sign of an eigenvector is arbitrary; the largest entry is made positive.
    return np.asarray(direction * np.sign(direction[np.argmax(np.abs(direction))]))
