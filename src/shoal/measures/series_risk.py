"""Histories: what somebody learns who holds several releases of overlapping people, recounted from the releases alone.

The *history* of a person is the class that shows her in each release, or her absence from it. Whoever knows who is in
which release, and how everybody is published, tells people apart by their histories and by nothing else. Three attacks
are counted. *Intersection*: a person hides only among those who have her history. *Common values*: her confidential
value, if it has not changed, is one that all of her classes have. *Subtraction*: where classes of two releases differ
by fewer than k people, or by new values of so few, so do their sums and lists of values, unless what was published is
published again.

Nothing here knows how a release was made.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal import kernels
from shoal.columns.equivalence import value_codes
from shoal.columns.schema import Role, Schema
from shoal.columns.value_hashes import words_of
from shoal.errors import GuaranteeError
from shoal.models.codes import Codes
from shoal.models.l_diversity import LDiversity
from shoal.models.model import Model
from shoal.models.table_columns import HasColumns, codes_of
from shoal.typing import Labels

OUT = -1
"""Class of a person who is not in a release."""

Words = NDArray[np.uint64]


class Told(NamedTuple):
    """A column that is published unchanged."""

    codes: Codes
    """The values of the records, for models of distances."""

    seen: Codes
    """The same, where values that look the same are one, for models of diversity."""

    words: Words
    """A word for each record, the same in all releases for values that look the same; shape (n_records,)."""


class Edition(NamedTuple):
    """A release as a reader sees it who knows who is who."""

    people: Labels
    """The number of the person of each record, the same in all releases; shape (n_records,)."""

    classes: Labels
    """The class of each record, from 0 and without gaps; shape (n_records,)."""

    shown: Mapping[str, Words]
    """A word for what each record shows in each quasi-identifier; the same word in all releases for the same value."""

    columns: Mapping[str, Told]
    """The columns that are published unchanged."""

    own: Mapping[str, Words] = MappingProxyType({})
    """A word for the own value of each record in each quasi-identifier; where it is not known, it has not changed."""


@dataclass(frozen=True)
class Learned:
    """What several releases tell of some people.

    Attributes
    ----------
    n_people, n_groups : int
        Number of people, and of the groups that have the same history.
    smallest : int
        Size of the smallest group; 0 if there is none.
    n_below, n_alone : int
        Number of people in groups of fewer than k, and of people who are alone.
    n_computed : int
        Number of people whose values, or whose sum with fewer than k - 1 others, follow by subtraction.
    n_failing : dict of str to int
        Number of people in groups that violate a model, by the words of the model.
    n_determined : dict of str to int
        Number of people in several releases all of whose classes have one value of a column in common, by column.
    """

    n_people: int
    n_groups: int
    smallest: int
    n_below: int
    n_alone: int
    n_computed: int
    n_failing: dict[str, int] = field(default_factory=dict)
    n_determined: dict[str, int] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether nobody is below k, computed or in a group that violates a model."""
        return not (self.n_below or self.n_computed or any(self.n_failing.values()))

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain values."""
        return {
            "n_people": self.n_people,
            "n_groups": self.n_groups,
            "smallest": self.smallest,
            "n_below": self.n_below,
            "n_alone": self.n_alone,
            "n_computed": self.n_computed,
            "n_failing": self.n_failing,
            "n_determined": self.n_determined,
        }


@dataclass(frozen=True)
class SeriesVerdict:
    """The promise of a series of releases, recounted.

    Attributes
    ----------
    k : int
    n_releases : int
    present : Learned
        About the people in the last release.
    left : Learned
        About the people of earlier releases who are not in the last one.
    """

    k: int
    n_releases: int
    present: Learned
    left: Learned

    @property
    def holds(self) -> bool:
        """Whether everybody hides among k people with the same history, who satisfy every model."""
        return self.present.holds and self.left.holds

    def require(self, *, of_those_who_left: bool = True) -> None:
        """Raise `GuaranteeError` unless the promise holds; that to those who left only if asked for."""
        sides = {"in the release": self.present} | ({"who left": self.left} if of_those_who_left else {})
        for who, found in sides.items():
            if not found.holds:
                failing = max(found.n_failing.values(), default=0)
                raise GuaranteeError(
                    f"The recount over all {self.n_releases} releases found {found.n_below:,} people {who} whose "
                    f"classes and absences fewer than k={self.k} people share, {found.n_computed:,} whose values "
                    f"follow by subtraction, and {failing:,} in groups that violate a model. Nothing was released."
                )

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain values, for JSON."""
        return {
            "holds": self.holds,
            "k": self.k,
            "n_releases": self.n_releases,
            "present": self.present.to_dict(),
            "left": self.left.to_dict(),
        }


