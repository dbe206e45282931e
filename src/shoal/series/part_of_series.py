"""Part of a series: a release among others of the same people, from what is known of these to what is kept of it.

The earlier releases are read and put in order; `shoal.series.continuing` decides who is published; what is published is
recounted over all releases, and once more as it was written.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal import kernels
from shoal.columns.equivalence import class_ids
from shoal.columns.person_keys import key_texts, numbered
from shoal.columns.schema import Role, Schema
from shoal.columns.value_hashes import words_of
from shoal.errors import GuaranteeError, ParameterError, SchemaError
from shoal.job import Job
from shoal.job.checks import Prepared
from shoal.measures.recount import Columns
from shoal.measures.series_risk import OUT, SeriesVerdict, Told, Words, recount_series, told_of
from shoal.models.table_columns import HasColumns
from shoal.series.cells_file import CellsOfRelease, keyed, keyed_words, new_secret
from shoal.series.continuing import Continuation, Newcomers, continued, first
from shoal.sources import Table
from shoal.spelling import setting
from shoal.typing import Labels

IN_PYTHON = "release:"
"""Begin of the name of an earlier release that is in memory."""


@dataclass(frozen=True, eq=False)
class Start:
    """What is known before there are cells: who is published, and in which cells those who stay remain.

    Attributes
    ----------
    plan : Continuation
    secret : bytes
        The secret of the series.
    keys : pyarrow.Array
        Keyed hash of each record of the table.
    version_of : CellsOfRelease or None
        The release that the table is, if it is one: then this release is a coarser version of it.
    """

    plan: Continuation
    secret: bytes
    keys: pa.Array
    version_of: CellsOfRelease | None = None

    @property
    def groups(self) -> Labels | None:
        """The group of each published record in the release of which this is a version; no cell divides one."""
        return None if self.version_of is None else self.version_of.groups[self.plan.records]


def begun(job: Job, table: Table, made: Prepared, releases: Mapping[str, CellsOfRelease]) -> Start | None:
    """Read the earlier releases of a job and decide who is published; None if the job is no part of a series.

    `releases` are those in memory that the job names.
    """
    if not job.after and job.roles.key is None:
        return None
    given = [_release(name, releases) for name in job.after]
    version_of = next((cells for cells in given if cells.published == table.sha256), None)
    secret = given[0].secret if given else new_secret(job.seed or 0, table.sha256)
    keys = _keys(job, table, secret, version_of)
    if any(cells.secret != secret for cells in given):
        raise ParameterError(
            "The earlier releases belong to different series: their keys were hashed under different secrets. Name "
            "only releases of which each was made after the ones before it."
        )
    earlier = _continued(given, version_of)
    _require_same_columns(earlier, made.schema)
    own = own_words(made.original, made.schema, secret)
    if not earlier:
        return Start(first(own), secret, keys, version_of)
    unchanged = [column.name for column in made.schema.having(Role.CONFIDENTIAL, Role.OTHER)]
    coarse = [column.name for column in made.schema.quasi if column.is_true]
    if coarse:
        raise ParameterError(
            f"Column {coarse[0]!r} would be published as values that are true of everybody, and people who stay are "
            "published with the values they had, which need not be true any more. Publish values close to the "
            "originals after earlier releases, or one release alone."
        )
    told = told_of_release(table.load(unchanged), made.schema, secret)
    plan = continued(job, Newcomers(keys, own, made.original, made.schema, told), earlier)
    if version_of is None and not plan.n_known:
        raise ParameterError(
            f"Nobody in the table is in an earlier release by the key {job.roles.key!r}. If the keys have changed, "
            "give the column with the old ones; if the people are others, leave out the earlier releases."
        )
    plan.require(job)
    return Start(plan, secret, keys, version_of)


def _release(name: str, releases: Mapping[str, CellsOfRelease]) -> CellsOfRelease:
    if name in releases:
        return releases[name]
    if name.startswith(IN_PYTHON):
        raise ParameterError(
            "The job was made in Python after a release that was in memory, which is not here. Write that release, and "
            f"name its cells file: {setting('after', ['RELEASE.cells'])}."
        )
    return CellsOfRelease.read(name)


def _keys(job: Job, table: Table, secret: bytes, version_of: CellsOfRelease | None) -> pa.Array:
    """Return the keyed hash of each record."""
    if version_of is not None and table.n_left_out:
        raise ParameterError(
            f"The table is the published file of an earlier release without {table.n_left_out:,} records that were "
            "left out. A coarser version is made of all of them: leave none out."
        )
    if version_of is not None:
        return version_of.keys
    if job.roles.key is None:
        raise ParameterError(
            "Earlier releases are given, and nothing says who in the table was in them. Name the column that does: "
            f"{setting('key', 'id')}. A coarser version of a release is made from its published file, unchanged."
        )
    return keyed(key_texts(table.load([job.roles.key])[job.roles.key], job.roles.key), secret)


def _continued(given: Sequence[CellsOfRelease], version_of: CellsOfRelease | None) -> list[CellsOfRelease]:
    """Return the earlier releases that this one continues, in the order in which they were made.

    An edition continues the editions, a version the versions like it. The others that are named add nothing: no version
    divides a group of the release that it is computed from, and the groups of an edition are parts of those before it.
    Raise if a release is missing that is needed to say so.
    """
    names = {cells.identity for cells in given}
    if len(names) < len(given):
        raise ParameterError("An earlier release is named twice. Name each once.")
    counted = () if version_of is None else version_of.after
    known = {*names, *counted}
    level = 0 if version_of is None else 1 + len(version_of.version_of)
    continued = []
    for cells in given:
        if cells is version_of:
            continue
        is_like_this = len(cells.version_of) == level
        lacking = {*cells.after} - known if is_like_this else set()
        if cells.identity not in counted and not known.intersection(cells.version_of):
            lacking |= {*cells.version_of[:1]}
        if lacking:
            raise ParameterError(
                f"An earlier release was itself made after, or as a version of, {len(lacking)} that are not named. "
                "Name all of them, so that the recount covers them: "
                f"{setting('after', ['FIRST.cells', 'SECOND.cells'])}."
            )
        if is_like_this:
            continued.append(cells)
        elif version_of is not None and not cells.version_of and not _follow(cells, version_of):
            raise ParameterError(
                "A release is named that the one which the table is was not made after, nor the other way round, so "
                "that nothing counts both together. Leave it out, and do not publish both."
            )
    return sorted(continued, key=lambda cells: len(cells.after))


def _follow(one: CellsOfRelease, other: CellsOfRelease) -> bool:
    return one.identity in other.after or other.identity in one.after


def _require_same_columns(earlier: Sequence[CellsOfRelease], schema: Schema) -> None:
    """Raise if the quasi-identifiers are not those of the earlier releases."""
    for cells in earlier:
        here, there = set(schema.quasi_names), set(cells.shown.column_names)
        if here != there:
            name = sorted(here ^ there)[0]
            raise SchemaError(
                f"The quasi-identifiers are not those of an earlier release: {name!r} is one only "
                f"{'here' if name in here else 'there'}. People who stay are published with the values they had, so "
                "give the same columns. With fewer or coarser ones make a version of a release, from its published "
                "file."
            )


def told_of_release(columns: HasColumns, schema: Schema, secret: bytes) -> dict[str, Told]:
    """Return what is published unchanged, with words that only the secret relates to the values."""
    found = told_of(columns, schema)
    return {name: told._replace(words=keyed_words(told.words, secret)) for name, told in found.items()}


def own_words(original: pa.Table, schema: Schema, secret: bytes) -> Words:
    """Return a word for the own value of each record in each quasi-identifier, that only the secret relates to it."""
    words = [keyed_words(words_of(original[name]), secret) for name in schema.quasi_names]
    return np.stack(words, axis=1)


@dataclass(frozen=True, eq=False)
class PartOfSeries:
    """A release as a part of its series.

    Attributes
    ----------
    plan : Continuation
        Who is published, and who is withheld.
    cells : CellsOfRelease
        What later releases need to know, in the order of the input.
    fine : ndarray of shape (n_published,) or None
        Of a version: the group of each record in the release that it is computed from.
    verdict : SeriesVerdict or None
        The recount over all releases, of a version over all versions; None for the first of them.
    """

    job: Job
    plan: Continuation
    cells: CellsOfRelease
    fine: Labels | None
    verdict: SeriesVerdict | None

    @staticmethod
    def of(job: Job, start: Start, published: Columns, schema: Schema, source: str) -> "PartOfSeries":
        """Return the part that a release is; raise if the recount over all releases does not confirm the promise."""
        plan, secret, fine = start.plan, start.secret, start.version_of
        shown = pa.table({name: published[name] for name in schema.quasi_names})
        classes = class_ids(shown)
        about = f"{job.to_toml()}\n{source}".encode()
        keys = start.keys.take(pa.array(plan.records))
        cells = CellsOfRelease(
            identity=hashlib.blake2b(about, key=secret, digest_size=16).hexdigest(),
            secret=secret,
            k=job.k,
            after=tuple(each.identity for each in plan.earlier),
            version_of=() if fine is None else (fine.identity, *fine.version_of),
            published=None,
            keys=keys,
            classes=classes,
            groups=_groups(plan.earlier, keys, classes),
            shown=shown.take(pa.array(np.unique(classes, return_index=True)[1])),
            own=plan.shown_by,
            columns=told_of_release(published, schema, secret),
        )
        part = PartOfSeries(job, plan, cells, start.groups, None)
        return replace(part, verdict=part.recount(shown, None))

    def recount(self, shown: pa.Table, rows: NDArray[np.int64] | None) -> SeriesVerdict | None:
        """Recount what is published, or was written and read back, over all releases; raise if it breaks the promise.

        `rows` are the records in the order of `shown`.
        """
        classes = class_ids(shown)
        if self.fine is not None:
            _require_undivided(self.fine if rows is None else self.fine[rows], classes)
        earlier = self.plan.earlier
        if not earlier:
            return None
        keys = [pa.chunked_array([cells.keys]) for cells in (*earlier, self.cells)]
        *people, mine = numbered(keys)
        editions = [cells.edition(numbers) for cells, numbers in zip(earlier, people, strict=True)]
        mine_in_order = self.cells.in_order(rows, "")
        words = {name: words_of(shown[name]) for name in shown.column_names}
        edition = mine_in_order.edition(mine if rows is None else mine[rows])
        editions.append(edition._replace(classes=classes, shown=words))
        verdict = recount_series(editions, self.job.k, self.job.models)
        verdict.require(of_those_who_left=self.job.leavers == "withhold")
        return verdict

    @property
    def sentence(self) -> str:
        """What somebody can learn who owns all releases, in one sentence."""
        if self.verdict is None and self.fine is None:
            return "This is the first release of a series: later ones can be made after it."
        if self.verdict is None:
            return (
                "This release is computed from another one as it was published, so that somebody who owns both learns "
                "nothing that the other one does not tell."
            )
        left = self.verdict.left
        told = "" if left.holds else f"; of {left.n_below:,} people who left, fewer than k at a time, {self._told}"
        what = "releases" if self.fine is None else "versions"
        too = ""
        if self.fine is not None:
            n_alike = int(np.unique(self.fine, return_counts=True)[1].min())
            too = f", or from {n_alike - 1:,} with the releases that these are computed from"
        return (
            f"Somebody who owns all {self.verdict.n_releases} {what}, and knows who is in which, cannot tell anybody "
            f"in this one from {self.verdict.present.smallest - 1:,} others or more who have the same classes and "
            f"absences{too}{told}."
        )

    @property
    def _told(self) -> str:
        assert self.verdict is not None
        if not self.verdict.left.n_computed:
            return "nothing but the class they were in"
        names = ", ".join(map(repr, self.cells.columns))
        return f"subtraction tells the values of {self.verdict.left.n_computed:,} in {names}"

    @property
    def warnings(self) -> list[str]:
        """What to look at before publishing."""
        if self.verdict is None or not self.verdict.left.n_computed:
            return []
        return [
            f"Of {self.verdict.left.n_below:,} people who left, fewer than k at a time, {self._told}: a list of the "
            "class before, less the list after. To keep that from readers, withhold the rest of these classes "
            "(leavers), or make these columns quasi-identifiers."
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return what there is to report, as plain values."""
        plan = self.plan
        return {
            "sentence": self.sentence,
            "release": self.cells.identity,
            "after": list(self.cells.after),
            "version_of": next(iter(self.cells.version_of), None),
            "kept": int(np.count_nonzero(plan.unit != OUT)),
            "new": int(np.count_nonzero(plan.unit == OUT)) if plan.earlier else None,
            "left": plan.n_left if plan.earlier else None,
            "withheld": plan.n_withheld_in_all,
            "withheld_by_reason": plan.n_withheld,
            "recount": None if self.verdict is None else self.verdict.to_dict(),
        }


def _groups(earlier: Sequence[CellsOfRelease], keys: pa.Array, classes: Labels) -> Labels:
    """Return the group of each record: those with the same class here and the same history in the earlier releases."""
    *of_earlier, mine = numbered([pa.chunked_array([each]) for each in (*(cells.keys for cells in earlier), keys)])
    histories = [classes]
    for cells, people in zip(earlier, of_earlier, strict=True):
        groups = np.full(1 + max(int(people.max(initial=-1)), int(mine.max(initial=-1))), OUT)
        groups[people] = cells.groups
        histories.append(groups[mine] - OUT)
    return kernels.agreeing_records(histories)


def _require_undivided(groups: Labels, classes: Labels) -> None:
    """Raise if people who could not be told apart are in several classes of a version."""
    n_groups = int(groups.max()) + 1
    n_divided = len(np.unique(groups * (int(classes.max()) + 1) + classes)) - len(np.unique(groups))
    if n_divided:
        raise GuaranteeError(
            f"The recount found that this version divides {n_divided:,} of {n_groups:,} groups of people who have the "
            "same classes and absences in the release that it is computed from, and in those before. Nothing was "
            "released."
        )
