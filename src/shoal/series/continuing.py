"""Continuing: which records of a table are published after earlier releases of the same people, and in which cells.

People with the same class, or the same absence, in every earlier release are a group (`shoal.measures.series_risk`
counts what that promises). A group whose present members are at least k, and who satisfy the models, is published with
the values that its class had when its members were last seen; any other is withheld. Those who have been in no release
form cells of their own.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal import kernels
from shoal.columns.equivalence import class_ids
from shoal.columns.person_keys import numbered
from shoal.columns.schema import Role, Schema
from shoal.columns.value_hashes import words_of
from shoal.constraints.strata import strata_columns
from shoal.errors import GuaranteeError
from shoal.job import Job
from shoal.measures.series_risk import OUT, Told, Words
from shoal.models import Model
from shoal.models.l_diversity import LDiversity
from shoal.series.cells_file import CellsOfRelease
from shoal.spelling import setting
from shoal.typing import Labels

Where = NDArray[np.bool_]

REASONS = {
    "moved": "whose stratum (by) has changed",
    "few": "of whose group fewer than k are left",
    "left": "of whose group others left, fewer than k or too alike for a model",
    "models": "whose group does not satisfy a model any more",
    "new": "who are new, in strata of fewer than k newcomers",
}
"""Why people are withheld."""


@dataclass(frozen=True, eq=False)
class Continuation:
    """What is published after earlier releases.

    Attributes
    ----------
    earlier : tuple of CellsOfRelease
        The earlier releases of the same people, in their order; none for the first release of a series.
    records : ndarray of shape (n_published,)
        The records of the table that are published.
    unit : ndarray of shape (n_published,)
        For each of them the row of `values` that it repeats; -1 for those who get a cell of their own.
    values : pyarrow.Table
        What the classes that are repeated show.
    renewed : ndarray of bool of shape (n_units, n_quasi)
        The quasi-identifiers in which a class shows the values that its people have now, since at least k of them have
        one by which they were shown in no earlier release.
    shown_by : ndarray of shape (n_published, n_quasi)
        Words for the values by which each record is shown: its own, or those it had when its class was given values.
    n_records : int
        Number of records of the table.
    n_withheld : dict of str to int
        Number of records that are withheld, by reason (`REASONS`).
    n_known : int
        Number of records of people who are in an earlier release.
    n_left : int
        Number of people of the last release who are not in the table.
    """

    earlier: tuple[CellsOfRelease, ...]
    records: Labels
    unit: Labels
    values: pa.Table
    renewed: Where
    shown_by: Words
    n_records: int
    n_withheld: dict[str, int]
    n_known: int
    n_left: int

    @property
    def is_whole(self) -> bool:
        """Whether no record is withheld."""
        return len(self.records) == self.n_records

    @property
    def repeats(self) -> pa.Table | None:
        """What the classes show that are published again; None if there are none."""
        again = np.unique(self.unit[self.unit != OUT])
        return self.values.take(pa.array(again)) if len(again) else None

    @property
    def n_withheld_in_all(self) -> int:
        """Number of records that are withheld."""
        return self.n_records - len(self.records)

    def require(self, job: Job) -> None:
        """Raise if more people would have to be withheld than the job allows."""
        n = self.n_withheld_in_all
        if n <= job.may_withhold * self.n_records and len(self.records):
            return
        why = "; ".join(f"{count:,} {REASONS[reason]}" for reason, count in self.n_withheld.items() if count)
        remedies = []
        if len(self.records):
            remedies.append(f"allow it with {setting('may_withhold', _share(n, self.n_records))}")
        if others := self.n_withheld.get("left"):
            remedies.append(
                f"publish the {others:,} and state in the report what is told of those who left, with "
                f"{setting('leavers', 'state')}"
            )
        if self.n_withheld.get("few"):
            remedies.append(f"make a first release with larger cells, as with {setting('reserve', 0.05)}")
        text = "; or ".join(remedies) or "leave out the earlier releases, and do not publish both"
        raise GuaranteeError(
            f"{n:,} of {self.n_records:,} people ({n / self.n_records:.1%}) would have to be withheld so that "
            f"k={job.k} holds over all releases, and at most {job.may_withhold:.1%} may be: {why}. Nothing was "
            f"released. {text[:1].upper()}{text[1:]}."
        )


def _share(n: int, of: int) -> float:
    """Return a share, rounded up to thousandths."""
    return -(-1000 * n // of) / 1000


class Newcomers(NamedTuple):
    """The table that is to be published, as far as a continuation needs it."""

    keys: pa.Array
    own: Words
    original: pa.Table
    schema: Schema
    told: Mapping[str, Told]


def continued(job: Job, new: Newcomers, earlier: Sequence[CellsOfRelease]) -> Continuation:
    """Decide which records are published; raise if more would be withheld than the job allows.

    Notes
    -----
    Takes O(n log n) time in the records of all releases.
    """
    n = new.original.num_rows
    *of_earlier, mine = numbered([pa.chunked_array([keys]) for keys in (*(cells.keys for cells in earlier), new.keys)])
    histories = _histories(earlier, of_earlier, 1 + max(int(people.max(initial=-1)) for people in (*of_earlier, mine)))
    groups = kernels.agreeing_records([np.ascontiguousarray(column) for column in (histories - OUT).T])
    known = (histories != OUT).any(axis=1)
    units, values = _units(histories, earlier, new.schema)
    of_record = groups[mine]
    moved = known[mine] & ~_in_place(new, values, units[mine])
    stays = known[mine] & ~moved
    plan = _Plan(job.models, groups, of_record, earlier, of_earlier, new.told)
    sizes = np.bincount(of_record[stays], minlength=int(groups.max(initial=-1)) + 1)
    few = sizes < job.k
    strict = np.zeros(len(few), dtype=bool) if job.leavers == "state" else plan.tells_of_leavers(mine[stays], job.k)
    fresh = ~known[mine]
    small = _in_small_strata(new, fresh, job.k)
    keeps = plan.satisfying(~few & ~strict, stays, fresh & ~small, mine)
    published = (stays & keeps[of_record]) | (fresh & ~small)
    there = np.zeros(len(histories), dtype=bool)
    there[mine] = True
    last = histories[:, -1] != OUT if len(earlier) else np.zeros(len(histories), dtype=bool)
    records = np.flatnonzero(published)
    unit = np.where(fresh[records], OUT, units[mine[records]])
    return Continuation(
        tuple(earlier),
        records,
        unit,
        values,
        *_renewed(new.own[records], new.schema.quasi_names, earlier, of_earlier, mine[records], unit, job.k),
        n,
        {
            "moved": int(np.count_nonzero(moved)),
            "few": int(np.count_nonzero(stays & few[of_record])),
            "left": int(np.count_nonzero(stays & (strict & ~few)[of_record])),
            "models": int(np.count_nonzero(stays & (~keeps & ~few & ~strict)[of_record])),
            "new": int(np.count_nonzero(fresh & small)),
        },
        int(np.count_nonzero(known[mine])),
        int(np.count_nonzero(last & ~there)),
    )


def _histories(earlier: Sequence[CellsOfRelease], people: Sequence[Labels], n_people: int) -> Labels:
    """Return the class of each person in each release, -1 where she is absent."""
    found = np.full((n_people, len(earlier)), OUT)
    for place, (cells, numbers) in enumerate(zip(earlier, people, strict=True)):
        found[numbers, place] = cells.classes
    return found


def _units(histories: Labels, earlier: Sequence[CellsOfRelease], schema: Schema) -> tuple[Labels, pa.Table]:
    """Return for each person the class in which she was last seen, as a row of a table of what these classes show."""
    units, start = np.full(len(histories), OUT), 0
    tables = []
    for place, cells in enumerate(earlier):
        there = histories[:, place] != OUT
        units[there] = start + histories[there, place]
        tables.append(cells.shown.select(schema.quasi_names))
        start += cells.shown.num_rows
    values = pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})
    return units, values


def _in_place(new: Newcomers, values: pa.Table, units: Labels) -> Where:
    """Return whether each record is in the stratum in which its person was last seen."""
    same = np.ones(len(units), dtype=bool)
    for column in new.schema.having(Role.BY) if values.num_rows else ():
        then, now = (words_of(table[column.name]) for table in (values, new.original))
        same &= (units == OUT) | (then[units] == now)
    return same


def _renewed(
    own: Words,
    names: Sequence[str],
    earlier: Sequence[CellsOfRelease],
    of_earlier: Sequence[Labels],
    who: Labels,
    unit: Labels,
    k: int,
) -> tuple[Where, Words]:
    """Return for each quasi-identifier the classes that show new values, and the values that each record is shown by.

    These are the classes of which k people have a value by which they were shown in no release before: any sum that
    involves the new value of such a class involves these k.

    Parameters
    ----------
    own : ndarray of shape (n_published, n_quasi)
        Words for the own values.
    names : sequence of str
        The quasi-identifiers.
    who : ndarray of shape (n_published,)
        The person of each record.

    Returns
    -------
    renewed : ndarray of shape (n_units, n_quasi)
    shown_by : ndarray of shape (n_published, n_quasi)
    """
    again = unit != OUT
    is_new, shown_by = np.ones(own.shape, dtype=bool), own.copy()
    rows = np.full(1 + max(int(people.max(initial=-1)) for people in (*of_earlier, who)), OUT)
    for cells, people in zip(earlier, of_earlier, strict=True):
        rows[:] = OUT
        rows[people] = np.arange(len(people))
        there = np.flatnonzero(rows[who] != OUT)
        then = cells.own[rows[who[there]]][:, [cells.shown.column_names.index(name) for name in names]]
        is_new[there] &= then != own[there]
        shown_by[there] = then  # the last one stays
    n_units = int(unit.max(initial=-1)) + 1
    counts = [np.bincount(unit[again], column, minlength=n_units) for column in is_new[again].T.astype(np.float64)]
    renewed = np.stack(counts, axis=1) >= k
    shown_by[~again] = own[~again]
    shown_by[again] = np.where(renewed[unit[again]], own[again], shown_by[again])
    return renewed, shown_by


def _in_small_strata(new: Newcomers, fresh: Where, k: int) -> Where:
    """Return whether each record is in a stratum of fewer than k newcomers."""
    apart = strata_columns(new.original, new.schema)
    strata = class_ids(apart) if apart.num_columns else np.zeros(len(fresh), dtype=np.int64)
    return np.bincount(strata[fresh], minlength=int(strata.max(initial=0)) + 1)[strata] < k


@dataclass(frozen=True, eq=False)
class _Plan:
    """The groups of people with the same history, and the models that each has to satisfy."""

    models: Sequence[Model]
    groups: Labels
    of_record: Labels
    earlier: Sequence[CellsOfRelease]
    people: Sequence[Labels]
    told: Mapping[str, Told]

    @property
    def promised(self) -> list[Model]:
        return [model for model in self.models if model.promised]

    def tells_of_leavers(self, staying: Labels, k: int) -> Where:
        """Return the groups of which some leave now, and these are fewer than k or violate a model; shape (n_groups,).

        `staying` are the persons who can be published again.
        """
        stays = np.zeros(len(self.groups), dtype=bool)
        stays[staying] = True
        n_groups = int(self.groups.max(initial=-1)) + 1
        known = np.zeros(len(self.groups), dtype=bool)
        for people in self.people:
            known[people] = True
        n_leaving = np.bincount(self.groups[known & ~stays], minlength=n_groups)
        some_stay = np.bincount(self.groups[stays], minlength=n_groups) > 0
        tells = (n_leaving > 0) & (n_leaving < k)
        return some_stay & (tells | ((n_leaving > 0) & self._failed_before(known & ~stays)))

    def satisfying(self, keeps: Where, stays: Where, fresh: Where, mine: Labels) -> Where:
        """Return the groups to keep: those given without those that violate a model, in this release or before.

        Who is withheld changes the distributions that a model compares, so that it is measured again.
        """
        staying = np.zeros(len(self.groups), dtype=bool)
        staying[mine[stays]] = True
        if self.promised:
            keeps = keeps & ~self._failed_before(staying) & ~self._few_in_common(staying, stays)
        while True:
            published = np.flatnonzero((stays & keeps[self.of_record]) | fresh)
            failing = self._failing(self.told, self.of_record, published) & keeps
            # Newcomers are a group here, whose cells satisfy the models by themselves.
            failing[np.unique(self.of_record[fresh])] = False
            if not failing.any():
                return keeps
            keeps = keeps & ~failing

    def _failed_before(self, who: Where) -> Where:
        """Return the groups of which some members, as a group of their own, violate a model in an earlier release."""
        failing = np.zeros(int(self.groups.max(initial=-1)) + 1, dtype=bool)
        for cells, people in zip(self.earlier, self.people, strict=True):
            failing |= self._failing(cells.columns, self.groups[people], np.flatnonzero(who[people]), all_records=True)
        return failing

    def _failing(
        self, columns: Mapping[str, Told], groups: Labels, records: Labels, *, all_records: bool = False
    ) -> Where:
        """Return the groups that violate a model by some records of a release, compared with these or with all."""
        failing = np.zeros(int(self.groups.max(initial=-1)) + 1, dtype=bool)
        for model in self.promised:
            told = columns.get(model.column)
            if told is None or not len(records):
                continue
            column = told.seen if model.merges_lookalikes else told.codes
            codes = column.codes[records]
            compared = column.codes if all_records else codes
            whole = np.bincount(compared, minlength=column.n_values)
            occurs = whole > 0  # values that nobody has any more do not count
            column = column._replace(
                codes=(np.cumsum(occurs) - 1)[codes], n_values=int(occurs.sum()), whole=whole[occurs]
            )
            there, classes = np.unique(groups[records], return_inverse=True)
            failing[there[model.measure(classes.reshape(-1), column).failing]] = True
        return failing

    def _few_in_common(self, staying: Where, stays: Where) -> Where:
        """Return the groups whose members have fewer than l values in common in all releases in which they are."""
        n_groups = int(self.groups.max(initial=-1)) + 1
        few = np.zeros(n_groups, dtype=bool)
        for model in self.promised:
            if not isinstance(model, LDiversity):
                continue
            found = list(self._values(model.column, staying, stays))
            n_releases = np.zeros(n_groups, dtype=np.int64)
            for groups, _ in found:
                n_releases[np.unique(groups)] += 1
            pairs = [pa.table({"group": groups, "word": words}).group_by(["group", "word"]) for groups, words in found]
            listed = pa.concat_tables([each.aggregate([]) for each in pairs])
            counted = listed.group_by(["group", "word"]).aggregate([([], "count_all")])
            of_pair = counted["group"].to_numpy()
            common = np.asarray(counted["count_all"]) == n_releases[of_pair]
            few |= np.bincount(of_pair[common], minlength=n_groups) < model.l
        return few

    def _values(self, name: str, staying: Where, stays: Where) -> Iterator[tuple[Labels, NDArray[np.uint64]]]:
        """Yield group and value of those who stay, in each release that publishes a column."""
        for cells, people in zip(self.earlier, self.people, strict=True):
            if name in cells.columns:
                mine = staying[people]
                yield self.groups[people][mine], cells.columns[name].words[mine]
        if name in self.told:
            yield self.of_record[stays], self.told[name].words[stays]


def repeated(replaced: pa.Table, plan: Continuation, schema: Schema) -> pa.Table:
    """Return published quasi-identifiers in which classes that are repeated show what they showed."""
    again = plan.unit != OUT
    if not again.any():
        return replaced
    where, rows = pa.array(again), pa.array(plan.unit, mask=~again)
    columns, values = {}, schema.quasi_names
    for name in replaced.column_names:
        now = replaced[name]
        then = plan.values[name].take(rows)
        renewed = plan.renewed[:, values.index(name)]
        kept = where if not renewed.any() else pa.array(again & ~renewed[plan.unit])
        columns[name] = _spliced(now, then, kept)
    return pa.table(columns)


def _spliced(now: pa.ChunkedArray, then: pa.ChunkedArray, where: pa.Array) -> pa.ChunkedArray:
    """Return the values of `then` where they are wanted, in the type of `now`."""
    if not pa.types.is_dictionary(now.type):
        return pc.if_else(where, then.cast(now.type), now)
    plain = pc.if_else(where, then.cast(now.type.value_type), now.cast(now.type.value_type))
    listed = now.chunk(0).dictionary if now.num_chunks else pa.array([], now.type.value_type)
    used = pc.unique(plain).drop_null()
    old = listed.filter(pc.is_in(listed, value_set=used))
    gone = used.filter(pc.invert(pc.is_in(used, value_set=listed)))
    categories = pa.concat_arrays([old, gone.take(pc.sort_indices(gone))])
    codes = pc.index_in(plain, value_set=categories).cast(now.type.index_type)
    return pa.chunked_array(
        [pa.DictionaryArray.from_arrays(chunk, categories, ordered=now.type.ordered) for chunk in codes.chunks]
    )


def first(own: Words) -> Continuation:
    """Return what is published where nothing was published before: everything, by its own values."""
    n, none = len(own), np.zeros((0, own.shape[1]), dtype=bool)
    return Continuation((), np.arange(n), np.full(n, OUT), pa.table({}), none, own, n, {}, 0, 0)
