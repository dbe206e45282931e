"""Stream columns: the columns of a stream and their roles, fixed by its first batch."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from shoal import kernels
from shoal.columns.prepare import CAST_ERRORS
from shoal.errors import SchemaError
from shoal.kernels import Tuples
from shoal.stream.contiguous import no_rows
from shoal.stream.keys import Keys, tags_of
from shoal.stream.quasi_identifiers import Date, Encoded, Ordinal, Quasi, as_quasi, indicator
from shoal.stream.rules import Rules
from shoal.stream.unit_ranges import Ranges
from shoal.typing import Labels, Matrix, Vector


@dataclass(frozen=True)
class Layout:
    """The columns that wait in the window, how quasi-identifiers are read, and what has to differ in a cell."""

    rules: Rules
    schema: pa.Schema
    """Schema of the tuples that wait: every column but the identifiers."""

    @classmethod
    def of(cls, schema: pa.Schema, rules: Rules) -> "Layout":
        """Fit the rules to the columns of a batch."""
        quasi = rules.quasi_identifiers
        if quasi is None:
            named = {*rules.confidential, *rules.other, *rules.identifiers, *rules.tracked, rules.subject}
            quasi = tuple(name for name in schema.names if name not in named)
        roles = [*quasi, *rules.confidential, *rules.other, *rules.tracked]
        roles += [rules.subject] if rules.subject else []
        _refuse(schema, roles, rules.identifiers)
        kept = [field for field in schema if field.name not in rules.identifiers]
        return cls(rules, pa.schema([pa.field(field.name, field.type) for field in kept]))

    @cached_property
    def quasi(self) -> tuple[Quasi, ...]:
        """The quasi-identifiers, in the order of the columns."""
        names = self.rules.quasi_identifiers
        if names is None:
            passed = {*self.rules.confidential, *self.rules.other, *self.rules.tracked, self.rules.subject}
            names = tuple(name for name in self.schema.names if name not in passed)
        return tuple(as_quasi(name, self.schema.field(name).type, self.rules) for name in names)

    @cached_property
    def released(self) -> pa.Schema:
        """The columns of a released batch."""
        types = {column.name: column.released(self.schema.field(column.name).type) for column in self.quasi}
        hidden = {*self.rules.tracked, self.rules.subject} - {*self.rules.confidential, *self.rules.other}
        kept = [field for field in self.schema if field.name not in hidden]
        return pa.schema([pa.field(field.name, types.get(field.name, field.type)) for field in kept])

    @cached_property
    def nothing(self) -> pa.RecordBatch:
        """A released batch without tuples."""
        return no_rows(self.released)

    @cached_property
    def tags(self) -> dict[str, int]:
        """Minimum number of different values in a cell, by column."""
        subject = {self.rules.subject: self.rules.k} if self.rules.subject else {}
        return {**subject, **self.rules.diverse}

    @cached_property
    def placed(self) -> tuple[Quasi, ...]:
        """The columns with numeric positions: all but the nominal ones."""
        return tuple(column for column in self.quasi if column.placed)

    @property
    def code_weights(self) -> tuple[float, ...]:
        """The distance of two different codes: of nominal columns, and of present against missing."""
        told = [column for column in self.quasi if not column.placed or self.rules.missing == "own-value"]
        return tuple(self._weight(column) ** 2 for column in told)

    def _weight(self, column: Quasi) -> float:
        return float(self.rules.weights.get(column.name, 1.0))

    def ranges(self) -> Ranges:
        """Return the declared ranges; the others are learned later."""
        bounds = np.full((2, len(self.placed)), np.nan)
        for j, column in enumerate(self.placed):
            if isinstance(column, Ordinal):
                bounds[:, j] = 0.0, 1.0
            elif column.name in self.rules.ranges:
                bounds[:, j] = _bounds(column, self.rules.ranges[column.name])
        return Ranges(bounds[0], bounds[1], ~np.isnan(bounds[0]), self.rules.adapt)

    def conform(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns that wait, with the types of the first batch; refuse other columns or types."""
        if rows.schema.equals(self.schema, check_metadata=True):
            return rows
        _refuse(rows.schema, self.schema.names, self.rules.identifiers)
        columns = [_as_typed(field, rows.column(field.name)) for field in self.schema]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def refuse_other_orders(self, rows: pa.RecordBatch, before: pa.RecordBatch) -> None:
        """Refuse ordered categories in another order, since that of a cell would follow from the arrival of tuples."""
        for name in self._ordered:
            known = before.column(name).dictionary
            if len(known) and not rows.column(name).dictionary.equals(known):
                raise SchemaError(
                    f"Column {name!r} has ordered categories that are not those of the batch before: the schema has "
                    "changed. List the same categories in every batch, or start a new stream for the new schema."
                )

    @cached_property
    def _ordered(self) -> tuple[str, ...]:
        """The columns that are published with ordered categories."""
        kinds = {field.name: field.type for field in self.released}
        return tuple(name for name, kind in kinds.items() if pa.types.is_dictionary(kind) and kind.ordered)

    def read(self, rows: pa.RecordBatch) -> dict[str, Encoded]:
        """Read the quasi-identifiers of some tuples."""
        return {column.name: column.read(rows.column(column.name)) for column in self.quasi}

    def values(self, read: dict[str, Encoded]) -> list[Vector]:
        """Return the columns with numeric positions, NaN where missing."""
        return [_there(read[column.name].values) for column in self.placed]

    def coordinates(self, values: list[Vector], n_tuples: int, ranges: Ranges) -> tuple[Matrix, Labels]:
        """Return values scaled and weighted, missing ones at mid-range; and the number outside the range, by column."""
        return kernels.place(values, n_tuples, ranges.low, ranges.high, self._weights)

    @cached_property
    def _weights(self) -> Vector:
        return np.array([self._weight(column) for column in self.placed])

    def codes(self, read: dict[str, Encoded], n_tuples: int) -> Keys:
        """Return the codes, which are only compared for equality, shape (n_tuples, n_codes)."""
        codes: list[Keys] = []
        for column in self.quasi:
            encoded = read[column.name]
            if encoded.values is None:
                assert encoded.keys is not None
                codes.append(encoded.keys)
            elif self.rules.missing == "own-value":
                codes.append(indicator(encoded.values))
        return _beside(codes, n_tuples)

    def keys(self, rows: pa.RecordBatch) -> Keys:
        """Return the keys that have to differ within a cell, shape (n_tuples, n_tags)."""
        return _beside([tags_of(rows.column(name)) for name in self.tags], rows.num_rows)

    def tuples(self, rows: pa.RecordBatch, ranges: Ranges, times: np.ndarray) -> Tuples:
        """Return tuples as the arrays that the window takes."""
        read = self.read(rows)
        n = rows.num_rows
        X, _ = self.coordinates(self.values(read), n, ranges)
        return Tuples(X, self.codes(read, n), self.keys(rows), times)


