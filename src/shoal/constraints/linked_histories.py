"""Histories: which records stay linked, and which persons have histories of the same pattern.

A history is all records of a person, or of a household, in a stated order. Its pattern is the number of its records and
the stratum of each. k persons can look alike only if they share a pattern, so what fewer share is cut to its first
records, published without the link, or withheld.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.columns.equivalence import class_ids, value_codes
from shoal.columns.prepare import as_seen, decoded, one_missing
from shoal.columns.schema import Schema
from shoal.constraints.strata import strata_columns
from shoal.errors import GuaranteeError, SchemaError
from shoal.models.table_columns import codes_of
from shoal.sources import Table
from shoal.spelling import setting
from shoal.typing import Labels

RarePatterns = Literal["cut", "unlink", "withhold"]
"""What becomes of linked records whose pattern fewer than k persons share: cut to the first of them, the rest published
without the link or not at all; or all records of the person withheld."""

UNLINKED = -1
"""The person of a record that is published without the link."""

Mask = NDArray[np.bool_]


class Models(Protocol):
    """Whether the models can be kept at all; `shoal.constraints.linked_cells.Guards` are such."""

    def possible(self, records: Labels) -> bool:
        """Return whether persons satisfy them together, as one cell; `records` has a row for each person."""

    def possible_alone(self, records: Labels) -> bool:
        """Return whether records without the link satisfy them together."""


@dataclass(frozen=True, eq=False)
class Histories:
    """The records of a release that stay linked, and those that are published without the link."""

    persons: Labels
    """The person of each record, from 0 and without gaps, or `UNLINKED`."""

    places: Labels
    """The place of each record in its history, from 0."""

    patterns: Labels
    """The pattern of each person, from 0 and without gaps."""

    def records_of(self, persons: Labels) -> Labels:
        """Return the records of persons of one pattern, a row for each person, in the order of their histories."""
        starts, by_person = self._in_order
        length = starts[persons[0] + 1] - starts[persons[0]]
        return by_person[starts[persons][:, None] + np.arange(length)]

    @cached_property
    def _in_order(self) -> tuple[Labels, Labels]:
        """The records in the order of persons and places, and where the records of each person start."""
        order = np.lexsort((self.places, self.persons))
        linked = order[np.count_nonzero(self.persons == UNLINKED) :]
        return np.concatenate([[0], np.cumsum(np.bincount(self.persons[linked]))]), linked


class Linking(NamedTuple):
    """What became of the persons and the records of a table."""

    policy: RarePatterns
    n_persons: int
    n_linked: int
    """Persons who stay linked, with all their records or with the first of them."""

    n_cut: int
    """Persons who stay linked with fewer records than they have."""

    n_linked_records: int
    n_unlinked_records: int
    n_withheld_records: int
    n_patterns: int
    n_rare: int
    """Persons of the table whose whole pattern fewer than k share."""

    n_without: int = 0
    """Persons of further tables who have no record; they are left out."""

    taken: Labels | None = None
    """The input record of each published one, if some are withheld."""

    @property
    def n_records(self) -> int:
        """Records of the table."""
        return self.n_linked_records + self.n_unlinked_records + self.n_withheld_records

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain values, for JSON."""
        return {
            "policy": self.policy,
            **{
                name: getattr(self, name)
                for name in (
                    *("n_persons", "n_linked", "n_cut", "n_linked_records", "n_unlinked_records"),
                    *("n_withheld_records", "n_without", "n_patterns", "n_rare"),
                )
            },
        }


class Plan(NamedTuple):
    """The records to publish, the histories that they form, and what becomes of the others."""

    rows: Labels
    """The records of the table that are published, ascending."""

    histories: Histories
    linking: Linking