def recount_series(editions: Sequence[Edition], k: int, models: Sequence[Model] = ()) -> SeriesVerdict:
    """Recount what all releases together tell of everybody, in the order in which they were published.

    Parameters
    ----------
    editions : sequence of Edition
    k : int
        The k that was promised.
    models : sequence of Model
        Models of columns that are published unchanged; those of a column that a release lacks do not apply to it.

    Notes
    -----
    Takes O(n log n) time in the records of all releases, for each pair of releases.

    Examples
    --------
    >>> two = [Edition(np.arange(4), np.array(classes), {"age": np.array(classes, np.uint64)}, {}) for classes in
    ...        ([0, 0, 1, 1], [0, 1, 0, 1])]
    >>> recount_series(two, 2).present
    Learned(n_people=4, n_groups=4, smallest=1, n_below=4, n_alone=4, n_computed=0, n_failing={}, n_determined={})
    """
    n_people = 1 + max(int(edition.people.max(initial=-1)) for edition in editions)
    histories = np.full((n_people, len(editions)), OUT)
    for place, edition in enumerate(editions):
        histories[edition.people, place] = edition.classes
    groups = kernels.agreeing_records([np.ascontiguousarray(column) for column in (histories - OUT).T])
    classes, sizes = histories[np.unique(groups, return_index=True)[1]], np.bincount(groups)
    computed = np.zeros(n_people, dtype=bool)
    for one, other in combinations(editions, 2):
        computed[_computed(one, other, n_people, k)] = True
    common = {
        name: _n_common(classes, [edition.columns.get(name) for edition in editions], editions)
        for name in dict.fromkeys(name for edition in editions for name in edition.columns)
    }
    failing = {str(model): _failing(model, editions, groups, common) for model in models if model.promised}
    several = np.count_nonzero(classes != OUT, axis=1) > 1
    determined = {name: (common[name] == 1) & several for name in common}
    is_present = histories[:, -1] != OUT
    return SeriesVerdict(
        k,
        len(editions),
        *(_learned(who, groups, sizes, computed, failing, determined, k) for who in (is_present, ~is_present)),
    )


def _learned(
    who: NDArray[np.bool_],
    groups: Labels,
    sizes: Labels,
    computed: NDArray[np.bool_],
    failing: Mapping[str, NDArray[np.bool_]],
    determined: Mapping[str, NDArray[np.bool_]],
    k: int,
) -> Learned:
    """Return the counts of some people; nobody is both present and not, so that their groups are whole."""
    mine = groups[who]
    of_person = sizes[mine]
    return Learned(
        n_people=len(mine),
        n_groups=len(np.unique(mine)),
        smallest=int(of_person.min(initial=len(groups) if len(mine) else 0)),
        n_below=int(np.count_nonzero(of_person < k)),
        n_alone=int(np.count_nonzero(of_person == 1)),
        n_computed=int(np.count_nonzero(computed[who])),
        n_failing={name: int(np.count_nonzero(of_group[mine])) for name, of_group in failing.items()},
        n_determined={name: int(np.count_nonzero(of_group[mine])) for name, of_group in determined.items()},
    )


class _View(NamedTuple):
    """The class of each person in a release, and for one column what each class shows and each person has."""

    of: Labels
    sizes: Labels
    shown: Words
    own: Words | None

    @staticmethod
    def of_column(edition: Edition, name: str | None, n_people: int) -> "_View":
        """Return the view of a quasi-identifier; without a name, that of the lists of values."""
        classes = np.full(n_people, OUT)
        classes[edition.people] = edition.classes
        sizes = np.bincount(edition.classes, minlength=1)
        shown, own = np.zeros(len(sizes), dtype=np.uint64), None
        if name is not None:
            shown[edition.classes] = edition.shown[name]
        if name is not None and name in edition.own:
            own = np.zeros(n_people, dtype=np.uint64)
            own[edition.people] = edition.own[name]
        return _View(classes, sizes, shown, own)

    def changed(self, other: "_View") -> NDArray[np.bool_]:
        """Return who is in both releases with different values."""
        if self.own is None or other.own is None:
            return np.zeros(len(self.of), dtype=bool)
        return np.asarray((self.of != OUT) & (other.of != OUT) & (self.own != other.own))


def _computed(one: Edition, other: Edition, n_people: int, k: int) -> Labels:
    """Return the people by whom, fewer than k at a time, classes of two releases differ in something to subtract."""
    names: list[str | None] = [name for name in one.shown if name in other.shown]
    if set(one.columns) & set(other.columns):
        names.append(None)
    found = [np.empty(0, dtype=np.int64)]
    for name in names:
        a, b = (_View.of_column(edition, name, n_people) for edition in (one, other))
        found += [*_by_pairs(a, b, k, name is None)]
        found += [_by_union(*both, k, name is None) for both in ((a, b), (b, a))]
    return np.unique(np.concatenate(found))


def _by_pairs(a: _View, b: _View, k: int, lists_differ: bool) -> Iterator[Labels]:
    """Yield those who are in one of two classes alone, or have changed in both, where these are fewer than k."""
    both = np.flatnonzero((a.of != OUT) & (b.of != OUT))
    pairs, of_person, n_shared = np.unique(
        a.of[both] * len(b.shown) + b.of[both], return_inverse=True, return_counts=True
    )
    of_a, of_b = np.divmod(pairs, len(b.shown))
    has_changed = a.changed(b)
    n_changed = np.bincount(of_person.reshape(-1), has_changed[both], minlength=len(pairs)).astype(np.int64)
    apart = a.sizes[of_a] + b.sizes[of_b] - 2 * n_shared + n_changed
    told = (apart > 0) & (apart < k) & (lists_differ | (a.shown[of_a] != b.shown[of_b]))
    # Two classes of at least k that differ by fewer share more than half of each, so that each has one partner.
    for mine, theirs, one, other in ((a, b, of_a, of_b), (b, a, of_b, of_a)):
        partner = np.full(len(mine.shown), OUT)
        partner[one[told]] = other[told]
        there = np.flatnonzero(mine.of != OUT)
        partners = partner[mine.of[there]]
        yield there[(partners != OUT) & ((theirs.of[there] != partners) | has_changed[there])]


