"""Contributors: the number of records behind each published value.

A cell of k records can still publish the value of one of them: where the others have none, where one record has all of
the survey weight, or where no two agree in a category. Counted on the published table.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.aggregate import Cells
from shoal.columns.aggregates import AGGREGATES
from shoal.columns.categories import category_codes, sorted_categories
from shoal.columns.distribution import Distribution, Distributions
from shoal.columns.prepare import is_present
from shoal.columns.schema import Column, Kind, Schema
from shoal.findings import SINGLE_VALUES, Finding, Remedy
from shoal.typing import Vector


@dataclass(frozen=True)
class Contribution:
    """Published values of a column that come from one record each.

    Attributes
    ----------
    column : str
    n_cells : int
        Cells that publish a value of the column.
    single : int
        Those of them whose value comes from one record.
    of_one_person : int
        Those of them whose category belongs to a single record of the whole table.
    because : str
        Why a single record decides the value.
    by_category : bool
        Whether it is a category that no two records of the cell share.
    """

    column: str
    n_cells: int
    single: int
    of_one_person: int
    because: str
    by_category: bool = False

    @property
    def is_telling(self) -> bool:
        """Whether to warn: always for numbers, for categories if it is so in most cells."""
        return not self.by_category or 2 * self.single > self.n_cells

    @property
    def sentence(self) -> str:
        """What was found, in numbers."""
        return (
            f"In {self.single:,} of {self.n_cells:,} cells the published value of column {self.column!r} comes from "
            f"one record: {self.because}."
        )


def contributions(
    original: pa.Table,
    replaced: pa.Table,
    schema: Schema,
    cells: Cells,
    weights: Vector | None,
    whole: Distributions | None = None,
) -> list[Contribution]:
    """Count for each quasi-identifier the cells whose published value comes from one record, if there are any.

    `whole` are the columns of categories in the whole table, if `original` is a part of it.

    Notes
    -----
    Takes O(n log n) time in records.
    """
    found = [
        _contribution(
            original[column.name],
            replaced[column.name],
            column,
            cells,
            weights,
            (whole or {}).get(column.name),
        )
        for column in schema.quasi
        # An interval or a set shows no value of one record as that of the cell.
        if not column.is_true and (_by_category(column) or _some_give_nothing(original[column.name], weights))
    ]
    return [one for one in found if one.single]


def single_value_findings(found: Iterable[Contribution], schema: Schema) -> list[Finding]:
    """Return a question for each column that publishes a category which a single record of the table has."""
    return [
        Finding(
            SINGLE_VALUES,
            one.column,
            f"{one.of_one_person:,} of {one.n_cells:,} cells would publish a text that only one record has",
            "Whoever knows the text knows the person, whatever k is",
            (
                Remedy("column", one.column, {"aggregate": "withhold"}),
                Remedy("role", one.column, {"identifiers": [one.column]}),
            ),
            question=True,
        )
        for one in found
        if one.of_one_person
    ]


def _by_category(column: Column) -> bool:
    return AGGREGATES[column.aggregate].picks and column.kind is not Kind.NUMERIC


def _some_give_nothing(values: pa.ChunkedArray, weights: Vector | None) -> bool:
    """Return whether records have no value or no weight; otherwise all records of a cell count."""
    return values.null_count > 0 or (weights is not None and not weights.all())


def _contribution(
    values: pa.ChunkedArray,
    published: pa.ChunkedArray,
    column: Column,
    cells: Cells,
    weights: Vector | None,
    whole: Distribution | None,
) -> Contribution:
    labels, sizes = cells.of(column), cells.sizes_of(column)
    n_cells = len(sizes)
    shown = np.ones(n_cells, dtype=bool)
    if published.null_count:
        shown[labels] = np.asarray(published.is_valid())
    by_category = _by_category(column)
    if by_category:
        giving, of_one = _agreeing(values, published, whole)
        because = "no two of its records agree in the category"
    else:
        giving, of_one = is_present(values), np.zeros(len(labels), dtype=bool)
        because = "the others have no value"
    if weights is not None and (weights[giving] == 0).any():
        giving = giving & (weights > 0)
        because = "it has all of the weight" if because == "the others have no value" else because
    single = shown & (sizes > 1) & (np.bincount(labels, giving, n_cells) == 1)
    n_of_one = len(np.unique(labels[of_one & single[labels]])) if of_one.any() else 0
    return Contribution(column.name, int(shown.sum()), int(single.sum()), n_of_one, because, by_category)


def _agreeing(
    values: pa.ChunkedArray, published: pa.ChunkedArray, whole: Distribution | None
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which records have the category that their cell publishes, and which of them are the only ones."""
    categories = sorted_categories(values)
    codes = category_codes(values, categories)
    agrees = (codes == category_codes(published, categories)) & is_present(values)
    counts = np.bincount(codes, minlength=len(categories)) if whole is None else whole.counts_of(categories)
    alone = counts == 1
    return agrees, agrees & alone[codes] if alone.any() else np.zeros(len(codes), dtype=bool)
