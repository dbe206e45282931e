"""Linkage: how often the nearest is the right one, from released records to originals and back.

The intruder holds the original values of everybody and knows nothing else. ``docs/risk.md`` has the definitions.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from shoal import kernels
from shoal.arrays import as_matrix
from shoal.errors import ParameterError
from shoal.metrics.pairs import as_classes
from shoal.typing import Labels, Matrix, Seed


@dataclass(frozen=True, eq=False)
class Linkage:
    """What an intruder links by distance alone; all shares are of the records.

    Attributes
    ----------
    dld : float
        Distance-linked disclosure: the share of released records whose own original is the nearest of all originals.
        Where t originals are equally near, a record counts 1/t.
    dld_within_2 : float
        The share whose own original is among the two nearest, equally near ones being in random order.
    linked : float
        From the other side: the share of originals that are linked to their own released record if the nearest one is
        taken, and one of the equally near ones at random. With cells of k records it is about 1/k at most.
    within : dict of int to float
        The share of originals whose own released record is among the so many nearest: 2, 10 and a hundredth of the
        records; equally near ones in random order.
    median_rank : float
        Rank of the own released record among all, from 1, in the middle of its equals; the median over the originals.
    n_ranked : int
        How many records were ranked: all, or a sample.
    nearer : ndarray of shape (n_ranked,)
        For each original, how many released records are nearer than its own.
    as_near : ndarray of shape (n_ranked,)
        How many released records are as near as its own, which is among them. At least the size of its cell.
    """

    dld: float
    dld_within_2: float
    linked: float
    within: dict[int, float]
    median_rank: float
    n_ranked: int
    nearer: Labels = field(repr=False)
    as_near: Labels = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the shares and the median rank, for a report; what is told of single records stays out."""
        return {
            "dld": self.dld,
            "dld_within_2": self.dld_within_2,
            "linked": self.linked,
            "within": {str(rank): share for rank, share in self.within.items()},
            "median_rank": self.median_rank,
            "n_ranked": self.n_ranked,
        }


def linkage(
    X: ArrayLike, Y: ArrayLike, labels: ArrayLike | None = None, *, sample: int | None = None, seed: Seed = None
) -> Linkage:
    """Link released records to originals, and originals to released records, each to the nearest.

    Parameters
    ----------
    X : array_like of shape (n_records, n_dims)
        The original records in the space, at least one.
    Y : array_like of shape (n_records, n_dims)
        What each of them was released as, in the same space.
    labels : array_like of shape (n_records,), optional
        Cell number of each record, if all records of a cell were released alike; it saves the search for equal rows.
    sample : int, optional
        Rank only so many records, drawn at random, each still among all others. The shares are then estimates, with a
        standard error of at most ``0.5 / sqrt(sample)``. By default, and where there are no more, all records.
    seed : int, optional
        Repeats the draw.

    Returns
    -------
    Linkage
        The shares linked from either side.

    Raises
    ------
    ParameterError
        If the matrices are not of one shape, or `labels` puts records together whose rows in `Y` differ.

    Notes
    -----
    Exact: the same as comparing everything with everything in float64, ties included. Blocks of neighbours in boxes
    make it much faster: the own distance rules out nearly all others.

    References
    ----------
    J. Domingo-Ferrer, V. Torra, "A quantitative comparison of disclosure control methods for microdata", in:
    Confidentiality, Disclosure and Data Access, 2001.

    Examples
    --------
    >>> result = linkage([[0.0], [2.0], [3.0], [9.0]], [[1.0], [1.0], [6.0], [6.0]])
    >>> result.dld, result.linked
    (0.5, 0.375)
    """
    originals, release = as_release(X, Y, labels)
    return _linked(originals, release, sample, seed)


def cell_linkage(X: Matrix, points: Matrix, labels: Labels, *, sample: int | None = None, seed: Seed = None) -> Linkage:
    """Link as `linkage` does records that were released as ``points[labels]``; nothing is checked."""
    # Two cells may have been released alike.
    points, point_of_cell = distinct_rows(points)
    return _linked(X, Released(points, point_of_cell[labels]), sample, seed)


def _linked(originals: Matrix, release: "Released", sample: int | None, seed: Seed) -> Linkage:
    n_records = len(originals)
    asked = _drawn(n_records, sample, seed)
    from_released, from_original = kernels.linkage(originals, release.points, release.labels, asked)
    nearer, as_near = from_original
    ranks = sorted({2, 10, max(n_records // 100, 1)})
    return Linkage(
        dld=_expected_share(from_released, 1),
        dld_within_2=_expected_share(from_released, 2),
        linked=_expected_share(from_original, 1),
        within={rank: _expected_share(from_original, rank) for rank in ranks},
        median_rank=float(np.median(nearer + (as_near + 1) / 2)),
        n_ranked=len(nearer),
        nearer=nearer,
        as_near=as_near,
    )


def _drawn(n_records: int, sample: int | None, seed: Seed) -> Labels | None:
    """Return the numbers of the records to rank, None for all."""
    if sample is None or sample >= n_records:
        return None
    if sample < 1:
        raise ParameterError(f"sample must be at least 1 record; {sample} was asked for.")
    return np.sort(np.random.default_rng(seed).choice(n_records, sample, replace=False))


def _expected_share(ranks: kernels.Ranks, rank: int) -> float:
    """Return the share of own ones among the first so many, those as near as others being in random order."""
    return float(np.clip((rank - ranks.ahead) / np.maximum(ranks.ties, 1), 0, 1).mean())


class Released(NamedTuple):
    """The different released points, and the number of the point that each record was released as."""

    points: Matrix
    labels: Labels


def as_release(X: ArrayLike, Y: ArrayLike, labels: ArrayLike | None) -> tuple[Matrix, Released]:
    """Check records and released records; bring released ones that are alike together."""
    originals, released = as_matrix(X), as_matrix(Y)
    if originals.shape != released.shape:
        raise ParameterError(
            f"X and Y must have one row for each record and the same columns; their shapes are {originals.shape} and "
            f"{released.shape}."
        )
    if len(originals) == 0:
        raise ParameterError("X has no records, so nothing can be linked. Pass at least one record.")
    if labels is None:
        return originals, distinct_rows(released)
    numbers = as_classes(labels, len(released))
    first = _first_of_each(numbers)
    differ = np.count_nonzero((released != released[first][numbers]).any(axis=1))
    if differ:
        raise ParameterError(
            f"labels puts records together that were released alike, but {differ} records differ from the first of "
            "their cell. Leave labels out where the records of a cell differ."
        )
    # Two cells may have been released alike.
    points, point_of_cell = distinct_rows(released[first])
    return originals, Released(points, point_of_cell[numbers])


def distinct_rows(Y: Matrix) -> Released:
    """Find the different rows, in the order of their first coordinate."""
    order = np.lexsort(Y.T[::-1])
    ordered = Y[order]
    is_new = np.ones(len(Y), dtype=bool)
    is_new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    labels = np.empty(len(Y), dtype=np.int64)
    labels[order] = np.cumsum(is_new) - 1
    return Released(np.ascontiguousarray(ordered[is_new]), labels)


def _first_of_each(labels: Labels) -> Labels:
    """Return a record of each cell."""
    first = np.empty(int(labels.max()) + 1, dtype=np.int64)
    first[labels[::-1]] = np.arange(len(labels) - 1, -1, -1)
    return first