def _refuse(schema: pa.Schema, roles: list[str], dropped: tuple[str, ...]) -> None:
    """Refuse columns without a role, roles without a column, and columns that occur twice.

    A column to be dropped may be absent: if its name is misspelt, the real column has no role and is refused.
    """
    twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
    if twice:
        raise SchemaError(f"Column(s) {', '.join(twice)} occur twice in the batch.")
    absent = [name for name in roles if name not in schema.names]
    if absent:
        raise SchemaError(f"Column(s) {', '.join(absent)} are not in the batch. Columns: {', '.join(schema.names)}.")
    extra = [name for name in schema.names if name not in roles and name not in dropped]
    if extra:
        raise SchemaError(
            f"Column(s) {', '.join(extra)} have no role. Name each as a quasi-identifier, confidential, other "
            "(published as it is) or identifier (dropped)."
        )


def _as_typed(field: pa.Field, column: pa.Array) -> pa.Array:
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except CAST_ERRORS:
        raise SchemaError(
            f"Column {field.name!r} was {field.type} and is now {column.type}: the schema has changed. "
            "Start a new stream for the new schema."
        ) from None


def _bounds(column: Quasi, pair: tuple[object, object]) -> tuple[float, float]:
    if isinstance(column, Date):
        try:
            ends = pa.array(list(pair)).cast(column.unit)
        except CAST_ERRORS:
            raise SchemaError(f"The range of column {column.name!r} cannot be read as {column.unit}.") from None
        low, high = column.read(ends).values  # type: ignore[misc]
        return float(low), float(high)
    if not all(isinstance(end, int | float) for end in pair):
        raise SchemaError(f"The range of column {column.name!r} is a pair of numbers.")
    return float(pair[0]), float(pair[1])  # type: ignore[arg-type]


def _there(values: Vector | None) -> Vector:
    assert values is not None
    return values


def _beside(columns: list[Keys], n_tuples: int) -> Keys:
    out = np.empty((n_tuples, len(columns)), dtype=np.uint64)
    for j, column in enumerate(columns):
        out[:, j] = column
    return out
