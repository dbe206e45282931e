"""Series: several releases of overlapping people examined together, made by shoal or by another tool."""

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from shoal.columns.coarse.layout import gathered
from shoal.columns.equivalence import class_ids
from shoal.columns.person_keys import key_texts, numbered
from shoal.columns.value_hashes import words_of
from shoal.errors import ParameterError, SchemaError, ShoalWarning
from shoal.measures.recount import Question
from shoal.measures.series_risk import Edition, SeriesVerdict, recount_series, told_of
from shoal.models import Model
from shoal.output.manifest import internal_of
from shoal.series.cells_file import ENDING, CellsOfRelease
from shoal.sources import Table, read
from shoal.spelling import setting


def audit_series(
    tables: Sequence[Any],
    /,
    *,
    key: str | None = None,
    quasi_identifiers: Sequence[str] | str,
    k: int,
    confidential: Sequence[str] | str = (),
    models: Sequence[Model] | Model = (),
    columns: Mapping[str, Any] | None = None,
    originals: Sequence[Any] | None = None,
    **reading: Any,
) -> SeriesVerdict:
    """Recount what several releases of overlapping people tell together: ``docs/series.md``.

    Parameters
    ----------
    tables : sequence of path or frame
        The releases, in the order in which they were published: internal copies, each as published with a column that
        says whose record it is, or published files beside which their cells files are.
    key : str, optional
        That column; by default the cells files ``RELEASE.cells`` say whose record it is.
    quasi_identifiers : sequence of str
        The columns that an intruder may know; a release has all of them or, if it is a coarser version, some.
    k : int
        The number of people who should have the same class, or the same absence, in every release.
    confidential : sequence of str
        Columns that are published unchanged.
    models : sequence of Model
        Models that every such group should satisfy.
    columns : dict of str to dict, optional
        Settings of single columns: an ordinal confidential column needs its order.
    originals : sequence of path or frame, optional
        The original of each release, which has the key in its place: then the internal manifest beside each published
        file says whose record is whose.
    **reading
        How to read the files; see `shoal.sources.read`.

    Returns
    -------
    SeriesVerdict
        `holds` is True if everybody shares her history with k - 1 others who satisfy the models, and no difference of
        classes tells of fewer than k.

    Raises
    ------
    ParameterError
        If there are fewer than two tables, or nobody is in two of them.
    SchemaError
        If a column is missing, or a key is missing or occurs twice.

    Examples
    --------
    >>> first = pa.table({"id": [1, 2, 3, 4], "age": [30, 30, 50, 50]})
    >>> second = pa.table({"id": [1, 2, 3, 4], "age": [31, 52, 31, 52]})
    >>> verdict = audit_series([first, second], key="id", quasi_identifiers="age", k=2)
    >>> verdict.holds, verdict.present.n_alone
    (False, 4)
    """
    if len(tables) < 2:
        raise ParameterError(f"A series has at least two releases; got {len(tables)}. Name them all.")
    asked = Question.of(quasi_identifiers, k, confidential, models, None, columns)
    sources = [_read(table, key if originals is None else None, reading) for table in tables]
    if originals is not None:
        keys = _of_originals(tables, sources, originals, key)
    else:
        keys = _of_cells(tables) if key is None else [key_texts(each.arrow[key], key) for each in sources]
    people = numbered(keys)
    n_records, n_people = sum(map(len, people)), 1 + max(int(numbers.max(initial=-1)) for numbers in people)
    if n_records == n_people:
        raise ParameterError(
            f"Nobody is in two of the {len(tables)} releases: no two records have the same key. If the keys were made "
            "anew for each release, give those of the original tables."
        )
    editions = [
        _edition(source, numbers, asked, place)
        for place, (source, numbers) in enumerate(zip(sources, people, strict=True), 1)
    ]
    return recount_series(editions, k, asked.models)


