"""Declared: the public bounds or categories of each column. None of them are computed from the records.

Each record is encoded as whole numbers independently of the others, so replacing one record replaces one number in each
column.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.columns.prepare import decoded
from shoal.columns.schema import Kind, as_names, natural_kind
from shoal.dp.comparable import ValueForm, as_floats, comparables, form_of
from shoal.errors import ParameterError, SchemaError, did_you_mean
from shoal.sources import Table, read
from shoal.sources.reading import as_reading
from shoal.spelling import setting
from shoal.typing import Labels

GRID = 2**20
"""Number of steps in the range of a numeric column. Even, so that its midpoint is a step."""


@dataclass(frozen=True)
class Numeric:
    """A column of numbers with public bounds; values outside become the bound, missing ones the midpoint."""

    name: str
    low: float
    high: float

    def codes(self, values: pa.ChunkedArray) -> Labels:
        """Return each value as a step between the bounds, 0 to `GRID`."""
        numbers = np.asarray(as_floats(values).fill_null(np.nan))
        shares = (np.clip(numbers, self.low, self.high) - self.low) / (self.high - self.low)
        steps = np.rint(np.where(np.isnan(shares), 0.5, shares) * GRID)
        return np.asarray(np.clip(steps, 0, GRID), dtype=np.int64)

    def values(self, steps: NDArray[np.float64]) -> pa.Array:
        """Return steps, whole or not, as numbers between the bounds."""
        shares = np.clip(steps / GRID, 0.0, 1.0)
        return pa.array(np.clip(self.low + shares * (self.high - self.low), self.low, self.high))

    def to_dict(self) -> dict[str, Any]:
        """Return the public declaration, for a manifest."""
        return {"kind": "numeric", "bounds": [self.low, self.high]}


@dataclass(frozen=True)
class Nominal:
    """A column with public categories; other values and missing ones are published as missing.

    Published values have the type and spelling of the categories, whatever the column holds.
    """

    name: str
    categories: pa.Array

    def codes(self, values: pa.ChunkedArray) -> Labels:
        """Return the number of each value's category; other values get the next number after the last."""
        numbers = {value: number for number, value in enumerate(comparables(self.categories))}
        distinct = pc.unique(decoded(values))
        codes = [numbers.get(value, len(self.categories)) for value in comparables(distinct)]
        places = pc.index_in(decoded(values), value_set=distinct)
        return np.array(codes, dtype=np.int64).take(np.asarray(places))

    def values(self, codes: Labels) -> pa.Array:
        """Return the categories with these numbers."""
        return pa.concat_arrays([self.categories, pa.nulls(1, self.categories.type)]).take(pa.array(codes))

    @property
    def n_codes(self) -> int:
        """Number of codes: one for each category, and one for all other values."""
        return len(self.categories) + 1

    def to_dict(self) -> dict[str, Any]:
        """Return the public declaration, for a manifest."""
        return {"kind": "nominal", "categories": [str(value) for value in self.categories.to_pylist()]}


Public = Numeric | Nominal


def declared(
    table: Any,
    bounds: Mapping[str, Sequence[float]] | None,
    categories: Mapping[str, Sequence[Any]] | None,
    identifiers: Sequence[str] | str,
    reading: Mapping[str, Any] | None,
) -> tuple[Table, list[Public], dict[str, Labels]]:
    """Read the declared columns; return the table, the declaration of each column, and the codes of its records."""
    source = read(table, **as_reading(reading))
    bounds, categories = dict(bounds or {}), dict(categories or {})
    _check_names(source, [*bounds, *categories, *as_names(identifiers)])
    if source.n_records == 0:
        raise ParameterError("The table has no records, so there is nothing to release.")
    dropped = set(as_names(identifiers))
    columns = [_public(source, name, bounds, categories) for name in source.names if name not in dropped]
    if not columns:
        raise SchemaError("All columns are dropped, so there is nothing to release.")
    records = source.load([column.name for column in columns])
    return source, columns, {column.name: column.codes(records[column.name]) for column in columns}


def _check_names(source: Table, given: Sequence[str]) -> None:
    for name in given:
        if name not in source.names:
            hint = did_you_mean(name, known=source.names)
            raise SchemaError(f"Column {name!r} is not in the table.{hint} Columns: {', '.join(source.names)}.")
        if given.count(name) > 1:
            raise SchemaError(
                f"Column {name!r} is given more than once. Give its bounds, or its categories, or drop it."
            )


def _public(source: Table, name: str, bounds: Mapping[str, Any], categories: Mapping[str, Any]) -> Public:
    type_ = source.types.field(name).type
    if name in bounds:
        if natural_kind(type_) is not Kind.NUMERIC:
            raise SchemaError(
                f"Bounds are given for column {name!r}, which holds {type_}, not numbers. Give categories, or drop it."
            )
        return Numeric(name, *_as_bounds(name, bounds[name]))
    if name in categories:
        return Nominal(name, _as_categories(name, categories[name], type_))
    if natural_kind(type_) is Kind.NUMERIC:
        raise SchemaError(
            f"Column {name!r} has no bounds. The noise must hide any value that a record may hold, so the smallest and "
            "largest possible values must be known; taken from the data they would reveal the extreme values of "
            f"individuals. Declare them without looking at the data: {setting(f'bounds.{name}', [0, 120])}; or drop "
            "the column."
        )
    raise SchemaError(
        f"Column {name!r} has no categories. A rare value reveals somebody by occurring at all, so the possible values "
        f"must be declared without looking at the data: {setting(f'categories.{name}', ['a', 'b'])}; or drop the "
        "column."
    )


def _as_bounds(name: str, given: Any) -> tuple[float, float]:
    try:
        low, high = (float(value) for value in given)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(f"The bounds of column {name!r} must be two numbers, (lowest, highest).") from None
    if not low < high:
        raise ParameterError(
            f"The bounds of column {name!r} are reversed, equal or not numbers: {low:g}, {high:g}. Put the lower bound "
            "first."
        )
    if not np.isfinite(high - low):
        raise ParameterError(f"The bounds of column {name!r} must be finite, and so must their difference.")
    return low, high


def _as_categories(name: str, given: Any, type_: pa.DataType) -> pa.Array:
    try:
        found = pa.array([] if isinstance(given, str) else list(given))
    except (pa.ArrowException, TypeError):
        raise ParameterError(f"The categories of column {name!r} must be a list of values of one type.") from None
    if form_of(found.type) is None:
        raise ParameterError(f"The categories of column {name!r} must be text, numbers, dates or booleans.")
    values = comparables(found)
    if not values or None in values or len(set(values)) < len(values):
        raise ParameterError(
            f"The categories of column {name!r} must be a list of different values, at least one and none of them "
            "missing; 1, 1.0 and '1' are the same value, since the type of a column can depend on one record."
        )
    # A text column may hold any value, and a null column none.
    form = form_of(type_)
    if form is None or (form is not ValueForm.TEXT and form not in {value[0] for value in values if value}):
        raise SchemaError(
            f"The categories of column {name!r} do not match its type, {type_}: no value can equal one of them. "
            "Declare categories of that type."
        )
    return found