def plan_of(table: Table, original: pa.Table, schema: Schema, k: int, policy: RarePatterns, models: Models) -> Plan:
    """Decide which records stay linked.

    Parameters
    ----------
    table : Table
        The input.
    original : pyarrow.Table
        Its prepared records.
    schema : Schema
        Names the column that is linked, those that order its records, and the strata.
    k : int
        Smallest number of persons that share a pattern.
    policy : {"cut", "unlink", "withhold"}
        What becomes of the records of patterns that fewer share.
    models : Models
        What persons of a pattern have to satisfy together; if they cannot, nobody shares it.

    Raises
    ------
    SchemaError
        If a record has no person, or the order of two records of a person is not known.
    GuaranteeError
        If no k persons share any pattern.

    Notes
    -----
    Near-linear in the records.
    """
    assert schema.link is not None
    persons = _persons(original, schema.link.name)
    order, places = _ordered(table, schema, persons)
    apart = strata_columns(original, schema)
    strata = class_ids(apart) if apart.num_columns else np.zeros(len(persons), dtype=np.int64)
    lengths = np.bincount(persons)
    starts = np.cumsum(lengths) - lengths
    tree = _Prefixes.of(strata[order], starts, lengths, k)

    def possible(found: Labels, n: int) -> bool:
        return models.possible(order[starts[found][:, None] + np.arange(n)])

    patterns, n_linked = tree.shared(lengths, k, policy != "withhold", possible)
    if not n_linked.any():
        raise GuaranteeError(
            f"Linked records of k={k} persons with the same pattern were asked for, but fewer than {k} of "
            f"{len(lengths):,} persons (column {schema.link.name!r}) share any, even with their first record alone, or "
            "those who do violate a model together. Lower k, leave a column out of the strata, ask for a weaker model, "
            "or do without the link."
        )
    is_linked: Mask = places < n_linked[persons]
    alone = _in_company(persons, strata, ~is_linked, k, models) if policy == "unlink" else np.zeros_like(is_linked)
    is_published = is_linked | alone
    rows = np.flatnonzero(is_published)
    number = np.cumsum(n_linked > 0) - 1
    histories = Histories(
        np.where(is_linked, number[persons], UNLINKED)[rows],
        places[rows],
        np.unique(patterns[n_linked > 0], return_inverse=True)[1].astype(np.int64),
    )
    linking = Linking(
        policy,
        n_persons=len(lengths),
        n_linked=int(np.count_nonzero(n_linked)),
        n_cut=int(np.count_nonzero((n_linked > 0) & (n_linked < lengths))),
        n_linked_records=int(is_linked.sum()),
        n_unlinked_records=int(is_published.sum() - is_linked.sum()),
        n_withheld_records=int(len(persons) - is_published.sum()),
        n_patterns=int(histories.patterns.max()) + 1,
        n_rare=tree.n_rare(lengths, k),
        taken=None if is_published.all() else rows,
    )
    return Plan(rows, histories, linking)


def _persons(original: pa.Table, link: str) -> Labels:
    """Return the number of each record's person, or raise if some are missing."""
    values = as_seen(one_missing(decoded(original[link])))
    if values.null_count:
        raise SchemaError(
            f"Records stay linked by column {link!r}, which is missing or blank in {values.null_count:,} "
            "records. Give every record its person, or leave these records out."
        )
    return value_codes(values)