def _of_cells(tables: Sequence[Any]) -> list[pa.ChunkedArray]:
    """Return the keyed hashes in the cells files beside published files; raise unless they are those of one series."""
    found = []
    for table in tables:
        if not isinstance(table, str | os.PathLike):
            raise ParameterError(
                "Nothing says whose record is whose: a table in memory has no cells file. Name the column of the key, "
                f"{setting('key', 'id')}."
            )
        found.append(CellsOfRelease.read(f"{os.fspath(table)}{ENDING}"))
    if len({cells.secret for cells in found}) > 1:
        raise ParameterError(
            "The releases belong to different series, so that their cells files do not say who is who in both. Give "
            f"copies with the key of each person, and name it: {setting('key', 'id')}."
        )
    return [pa.chunked_array([cells.keys]) for cells in found]


def _of_originals(
    tables: Sequence[Any], sources: Sequence[Table], originals: Sequence[Any], key: str | None
) -> list[pa.ChunkedArray]:
    """Return the key of each published record, by the internal manifests and the originals."""
    if key is None or len(originals) != len(tables):
        raise ParameterError(
            f"{len(tables)} releases and {len(originals)} originals are given{'' if key else ', and no key'}. Give one "
            f"original for each release, in the same order, and name their key: {setting('key', 'id')}."
        )
    found = []
    for place, (table, source, original) in enumerate(zip(tables, sources, originals, strict=True), 1):
        internal = internal_of(table, source, None, same_order=False)
        if internal is None:
            raise ParameterError(
                f"Release {place} has no internal manifest beside it, so that nothing says which original each of its "
                "records is. Give copies that have the key of each person, and leave the originals out."
            )
        given = internal.job.input
        people = internal.of_input(read(original, **({} if given is None else given.reading())))
        _require_key(people.names, key, "An original")
        if not people.n_records == source.n_records == len(internal.labels):
            raise ParameterError(
                f"Release {place} has {source.n_records:,} records, its manifest {len(internal.labels):,} and its "
                f"original {people.n_records:,} of them. Give the originals in the order of the releases."
            )
        texts = key_texts(people.load([key])[key], key)
        found.append(texts if internal.rows is None else texts.take(pa.array(internal.rows)))
    return found


def _require_key(names: Sequence[str], key: str, what: str) -> None:
    if key not in names:
        raise SchemaError(
            f"{what} has no column {key!r}, so that nothing says whose records are whose. Give internal copies that "
            f"have the key of each person, and name it: {setting('key', 'id')}."
        )


def _read(table: Any, key: str | None, reading: Mapping[str, Any]) -> Table:
    """Return a release, with its key if it should have one; raise if it has no records."""
    source = read(table, **reading)
    for text in source.receipt.notes:
        warnings.warn(text, ShoalWarning, stacklevel=3)
    if key is not None:
        _require_key(source.names, key, "A release")
    if source.n_records == 0:
        raise ParameterError("A release has no records, so there is nothing to count.")
    return source


def _edition(source: Table, people: Any, asked: Question, place: int) -> Edition:
    """Return a release as the recount takes it."""
    has = {*source.names, *(name.removesuffix(".low") for name in source.names)}
    quasi = [name for name in asked.quasi if name in has]
    lacking = [name for name in asked.quasi if name not in has]
    if not quasi or (place == 1 and lacking):
        raise SchemaError(
            f"Release {place} has no column {lacking[0]!r}. Name quasi-identifiers of the first release; a later one "
            "may lack some of them."
        )
    told = [name for name in asked.confidential if name in has]
    arrow = gathered(source.arrow, [*quasi, *told])
    part = asked._replace(quasi=quasi, confidential=told, models=(), settings=_of(asked.settings, [*quasi, *told]))
    shown = arrow.select(quasi)
    return Edition(
        people,
        class_ids(shown),
        {name: words_of(shown[name]) for name in quasi},
        told_of(arrow, part.schema(arrow.schema)),
    )


def _of(settings: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: given for name, given in settings.items() if name in names}
