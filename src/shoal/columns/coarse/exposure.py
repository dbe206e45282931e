"""Exposure: published ranges that end at a step, and ancestors of values, that fewer than k persons share."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.columns.coarse.missing import without_missing
from shoal.columns.coarse.ranges import Ranges
from shoal.columns.hierarchy.tree import leaf_texts
from shoal.columns.prepare import is_present
from shoal.columns.schema import Column
from shoal.typing import Labels


def n_exposed(
    published: pa.ChunkedArray, column: Column, original: pa.ChunkedArray, k: int, persons: Labels | None
) -> int | None:
    """Count the records whose published value has an end, or is an ancestor, that fewer than k persons share.

    Parameters
    ----------
    published, original : pyarrow.ChunkedArray
        The published values, and the prepared ones.
    column : Column
        The column, with its grid, calendar or hierarchy.
    k : int
        Smallest number of persons.
    persons : ndarray of shape (n_records,), optional
        The number of the person of each original; by default every record is one.

    Returns
    -------
    int or None
        None for sets, which list the values themselves.
    """
    if column.form == "set":
        return None
    texts = leaf_texts(published)
    different = pc.unique(texts).drop_null()
    plain = [without_missing(text)[0] for text in different.to_pylist()]
    there = is_present(original)
    shared = _shared(plain, column, original.drop_null(), k, persons if persons is None else persons[there])
    return int(pc.sum(pc.is_in(texts, value_set=different.filter(pa.array(~shared, pa.bool_())))).as_py() or 0)


def _shared(
    texts: list[str], column: Column, own: pa.ChunkedArray, k: int, persons: Labels | None
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return for each different published text whether k persons share its ends, or have a value below it."""
    if column.hierarchy is not None:
        tree = column.hierarchy
        nodes = [tree.by_label[text] for text in texts]
        return np.array(tree.shared(tree.leaf_codes(own), k, persons)[nodes], dtype=bool)
    if column.grid is not None:
        low, high = column.grid.shared_ends(own, k, persons)
        ranges = Ranges.of(texts)
        pairs = list(zip(ranges.low.tolist(), ranges.high.tolist(), strict=True))
        return np.array([start in low and end in high for start, end in pairs], dtype=bool)
    assert column.calendar is not None
    first, last = column.calendar.shared_ends(own, k, persons)
    periods = [(start, end or start) for start, _, end in (text.partition("/") for text in texts)]
    return np.array([start in first and end in last for start, end in periods], dtype=bool)
