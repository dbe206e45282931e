"""Containment: which classes a person may be in, where intervals, sets, ancestors and periods are published.

A coarse value has no distance from a person: it holds the person's value or it does not. An intruder rules out every
class of which a published value does not hold the person's own, and has nothing to choose between the others by, except
for columns that are published close to the originals.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.attacks.disclosure import Classes
from shoal.columns.axes import as_numbers
from shoal.columns.coarse import Coarse, Ranges
from shoal.columns.hierarchy.calendar import months_of
from shoal.columns.hierarchy.tree import leaf_texts
from shoal.columns.prepare import is_present
from shoal.columns.space import Space
from shoal.metrics.pairs import one_of_each
from shoal.typing import Labels, Matrix, Vector

_AT_ONCE = 1 << 24
"""Number of pairs of a person and a class that are compared at once."""


class Shown(NamedTuple):
    """A release as an intruder reads it.

    Attributes
    ----------
    table : pyarrow.Table
        The published quasi-identifiers.
    coarse : mapping of str to Coarse
        Those that are published as intervals, sets, ancestors or periods, read.
    classes : ndarray of shape (n_records,)
        The class of each published record.
    """

    table: pa.Table
    coarse: Mapping[str, Coarse]
    classes: Labels


def classes_holding(people: pa.Table, shown: Shown, space: Space) -> Classes:
    """Find the classes that may be those of some people; equally near ones count as one class.

    Parameters
    ----------
    people : pyarrow.Table
        The prepared originals of the people attacked.
    shown : Shown
        The release.
    space : Space
        The space in which columns that are not coarse are compared.
    """
    first = one_of_each(shown.classes)
    plain = Space(tuple(axis for axis in space.axes if axis.column.name not in shown.coarse))
    X, Y = (plain.encode(table) for table in (people, shown.table.take(pa.array(first))))
    coarse = {name: values.take(first) for name, values in shown.coarse.items()}
    step = max(_AT_ONCE // max(len(first), 1), 1)
    found: list[Labels] = []
    for start in range(0, people.num_rows, step):
        rows = slice(start, start + step)
        held = np.ones((len(X[rows]), len(first)), dtype=bool)
        for name, values in coarse.items():
            held &= _held(people[name].slice(start, step), values)
        held |= ~held.any(axis=1, keepdims=True)  # none holds the person: the release says nothing by containment
        found += [_nearest(np.flatnonzero(row), point, Y) for row, point in zip(held, X[rows], strict=True)]
    return _as_classes(found, shown.classes)


def _held(own: pa.ChunkedArray, shown: Coarse) -> NDArray[np.bool_]:
    """Return which published values hold which people's own; shape (n_people, n_values)."""
    if isinstance(shown, Ranges):
        numbers = np.full(len(own), np.nan)
        present = own.drop_null()
        numbers[is_present(own)] = months_of(present) if shown.is_period else as_numbers(present)
        inside = (shown.low <= numbers[:, None]) & (numbers[:, None] <= shown.high)
        return np.where(np.isnan(numbers)[:, None], shown.missing | np.isnan(shown.low), inside)
    texts = leaf_texts(own)
    different = pc.unique(texts)
    number = {text: place for place, text in enumerate(different.to_pylist())}
    held = np.zeros((len(different), len(shown.members)), dtype=bool)
    for place, members in enumerate(shown.members):
        held[[number[text] for text in members if text in number], place] = True
    if None in number:
        held[number[None]] = shown.has_missing | np.array([not members for members in shown.members])
    return held[np.asarray(pc.index_in(texts, value_set=different), dtype=np.int64)][:, shown.codes]


def _nearest(candidates: Labels, point: Vector, Y: Matrix) -> Labels:
    """Return the classes among some that are nearest to a point; all where no column has distances."""
    apart = np.square(Y[candidates] - point).sum(axis=1)
    return np.asarray(candidates[apart == apart.min()])


def _as_classes(candidates: list[Labels], classes: Labels) -> Classes:
    """Return what people may be in as classes: those with the same candidates have one, with the records of all."""
    groups: dict[tuple[int, ...], int] = {}
    nearest = [groups.setdefault(tuple(found.tolist()), len(groups)) for found in candidates]
    members = np.split(np.argsort(classes, kind="stable"), np.cumsum(np.bincount(classes))[:-1])
    records = [np.concatenate([members[number] for number in group]) for group in groups]
    of_published = np.repeat(np.arange(len(groups)), [len(own) for own in records])
    return Classes(of_published, np.array(nearest), np.concatenate(records))


def share_linked(classes: Classes, rows: Labels) -> float:
    """Return the expected share of people who pick their own record among those that may be theirs.

    `rows` are the records of the people in the release.
    """
    assert classes.records is not None
    n_records = int(max(rows.max(), classes.records.max())) + 1
    theirs = np.isin(classes.nearest * n_records + rows, classes.of_published * n_records + classes.records)
    return float((theirs / np.bincount(classes.of_published)[classes.nearest]).mean())
