"""Blocks: cut the records along principal axes into blocks, and partition each block by itself.

The price is a little loss along the cuts, which refining across them wins back; the gain is time linear in the records.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal import kernels
from shoal.kernels.side_by_side import side_by_side
from shoal.partition.mdav import mdav
from shoal.typing import Labels, Matrix, Seed

# In blocks of so many numbers, and records, MDAV takes a little less time for a record than refining does afterwards.
# Larger blocks would cost more than they gain, smaller ones lose more and gain little (benchmarks/bench_auto.py).
BLOCK_NUMBERS = 1_000_000
BLOCK_RECORDS = 64_000


def blocks(X: Matrix, k: int, seed: Seed = None, *, size: int | None = None) -> Labels:
    """Return MDAV's cells of each of the blocks of at most `size` records, or of 8 `k` where that is more.

    Unless `size` says otherwise, blocks have at most 64,000 records and a million numbers; where all records fit into
    one, the result is exact MDAV's. Takes O(n log n) time in records; nothing is random.
    """
    size = max(size or min(BLOCK_RECORDS, BLOCK_NUMBERS // X.shape[1]), 8 * k)
    if len(X) <= size:
        return mdav(X, k)
    found = side_by_side(
        lambda block, check: (block.records, kernels.mdav_alone(block.X, k, check)), cut(X, size), kernels.n_threads()
    )
    labels = np.empty(len(X), dtype=np.int64)
    n_cells = 0
    for records, cells in found:
        labels[records] = cells + n_cells
        n_cells += int(cells.max()) + 1
    return labels


class Block(NamedTuple):
    """Some of the records: their numbers in the table, and their rows."""

    records: NDArray[np.int64]
    X: Matrix


def cut(X: Matrix, size: int) -> Iterator[Block]:
    """Halve the records across their main direction, again and again, down to blocks of at most `size`."""
    pending = [Block(np.arange(len(X)), X)]
    while pending:
        block = pending.pop()
        n = len(block.records)
        if n <= size:
            yield block
            continue
        along = block.X @ main_direction(block.X[:: max(n // 4096, 1)])
        order = np.argpartition(along, n // 2)
        for half in (order[n // 2 :], order[: n // 2]):
            half.sort()
            pending.append(Block(block.records[half], block.X[half]))


def main_direction(X: Matrix) -> NDArray[np.float64]:
    """Return the unit vector along which the records spread most, scaled so that nothing overflows."""
    centred = X - X.mean(axis=0)
    largest = np.abs(centred).max(initial=0.0)
    if largest == 0:
        return np.asarray(np.eye(X.shape[1])[0])
    centred /= largest
    direction: NDArray[np.float64] = np.linalg.eigh(centred.T @ centred)[1][:, -1]
    # Either sign is an eigenvector; the one whose largest entry is positive.
    return np.asarray(direction * np.sign(direction[np.argmax(np.abs(direction))]))
