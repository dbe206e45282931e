"""New identifiers: whole numbers in place of the old ones, from the published values and the seed alone.

Persons are put in an order that only what is published decides, and numbered from 1 by a random permutation of it. So
whoever finds the seed learns nothing of the old identifiers, or of the order of the input.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from shoal.columns.value_hashes import mixed, record_hashes
from shoal.constraints.linked_histories import UNLINKED
from shoal.typing import Labels


def new_identifiers(columns: Iterable[pa.ChunkedArray], persons: Labels, seed: int) -> pa.Array:
    """Return the new identifier of each record, the same for all records of a person, and null without the link.

    Parameters
    ----------
    columns : iterable of pyarrow.ChunkedArray of n_records values
        The other published columns.
    persons : ndarray of shape (n_records,)
        The person of each record, from 0 and without gaps, or `UNLINKED`.
    seed : int
        That of the release.
    """
    is_linked = persons != UNLINKED
    hashes = mixed(record_hashes(columns, len(persons)))[:, is_linked]
    of_persons = np.zeros((2, int(persons.max()) + 1), dtype=np.uint64)
    for half, own in zip(of_persons, hashes, strict=True):
        np.add.at(half, persons[is_linked], own)
    numbers = np.empty(of_persons.shape[1], dtype=np.int64)
    numbers[np.lexsort(of_persons[::-1])] = np.random.default_rng(seed).permutation(len(numbers)) + 1
    found = np.zeros(len(persons), dtype=np.int64)
    found[is_linked] = numbers[persons[is_linked]]
    return pa.array(found, mask=~is_linked)
