"""Within strata: partition or refine each group of records separately, several at a time."""

from collections.abc import Callable, Sequence

import numpy as np

from shoal import kernels
from shoal.kernels.parallel_calls import side_by_side
from shoal.methods.cell_building import members_of
from shoal.progress import TotalProgress
from shoal.typing import Labels, Matrix, Progress

Cut = Callable[..., Labels]
"""Splits records into cells: the method with its k, seed and options.

Takes the records, the number of threads, the progress callback, and further arrays with one entry for each record.
"""

LARGE = 50_000
"""A stratum of more records, if they also exceed the share of two threads, is partitioned by all threads together."""


def within(
    X: Matrix,
    strata: Labels,
    cut: Cut,
    progress: Progress | None = None,
    threads: int | None = None,
    others: Sequence[Labels] = (),
) -> Labels:
    """Partition each stratum separately, several at a time, and number all cells without gaps.

    `others` are arrays with one entry for each record; `cut` receives the entries of its records.
    """
    threads = threads or kernels.n_threads()
    if not strata.any():
        return cut(X, threads, progress, *others)
    parts = members_of(strata)
    total = TotalProgress(progress, len(X))
    is_large = [len(part) > max(LARGE, 2 * len(X) // threads) for part in parts]

    def of(part: Labels) -> list[Labels]:
        return [other[part] for other in others]

    found = {
        number: cut(X[part], threads, total.of(number, len(part)), *of(part))
        for number, part in enumerate(parts)
        if is_large[number]
    }
    small = [number for number in range(len(parts)) if not is_large[number]]

    def cut_alone(number: int) -> Labels:
        part = parts[number]
        return cut(X[part], 1, total.of(number, len(part), kernels.progress_callback()), *of(part))

    found |= zip(small, side_by_side(cut_alone, small, min(threads, len(small))), strict=True)
    labels = np.empty(len(X), dtype=np.int64)
    n_cells = 0
    for number, part in enumerate(parts):
        labels[part] = found[number] + n_cells
        n_cells += int(found[number].max()) + 1
    total.finish()
    return labels
