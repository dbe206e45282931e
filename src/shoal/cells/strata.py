"""Strata: groups of records that are never mixed in a cell, and the separate partition of each."""

import threading
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal import kernels
from shoal.columns.equivalence import class_ids
from shoal.columns.schema import Role, Schema
from shoal.errors import GuaranteeError
from shoal.kernels.side_by_side import side_by_side
from shoal.partition.cell_building import members_of
from shoal.typing import Labels, Matrix, Progress

Cut = Callable[..., Labels]
"""Splits records into cells: the method with its k, seed and options.

Takes the records, the number of threads, the progress callback, and further arrays with one entry for each record.
"""

LARGE = 50_000
"""A stratum of more records, if they also exceed the share of two threads, is partitioned by all threads together."""


def strata_of(table: pa.Table, schema: Schema, k: int) -> tuple[Labels, str]:
    """Return the number of each record's stratum, and a description of the strata.

    Raises
    ------
    GuaranteeError
        If a stratum has fewer than `k` records.
    """
    apart, what = strata_columns(table, schema), strata_in_words(schema)
    strata = class_ids(apart) if apart.num_columns else np.zeros(table.num_rows, dtype=np.int64)
    refuse_small_strata(np.bincount(strata), what, k)
    return strata, what


def strata_columns(table: pa.Table, schema: Schema) -> pa.Table:
    """Return the columns whose values no cell mixes: those of `by`, and whether a number is a zero that is kept."""
    apart = table.select([column.name for column in schema.having(Role.BY)])
    for name in _zeros(schema):
        is_zero = pc.equal(table[name].cast(pa.float64(), safe=False), 0.0)
        apart = apart.append_column(f"zero in {name}", pc.fill_null(is_zero, False))
    return apart


def strata_in_words(schema: Schema) -> str:
    """Return a description of the strata, empty if there is only one."""
    by, zeros = [column.name for column in schema.having(Role.BY)], _zeros(schema)
    what = [f"by {', '.join(map(repr, by))}"] * bool(by) + [f"zeros in {', '.join(map(repr, zeros))}"] * bool(zeros)
    return " and ".join(what)


def _zeros(schema: Schema) -> list[str]:
    return [column.name for column in schema.quasi if column.settings.keep_zeros]


def refuse_small_strata(sizes: Labels, what: str, k: int) -> None:
    """Refuse strata of fewer than `k` records; `what` describes the strata."""
    small = sizes[sizes < k]
    if what and len(small):
        raise GuaranteeError(
            f"{len(small):,} of {len(sizes):,} strata ({what}) have fewer than k={k} records, {small.sum():,} records "
            f"in all; the smallest has {small.min()}. Lower k, merge strata, or leave a column out of the strata."
        )


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
    total = _TotalProgress(progress, len(X))
    is_large = [len(part) > max(LARGE, 2 * len(X) // threads) for part in parts]

    def of(part: Labels) -> list[Labels]:
        return [other[part] for other in others]

    found = {
        number: cut(X[part], threads, total.of(number, len(part)), *of(part))
        for number, part in enumerate(parts)
        if is_large[number]
    }
    small = [number for number in range(len(parts)) if not is_large[number]]

    def cut_alone(number: int, check: Callable[[], None]) -> Labels:
        part = parts[number]
        return cut(X[part], 1, total.of(number, len(part), check), *of(part))

    found |= zip(small, side_by_side(cut_alone, small, min(threads, len(small))), strict=True)
    labels = np.empty(len(X), dtype=np.int64)
    n_cells = 0
    for number, part in enumerate(parts):
        labels[part] = found[number] + n_cells
        n_cells += int(found[number].max()) + 1
    total.finish()
    return labels


class _TotalProgress:
    """Sums the progress of the strata, each in the unit of its method, and reports it on the calling thread."""

    def __init__(self, progress: Progress | None, n_records: int) -> None:
        self._progress = progress
        self._n_records = n_records
        self._done: dict[int, int] = {}
        self._caller = threading.get_ident()

    def of(self, number: int, n_here: int, check: Callable[[], None] | None = None) -> Progress | None:
        """Return the callback of one stratum; `check` stops it when another has failed."""
        if self._progress is None and check is None:
            return None

        def report(done: int, total: int) -> None:
            if check is not None:
                check()
            self._done[number] = n_here * done // max(total, 1)
            if self._progress is not None and threading.get_ident() == self._caller:
                self._progress(sum(list(self._done.values())), self._n_records)

        return report

    def finish(self) -> None:
        """Report that all records are done."""
        if self._progress is not None:
            self._progress(self._n_records, self._n_records)
