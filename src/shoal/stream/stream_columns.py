"""Stream columns: the columns of a stream and their roles, fixed by its first batch."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from shoal import kernels
from shoal.columns.prepare import CAST_ERRORS
from shoal.columns.schema import Column, Kind, Roles, Schema
from shoal.errors import SchemaError
from shoal.kernels import Tuples
from shoal.stream.batches import no_rows
from shoal.stream.cell_values import Encoded, indicator, is_placed, published_type, read
from shoal.stream.keys import Keys, tags_of
from shoal.stream.rules import Rules, refuse_misfit
from shoal.stream.unit_ranges import UnitRanges
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
        roles = [*_quasi_names(schema, rules), *rules.confidential, *rules.other, *rules.tracked]
        roles += [rules.subject] if rules.subject else []
        refuse_misfit(schema.names, roles, rules.identifiers, "batch")
        kept = [field for field in schema if field.name not in rules.identifiers]
        return cls(rules, pa.schema([pa.field(field.name, field.type) for field in kept]))

    @cached_property
    def quasi(self) -> tuple[Column, ...]:
        """The quasi-identifiers, in the order of the rules or, where those leave them open, of the columns."""
        names = _quasi_names(self.schema, self.rules)
        if not names:
            return ()
        types = pa.schema([(name, _as_text(self.schema.field(name).type)) for name in names])
        settings = {name: given for name, given in self.rules.columns.items() if name in names}
        columns = Schema.of(types, Roles(quasi_identifiers=names), settings).quasi
        for column in columns:
            if column.kind is Kind.ORDINAL and column.settings.categories is None:
                raise SchemaError(
                    f"Column {column.name!r} has ordered categories; say its levels, lowest first: "
                    f'columns={{{column.name!r}: {{"categories": [...]}}}}.'
                )
        return columns

    @cached_property
    def released(self) -> pa.Schema:
        """The columns of a released batch."""
        types = {column.name: published_type(column, self.schema.field(column.name).type) for column in self.quasi}
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
    def placed(self) -> tuple[Column, ...]:
        """The columns with numeric positions: all but the nominal ones."""
        return tuple(filter(is_placed, self.quasi))

    @property
    def code_weights(self) -> tuple[float, ...]:
        """The distance of two different codes: of nominal columns, and of present against missing."""
        coded = [column for column in self.quasi if not is_placed(column) or self.rules.missing == "own-value"]
        return tuple(column.settings.weight**2 for column in coded)

    def ranges(self) -> UnitRanges:
        """Return the declared ranges; the others are learned later."""
        bounds = np.full((2, len(self.placed)), np.nan)
        for j, column in enumerate(self.placed):
            if column.kind is Kind.ORDINAL:
                bounds[:, j] = 0.0, 1.0
            elif column.name in self.rules.ranges:
                bounds[:, j] = _bounds(column, self.rules.ranges[column.name])
        return UnitRanges(bounds[0], bounds[1], ~np.isnan(bounds[0]), self.rules.adapt)

    def conform(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns that wait, with the types of the first batch; refuse other columns or types."""
        if rows.schema.equals(self.schema, check_metadata=True):
            return rows
        refuse_misfit(rows.schema.names, self.schema.names, self.rules.identifiers, "batch")
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
        return {column.name: read(column, rows.column(column.name)) for column in self.quasi}

    def values(self, read: dict[str, Encoded]) -> list[Vector]:
        """Return the columns with numeric positions, NaN where missing."""
        return [_there(read[column.name].values) for column in self.placed]

    def coordinates(self, values: list[Vector], n_tuples: int, ranges: UnitRanges) -> tuple[Matrix, Labels]:
        """Return values scaled and weighted, missing ones at mid-range; and the number outside the range, by column."""
        return kernels.place(values, n_tuples, ranges.low, ranges.high, self._weights)

    @cached_property
    def _weights(self) -> Vector:
        return np.array([column.settings.weight for column in self.placed], dtype=np.float64)

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

    def tuples(self, rows: pa.RecordBatch, ranges: UnitRanges, times: np.ndarray) -> Tuples:
        """Return tuples as the arrays that the window takes."""
        read = self.read(rows)
        n = rows.num_rows
        X, _ = self.coordinates(self.values(read), n, ranges)
        return Tuples(X, self.codes(read, n), self.keys(rows), times)


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


def _quasi_names(schema: pa.Schema, rules: Rules) -> tuple[str, ...]:
    """Return the quasi-identifiers: those of the rules, or all columns without another role."""
    if rules.quasi_identifiers is not None:
        return rules.quasi_identifiers
    others = {*rules.confidential, *rules.other, *rules.identifiers, *rules.tracked, rules.subject}
    return tuple(name for name in schema.names if name not in others)


def _as_text(type_: pa.DataType) -> pa.DataType:
    """Return a type, or text for the values of lines that were not parsed."""
    is_bytes = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
    return pa.string() if any(is_so(type_) for is_so in is_bytes) else type_


def _bounds(column: Column, pair: tuple[object, object]) -> tuple[float, float]:
    if column.kind is Kind.DATE:
        try:
            low, high = _there(read(column, pa.array(list(pair)).cast(column.type)).values)
        except CAST_ERRORS:
            raise SchemaError(f"The range of column {column.name!r} cannot be read as {column.type}.") from None
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
