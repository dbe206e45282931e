"""Space: records become points whose distances measure dissimilarity.

`Space` turns the quasi-identifiers of a table into the matrix that every algorithm works on.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shoal.arrays import check_n_records
from shoal.typing import Matrix

if TYPE_CHECKING:
    import pyarrow as pa

    from shoal.columns.schema import Schema
    from shoal.space.axes import NominalAxis, NumberAxis, Scaling


_AT_ONCE = 2048  # number of records whose coordinates fit the cache while columns are written one by one


@dataclass(frozen=True)
class Space:
    """The coordinates of a table: one axis for each quasi-identifier, fixed by `fit`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from shoal.columns.schema import Roles, Schema
    >>> people = pa.table({"age": [20, 40], "sex": ["f", "m"]})
    >>> schema = Schema.of(people.schema, Roles(quasi_identifiers=("age", "sex")))
    >>> Space.fit(people, schema).encode(people)
    array([[-1., -1.],
           [ 1.,  1.]])
    """

    axes: "tuple[NumberAxis | NominalAxis, ...]"

    @staticmethod
    def fit(
        table: "pa.Table", schema: "Schema", scaling: "Scaling" = "zscore", shown: "pa.Table | None" = None
    ) -> "Space":
        """Measure the quasi-identifiers of a prepared table.

        Parameters
        ----------
        table : pyarrow.Table
            As `shoal.columns.prepare.prepare` returns it.
        schema : Schema
            Its roles, kinds and settings.
        scaling : {"zscore", "minmax", "none"}
            How columns are scaled: to unit variance, to range 1, or not at all.
        shown : pyarrow.Table or None
            What is published of earlier releases: its values get a place too, and nothing is measured by them.

        Notes
        -----
        Takes O(n log n) time in records and memory for one column at a time.
        """
        from shoal.space.axes import fit_axis

        return Space(
            tuple(
                fit_axis(table[column.name], column, scaling, None if shown is None else shown[column.name])
                for column in schema.quasi
            )
        )

    def encode(self, table: "pa.Table") -> Matrix:
        """Return the points of the records of a prepared table, float64 of shape (n_records, n_dims)."""
        check_n_records(table.num_rows)
        X = np.empty((table.num_rows, sum(axis.n_dims for axis in self.axes)))
        parts = [
            (*axis.lookup(table[axis.column.name]), dims) for axis, dims in zip(self.axes, self.dims(), strict=True)
        ]
        for start in range(0, len(X), _AT_ONCE):
            rows = slice(start, start + _AT_ONCE)
            for points, numbers, dims in parts:
                # All numbers are in range; clipping them takes less time than checking.
                X[rows, dims] = points[rows] if numbers is None else points.take(numbers[rows], axis=0, mode="clip")
        return X

    def dims(self) -> list[slice]:
        """Return which coordinates belong to which axis."""
        ends = np.cumsum([axis.n_dims for axis in self.axes])
        return [slice(int(end) - axis.n_dims, int(end)) for axis, end in zip(self.axes, ends, strict=True)]

    @property
    def constant(self) -> list[str]:
        """The names of columns that do not affect distances, because all records have the same value."""
        return [axis.column.name for axis in self.axes if axis.is_constant]
