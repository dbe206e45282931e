"""MST partitioning: the minimum spanning tree of the records, cut at its longest edges; cell sizes vary widely.

The edges of the tree are visited in order of decreasing length. An edge is removed if both resulting trees have at
least k records. Cells of 2k records or more are then split by the Centroid method. Ties: of equally near records the
lowest number is added to the tree first, and of equally long edges the one added first is visited first.
"""

import numpy as np

from shoal import kernels
from shoal.methods.cell_building import cut_large, unit_scaled
from shoal.methods.centroid import centroid
from shoal.typing import Labels, Matrix, Seed, Vector


def mst(X: Matrix, k: int, seed: Seed = None) -> Labels:
    """Return the cells of MST partitioning.

    Takes O(n^2) time in records for the tree and O(nk) for its cuts, and O(n) memory; deterministic. It suits records
    in well-separated clusters; on other data it loses more than the methods that form cells of k.

    References
    ----------
    Laszlo, Mukherjee (2005), "Minimum spanning tree partitioning algorithm for microaggregation".
    Chang, Li, Huang (2007), "TFRP: an efficient microaggregation algorithm for statistical disclosure control",
    section 2.3.
    """
    X = unit_scaled(X)
    return cut_large(X, _trees(X, k), k, centroid)


def _trees(X: Matrix, k: int) -> Labels:
    """Return the tree of each record after the cuts; trees are numbered in the order of their lowest records."""
    record, parent, length = spanning_tree(X)
    neighbours: list[set[int]] = [set() for _ in X]
    for one, other in zip(record.tolist(), parent.tolist(), strict=True):
        neighbours[one].add(other)
        neighbours[other].add(one)
    for edge in np.argsort(-length, kind="stable"):
        one, other = int(record[edge]), int(parent[edge])
        neighbours[one].remove(other)
        neighbours[other].remove(one)
        if min(len(_reached(neighbours, end, k)) for end in (one, other)) < k:
            neighbours[one].add(other)
            neighbours[other].add(one)
    labels = np.full(len(X), -1, dtype=np.int64)
    n_cells = 0
    for start in range(len(X)):
        if labels[start] < 0:
            labels[list(_reached(neighbours, start, len(X)))] = n_cells
            n_cells += 1
    return labels


def spanning_tree(X: Matrix) -> tuple[Labels, Labels, Vector]:
    """Return the edges of the minimum spanning tree, by Prim's algorithm from record 0.

    Returns
    -------
    record, parent : ndarray of shape (n_records - 1,)
        The record that each edge added to the tree, in that order, and its neighbour in the tree.
    length : ndarray of shape (n_records - 1,)
        Squared lengths of the edges.
    """
    rest = np.arange(1, len(X))
    near, reach = np.zeros(len(rest), dtype=np.int64), kernels.distances(X[1:], X[0])
    edges, lengths = [], []
    progress = kernels.ProgressReporter(len(X))
    while len(rest):
        at = int(reach.argmin())
        newcomer = int(rest[at])
        edges.append((newcomer, int(near[at])))
        lengths.append(float(reach[at]))
        rest, near, reach = np.delete(rest, at), np.delete(near, at), np.delete(reach, at)
        squared = kernels.distances(X[rest], X[newcomer])
        nearer = squared < reach
        near[nearer], reach[nearer] = newcomer, squared[nearer]
        progress.update(len(edges))
    progress.finish()
    record, parent = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    return record, parent, np.array(lengths)


def _reached(neighbours: list[set[int]], start: int, enough: int) -> set[int]:
    """Return the records reachable along the edges, stopping once `enough` are found."""
    found, waiting = {start}, [start]
    while waiting and len(found) < enough:
        new = neighbours[waiting.pop()] - found
        found |= new
        waiting += new
    return found
