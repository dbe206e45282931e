"""Subjects: several records may belong to one person, and then a cell has to hold k persons, not k records.

Cells with too few are joined with their neighbours until they have enough, and what was joined is cut again, each new
cell taking the nearest record of k different subjects. Cells that had enough from the start are left alone unless one
that had not needs them.
"""

import numpy as np

from shoal import kernels
from shoal.classes import distinct_in_classes
from shoal.errors import GuaranteeError
from shoal.partition import partition
from shoal.typing import Labels, Matrix

MOST_AT_ONCE = 1000
"""Joined cells of more records are cut in slices first: cutting by subjects is quadratic."""


def with_enough_subjects(X: Matrix, labels: Labels, strata: Labels, subjects: Labels, k: int) -> Labels:
    """Return cells with at least `k` different subjects each, as few changed as may be.

    Parameters
    ----------
    X : ndarray of shape (n_records, n_dims)
        Where the records lie.
    labels, strata, subjects : ndarray of shape (n_records,)
        The cell, the stratum and the subject of each record, numbered from 0 and without gaps.
    k : int
        How many subjects a cell needs.

    Raises
    ------
    GuaranteeError
        If a whole stratum has fewer than `k` subjects.
    """
    joined = join_until_enough(X, labels, strata, subjects, k)
    n_before = distinct_in_classes(joined, labels)
    found = joined.copy()
    n_cells = len(n_before)
    for cell, members in enumerate(members_of(joined)):
        if n_before[cell] > 1:
            cut = _cut_in_slices(X[members], _renumbered(subjects[members]), k)
            found[members] = np.where(cut == 0, cell, cut + n_cells - 1)
            n_cells += int(cut.max())
    return found


def join_until_enough(X: Matrix, labels: Labels, strata: Labels, subjects: Labels, k: int) -> Labels:
    """Join cells with fewer than `k` subjects, in pairs of neighbours in a stratum, until all have enough."""
    in_strata = distinct_in_classes(strata, subjects)
    if in_strata.min() < k:
        raise GuaranteeError(
            f"Cells of k={k} different subjects were asked for, but there are only {in_strata.min()} subjects"
            + (" in a stratum" if len(in_strata) > 1 else "")
            + ". Lower k, or leave the subject out if every record is a person of its own."
        )
    while True:
        poor = np.flatnonzero(distinct_in_classes(labels, subjects) < k)
        if not len(poor):
            return labels
        labels = _joined(X, labels, strata, poor)


def _joined(X: Matrix, labels: Labels, strata: Labels, poor: Labels) -> Labels:
    """Join each of some cells with another one of its stratum that is near."""
    sizes = np.bincount(labels)
    means = kernels.cell_sums(X, labels, len(sizes)) / sizes[:, None]
    stratum = np.empty(len(sizes), dtype=np.int64)
    stratum[labels] = strata
    is_poor = np.zeros(len(sizes), dtype=bool)
    is_poor[poor] = True
    target = np.arange(len(sizes))
    for cells in members_of(stratum):
        rich, few = cells[~is_poor[cells]], cells[is_poor[cells]]
        if len(few):
            target[few] = _partners(means, few, rich)
    return _renumbered(target[labels])


def _partners(means: Matrix, poor: Labels, rich: Labels) -> Labels:
    """Name for each poor cell the one to join: the nearest rich one, or the first of two or three poor ones nearby."""
    to_rich = np.full(len(poor), np.inf)
    partners = poor.copy()
    if len(rich):
        partners = rich[kernels.assign(means[poor], means[rich])]
        to_rich = np.square(means[poor] - means[partners]).sum(axis=1)
    if len(poor) > 1:
        pairs = partition(means[poor], 2, seed=0)
        first, size = np.unique(pairs, return_index=True)[1], np.bincount(pairs)
        middles = kernels.cell_sums(means[poor], pairs, len(size)) / size[:, None]
        # Two that form a pair are twice as far from one another as from their middle.
        to_poor = 4 * np.square(means[poor] - middles[pairs]).sum(axis=1)
        partners = np.where(to_rich < to_poor, partners, poor[first][pairs])
    return partners


def _cut_in_slices(X: Matrix, subjects: Labels, k: int) -> Labels:
    """Cut records with at least `k` subjects into cells that have as many, slice by slice of the widest column."""
    counts = np.bincount(subjects)
    # So many records have at least k of the subjects, so that every slice gets k subjects.
    n_slices = min(len(X) // MOST_AT_ONCE + 1, int(np.sort(counts)[-k]))
    order = np.lexsort((X[:, X.var(axis=0).argmax()], subjects))
    rank = np.empty(len(X), dtype=np.int64)
    rank[order] = np.arange(len(X)) - np.repeat(np.cumsum(counts) - counts, counts)
    labels = np.empty(len(X), dtype=np.int64)
    n_cells = 0
    for members in members_of(rank * n_slices // counts[subjects]):
        labels[members] = _cut(X[members], subjects[members], k) + n_cells
        n_cells = int(labels[members].max()) + 1
    return labels


def _cut(X: Matrix, subjects: Labels, k: int) -> Labels:
    """Cut a few records with at least `k` subjects into cells that have as many.

    As in MDAV, the next cell begins far out; with a record of the subject that has most records left, since those are
    the ones that would be left over. The others are the nearest of other subjects.
    """
    labels = np.full(len(X), -1, dtype=np.int64)
    left = np.arange(len(X))
    counts = np.bincount(subjects)
    n_cells = 0
    while np.count_nonzero(counts) >= k:
        own = left[subjects[left] == counts.argmax()]
        begin = own[kernels.distances(X[own], X[left].mean(axis=0)).argmax()]
        near = left[np.argsort(kernels.distances(X[left], X[begin]), kind="stable")]
        nearest = np.sort(np.unique(subjects[near], return_index=True)[1])[:k]
        members = near[nearest]
        labels[members] = n_cells
        counts[subjects[members]] -= 1
        left = left[labels[left] < 0]
        n_cells += 1
    placed = labels >= 0
    means = kernels.cell_sums(X[placed], labels[placed], n_cells) / k
    labels[left] = [kernels.distances(means, X[record]).argmin() for record in left]
    return labels


def members_of(labels: Labels) -> list[Labels]:
    """Return the records of each cell or stratum, in their order."""
    return np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1])


def _renumbered(labels: Labels) -> Labels:
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)
