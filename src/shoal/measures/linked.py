"""Linked records as published: whole persons compared, from the released table alone.

Two persons look alike if their records do, however these are ordered: the same number of records with the same
quasi-identifiers, each as often. Records whose link is missing are published without it, and are classes apart.
"""

from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.columns.equivalence import class_ids, value_codes
from shoal.columns.prepare import as_seen, decoded, one_missing
from shoal.methods.cell_building import renumbered
from shoal.models import Codes
from shoal.typing import Labels


@dataclass(frozen=True)
class Linked:
    """The recounted histories of a table whose records are linked.

    Attributes
    ----------
    column : str
        The column of the link.
    n_persons, n_classes : int
        Number of persons, or households, and of different histories.
    smallest : int
        Fewest persons with identical histories: the k that the linked table has.
    n_below : int
        Persons whose history fewer than `k` share.
    lengths : dict of int to int
        Number of persons with each number of records.
    n_unlinked : int
        Records without the link.
    """

    column: str
    n_persons: int
    n_classes: int
    smallest: int
    n_below: int
    lengths: dict[int, int] = field(repr=False)
    n_unlinked: int

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain values, for JSON."""
        return asdict(self) | {"lengths": {str(length): n_persons for length, n_persons in self.lengths.items()}}


@dataclass(frozen=True, eq=False)
class Histories:
    """The histories of a published table."""

    column: str
    records: Labels
    """The equivalence class of each record, where one without the link differs from one that has it."""

    persons: Labels
    """The person of each record, from 0; a record without the link is a person of its own, after all others."""

    lengths: Labels
    """The number of records of each linked person."""

    classes: Labels
    """The class of each linked person: persons with identical histories, from 0 and without gaps."""

    @staticmethod
    def of(column: str, link: pa.ChunkedArray, quasi: pa.Table) -> "Histories":
        """Return the histories that a link and the quasi-identifiers of the records form."""
        seen = as_seen(one_missing(decoded(link)))
        is_linked = np.asarray(seen.is_valid(), dtype=bool)
        records = class_ids(quasi.append_column("is linked", pa.array(is_linked)))
        named = value_codes(seen.filter(pa.array(is_linked)))
        lengths = np.bincount(named)
        persons = np.empty(len(records), dtype=np.int64)
        persons[is_linked] = named
        persons[~is_linked] = len(lengths) + np.arange(len(records) - len(named))
        return Histories(column, records, persons, lengths, _alike(named, records[is_linked], lengths))

    @cached_property
    def is_linked(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether each record has the link."""
        found: np.ndarray[Any, np.dtype[np.bool_]] = self.persons < len(self.lengths)
        return found

    @cached_property
    def of_persons(self) -> Labels:
        """The class of each record's person; records without the link are in their own classes."""
        classes: Labels = int(self.classes.max(initial=-1)) + 1 + self.records
        classes[self.is_linked] = self.classes[self.persons[self.is_linked]]
        return renumbered(classes)

    @cached_property
    def places(self) -> Labels:
        """The records that may be the same of a person: of persons with identical histories, and alike themselves."""
        return renumbered(self.of_persons * (int(self.records.max()) + 1) + self.records)

    def sets(self, codes: Codes) -> Codes:
        """Return the values of each linked person, as a set, as one value."""
        there = self.is_linked
        pairs = np.unique(self.persons[there] * codes.n_values + codes.codes[there])
        persons, values = pairs // codes.n_values, pairs % codes.n_values
        sets = _alike(persons, values, np.bincount(persons))
        return Codes(sets, int(sets.max(initial=0)) + 1, ordered=False)

    def n_sharing(self, values: Labels) -> int:
        """Count the linked persons whose history is that of persons who all have some value in common."""
        there, n_values = self.is_linked, int(values.max(initial=0)) + 1
        pairs = np.unique(self.persons[there] * n_values + values[there])
        of_class, n_persons = np.unique(
            self.classes[pairs // n_values] * n_values + pairs % n_values, return_counts=True
        )
        sizes = np.bincount(self.classes)
        common = np.unique((of_class // n_values)[n_persons == sizes[of_class // n_values]])
        return int(sizes[common].sum())

    def counted(self, k: int | None) -> Linked:
        """Count the persons with identical histories."""
        sizes = np.bincount(self.classes)
        lengths, numbers = np.unique(self.lengths, return_counts=True)
        return Linked(
            self.column,
            n_persons=len(self.classes),
            n_classes=len(sizes),
            smallest=int(sizes.min(initial=len(self.classes))),
            n_below=0 if k is None else int(sizes[sizes < k].sum()),
            lengths={int(length): int(number) for length, number in zip(lengths, numbers, strict=True)},
            n_unlinked=int(np.count_nonzero(~self.is_linked)),
        )


def _alike(owners: Labels, values: Labels, lengths: Labels) -> Labels:
    """Return a number for each owner, the same for those with the same values, each as often, from 0 and no gaps."""
    ordered = values[np.lexsort((values, owners))]
    starts = np.cumsum(lengths) - lengths
    found, n_found = np.zeros(len(lengths), dtype=np.int64), 0
    for length in np.unique(lengths):
        same = np.flatnonzero(lengths == length)
        rows = ordered[starts[same][:, None] + np.arange(length)]
        numbers = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
        found[same] = n_found + numbers
        n_found += int(numbers.max()) + 1
    return found
