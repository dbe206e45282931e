"""Recount: every guarantee from the released table alone.

An equivalence class is a set of records with the same published quasi-identifiers; missing counts as a value. The
recount does not use cells or labels: it counts what an intruder sees, in releases of shoal and of any other tool.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.arrays import as_k
from shoal.columns.coarse import read_coarse
from shoal.columns.coarse.exposure import n_exposed
from shoal.columns.distribution import Distribution, Distributions
from shoal.columns.equivalence import class_ids, distinct_in_classes, identity_codes
from shoal.columns.schema import Column, ColumnSettings, Role, Roles, Schema, as_names, as_settings, link_column
from shoal.errors import GuaranteeError, ParameterError, SchemaError
from shoal.measures.linked import Histories, Linked
from shoal.measures.unchanged import Unchanged
from shoal.models import Codes, Model, Reached
from shoal.models.model import worse
from shoal.models.serialization import as_models
from shoal.models.t_closeness import earth_movers_distance
from shoal.models.table_columns import check_models, codes_of
from shoal.spelling import named, setting
from shoal.typing import Labels
from shoal.views import Frame, as_frame, as_html, as_row


class Columns(Protocol):
    """The part of a table's interface that the audit uses."""

    def __getitem__(self, name: str, /) -> pa.ChunkedArray:
        """Return one column."""

    def select(self, names: Any, /) -> pa.Table:
        """Return some columns."""


@dataclass(frozen=True)
class Diversity:
    """What the classes of a table reveal about one confidential column, for the worst class.

    Attributes
    ----------
    distinct : int
        Smallest number of different values in a class: distinct l-diversity.
    entropy : float
        The exponential of the smallest entropy in a class: entropy l-diversity.
    recursive : float
        Largest ratio of one value to all others in a class, r1 / (r2 + ... + rm): the table has recursive
        (c, 2)-diversity for every c above it. Infinite if a class has a single value.
    t : float
        Largest distance (EMD) between the values in a class and those in the table: t-closeness.
    exact_mean_t : Fraction
        Mean of that distance over the records.
    """

    distinct: int
    entropy: float
    recursive: float
    t: float
    exact_mean_t: Fraction

    @property
    def mean_t(self) -> float:
        """Mean of that distance over the records: rounded once, so that it does not depend on their order."""
        return float(self.exact_mean_t)

    def or_worse(self, other: "Diversity") -> "Diversity":
        """Return the worse of two in each measure."""
        return Diversity(
            min(self.distinct, other.distinct),
            min(self.entropy, other.entropy),
            max(self.recursive, other.recursive),
            max(self.t, other.t),
            max(self.exact_mean_t, other.exact_mean_t),
        )


@dataclass(frozen=True)
class Truth:
    """Whether the intervals, sets, ancestors or periods of a column are true of every record that shows them.

    Attributes
    ----------
    column : str
    form : str
        interval, set, ancestor or period.
    n_values : int
        Number of different published values.
    n_false : int or None
        Records whose own value is not within the published one; None if the originals are not at hand.
    n_exposed : int or None
        Records whose interval or period has an end at a step that fewer than k persons of the table share, or whose
        ancestor has fewer than k below it; None for sets, and if the originals or k are not at hand.
    """

    column: str
    form: str
    n_values: int
    n_false: int | None
    n_exposed: int | None = None


