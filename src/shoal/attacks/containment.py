"""Containment: the classes of a release that may be those of a person (`shoal.measures.containment`)."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from shoal.attacks.disclosure import Classes
from shoal.columns.coarse import Coarse
from shoal.measures.containment import AT_ONCE, apart, without_coarse
from shoal.measures.pairs import one_of_each
from shoal.space.space import Space
from shoal.typing import Labels


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
    plain, first = without_coarse(space, shown.coarse), one_of_each(shown.classes)
    X, Y = (plain.encode(table) for table in (people, shown.table.take(pa.array(first))))
    coarse = {name: values.take(first) for name, values in shown.coarse.items()}
    step = max(AT_ONCE // len(first), 1)
    found: list[Labels] = []
    for start in range(0, people.num_rows, step):
        far = apart(people.slice(start, step), X[start : start + step], coarse, Y)
        # If no class holds a person, all are equally far.
        found += [np.flatnonzero(row == row.min()) for row in far]
    return _as_classes(found, shown.classes)


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
