"""Codes: a confidential column as whole numbers from 0, the only form in which models use it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shoal.errors import ParameterError
from shoal.typing import Labels

if TYPE_CHECKING:
    import pyarrow as pa


class Codes(NamedTuple):
    """A column as codes: ranks if its values are ordered, arbitrary numbers if not."""

    codes: Labels
    """Shape (n_records,), from 0 to n_values - 1."""

    n_values: int
    """Number of different values, missing included."""

    ordered: bool
    """Whether distances between codes are meaningful."""

    subjects: Labels | None = None
    """The person of each record, from 0; None if every record is a different person."""

    whole: Labels | None = None
    """The counts in the whole table, if the records are a part of it."""

    def counts(self) -> Labels:
        """Count the records of each value, or the persons who have it; shape (n_values,)."""
        if self.whole is not None:
            return self.whole
        values = self.codes if self.subjects is None else self.pairs()[1]
        return np.bincount(values, minlength=self.n_values)

    def pairs(self) -> tuple[Labels, Labels]:
        """Return the number, from 0, of each record's (value, person) pair, and the value of each pair, ascending."""
        assert self.subjects is not None
        n_subjects = int(self.subjects.max(initial=0)) + 1
        found, pairs = np.unique(self.codes * n_subjects + self.subjects, return_inverse=True)
        return pairs, found // n_subjects

    def counted_once(self, class_ids: Labels) -> tuple[Labels, Labels]:
        """Return class and code of the records to count: in each class, one for each person and value."""
        if self.subjects is None:
            return class_ids, self.codes
        pairs, values = self.pairs()
        once = np.unique(class_ids * len(values) + pairs)
        return once // len(values), values[once % len(values)]


def encode(column: "pa.Array | pa.ChunkedArray", *, ordered: bool, categories: Sequence[Any] | None = None) -> Codes:
    """Encode the values of a column by their ascending order; missing is a value of its own, after all others.

    Parameters
    ----------
    column : pyarrow Array or ChunkedArray
        Numbers, dates, text or a dictionary of these.
    ordered : bool
        Whether the order of the values is meaningful.
    categories : sequence, optional
        The values in order, if that is not ascending order (small, medium, large).

    Returns
    -------
    Codes
        The code of each record. Values that do not occur have no code.

    Raises
    ------
    ParameterError
        If the column has values that are not among the categories.

    Examples
    --------
    >>> import pyarrow as pa
    >>> encode(pa.array([30, 10, None, 30]), ordered=True)
    Codes(codes=array([1, 0, 2, 1]), n_values=3, ordered=True, subjects=None, whole=None)
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from shoal.sources.clean import nulled

    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(values, pa.ChunkedArray):  # a column without chunks stays one
        values = pa.array([], values.type)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_floating(values.type):
        values = nulled(values, pc.is_nan(values))
    if categories is not None:
        place = pc.index_in(values, pa.array(categories, values.type))
        n_unknown = pc.sum(pc.and_(pc.is_null(place), pc.is_valid(values))).as_py() or 0
        if n_unknown:
            raise ParameterError(
                f"{n_unknown} records have a value that is not among the {len(categories)} categories."
            )
        values = place
    missing = np.asarray(pc.is_null(values).to_numpy(zero_copy_only=False), dtype=bool)
    present = values.filter(pc.is_valid(values))
    distinct = pc.unique(present)
    rank = np.empty(len(distinct), dtype=np.int64)
    rank[pc.sort_indices(distinct).to_numpy(zero_copy_only=False)] = np.arange(len(distinct))
    codes = np.full(len(values), len(distinct), dtype=np.int64)
    codes[~missing] = rank[pc.index_in(present, distinct).to_numpy(zero_copy_only=False)]
    return Codes(codes, len(distinct) + bool(missing.any()), ordered)
