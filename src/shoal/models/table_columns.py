"""Encoding of the confidential columns of a table for models.

The kind of the column determines whether its values are ordered; missing is a value of its own, after all others.
Diversity counts values that look the same as one.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.columns.categories import category_codes, sorted_categories
from shoal.columns.distribution import Distribution, Distributions
from shoal.columns.equivalence import value_codes
from shoal.columns.prepare import as_seen, categories_in_order, decoded, one_missing
from shoal.columns.schema import Column, Kind, Role, Schema
from shoal.errors import GuaranteeError, ParameterError, SchemaError, did_you_mean
from shoal.models.codes import Codes
from shoal.models.model import Model
from shoal.models.model_on_column import ModelOnColumn, excess_of, vetoes_of
from shoal.spelling import setting
from shoal.typing import Labels

EXPANDED = 1 << 22
"""Number of records, at most, whose confidential columns are made from counts."""


class HasColumns(Protocol):
    """The part of a table's interface that models use."""

    def __getitem__(self, name: str, /) -> pa.ChunkedArray:
        """Return one column."""


def check_models(models: Sequence[Model], schema: Schema) -> None:
    """Refuse models whose column is not confidential, and repeated models.

    Raises
    ------
    SchemaError
        If a model's column is not in the table, or not confidential.
    ParameterError
        If a model is given twice.
    """
    roles = {column.name: column.role for column in schema.columns}
    confidential = [name for name, role in roles.items() if role is Role.CONFIDENTIAL]
    for place, model in enumerate(models):
        if model.column not in confidential:
            role = f", whose role is {roles[model.column]}" if model.column in roles else ""
            hint = (
                did_you_mean(model.column, known=confidential)
                or f"Name it there: {setting('confidential', [model.column])}."
            )
            raise SchemaError(
                f"{model.name} is asked for column {model.column!r}{role}, but models apply to confidential columns. "
                f"{hint.lstrip()} Confidential columns: {', '.join(map(repr, confidential)) or 'none'}."
            )
        if model in models[:place]:
            raise ParameterError(f"{model.name} of column {model.column!r} is given twice. Give it once.")


def codes_of(
    values: pa.ChunkedArray, column: Column, *, merged: bool = False, whole: Distribution | None = None
) -> Codes:
    """Return the codes of a column: the values that occur, in the order of its kind, missing last.

    If `merged`, values that look the same (`shoal.columns.prepare.as_seen`) have the same code. `whole` is
    the column in the whole table, if `values` are a part of it.

    Examples
    --------
    >>> from shoal.columns.schema import Roles
    >>> table = pa.table({"age": [30, 40, 50], "salary": [10.0, None, 5.0]})
    >>> schema = Schema.of(table.schema, Roles(quasi_identifiers=("age",), confidential=("salary",)))
    >>> codes_of(table["salary"], schema["salary"])
    Codes(codes=array([1, 2, 0]), n_values=3, ordered=True, subjects=None, whole=None)
    """
    # The type of an ordinal column may hold its order.
    values = one_missing(values if column.kind is Kind.ORDINAL else decoded(values))
    categories = categories_of(values, column) if whole is None else whole.values
    codes = category_codes(values, categories)
    numbers = value_codes(as_seen(pa.chunked_array([categories]))) if merged else np.arange(len(categories))
    codes = numbers[codes]
    counts = np.bincount(codes) if whole is None else np.bincount(numbers, whole.counts).astype(np.int64)
    occurs = counts > 0
    known = None if whole is None else counts[occurs]
    return Codes(np.cumsum(occurs)[codes] - 1, int(occurs.sum()), column.kind is not Kind.NOMINAL, whole=known)


def categories_of(values: pa.ChunkedArray, column: Column) -> pa.Array:
    """Return the values of a column in the order of its kind, missing last."""
    if column.kind is not Kind.ORDINAL:
        return sorted_categories(values)
    order = categories_in_order(values, column)
    n_missing = decoded(values).null_count
    if np.count_nonzero(category_codes(values, order) < 0) > n_missing:
        raise SchemaError(
            f"Column {column.name!r} is ordinal, and some of its values are not among the {len(order)} categories of "
            "its order. Add their categories to the order."
        )
    return pa.concat_arrays([order, pa.nulls(1, order.type)]) if n_missing else order


def distribution_of(values: pa.ChunkedArray, column: Column) -> Distribution:
    """Return the distribution of a column of a whole table, for models of a part of it."""
    values = one_missing(values if column.kind is Kind.ORDINAL else decoded(values))
    categories = categories_of(values, column)
    return Distribution(categories, np.bincount(category_codes(values, categories), minlength=len(categories)))


def models_on_columns(
    models: Sequence[Model], schema: Schema, table: HasColumns, whole: Distributions | None = None
) -> list[ModelOnColumn]:
    """Return the models with their encoded columns; `whole` are those of the whole table, if `table` is a part."""
    asked = {(model.column, model.merges_lookalikes) for model in models}
    columns = {
        (name, merged): codes_of(table[name], schema[name], merged=merged, whole=(whole or {}).get(name))
        for name, merged in asked
    }
    return [ModelOnColumn(model, *columns[model.column, model.merges_lookalikes]) for model in models]


def refuse_impossible(guarded: Sequence[ModelOnColumn], strata: Labels) -> None:
    """Raise if a whole stratum, as one class, violates a model: then so does a cell of every partition of it.

    Raises
    ------
    GuaranteeError
        With the model that cannot be satisfied and the reason, in counts and without values.
    """
    for each in guarded:
        failing = violating([each], strata)
        if failing.any():
            part = each.part(np.flatnonzero(strata == failing.argmax()))
            raise GuaranteeError(f"{each.model} cannot be satisfied: {each.model.why_impossible(part.column)}.")


def refuse_impossible_in_whole(models: Sequence[Model], schema: Schema, whole: Distributions, n_records: int) -> None:
    """Raise if all records of a table, as one class, violate a model; known from the distributions of its columns.

    Models of frequencies are left to `refuse_impossible` in tables of more than `EXPANDED` records.

    Raises
    ------
    GuaranteeError
        With the model that cannot be satisfied, and how many values its column has.
    """
    for model in models:
        if not model.promised or (model.by_frequency and n_records > EXPANDED):
            continue
        known = whole[model.column]
        values = pa.chunked_array([known.values])
        codes = codes_of(values, schema[model.column], merged=model.merges_lookalikes, whole=known)
        # Without frequencies, one record for each value is enough.
        counts = known.counts if model.by_frequency else np.minimum(known.counts, 1)
        each = ModelOnColumn(model, *codes._replace(codes=np.repeat(codes.codes, counts)))
        if violating([each], np.zeros(len(each.column.codes), dtype=np.int64)).any():
            raise GuaranteeError(
                f"{model} cannot be satisfied: not even by all {n_records:,} records in one class, which have "
                f"{codes.n_values} different values in column {model.column!r}. Ask for less, or leave the model out."
            )


def violating(guarded: Sequence[ModelOnColumn], labels: Labels) -> NDArray[np.bool_]:
    """Return which cells violate one of the models, shape (n_cells,)."""
    return excess_of(vetoes_of(guarded), labels) > 0
