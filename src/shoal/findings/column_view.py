"""A column as the findings see it: its values, and counts that are computed once, on demand."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.columns.equivalence import value_counts
from shoal.columns.numbers import date_units
from shoal.columns.prepare import decoded, one_missing
from shoal.columns.schema import Kind, is_text, natural_kind, value_type
from shoal.sources import ColumnLabels, Receipt, Source
from shoal.sources.text_values import forms_of

_MOST_COUNTED = 1_000_000  # whole numbers up to this size are counted rather than sorted


@dataclass(frozen=True, eq=False)
class ColumnView:
    """A column and counts of its values.

    Attributes
    ----------
    name : str
    values : pyarrow.ChunkedArray
    has_fields : bool
        Whether its texts can be parsed differently, as numbers or dates.
    description : ColumnLabels or None
        The description in a labelled file.
    show_values : bool
        Whether remedies may name values of the table.
    receipt : Receipt
        How the table was read.
    label : str or None
        What a labelled file calls the column.
    is_typed : bool
        Whether the source gives its columns types, as Parquet and databases do and texts do not.
    counted : tuple of pyarrow.Array and ndarray, optional
        The different texts of all records and how often each occurs, where `values` holds some records or none.
    """

    name: str
    values: pa.ChunkedArray
    has_fields: bool = False
    description: ColumnLabels | None = None
    show_values: bool = False
    receipt: Receipt = field(default_factory=Receipt)
    label: str | None = None
    is_typed: bool = False
    counted: tuple[pa.Array, NDArray[np.int64]] | None = None

    @staticmethod
    def of(source: Source, name: str, values: pa.ChunkedArray, show_values: bool = False) -> "ColumnView":
        """Return the view of a column of a source."""
        about = None if source.labels is None else source.labels.of_column(name)
        label = None if source.labels is None else source.labels.variables.get(name)
        typed = not source.has_fields
        return ColumnView(name, values, source.has_fields, about, show_values, source.receipt, label, typed)

    @property
    def mixed(self) -> Mapping[str, int]:
        """The number of values of each type, where the file has several in this column."""
        return self.receipt.mixed.get(self.name, {})

    @property
    def n_records(self) -> int:
        """Records of the table."""
        return len(self.values) if self.counted is None else int(self.counted[1].sum())

    @property
    def kind(self) -> Kind | None:
        """Kind of the values."""
        return natural_kind(self.values.type)

    @cached_property
    def present(self) -> pa.ChunkedArray:
        """The values that are not missing."""
        return one_missing(decoded(self.values)).drop_null()

    @property
    def n_present(self) -> int:
        """Records with a value."""
        return int(self.text_counts.sum()) if self.is_text else len(self.present)

    @property
    def n_missing(self) -> int:
        """Records without a value."""
        return self.n_records - self.n_present

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """The present values of a column of numbers or dates, without infinite ones and those declared missing."""
        if self.kind is Kind.DATE:
            return date_units(self.present).astype(np.float64)
        if self.kind is not Kind.NUMERIC:
            return np.empty(0)
        found: NDArray[np.float64] = np.asarray(self.present.cast(pa.float64(), safe=False))
        is_finite = np.isfinite(found)
        found = found if is_finite.all() else found[is_finite]
        for low, high in self.description.missing if self.description else ():
            found = found[(found < low) | (found > high)]
        return found

    @cached_property
    def different(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The different numbers, ascending, and the number of records with each."""
        found = self.numbers
        low, high = (found.min(), found.max()) if len(found) else (0.0, 0.0)
        if not len(found) or max(abs(low), abs(high)) > _MOST_COUNTED or not self.are_whole:
            values, counts = np.unique(found, return_counts=True)
            return values, counts
        counts = np.bincount((found - low).astype(np.int64))
        occurs = np.flatnonzero(counts)
        return occurs + low, counts[occurs]

    @cached_property
    def are_whole(self) -> bool:
        """Whether all numbers are whole."""
        found = self.numbers
        return bool((found[:1000] == np.rint(found[:1000])).all() and (found == np.rint(found)).all())

    @property
    def texts(self) -> pa.Array:
        """The different texts of a column of texts; empty of any other."""
        return self._counted[0]

    @property
    def text_counts(self) -> NDArray[np.int64]:
        """Number of records with each of the texts."""
        return self._counted[1]

    @cached_property
    def trimmed(self) -> pa.Array:
        """The different texts without the blanks around them."""
        return pc.utf8_trim_whitespace(self.texts)

    @cached_property
    def forms(self) -> pa.Array:
        """The form of each of the different texts."""
        return forms_of(self.trimmed)

    @property
    def is_text(self) -> bool:
        """Whether the present values are texts, as such or as categories."""
        return is_text(value_type(self.values.type))

    @cached_property
    def _counted(self) -> tuple[pa.Array, NDArray[np.int64]]:
        if not self.is_text:
            return pa.array([], pa.string()), np.empty(0, dtype=np.int64)
        texts, counts = value_counts(self.values) if self.counted is None else self.counted
        return texts.drop_null(), counts[np.asarray(texts.is_valid())]

    def share(self, count: float) -> str:
        """Return a number of records in percent of all."""
        return percent(count, self.n_records)


def percent(count: float, total: int) -> str:
    """Return a count in percent of a total, never rounded to 0.

    Examples
    --------
    >>> percent(5, 100), percent(1, 100_000), percent(999, 1000)
    ('5 %', '0.001 %', '99.9 %')
    """
    share = 100 * count / max(total, 1)
    return f"{share:.0f} %" if 1 <= share <= 99 or share in (0, 100) else f"{share:.3g} %"