def _ordered(table: Table, schema: Schema, persons: Labels) -> tuple[Labels, Labels]:
    """Return the records in the order of persons and histories, and the place of each in its history."""
    names = list(schema.roles.link_order)
    raw = table.load(names)
    missing = {name: raw[name].null_count for name in names if raw[name].null_count}
    if missing:
        listed = ", ".join(f"{name!r} (in {count:,} records)" for name, count in missing.items())
        raise SchemaError(f"Linked records are put in order by columns with missing values: {listed}. Fill them in.")
    ranks = [codes_of(raw[name], schema[name]).codes for name in names]
    order = np.lexsort((*reversed(ranks), persons))
    _refuse_ties(table, schema, order, np.stack([persons, *ranks])[:, order])
    lengths = np.bincount(persons)
    places = np.empty(len(persons), dtype=np.int64)
    places[order] = np.arange(len(persons)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return order, places


def _refuse_ties(table: Table, schema: Schema, order: Labels, keys: Labels) -> None:
    """Raise if the order of two records of a person, which are not equal in all columns, is not known."""
    is_tied = np.concatenate([[False], np.all(keys[:, 1:] == keys[:, :-1], axis=0)])
    is_tied[:-1] |= is_tied[1:]
    if not is_tied.any():
        return
    tied = order[is_tied]
    groups = np.unique(keys[:, is_tied], axis=1, return_inverse=True)[1].reshape(-1)
    records = class_ids(table.load(table.names).take(pa.array(tied)))
    pairs = np.unique(np.stack([groups, records]), axis=1)[0]
    n_ties = int(np.count_nonzero(np.bincount(pairs) > 1))
    if n_ties:
        names, n_persons = ", ".join(map(repr, schema.roles.link_order)), len(np.unique(keys[0, is_tied]))
        raise SchemaError(
            f"The order of linked records is not known: {n_ties:,} times, several different records of one of "
            f"{n_persons:,} persons have the same values in {names}. Name another column after these, which tells them "
            f"apart: {setting('link_order', [*schema.roles.link_order, '...'])}."
        )


def _in_company(persons: Labels, strata: Labels, is_rest: Mask, k: int, models: Models) -> Mask:
    """Return which records of the rest are in a stratum where k persons have such records, which satisfy the models."""
    found: Mask = np.zeros_like(is_rest)
    for stratum in np.unique(strata[is_rest]):
        records = np.flatnonzero(is_rest & (strata == stratum))
        found[records] = len(np.unique(persons[records])) >= k and models.possible_alone(records)
    return found


class _Prefixes(NamedTuple):
    """The beginnings of histories that k persons share: for each length, the persons and the number of what they share.

    Histories with the same strata in their first records share a beginning, whatever their lengths.
    """

    levels: list[tuple[Labels, Labels]]

    @staticmethod
    def of(strata: Labels, starts: Labels, lengths: Labels, k: int) -> "_Prefixes":
        persons, prefixes = np.arange(len(lengths)), np.zeros(len(lengths), dtype=np.int64)
        levels: list[tuple[Labels, Labels]] = []
        while True:
            place = len(levels)
            goes_on = lengths[persons] > place
            persons, prefixes = persons[goes_on], prefixes[goes_on]
            keys = prefixes * (int(strata.max(initial=0)) + 1) + strata[starts[persons] + place]
            _, prefixes, sizes = np.unique(keys, return_inverse=True, return_counts=True)
            is_shared = sizes[prefixes] >= k
            persons, prefixes = persons[is_shared], prefixes[is_shared]
            if not len(persons):
                return _Prefixes(levels)
            levels.append((persons, prefixes))

    def shared(
        self, lengths: Labels, k: int, may_cut: bool, possible: Callable[[Labels, int], bool]
    ) -> tuple[Labels, Labels]:
        """Return the pattern of each person, and how many records of it stay linked: the longest that k share.

        From the longest beginnings down, those that end there are one pattern if they are k; if not, they are cut by
        one more record and meet the next.
        """
        patterns, n_linked = np.full(len(lengths), -1), np.zeros(len(lengths), dtype=np.int64)
        is_open, n_patterns = np.ones(len(lengths), dtype=bool), 0
        for n, (persons, prefixes) in reversed([*enumerate(self.levels, start=1)]):
            ends = is_open[persons] if may_cut else lengths[persons] == n
            persons, prefixes = persons[ends], prefixes[ends]
            for prefix in np.flatnonzero(np.bincount(prefixes, minlength=1) >= k):
                found = persons[prefixes == prefix]
                if possible(found, n):
                    patterns[found], n_linked[found], is_open[found] = n_patterns, n, False
                    n_patterns += 1
        return patterns, n_linked

    def n_rare(self, lengths: Labels, k: int) -> int:
        """Count the persons whose whole pattern fewer than k share."""
        n_rare = len(lengths)
        for n, (persons, prefixes) in enumerate(self.levels, start=1):
            sizes = np.bincount(prefixes[lengths[persons] == n], minlength=1)
            n_rare -= int(sizes[sizes >= k].sum())
        return n_rare