def _by_union(a: _View, b: _View, k: int, lists_differ: bool) -> Labels:
    """Return those who remain of a class of `b`, fewer than k, without the classes of `a` that it holds whole.

    And those of these classes who have changed.
    """
    there = a.of != OUT
    low = np.full(len(a.shown), np.iinfo(np.int64).max)
    high = np.full(len(a.shown), np.iinfo(np.int64).min)
    np.minimum.at(low, a.of[there], b.of[there])
    np.maximum.at(high, a.of[there], b.of[there])
    whole = (low == high) & (high != OUT)
    inside = np.zeros(len(a.of), dtype=bool)
    inside[there] = whole[a.of[there]]
    # A class that repeats what a class inside it has shown is not a sum of its people.
    repeats = np.zeros(len(b.shown), dtype=bool)
    held = np.flatnonzero(whole)
    repeats[high[held][a.shown[held] == b.shown[high[held]]]] = True
    changed = a.changed(b)
    rest = b.sizes - np.bincount(b.of[inside & ~changed], minlength=len(b.shown))
    holds = np.bincount(b.of[inside], minlength=len(b.shown)) > 0
    told = holds & (rest > 0) & (rest < k) & (lists_differ | ~repeats)
    present = np.flatnonzero(b.of != OUT)
    return present[told[b.of[present]] & (~inside | changed)[present]]


def _n_common(classes: Labels, columns: Sequence[Told | None], editions: Sequence[Edition]) -> Labels:
    """Return how many values of a column all classes of each history have, in the releases that publish it."""
    n_groups = len(classes)
    seen = np.zeros(n_groups, dtype=bool)
    groups, words = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint64)  # of what is still possible
    for place, (told, edition) in enumerate(zip(columns, editions, strict=True)):
        if told is None:
            continue
        listed, numbers = np.unique(told.words, return_inverse=True)
        pairs = np.unique(edition.classes * len(listed) + numbers.reshape(-1))
        owners, values = np.divmod(pairs, len(listed))
        starts = np.searchsorted(owners, np.arange(int(owners.max(initial=-1)) + 2))
        present = classes[:, place] != OUT
        # Those who were in an earlier release keep the values that are in this class too.
        old = present[groups]
        at = np.searchsorted(listed, words).clip(max=max(len(listed) - 1, 0))
        known = listed[at] == words
        asked = classes[groups, place] * len(listed) + at
        keeps = ~old | (known & np.isin(asked, pairs))
        # Those who are in their first release have all values of their class.
        fresh = np.flatnonzero(present & ~seen)
        of_class = classes[fresh, place]
        lengths = starts[of_class + 1] - starts[of_class]
        begin = np.repeat(starts[of_class] - np.cumsum(lengths) + lengths, lengths)
        new = values[begin + np.arange(int(lengths.sum()))]
        groups = np.concatenate([groups[keeps], np.repeat(fresh, lengths)])
        words = np.concatenate([words[keeps], listed[new]])
        seen |= present
    return np.bincount(groups, minlength=n_groups)


def _failing(
    model: Model, editions: Sequence[Edition], groups: Labels, common: Mapping[str, Labels]
) -> NDArray[np.bool_]:
    """Return which groups violate a model in one of the releases, or have fewer than l values in common."""
    failing = np.zeros(int(groups.max(initial=-1)) + 1, dtype=bool)
    several = np.zeros(len(failing), dtype=np.int64)
    for edition in editions:
        told = edition.columns.get(model.column)
        if told is None:
            continue
        column = told.seen if model.merges_lookalikes else told.codes
        column = column._replace(whole=column.counts())
        there, classes = np.unique(groups[edition.people], return_inverse=True)
        several[there] += 1
        failing[there[model.measure(classes.reshape(-1), column).failing]] = True
    if isinstance(model, LDiversity):
        failing |= (several > 1) & (common[model.column] < model.l)
    return failing


def told_of(table: HasColumns, schema: Schema) -> dict[str, Told]:
    """Return the columns of a table that are published unchanged; only the confidential ones have an order."""
    found = {}
    for column in schema.having(Role.CONFIDENTIAL, Role.OTHER):
        values = table[column.name]
        words = words_of(values)
        if column.role is Role.OTHER:
            codes = value_codes(values)
            plain = Codes(codes, int(codes.max(initial=-1)) + 1, ordered=False)
            found[column.name] = Told(plain, plain, words)
        else:
            found[column.name] = Told(codes_of(values, column), codes_of(values, column, merged=True), words)
    return found
