"""Column: a published column of coarse values, read back, and the plain values that stand in for them."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.columns.aggregates import Form
from shoal.columns.categories import sorted_categories
from shoal.columns.coarse.ranges import Ranges
from shoal.columns.coarse.sets import Sets
from shoal.columns.hierarchy import Hierarchy
from shoal.columns.hierarchy.tree import leaf_texts
from shoal.columns.prepare import categories_in_order
from shoal.columns.schema import Column, Kind
from shoal.errors import ParameterError
from shoal.sources.clean import nulled

Coarse = Ranges | Sets


def read_coarse(published: pa.ChunkedArray | pa.Array, form: Form, hierarchy: Hierarchy | None = None) -> Coarse:
    """Read a published column of intervals, sets, ancestors or periods.

    Raises
    ------
    ParameterError
        If a value has another form.
    """
    texts = leaf_texts(published)
    if hierarchy is None or "" not in hierarchy.labels:  # SPSS, Stata and SAS files do not tell it from a missing value
        texts = nulled(texts, pc.equal(texts, ""))
    distinct = pc.unique(texts)
    codes = np.asarray(pc.index_in(texts, value_set=distinct), dtype=np.int64)
    listed: Sequence[str | None] = distinct.to_pylist()
    if form in ("interval", "period"):
        return Ranges.of(listed).take(codes)
    return Sets.of(listed, hierarchy if form == "ancestor" else None).take(codes)


def form_of(published: pa.ChunkedArray, years: bool = False) -> Form | None:
    """Return which form of coarse values a column holds, judged by all of them; None if they are plain values.

    A column of four digits is one of periods only if `years` says so: it may as well hold codes.
    """
    if not pa.types.is_string(published.type) and not pa.types.is_large_string(published.type):
        return None
    forms: tuple[Form, ...] = ("interval", "set")
    for form in forms:
        try:
            found = read_coarse(published, form)
        except ParameterError:
            continue
        if isinstance(found, Sets):
            return "set" if any(found.members) else None
        if np.isnan(found.low).all():
            return None
        if found.is_period and not years and pc.all(pc.ascii_is_decimal(published)).as_py():
            return None
        return "period" if found.is_period else "interval"
    return None


def stand_ins(published: pa.ChunkedArray, column: Column, values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a plain value for each coarse one, so that it can be compared with the originals by number or category.

    The middle of an interval or period, where an open one ends at its top or bottom code; the middle of the values in a
    set or below an ancestor, where values have an order; otherwise the one that most records of the release may have.

    Parameters
    ----------
    published, values : pyarrow.ChunkedArray
        The published and the original values.
    column : Column
        The column that they belong to.
    """
    assert column.form is not None
    coarse = read_coarse(published, column.form, column.hierarchy)
    if isinstance(coarse, Ranges):
        return pa.chunked_array([_middles(coarse, column)])
    ordered = column.kind is Kind.ORDINAL
    known = (categories_in_order(values, column) if ordered else sorted_categories(values)).drop_null()
    places = coarse.likeliest if column.kind is Kind.NOMINAL else coarse.middle
    found = places(leaf_texts(known).to_pylist())
    return pa.chunked_array([known.take(pa.array(found[coarse.codes], mask=found[coarse.codes] < 0))])


def _middles(ranges: Ranges, column: Column) -> pa.Array:
    if ranges.is_period:
        return ranges.middle_days(column.type)
    bottom, top = column.settings.bottom, column.settings.top
    low = np.where(np.isneginf(ranges.low) & (bottom is not None), bottom or 0.0, ranges.low)
    high = np.where(np.isposinf(ranges.high) & (top is not None), top or 0.0, ranges.high)
    middle = Ranges(low, high, ranges.missing).midpoint
    return pa.array(middle, mask=np.isnan(middle))
