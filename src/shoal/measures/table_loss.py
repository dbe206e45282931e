"""Information loss of a table, for each quasi-identifier.

Numbers, ranks and dates are measured by `shoal.measures.loss` on their coordinates. Nominal columns are measured
exactly in the geometry in which all categories are equally far apart, or as far as their hierarchy says, whatever
coordinates represented them in the space.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from shoal.kernels.parallel_calls import column_by_column
from shoal.measures.loss import CellDistances
from shoal.space.axes import NominalAxis, NumberAxis
from shoal.space.space import Space
from shoal.typing import Labels, Vector
from shoal.views import Frame, as_frame


@dataclass(frozen=True)
class ColumnLoss:
    """Information loss of one column.

    Attributes
    ----------
    il : float
        Share of the column's variance that lies within cells, from 0 to 1.
    sse, sst : float
        Within-cell and total sums of squares over the records, in the scaled and weighted space.
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
    """Information loss of a release, over all quasi-identifiers and for each.

    Attributes
    ----------
    il : float
        Information loss, SSE / SST: from 0 to 1.
    sse, sst : float
        Sums of the squared distances of the records from the means of their cells, and from the overall mean.
    mse, mae : float
        Mean squared distance, and mean distance, between a record and its published values.
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

    def to_frame(self) -> Frame:
        """Return a row for each quasi-identifier."""
        return as_frame({"column": name, **vars(column)} for name, column in self.columns.items())


def table_loss(space: Space, original: pa.Table, released: pa.Table, labels_of: dict[str, Labels | None]) -> TableLoss:
    """Measure the information loss of a release.

    Parameters
    ----------
    space : Space
        The space in which distances are measured.
    original, released : pyarrow.Table
        The prepared records and their published values, in the same order.
    labels_of : dict of str to ndarray of shape (n_records,)
        The cells in which each column was aggregated; None if records of a cell differ.

    Notes
    -----
    Takes O(n log n) time in records, and memory for one column for each thread.
    """
    columns = {}
    squared = np.zeros(original.num_rows)
    cells = {id(labels): labels for labels in labels_of.values() if labels is not None}
    distances = {number: CellDistances(labels) for number, labels in cells.items()}

    def measured(axis: NumberAxis | NominalAxis) -> _Found:
        name, labels = axis.column.name, labels_of[axis.column.name]
        if isinstance(axis, NominalAxis):
            return _nominal_loss(axis, original[name], released[name], labels)
        return _number_loss(axis, original[name], released[name], distances.get(id(labels)))

    for axis, found in zip(space.axes, column_by_column(measured, space.axes, original.num_rows), strict=True):
        columns[axis.column.name] = ColumnLoss(
            il=found.sse / found.sst if found.sst > 0 else 0.0,
            sse=found.sse,
            sst=found.sst,
            mse=float(found.apart.mean()),
            changed=float(np.count_nonzero(found.apart) / len(found.apart)),
        )
        squared += found.apart
    sse = float(sum(column.sse for column in columns.values()))
    sst = float(sum(column.sst for column in columns.values()))
    return TableLoss(
        il=sse / sst if sst > 0 else 0.0,
        sse=sse,
        sst=sst,
        mse=float(squared.mean()),
        mae=float(np.sqrt(squared).mean()),
        columns=columns,
    )


class _Found(NamedTuple):
    sse: float
    sst: float
    apart: Vector  # squared distance of each record from its published value


def _nominal_loss(axis: NominalAxis, before: pa.ChunkedArray, after: pa.ChunkedArray, labels: Labels | None) -> _Found:
    """Measure a column of categories on its axis."""
    codes = axis.codes(before)
    apart = axis.squared_apart(codes, axis.codes(after))
    sse = float(apart.sum()) if labels is None else axis.spread_within(codes, labels)
    return _Found(sse, axis.spread_within(codes, None), apart)


def _number_loss(
    axis: NumberAxis, before: pa.ChunkedArray, after: pa.ChunkedArray, distances: CellDistances | None
) -> _Found:
    """Measure a column of numbers, ranks or dates on its axis; without distances the records of a cell differ."""
    apart = np.zeros(len(before))
    sse = sst = 0.0
    for x, y in zip(axis.encode(before).T, axis.encode(after).T, strict=True):
        apart += np.square(x - y)
        sse += 0.0 if distances is None else float(distances.squared(x).sum())
        sst += float(np.square(x - x.mean()).sum())
    return _Found(float(apart.sum()) if distances is None else sse, sst, apart)
