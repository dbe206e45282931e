"""Distance-based record linkage, from released records to originals and from originals to released records.

The intruder holds the original values of everybody and has no other knowledge. ``docs/risk.md`` has the definitions.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from shoal import kernels
from shoal.arrays import as_matrix
from shoal.errors import ParameterError
from shoal.measures.pairs import as_classes, one_of_each
from shoal.typing import Labels, Matrix, Seed


@dataclass(frozen=True, eq=False)
class Linkage:
    """Records linked by distance alone, as shares of all records.

    Attributes
    ----------
    dld : float
        Distance-linked disclosure: the share of released records whose own original is the nearest of all originals.
        Where t originals are equally near, a record counts 1/t.
    dld_within_2 : float
        The share whose own original is among the two nearest, equally near ones being in random order.
    linked : float
        In the other direction: the share of originals that are linked to their own released record if each is linked
        to the nearest one, and to a random one of several equally near. With cells of k records it is about 1/k at
        most.
    within : dict of int to float
        The share of originals whose own released record is among the nearest 2, 10 and n_records / 100; equally near
        ones in random order.
    median_rank : float
        Median over the originals of the rank of the own released record, from 1; ties get their mean rank.
    n_ranked : int
        Number of records ranked: all, or a sample.
    nearer : ndarray of shape (n_ranked,)
        For each original, the number of released records nearer than its own.
    as_near : ndarray of shape (n_ranked,)
        Number of released records as near as its own, itself included. At least the size of its cell.
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
        """Return the shares and the median rank, for a report, without the ranks of single records."""
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
    """Link each released record to the nearest original, and each original to the nearest released record.

    Parameters
    ----------
    X : array_like of shape (n_records, n_dims)
        The original records in the space, at least one.
    Y : array_like of shape (n_records, n_dims)
        The released record of each, in the same space.
    labels : array_like of shape (n_records,), optional
        Cell number of each record, if all records of a cell were released with the same values; saves the search for
        equal rows.
    sample : int, optional
        Number of records to rank, drawn at random; each is still ranked among all others. The shares are then
        estimates, with a standard error of at most ``0.5 / sqrt(sample)``. By default, and if there are no more, all
        records.
    seed : int, optional
        Makes the draw reproducible.

    Returns
    -------
    Linkage
        The shares linked in both directions.

    Raises
    ------
    ParameterError
        If the matrices have different shapes, or records of the same cell differ in `Y`.

    Notes
    -----
    Exact: the result equals that of comparing all pairs in float64, ties included. Boxes around neighbours and coarse
    codes along principal axes rule out nearly all pairs beyond the distance to the own record.

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
    return _linked(originals, release, _drawn(len(originals), sample, seed))


def cell_linkage(
    X: Matrix,
    points: Matrix,
    labels: Labels,
    *,
    sample: int | None = None,
    seed: Seed = None,
    asked: Labels | None = None,
) -> Linkage:
    """Link records that were released as ``points[labels]``, as `linkage` does but without checks.

    `asked` are ascending indices of the records to rank, in place of a sample.
    """
    # Two cells may have the same released values.
    points, point_of_cell = distinct_rows(points)
    drawn = _drawn(len(X), sample, seed) if asked is None else asked
    return _linked(X, Released(points, point_of_cell[labels]), drawn)


def _linked(originals: Matrix, release: "Released", asked: Labels | None) -> Linkage:
    return linkage_of(*kernels.linkage(originals, release.points, release.labels, asked), len(originals))


def linkage_of(from_released: kernels.Ranks, from_original: kernels.Ranks, n_records: int) -> Linkage:
    """Return the shares linked, from the ranks of own records among all others in both directions."""
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
    """Return the indices of the records to rank, None for all."""
    if sample is None or sample >= n_records:
        return None
    if sample < 1:
        raise ParameterError(f"sample must be at least 1 record; {sample} was asked for.")
    return np.sort(np.random.default_rng(seed).choice(n_records, sample, replace=False))


def _expected_share(ranks: kernels.Ranks, rank: int) -> float:
    """Return the expected share of records whose own one is among the first `rank`, ties being in random order."""
    return float(np.clip((rank - ranks.ahead) / np.maximum(ranks.ties, 1), 0, 1).mean())


class Released(NamedTuple):
    """The distinct released points, and the index of the point of each record."""

    points: Matrix
    labels: Labels


def as_release(X: ArrayLike, Y: ArrayLike, labels: ArrayLike | None) -> tuple[Matrix, Released]:
    """Check original and released records; collect equal released records into one point."""
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
    first = one_of_each(numbers)
    differ = np.count_nonzero((released != released[first][numbers]).any(axis=1))
    if differ:
        raise ParameterError(
            f"labels must join records with the same released values, but {differ} records differ from the first of "
            "their cell. Leave labels out if the records of a cell differ."
        )
    # Two cells may have the same released values.
    points, point_of_cell = distinct_rows(released[first])
    return originals, Released(points, point_of_cell[numbers])


def distinct_rows(Y: Matrix) -> Released:
    """Return the distinct rows, in lexicographic order."""
    order = _lexicographic_order(Y)
    ordered = Y[order]
    is_new = np.ones(len(Y), dtype=bool)
    is_new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    labels = np.empty(len(Y), dtype=np.int64)
    labels[order] = np.cumsum(is_new) - 1
    return Released(np.ascontiguousarray(ordered[is_new]), labels)


_AT_ONCE = 8


def _lexicographic_order(Y: Matrix) -> Labels:
    """Return the rows in lexicographic order, equal ones in record order."""
    order, left, runs = np.arange(len(Y)), np.arange(len(Y)), np.zeros(len(Y), dtype=np.int64)
    for start in range(0, Y.shape[1], _AT_ONCE):
        # Only rows that agree in all columns before are compared in these.
        rows = order[left]
        values = Y[rows, start : start + _AT_ONCE]
        inner = np.lexsort((*values.T[::-1], runs))
        order[left] = rows[inner]
        values, runs = values[inner], runs[inner]
        differs = np.ones(len(left) + 1, dtype=bool)
        differs[1:-1] = (values[1:] != values[:-1]).any(axis=1) | (runs[1:] != runs[:-1])
        alike = ~(differs[1:] & differs[:-1])
        left, runs = left[alike], np.cumsum(differs[:-1])[alike]
    return order
