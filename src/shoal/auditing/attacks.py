"""Attacks: simulated attacks on a release, scored against the original table.

``docs/attacks.md`` describes each intruder. The result of an attack is a share of the people, before (if the originals
were published unchanged) and after.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from shoal.auditing.disclosure import (
    Classes,
    Shown,
    classes_holding,
    classes_near,
    disclosed,
    intersected,
    own_classes,
    share_linked,
)
from shoal.auditing.k_minus_one import WITHIN, differential
from shoal.columns.coarse import form_of, read_coarse
from shoal.columns.coarse.layout import gathered
from shoal.columns.equivalence import class_ids, value_codes
from shoal.columns.hierarchy import Hierarchy, hierarchy_of
from shoal.columns.prepare import decoded, prepare
from shoal.columns.schema import (
    Column,
    ColumnSettings,
    Role,
    Roles,
    Schema,
    as_names,
    as_settings,
)
from shoal.errors import ParameterError, SchemaError, ShoalError
from shoal.job import Job
from shoal.measures.linkage import linkage
from shoal.measures.matching import matching
from shoal.measures.recount import Columns
from shoal.measures.table_risk import as_floats, numeric_columns
from shoal.output.manifest import internal_of
from shoal.sources import Table, read
from shoal.sources.reading import as_reading
from shoal.space.axes import Scaling
from shoal.space.space import Space
from shoal.typing import Labels, Matrix, Seed

MOST_PEOPLE = 2_000
"""Number of people attacked for a report, always the same ones."""


@dataclass(frozen=True)
class Attack:
    """One attack and its success: shares of the people, before and after.

    Attributes
    ----------
    name : str
        Name of the attack.
    column : str or None
        The confidential column attacked.
    before, after : float or None
        Success rate on the originals and on the release; None if the attack was not tried.
    meaning : str
        What counts as a success; or why the attack was not tried.
    """

    name: str
    column: str | None
    before: float | None
    after: float | None
    meaning: str

    def to_dict(self) -> dict[str, Any]:
        """Return the attack as plain values, for JSON."""
        return asdict(self)


class _Known(NamedTuple):
    """The correspondence between originals and released records."""

    row: Labels  # row of each original in the release
    labels: Labels | None
    rho: float
    job: Job | None = None


def attack(
    release: Any,
    original: Any,
    *,
    quasi_identifiers: Sequence[str] | str,
    confidential: Sequence[str] | str = (),
    second: Any = None,
    manifest: str | os.PathLike[str] | None = None,
    same_order: bool = False,
    columns: Mapping[str, Any] | None = None,
    scaling: Scaling = "zscore",
    seed: Seed = None,
    reading: Mapping[str, Any] | None = None,
    release_reading: Mapping[str, Any] | None = None,
) -> list[Attack]:
    """Try attacks on a release, given the original table.

    Parameters
    ----------
    release, original : path or frame
        The published table and the original it was made from, with the same number of records.
    quasi_identifiers : sequence of str
        The columns that the intruder knows.
    confidential : sequence of str
        The columns that the intruder wants to learn.
    second : path or frame, optional
        Another release of the same people, for the intersection attack.
    manifest : path, optional
        The internal manifest of the release, which maps originals to released records; by default the one beside the
        file, if there is one. Without it, and without `same_order`, attacks that need this mapping are not tried.
    same_order : bool
        Whether the records of the release are in the order of the original.
    columns : dict of str to dict, optional
        Settings of single columns: kind, order, weight; see `shoal.columns.schema.ColumnSettings`.
    scaling : {"zscore", "minmax", "none"}
        Scaling of the columns for the intruder's distances.
    seed : int, optional
        Makes the draw of the records tried in large tables reproducible; of people, where values are coarse.
    reading, release_reading : dict, optional
        How to read the file of the original, and the files of the releases; see `shoal.sources.read`. A release of
        shoal needs no settings: it is UTF-8, its dates are ISO 8601, and no text stands for a missing value.

    Returns
    -------
    list of Attack
        Linkage to the nearest record and by matching, the intruder who knows k - 1 records, then for each confidential
        column homogeneity, skewness and, with a second release, intersection.

    Raises
    ------
    SchemaError
        If a column is missing, or of a type that cannot be compared.
    ParameterError
        If the tables have different numbers of records, or the manifest belongs to another release.

    Examples
    --------
    >>> people = pa.table({"age": [20, 21, 40, 44], "disease": ["flu", "cold", "flu", "flu"]})
    >>> published = pa.table({"age": [20.5, 20.5, 42.0, 42.0], "disease": ["flu", "cold", "flu", "flu"]})
    >>> found = attack(published, people, quasi_identifiers="age", confidential="disease", same_order=True)
    >>> [(one.name, one.before, one.after) for one in found if one.name != "matching"]
    [('nearest', 1.0, 0.5), ('k - 1 known', 1.0, 1.0), ('homogeneity', 1.0, 0.5), ('skewness', 1.0, 0.75)]
    """
    sources = {"original": original, "release": release} | ({} if second is None else {"second release": second})
    # Names that look like records do so in the release too.
    reading = as_reading(reading)
    header = {"header": True} if reading.get("header") else {}
    readings = {
        what: as_reading(release_reading) or (header if _is_file(source) else {}) for what, source in sources.items()
    }
    tables = _read(sources, {**readings, "original": reading}, quasi_identifiers, confidential)
    settings = as_settings(columns)
    roles = Roles(quasi_identifiers=tuple(as_names(quasi_identifiers)), confidential=tuple(as_names(confidential)))
    names = [*roles.quasi_identifiers, *roles.confidential]
    known, tables[0] = _known(release, tables[1], manifest, same_order, tables[0])
    _check_same_people(dict(zip(sources, tables, strict=True)))
    of_job, truthful = _true_settings(known, roles.quasi_identifiers)
    types = pa.schema([tables[0].types.field(name) for name in names])
    for name, own in settings.items():
        of_job[name] = of_job.get(name, ColumnSettings()).model_copy(update=own.model_dump(exclude_unset=True))
    schema = Schema.of(types, roles, of_job, truthful)
    records = prepare(tables[0].load(names), schema, "own-value")
    space = Space.fit(records, schema, scaling)
    made = [gathered(table.arrow, names) for table in tables[1:]]
    shown = [_shown(table, records, schema) for table in made]
    X = space.encode(records)
    if any(one.coarse for one in shown):
        people = _people(len(X), seed)
        own = records.take(pa.array(people))
        after = [classes_holding(own, one, space) for one in shown]
        found = _picked(X, after[0], people, known)
    else:
        people = np.arange(len(X))
        published = [_encoded(space, table) for table in made]
        after = [classes_near(X, Y) for Y in published]
        found = _linked(X, published[0], known, seed)
    found.append(_last_one(records, shown[0], schema, known, seed))
    return found + _disclosures(own_classes(X, people), after, people, records, made, schema)


def attacks_on(
    original: pa.Table, published: Columns, schema: Schema, space: Space, X: Matrix, labels: Labels, rho: float
) -> list[Attack]:
    """Try the attacks of a report before a release is written: k - 1 known records, homogeneity and skewness.

    Linkage is reported among the risks. At most `MOST_PEOPLE` people are attacked, so it takes O(n) time in records.
    """
    made = published.select([column.name for column in schema.quasi])
    shown = _shown(made, original, schema)
    found = [_last_one(original, shown, schema, _Known(np.arange(len(labels)), labels, rho), 0)]
    confidential = schema.having(Role.CONFIDENTIAL)
    if confidential:
        people, before = _people(len(labels), 0), own_classes(X, _people(len(labels), 0))
        if shown.coarse:
            after = classes_holding(original.take(pa.array(people)), shown, space)
        else:
            after = classes_near(X[people], space.encode(made))
        for column in confidential:
            codes = value_codes(published[column.name])
            found += _about(column.name, before, [after], codes[people], [codes], codes)
    return found


def _read(
    sources: Mapping[str, Any],
    readings: Mapping[str, Mapping[str, Any]],
    quasi: Sequence[str] | str,
    confidential: Sequence[str] | str,
) -> list[Table]:
    names = [*as_names(quasi), *as_names(confidential)]
    if not as_names(quasi):
        raise SchemaError("No quasi-identifiers are given, so the intruder knows nothing. Name at least one column.")
    tables: list[Table] = []
    for what, source in sources.items():
        table = read(source, **readings[what])
        for name in names:
            if not {name, f"{name}.low"} & set(table.names):  # an interval may have columns of its own for its ends
                raise SchemaError(f"Column {name!r} is not in the {what}. Columns: {', '.join(table.names)}.")
        tables.append(table)
    return tables


def _check_same_people(tables: Mapping[str, Table]) -> None:
    """Raise if a table has another number of records than the originals, or if there are none."""
    original = tables["original"]
    for what, table in tables.items():
        if table.n_records != original.n_records:
            raise ParameterError(
                f"The {what} has {table.n_records:,} records and the original {original.n_records:,}; both must hold "
                "the same people."
            )
    if original.n_records == 0:
        raise ParameterError("The tables have no records, so there is nobody to attack.")


def _is_file(source: Any) -> bool:
    return isinstance(source, str | os.PathLike)


def _people(n_records: int, seed: Seed) -> Labels:
    """Return the people attacked where all would take too long."""
    return np.sort(np.random.default_rng(seed).permutation(n_records)[:MOST_PEOPLE])


def _true_settings(known: "_Known | None", names: Sequence[str]) -> tuple[dict[str, ColumnSettings], bool]:
    """Return the settings of the columns that a job publishes as true of every record, and whether all are to be."""
    if known is None or known.job is None:
        return {}, False
    given = {name: known.job.columns[name] for name in names if name in known.job.columns}
    true = {name for name, one in given.items() if known.job.truthful or one.is_true}
    return {name: given[name] for name in true}, known.job.truthful


def _shown(made: pa.Table, records: pa.Table, schema: Schema) -> Shown:
    """Read the intervals, sets, ancestors and periods of a release."""
    coarse = {}
    for column in schema.quasi:
        form = column.form
        if form is None:
            form = None if form_of(records[column.name]) else form_of(made[column.name])
        if form is not None:
            coarse[column.name] = read_coarse(
                made[column.name], form, _tree(column, records) if form == "ancestor" else None
            )
    quasi = made.select([column.name for column in schema.quasi])
    return Shown(quasi, coarse, class_ids(quasi))


def _tree(column: Column, records: pa.Table) -> Hierarchy:
    settings = column.settings
    assert settings.hierarchy is not None
    return column.hierarchy or hierarchy_of(settings.hierarchy, records[column.name], column.name, settings.outside)


def _encoded(space: Space, table: pa.Table) -> Matrix:
    try:
        return space.encode(table)
    except pa.ArrowException:
        raise SchemaError("A quasi-identifier of the release has another type than in the original.") from None


def _known(
    release: Any, table: Table, manifest: str | os.PathLike[str] | None, same_order: bool, original: Table
) -> tuple[_Known | None, Table]:
    """Return the mapping of originals to released records, by the manifest or the order of records, and the originals.

    Those are without the records that were withheld.
    """
    found = internal_of(release, table, manifest, same_order)
    if found is None:
        return (_Known(np.arange(table.n_records), None, 0.0) if same_order else None), original
    labels, rows, rho, job, _ = found
    if len(labels) != table.n_records:
        raise ParameterError(
            f"The manifest describes {len(labels):,} records, but the release has {table.n_records:,}. Pass the "
            "manifest of this release."
        )
    row = np.arange(table.n_records)
    if rows is not None:
        row[rows] = np.arange(table.n_records)
    return _Known(row, labels, rho, job), found.of_input(original)


_UNKNOWN = "not tried: needs the internal manifest, or records in the original order"


def _linked(X: Matrix, Y: Matrix, known: _Known | None, seed: Seed) -> list[Attack]:
    """Link every person to the nearest record, and all people to all records by optimal matching."""
    if known is None:
        return [Attack(name, None, None, None, _UNKNOWN) for name in ("nearest", "matching")]
    Y = Y[known.row]
    near = "people whose nearest record is their own"
    found = [Attack("nearest", None, linkage(X, X).linked, linkage(X, Y).linked, near)]
    try:
        before, after = (matching(X, side, seed=seed).linked for side in (X, Y))
        return [*found, Attack("matching", None, before, after, "people matched with their own record, all at once")]
    except ShoalError as error:
        return [*found, Attack("matching", None, None, None, f"not tried: {error}")]


def _picked(X: Matrix, classes: Classes, people: Labels, known: _Known | None) -> list[Attack]:
    """Link people to one of the records that may be theirs."""
    unmatched = "intervals and sets hold people or do not, so that there are no distances to match by"
    found = [Attack("matching", None, None, None, f"not tried: {unmatched}")]
    if known is None:
        return [Attack("nearest", None, None, None, _UNKNOWN), *found]
    meaning = "people who pick their own record among those whose published values hold theirs"
    after = share_linked(classes, known.row[people])
    return [Attack("nearest", None, linkage(X, X).linked, after, meaning), *found]


def _last_one(records: pa.Table, shown: Shown, schema: Schema, known: _Known | None, seed: Seed) -> Attack:
    """Recover the last record of a cell from all others."""
    name, columns = "k - 1 known", numeric_columns(schema)
    if known is None or not columns:
        return Attack(name, None, None, None, _UNKNOWN if columns else "not tried: no quasi-identifier is a number")
    before = {column: as_floats(records[column]) for column in columns}
    coarse = {column: shown.coarse[column].take(known.row) for column in columns if column in shown.coarse}
    after = {c: before[c] if c in coarse else as_floats(shown.table[c])[known.row] for c in columns}
    labels = shown.classes[known.row] if known.labels is None else known.labels
    if any(np.isnan(values).any() for side in (before, after) for values in side.values()):
        return Attack(name, None, None, None, "not tried: some numbers are missing")
    found = differential(before, after, labels, known.rho, coarse=coarse, seed=seed)
    meaning = (
        f"values of the last record of a cell, recovered to {WITHIN:g} standard deviations by somebody who knows the "
        f"others; without the release {found.blind:.1%}"
    )
    return Attack(name, None, 1.0, found.recovered, meaning)


def _disclosures(
    before: Classes, after: list[Classes], people: Labels, records: pa.Table, made: list[pa.Table], schema: Schema
) -> list[Attack]:
    """Read the confidential values of the nearest class, for each confidential column."""
    found = []
    for column in schema.having(Role.CONFIDENTIAL):
        own, *codes = _codes([records[column.name], *(table[column.name] for table in made)])
        found += _about(column.name, before, after, own[people], codes, own)
    return found


def _about(
    name: str, before: Classes, after: list[Classes], own: Labels, codes: list[Labels], original: Labels
) -> list[Attack]:
    """Read the values of one column in the nearest classes, of the originals and of one or two releases."""
    sides = disclosed(before, own, original), disclosed(after[0], own, codes[0])
    found = [
        Attack(
            "homogeneity",
            name,
            sides[0].homogeneous,
            sides[1].homogeneous,
            "people in whose nearest class all records show one value, and it is theirs",
        ),
        Attack(
            "skewness",
            name,
            sides[0].guessed,
            sides[1].guessed,
            f"people whose value is the most frequent of their nearest class; without the release {sides[1].prior:.1%}",
        ),
    ]
    if len(after) > 1:
        both = intersected(after[0], after[1], own, (codes[0], codes[1]))
        meaning = "people whose value is the only one that both releases allow; before: one of them alone"
        alone = intersected(after[0], after[0], own, (codes[0], codes[0]))
        found.append(Attack("intersection", name, alone, both, meaning))
    return found


def _codes(columns: list[pa.ChunkedArray]) -> list[Labels]:
    """Return columns as codes that are equal if the values are."""
    plain = [decoded(column) for column in columns]
    try:
        alike = [column.cast(plain[0].type) for column in plain]
    except pa.ArrowException:
        alike = [column.cast(pa.string()) for column in plain]
    codes = value_codes(pa.chunked_array([chunk for column in alike for chunk in column.chunks], alike[0].type))
    return np.split(codes, np.cumsum([len(column) for column in alike])[:-1])
