"""Published order: the order of the records in a released file, derived from the published values alone.

Records are sorted by a hash of their published values. The hash has no seed and no secret, so there is nothing to
invert; it does not depend on the order of the input, and the same values give the same order.

The first half of the hash (`shoal.columns.value_hashes`) ignores differences that some format cannot store, so that the
position of a record never reveals more than its file does; the second breaks its ties. Records that agree in both are
identical and interchangeable.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.columns.value_hashes import Hashes, add_hashes, record_hashes


class Alike(NamedTuple):
    """Groups of records that have the same values in some columns, so that these are hashed once a group."""

    groups: NDArray[np.int64]
    """The group of each record, from 0 and without gaps; shape (n_records,)."""

    columns: frozenset[int]
    """The places of the columns, from 0."""


def published_order(
    columns: Iterable[pa.ChunkedArray], n_records: int, alike: Alike | None = None
) -> NDArray[np.int64]:
    """Return the record number of each row of a release.

    Parameters
    ----------
    columns : iterable of pyarrow.ChunkedArray of n_records values
        The published columns; processed one at a time.
    n_records : int
        Number of records.
    alike : Alike, optional
        Groups of records that are known to agree in some columns. The order is the same without it.

    Returns
    -------
    order : ndarray of shape (n_records,)
        A permutation, for `shoal.sources.write`.

    Examples
    --------
    >>> ages, cities = pa.chunked_array([[31, 58, 31]]), pa.chunked_array([["Bari", "Turin", "Turin"]])
    >>> published_order([ages, cities], 3)
    array([2, 1, 0])
    """
    if alike is None or not n_records:
        return _ascending(record_hashes(columns, n_records))
    some = np.empty(int(alike.groups.max()) + 1, dtype=np.int64)
    some[alike.groups] = np.arange(n_records)  # a record of each group
    of_groups, of_records = np.zeros((2, len(some)), dtype=np.uint64), None
    for place, column in enumerate(columns):
        if place in alike.columns:
            add_hashes(of_groups, place, column.take(pa.array(some)))
            continue
        if of_records is None:
            of_records = np.zeros((2, n_records), dtype=np.uint64)
        add_hashes(of_records, place, column)
    if of_records is not None:
        return _ascending(of_groups[:, alike.groups] + of_records)
    # Records are sorted as their groups are. Equal groups have equal ranks, so that record numbers decide.
    by_hash = _ascending(of_groups)
    is_new = np.any(np.diff(of_groups[:, by_hash], prepend=0) != 0, axis=0)
    ranks = np.empty(len(some), dtype=np.int64)
    ranks[by_hash] = np.cumsum(is_new)
    return np.sort(ranks[alike.groups] * n_records + np.arange(n_records)) % n_records


def _ascending(hashes: Hashes) -> NDArray[np.int64]:
    """Return the order of hashes, by record number where they are equal."""
    first, second = hashes
    return np.lexsort((second, first))
