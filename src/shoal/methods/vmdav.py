"""V-MDAV, variable-size MDAV: a cell of k is extended by up to k-1 records that are nearer to it than to the others.

While k or more records remain: start a cell with the record farthest from the centroid of all records and add its k-1
nearest. Then, up to 2k-1 records: let E be the remaining record nearest to any member, at distance d_in, and d_out the
distance from E to its nearest remaining record; E is added if d_in < gamma * d_out, else the cell is complete. Fewer
than k left over are each assigned to the cell with the nearest centroid. Ties go to the lowest record number.
"""

import math
from numbers import Real

import numpy as np

from shoal import kernels
from shoal.errors import ParameterError
from shoal.methods.cell_building import GrowingCells, unit_scaled
from shoal.typing import Labels, Matrix, Seed


def vmdav(X: Matrix, k: int, seed: Seed = None, *, gamma: float = 0.2) -> Labels:
    """Return the cells of V-MDAV.

    `gamma` controls how readily a cell is extended: 0 keeps all cells at k; the authors use 0.2 for scattered records
    and 1.1 for clustered ones. Distances are not squared. The last remaining record has no other to compare with and is
    assigned to the nearest cell. Takes O(n^2) time in records at worst, one or two searches per record; deterministic.

    References
    ----------
    Solanas, Martinez-Balleste (2006), "V-MDAV: a multivariate microaggregation with variable group size".
    """
    if not (isinstance(gamma, Real) and math.isfinite(gamma) and gamma >= 0):
        raise ParameterError(f"gamma must be a finite number of at least 0; got {gamma!r}.")
    X = unit_scaled(X)
    cells = GrowingCells(X)
    farthest_first = np.argsort(-kernels.distances(X, cells.remaining.centroid()), kind="stable")
    starts = iter(farthest_first.tolist())
    while len(cells.remaining) >= k:
        members = cells.gather(next(record for record in starts if cells.labels[record] < 0), k)
        if gamma > 0:
            _extend(cells, members, 2 * k - 1, gamma)
        cells.close()
    return cells.join_left_over()


def _extend(cells: GrowingCells, members: list[int], largest: int, gamma: float) -> None:
    """Add the record nearest to the cell while d_in < gamma * d_out."""
    nearest = {member: _nearest_other(cells, member) for member in members} if len(cells.remaining) > 1 else {}
    while len(nearest) < largest and len(cells.remaining) > 1:
        inward, newcomer = min(nearest.values())
        outward, _ = _nearest_other(cells, newcomer)
        if not math.sqrt(inward) < gamma * math.sqrt(outward):
            return
        cells.take(newcomer)
        nearest[newcomer] = (math.inf, newcomer)
        for member, (_, outside) in nearest.items():
            if outside == newcomer:
                nearest[member] = _nearest_other(cells, member)


def _nearest_other(cells: GrowingCells, record: int) -> tuple[float, int]:
    """Return the squared distance to the nearest remaining record other than this one, and that record."""
    found, squared = cells.remaining.nearest(cells.X[record], min(2, len(cells.remaining)))
    other = int(found[0] == record)
    return float(squared[other]), int(found[other])