@dataclass(frozen=True)
class Verdict:
    """The recounted guarantees of a table.

    Attributes
    ----------
    k : int or None
        The k that was asked for.
    n_records, n_classes : int
        Number of records and of equivalence classes.
    smallest : int
        Size of the smallest class: the k that the table has.
    sizes : dict of int to int
        Number of classes of each size.
    n_below : int
        Number of records in classes smaller than `k`.
    quasi_identifiers : tuple of str
        The columns that define the classes.
    subjects : int or None
        Smallest number of different subjects in a class; None without a subject column.
    subject_asked : bool
        Whether k counts different subjects.
    confidential : dict of str to Diversity
        What the classes reveal about each confidential column.
    models : tuple of Reached
        The recount of each model, in the order given.
    truth : tuple of Truth
        The recount of each column that is published as intervals, sets, ancestors or periods.
    linked : Linked or None
        The recount of whole histories, if records are linked. Models and `confidential` then hold for them too.
    unchanged : tuple of Unchanged
        The columns that are published unchanged and nearly identify.
    withdrawn : str or None
        Why k is not claimed, if it is not: a sentence or two for readers of the report.
    records : pyarrow.Table or None
        If asked for: ``record`` (from 1, in the order of the table), ``class`` (its number), ``size`` (in persons if a
        subject is named) and ``risk``, 1 / size. It holds no value of the table, but shows which records are at risk:
        do not publish it.
    """

    k: int | None
    n_records: int
    n_classes: int
    smallest: int
    sizes: dict[int, int] = field(repr=False)
    n_below: int
    quasi_identifiers: tuple[str, ...]
    subjects: int | None = None
    subject_asked: bool = False
    confidential: dict[str, Diversity] = field(default_factory=dict)
    models: tuple[Reached, ...] = ()
    truth: tuple[Truth, ...] = ()
    linked: Linked | None = None
    unchanged: tuple[Unchanged, ...] = ()
    withdrawn: str | None = field(default=None, repr=False)
    records: pa.Table | None = field(default=None, repr=False, compare=False)

    @property
    def holds(self) -> bool:
        """Whether all guarantees asked for hold; False if k was withdrawn."""
        return self.withdrawn is None and self.k_holds and not (self.broken or self.untrue or self.exposing)

    @property
    def k_holds(self) -> bool:
        """Whether every class has k records and, if asked for, k subjects, and every history is shared by k of them."""
        if self.k is None:
            return True
        asked = [self.smallest, *([self.subjects or 0] if self.subject_asked else [])]
        return min(*asked, self.k if self.linked is None else self.linked.smallest) >= self.k

    def history_below(self, k: int | None) -> bool:
        """Whether records are linked, and fewer than `k` persons share some history."""
        return self.linked is not None and k is not None and self.linked.smallest < k

    @property
    def broken(self) -> tuple[Reached, ...]:
        """The guaranteed models that are violated."""
        return tuple(found for found in self.models if found.is_broken)

    @property
    def untrue(self) -> tuple[Truth, ...]:
        """The columns with values that are false for some record."""
        return tuple(found for found in self.truth if found.n_false)

    @property
    def exposing(self) -> tuple[Truth, ...]:
        """The columns with ends, or ancestors, that fewer than k persons share."""
        return tuple(found for found in self.truth if found.n_exposed)

    @property
    def below_k(self) -> list[dict[str, int]]:
        """Number and class size of the records in classes smaller than k, the smallest first; needs `records`."""
        if self.records is None or self.k is None:
            return []
        found = self.records.filter(pc.less(self.records["size"], self.k))
        order = [("size", "ascending"), ("class", "ascending"), ("record", "ascending")]
        below: list[dict[str, int]] = found.sort_by(order).select(["record", "size"]).to_pylist()
        return below

    def require(self) -> None:
        """Raise `GuaranteeError` unless the verdict holds, or k is not claimed."""
        if self.withdrawn is not None:
            return
        if self.history_below(self.k):
            assert self.linked is not None
            raise GuaranteeError(
                f"The recount found a history that only {self.linked.smallest} persons share where k={self.k} was "
                f"asked for: {self.linked.n_below:,} of {self.linked.n_persons:,} persons have such histories. Nothing "
                "was released."
            )
        if not self.k_holds:
            raise GuaranteeError(
                f"The recount found a class of {self.smallest} records where k={self.k} was asked for: "
                f"{self.n_below:,} of {self.n_records:,} records are in classes that are too small"
                + (f", and a class with {self.subjects} different subjects" if self.subject_asked else "")
                + ". Nothing was released."
            )
        for found in self.broken:
            raise GuaranteeError(
                f"The recount found that {found.n_failing:,} of {found.n_classes:,} classes violate {found.model}: the "
                f"worst has {found.model.unit} = {found.value:.4g}. Nothing was released."
            )
        for false in self.untrue:
            raise GuaranteeError(
                f"The recount found {false.n_false:,} of {self.n_records:,} records whose own value is not within the "
                f"published {false.form} of column {false.column!r}. Nothing was released."
            )
        for shows in self.exposing:
            raise GuaranteeError(
                f"The recount found {shows.n_exposed:,} of {self.n_records:,} records whose published {shows.form} of "
                f"column {shows.column!r} shows where fewer than {self.k} people are. Nothing was released."
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain values, for JSON."""
        return {
            "holds": self.holds,
            "withdrawn": self.withdrawn,
            "k": self.k,
            "n_records": self.n_records,
            "n_classes": self.n_classes,
            "smallest": self.smallest,
            "n_below": self.n_below,
            "sizes": {str(size): count for size, count in self.sizes.items()},
            "quasi_identifiers": list(self.quasi_identifiers),
            "subjects": self.subjects if self.subject_asked else None,
            "confidential": {
                name: {
                    "distinct": found.distinct,
                    "entropy": found.entropy,
                    "recursive": found.recursive if np.isfinite(found.recursive) else None,
                    "t": found.t,
                    "mean_t": found.mean_t,
                }
                for name, found in self.confidential.items()
            },
            "models": [found.to_dict() for found in self.models],
            "truth": [asdict(found) for found in self.truth],
            **({} if self.linked is None else {"linked": self.linked.to_dict()}),
            "unchanged": [found._asdict() for found in self.unchanged],
        }

    def to_frame(self) -> Frame:
        """Return all numbers in one row, named by their path, such as ``confidential.illness.t``; see also `records`.

        Models are named by their place, such as ``models.0.value``.
        """
        found = self.to_dict()
        models = {str(place): one for place, one in enumerate(found.pop("models"))}
        return as_frame([as_row({**found, "sizes": None, "models": models})])

    def _repr_html_(self) -> str:
        """Return the verdict as a small table for notebooks."""
        state = "k is not claimed" if self.withdrawn else "holds" if self.holds else "does not hold"
        rows = [
            *([("k", f"{self.smallest:,} found, {self.k:,} asked for")] if self.k is not None else []),
            ("records", f"{self.n_records:,} in {self.n_classes:,} classes, the smallest of {self.smallest:,}"),
            *([("records below k", f"{self.n_below:,}")] if self.n_below else []),
            *([("persons in a class", f"at least {self.subjects:,}")] if self.subjects is not None else []),
        ]
        rows += [
            (f"{name} in a class", f"at least {found.distinct:,} different values, t = {found.t:.3g}")
            for name, found in self.confidential.items()
        ]
        rows += [
            (
                str(found.model),
                f"{found.model.unit} = {found.value:.4g} in the worst class, {found.n_failing:,} violate it",
            )
            for found in self.models
        ]
        rows += [
            (
                f"false values of {found.column}",
                "not compared" if found.n_false is None else f"{found.n_false:,} records",
            )
            for found in self.truth
        ]
        nothing_asked = self.k is None and not self.models
        return as_html("Audit" if nothing_asked else f"Audit: {state}", (), rows)


class Question(NamedTuple):
    """What an audit is asked, checked as far as that needs no table."""

    quasi: list[str]
    k: int | None
    confidential: list[str]
    models: tuple[Model, ...]
    subject: str | None
    settings: dict[str, ColumnSettings]
    link: str | None = None
    """The column that links the records of whole histories."""

    @staticmethod
    def of(
        quasi_identifiers: Sequence[str] | str,
        k: int | None,
        confidential: Sequence[str] | str,
        models: Sequence[Model] | Model,
        subject: str | None,
        columns: Mapping[str, Any] | None,
        household: str | None = None,
        keep_link: str | None = None,
    ) -> "Question":
        """Check the arguments of `shoal.audit` that say what to count."""
        settings = as_settings(columns)
        for name, given in settings.items():
            unused = sorted(given.model_fields_set - {"kind", "categories"})
            if unused:
                raise ParameterError(
                    f"{named(*unused)} is set for column {name!r}, but an audit uses only {named('kind')} and "
                    f"{named('categories')}. Leave it out."
                )
        quasi = as_names(quasi_identifiers)
        if not quasi:
            raise SchemaError(
                "No quasi-identifiers are given, so there are no classes to count. Name at least one column."
            )
        smallest, promised = None if k is None else as_k(k), tuple(as_models(models))
        link = {"subject": subject, "household": household}.get(keep_link or "")
        if keep_link is not None and link is None:
            raise ParameterError(
                f"{setting('keep_link', keep_link)} says whose records are linked, but the column is not named. Give "
                f"{named('subject')} or {named('household')}, and the same word here."
            )
        if household is not None and keep_link != "household":
            raise ParameterError(
                f"{named('household')} is used in an audit only to link records: {setting('keep_link', 'household')}."
            )
        return Question(quasi, smallest, as_names(confidential), promised, subject, settings, link)

    @property
    def needed(self) -> list[str]:
        """The columns to read."""
        helpers = [name for name in (self.subject, self.link) if name is not None]
        return list(dict.fromkeys([*self.quasi, *self.confidential, *self.settings, *helpers]))

    def subjects(self, table: pa.Table) -> pa.ChunkedArray | None:
        """Return the person of each record; None if nothing names them, as in records without the link."""
        return None if self.subject in (None, self.link) else table[self.subject]

    def schema(self, types: pa.Schema) -> Schema:
        """Return the columns to count, with their roles; raise if they and the models do not fit."""
        counted = pa.schema([types.field(name) for name in dict.fromkeys([*self.quasi, *self.confidential])])
        roles = Roles(quasi_identifiers=tuple(self.quasi), confidential=tuple(self.confidential))
        kinds = Schema.of(counted, roles, self.settings)
        check_models(self.models, kinds)
        if self.link is None:
            return kinds
        return replace(kinds, columns=(*kinds.columns, link_column(self.link)))


def recount(
    table: Columns,
    schema: Schema,
    k: int | None,
    subjects: pa.ChunkedArray | None = None,
    models: Sequence[Model] = (),
    original: Columns | None = None,
    *,
    whole: Distributions | None = None,
    records: bool = False,
) -> Verdict:
    """Recount a table whose columns have roles; `subjects` may be a column that is not published.

    The models have been checked against the schema. `whole` are the confidential columns of the whole table, if `table`
    is a part of it. `original` holds the records in the same order; what is published to be true of every record is
    compared with them. `records` asks for the class and risk of every record. If the schema has a link, whole histories
    are compared as well.
    """
    quasi, link = table.select(schema.quasi_names), schema.link
    histories = None if link is None else Histories.of(link.name, table[link.name], quasi)
    classes = class_ids(quasi) if histories is None else histories.records
    counts = np.bincount(classes)
    sizes, numbers = np.unique(counts, return_counts=True)
    persons = None if subjects is None else identity_codes(subjects)
    distinct = None if persons is None else distinct_in_classes(classes, persons)
    confidential = {
        column.name: _Counted.of(table, column, persons, (whole or {}).get(column.name), histories)
        for column in schema.having(Role.CONFIDENTIAL)
    }
    return Verdict(
        k=k,
        n_records=len(classes),
        n_classes=len(counts),
        smallest=int(counts.min()),
        sizes={int(size): int(number) for size, number in zip(sizes, numbers, strict=True)},
        n_below=int(counts[counts < k].sum()) if k is not None else 0,
        quasi_identifiers=tuple(schema.quasi_names),
        subjects=None if distinct is None else int(distinct.min()),
        subject_asked=subjects is not None or schema.roles.subject is not None,
        confidential={name: counted.diversity(classes) for name, counted in confidential.items()},
        models=tuple(confidential[model.column].measure(model, classes) for model in models),
        truth=tuple(_truth(table, column, original, k, persons) for column in schema.quasi if column.is_true),
        linked=None if histories is None else histories.counted(k),
        records=_records(classes, counts if distinct is None else distinct) if records else None,
    )


def _records(classes: Labels, sizes: Labels) -> pa.Table:
    """Return number (from 1), class, size and risk of every record."""
    of_record = sizes[classes]
    return pa.table(
        {"record": np.arange(1, len(classes) + 1), "class": classes, "size": of_record, "risk": 1 / of_record}
    )


def _truth(table: Columns, column: Column, original: Columns | None, k: int | None, persons: Labels | None) -> Truth:
    """Recount one column of coarse values."""
    published = table[column.name]
    assert column.form is not None
    truth = Truth(column.name, column.form, len(published.unique()), None)
    if original is None or k is None:
        return truth
    own = original[column.name]
    found = read_coarse(published, column.form, column.hierarchy)
    n_false = int(np.count_nonzero(~found.holds(own)))
    return replace(truth, n_false=n_false, n_exposed=n_exposed(published, column, own, k, persons))


class _Counted(NamedTuple):
    """A confidential column as it is counted: exact values and values as seen, by records and by persons, if given."""

    column: Codes
    seen: Codes
    persons: Labels | None
    histories: Histories | None

    @staticmethod
    def of(
        table: Columns, column: Column, persons: Labels | None, whole: Distribution | None, histories: Histories | None
    ) -> "_Counted":
        values = table[column.name]
        return _Counted(
            codes_of(values, column, whole=whole),
            codes_of(values, column, merged=True, whole=whole),
            histories.persons if persons is None and histories is not None else persons,
            histories,
        )

    def diversity(self, classes: Labels) -> Diversity:
        found = diversity(classes, self.column, self.seen)
        if self.persons is None:
            return found
        if self.histories is None:
            return found.or_worse(diversity(classes, *self._by_persons))
        found = found.or_worse(diversity(self.histories.places, self.column, self.seen))
        return found.or_worse(diversity(self.histories.of_persons, *self._by_persons))

    def measure(self, model: Model, classes: Labels) -> Reached:
        column = self.seen if model.merges_lookalikes else self.column
        found = model.measure(classes, column)
        if self.persons is None:
            return found
        once = self._by_persons[model.merges_lookalikes]
        if self.histories is None:
            return worse(found, model.measure(classes, once))
        found = worse(found, model.measure(self.histories.places, column))
        found = worse(found, model.measure(self.histories.of_persons, once))
        if model.merges_lookalikes:  # of diversity: not only values differ, but also what persons have of them
            found = worse(found, model.measure(self.histories.classes, self.histories.sets(column)))
        return found

    @property
    def _by_persons(self) -> tuple[Codes, Codes]:
        return self.column._replace(subjects=self.persons), self.seen._replace(subjects=self.persons)


def diversity(classes: Labels, column: Codes, seen: Codes) -> Diversity:
    """Measure what classes reveal about a column; missing is a value of its own, after all others.

    Values are counted as `seen`, where values that look the same are one; distances are those of `column`.
    """
    counted, codes = seen.counted_once(classes)
    pairs, counts = np.unique(counted * seen.n_values + codes, return_counts=True)
    owners = pairs // seen.n_values
    sizes = np.bincount(counted)
    shares = counts / sizes[owners]
    entropy = -np.bincount(owners, shares * np.log(shares))
    most = np.zeros(len(sizes), dtype=np.int64)
    np.maximum.at(most, owners, counts)
    with np.errstate(divide="ignore"):
        recursive = np.where(most == sizes, np.inf, most / (sizes - most))
    emd, mean_emd = earth_movers_distance(classes, column)
    return Diversity(
        distinct=int(np.bincount(owners).min()),
        entropy=float(np.exp(entropy.min())),
        recursive=float(recursive.max()),
        t=float(emd.max()),
        exact_mean_t=mean_emd,
    )
