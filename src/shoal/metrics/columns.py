"""Loss of a table, column by column: what publishing cells in place of records does to each quasi-identifier.

Numbers, ranks and dates lose what `shoal.metrics.loss` measures on their coordinates. Nominal columns are measured
exactly in the geometry of categories that are all equally far apart, whatever coordinates stood in for them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal import kernels
from shoal.axes import NominalAxis, NumberAxis
from shoal.space import Space
from shoal.typing import Labels

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class ColumnLoss:
    """What one column loses.

    Attributes
    ----------
    il : float
        Share of the column's variance that lies within cells, in percent.
    sse, sst : float
        That variance and all of it, as sums over the records, in the scaled and weighted space.
    mse : float
        Mean squared distance between a record's value and the published one.
    changed : float
        Share of the records whose published value differs from their own.
    """

    il: float
    sse: float
    sst: float
    mse: float
    changed: float


@dataclass(frozen=True)
class TableLoss:
    """What a release loses in all quasi-identifiers together, and in each.

    Attributes
    ----------
    il : float
        Information loss in percent: 100 * SSE / SST.
    sse, sst : float
        Squared distances of the records from the means of their cells, and from the mean of all, summed.
    mse, mae : float
        Squared distance, and distance, between a record and what is published for it, on average.
    columns : dict of str to ColumnLoss
        The same for each quasi-identifier.
    """

    il: float
    sse: float
    sst: float
    mse: float
    mae: float
    columns: dict[str, ColumnLoss]

    def to_dict(self) -> dict[str, Any]:
        """Return the loss as plain values, for JSON."""
        totals = {name: getattr(self, name) for name in ("il", "sse", "sst", "mse", "mae")}
        return {**totals, "columns": {name: vars(column) for name, column in self.columns.items()}}


def table_loss(space: Space, original: pa.Table, released: pa.Table, labels_of: dict[str, Labels]) -> TableLoss:
    """Measure what a release loses.

    Parameters
    ----------
    space : Space
        Where distances are measured.
    original, released : pyarrow.Table
        The prepared records, and what is published for them, in the same order.
    labels_of : dict of str to ndarray of shape (n_records,)
        The cells in which each column was aggregated.

    Notes
    -----
    Takes O(n log n) time in records, and memory for one column at a time.
    """
    columns = {}
    squared = np.zeros(original.num_rows)
    for axis in space.axes:
        name = axis.column.name
        before, after = original[name], released[name]
        sse, sst = _spread(axis, before, labels_of[name])
        apart = _apart(axis, before, after)
        columns[name] = ColumnLoss(
            il=100 * sse / sst if sst > 0 else 0.0,
            sse=sse,
            sst=sst,
            mse=float(apart.mean()),
            changed=float(np.count_nonzero(apart) / len(apart)),
        )
        squared += apart
    sse = float(sum(column.sse for column in columns.values()))
    sst = float(sum(column.sst for column in columns.values()))
    return TableLoss(
        il=100 * sse / sst if sst > 0 else 0.0,
        sse=sse,
        sst=sst,
        mse=float(squared.mean()),
        mae=float(np.sqrt(squared).mean()),
        columns=columns,
    )


def _spread(axis: NumberAxis | NominalAxis, values: pa.ChunkedArray, labels: Labels) -> tuple[float, float]:
    """Return the squared distances from the means of the cells and from the mean of all, summed."""
    everything = np.zeros_like(labels)
    if isinstance(axis, NominalAxis):
        codes = axis.codes(values)
        unit = (axis.apart * axis.column.settings.weight) ** 2 / 2
        return unit * _unlike(codes, labels), unit * _unlike(codes, everything)
    Z = axis.encode(values)
    n_cells = int(labels.max()) + 1
    return float(kernels.cell_spread(Z, labels, n_cells).sum()), float(kernels.cell_spread(Z, everything, 1).sum())


def _unlike(codes: Labels, labels: Labels) -> float:
    """Return, summed over the cells, the size less the sum of the squared counts of the values over the size."""
    sizes = np.bincount(labels)
    n_values = int(codes.max()) + 1
    pairs, counts = np.unique(labels * n_values + codes, return_counts=True)
    return float(len(labels) - (np.square(counts) / sizes[pairs // n_values]).sum())


def _apart(axis: NumberAxis | NominalAxis, before: pa.ChunkedArray, after: pa.ChunkedArray) -> Vector:
    """Return the squared distance of each record from what is published for it."""
    if isinstance(axis, NominalAxis):
        apart = (axis.apart * axis.column.settings.weight) ** 2
        return np.asarray(apart * (axis.codes(before) != axis.codes(after)))
    return np.asarray(np.square(axis.encode(before) - axis.encode(after)).sum(axis=1))
