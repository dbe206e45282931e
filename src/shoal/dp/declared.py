"""Declared: what is public about each column: its bounds, or its categories. Nothing of it comes from the records.

A record becomes whole numbers, each by itself: so replacing one record replaces one number in each column.
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
from shoal.dp.comparable import Form, as_floats, comparables, form_of
from shoal.errors import ParameterError, SchemaError, did_you_mean
from shoal.table import Table, read
from shoal.typing import Labels

GRID = 2**20
"""The range of a numeric column in steps. Even, so that its middle is a step."""


@dataclass(frozen=True)
class Numeric:
    """A column of numbers with public bounds; what lies outside becomes the bound, what is missing the middle."""

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
        """Return what is public, for a manifest."""
        return {"kind": "numeric", "bounds": [self.low, self.high]}


@dataclass(frozen=True)
class Nominal:
    """A column with public categories; whatever is none of them, or is missing, is published as missing.

    Type and spelling are those of the categories, whatever the column holds.
    """

    name: str
    categories: pa.Array

    def codes(self, values: pa.ChunkedArray) -> Labels:
        """Return the number of each value's category; one more than the last for any other value."""
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
        """How many numbers there are: the categories, and one for all else."""
        return len(self.categories) + 1

    def to_dict(self) -> dict[str, Any]:
        """Return what is public, for a manifest."""
        return {"kind": "nominal", "categories": [str(value) for value in self.categories.to_pylist()]}


Public = Numeric | Nominal


def declared(
    table: Any,
    bounds: Mapping[str, Sequence[float]] | None,
    categories: Mapping[str, Sequence[Any]] | None,
    drop: Sequence[str] | str,
    reading: Mapping[str, Any] | None,
) -> tuple[Table, list[Public], dict[str, Labels]]:
    """Read the declared columns; return the table, what is public of each, and the numbers of its records."""
    source = read(table, **(reading or {}))
    bounds, categories = dict(bounds or {}), dict(categories or {})
    _check_names(source, [*bounds, *categories, *as_names(drop)])
    if source.n_records == 0:
        raise ParameterError("The table has no records, so there is nothing to release.")
    dropped = set(as_names(drop))
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
            raise SchemaError(f"Column {name!r} is named twice. It has bounds, or categories, or is dropped.")


def _public(source: Table, name: str, bounds: Mapping[str, Any], categories: Mapping[str, Any]) -> Public:
    type_ = source.types.field(name).type
    if name in bounds:
        if natural_kind(type_) is not Kind.NUMERIC:
            raise SchemaError(f"Bounds are given for column {name!r}, which holds {type_}, not numbers.")
        return Numeric(name, *_as_bounds(name, bounds[name]))
    if name in categories:
        return Nominal(name, _as_categories(name, categories[name], type_))
    if natural_kind(type_) is Kind.NUMERIC:
        raise SchemaError(
            f"Column {name!r} has no bounds. The noise has to hide whatever one record may hold, so the largest and "
            "the smallest possible value must be known; taken from the data they would tell the extreme values of "
            f"somebody. Declare them from what is known without looking: bounds={{{name!r}: (0, 120)}}, on the command "
            f"line --bounds {name}=0,120; or drop the column."
        )
    raise SchemaError(
        f"Column {name!r} has no categories. Which values occur tells about somebody where a value is rare, so the "
        f"possible ones must be declared without looking: categories={{{name!r}: [...]}}, on the command line "
        f"--categories {name}=a,b; or drop the column."
    )


def _as_bounds(name: str, given: Any) -> tuple[float, float]:
    try:
        low, high = (float(value) for value in given)
    except (TypeError, ValueError):
        raise ParameterError(f"The bounds of column {name!r} have to be two numbers, (lowest, highest).") from None
    if not low < high:
        raise ParameterError(
            f"The bounds of column {name!r} are reversed, equal or not numbers: {low:g}, {high:g}. The lowest comes "
            "first."
        )
    if not np.isfinite(high - low):
        raise ParameterError(f"The bounds of column {name!r} have to be finite, and their difference too.")
    return low, high


def _as_categories(name: str, given: Any, type_: pa.DataType) -> pa.Array:
    try:
        found = pa.array([] if isinstance(given, str) else list(given))
    except (pa.ArrowException, TypeError):
        raise ParameterError(f"The categories of column {name!r} have to be a list of values of one type.") from None
    if form_of(found.type) is None:
        raise ParameterError(f"The categories of column {name!r} have to be texts, numbers, dates or truth values.")
    values = comparables(found)
    if not values or None in values or len(set(values)) < len(values):
        raise ParameterError(
            f"The categories of column {name!r} have to be a list of different values, at least one and none of them "
            "missing; 1, 1.0 and '1' are the same value, since the type of a column can depend on one record."
        )
    # A column of text may hold anything, and a null column nothing.
    form = form_of(type_)
    if form is None or (form is not Form.TEXT and form not in {value[0] for value in values if value}):
        raise SchemaError(f"The categories of column {name!r} do not fit its type, {type_}: no value could be one.")
    return found
