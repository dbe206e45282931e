"""Inequalities that every partition into cells of at least k satisfies, and the search for violated ones.

A cell of c records gives its pairs the link x_ij = k/c and its records the share s_i = k/c; pairs in different cells
have the link 0. A solution of the relaxed problem has links and shares in between. ``docs/bound.md`` proves the two
families:

- *star*: if record i is linked to all of T, the records of T are linked to each other;
- *crowd*: for example, 4 records cannot be covered exactly by cells of 3.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.typing import Vector

Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]

_LARGEST_STAR = 5
"""Maximum number of leaves. More leaves strengthen few stars, and the number of pairs grows with their square."""
_N_NEIGHBOURS = 28
"""Number of strongest links of a record that are considered."""
_N_STARTS = 10
"""Number of those links from which a star or a crowd is grown."""
_PER_RECORD = 4
"""Maximum number of cuts of one family that a record proposes in a round."""
_SMALLEST_VIOLATION = 0.01
_CHUNK = 256
"""Number of records processed together, so that the working arrays stay small."""


@dataclass(frozen=True, eq=False)
class Cuts:
    """Inequalities sum(coefficient * link) + sum(weight * share) <= limit, as triplets.

    Attributes
    ----------
    pair_row, pair, coefficient : ndarrays
        Which cut, which pair (number ``i * n_records + j`` with i < j), times what.
    record_row, record, weight : ndarrays
        Which cut, the share of which record, times what.
    limit : ndarray of shape (n_cuts,)
        The right-hand sides.
    key : ndarray of shape (n_cuts,)
        The same for the same cut; for two others, the same with probability 2**-64, and then one of them is left out.
    """

    pair_row: Indices
    pair: Indices
    coefficient: Vector
    record_row: Indices
    record: Indices
    weight: Vector
    limit: Vector
    key: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.limit)

    def keep(self, mask: Mask) -> "Cuts":
        """Return the cuts where `mask` is true, in the same order."""
        return self.take(np.flatnonzero(mask))

    def take(self, order: Indices) -> "Cuts":
        """Return the cuts named in `order`, in that order."""
        number = np.full(len(self), -1)
        number[order] = np.arange(len(order))
        pairs, records = number[self.pair_row] >= 0, number[self.record_row] >= 0
        return Cuts(
            number[self.pair_row[pairs]],
            self.pair[pairs],
            self.coefficient[pairs],
            number[self.record_row[records]],
            self.record[records],
            self.weight[records],
            self.limit[order],
            self.key[order],
        )

    def join(self, others: "Cuts") -> "Cuts":
        """Return these cuts, followed by the others."""
        n = len(self)
        return Cuts(
            np.concatenate([self.pair_row, n + others.pair_row]),
            np.concatenate([self.pair, others.pair]),
            np.concatenate([self.coefficient, others.coefficient]),
            np.concatenate([self.record_row, n + others.record_row]),
            np.concatenate([self.record, others.record]),
            np.concatenate([self.weight, others.weight]),
            np.concatenate([self.limit, others.limit]),
            np.concatenate([self.key, others.key]),
        )


def count(n_records: int, k: int) -> Cuts:
    """Return the cut that there are at most n_records // k cells: the shares of a cell sum to k."""
    none = np.empty(0, dtype=np.int64)
    return Cuts(
        none,
        none,
        np.empty(0),
        np.zeros(n_records, dtype=np.int64),
        np.arange(n_records),
        np.ones(n_records),
        np.array([float(n_records // k * k)]),
        np.zeros(1, dtype=np.uint64),
    )


def stars(centers: Indices, leaves: Mask, neighbours: Indices, n_records: int) -> Cuts:
    """Return the cuts x(i, T) - x(T) <= s_i, for i in `centers` and T the marked ones in its row of `neighbours`."""
    row, column = np.nonzero(leaves)
    leaf = neighbours[row, column]
    spoke = _pairs(centers[row], leaf, n_records)
    rim_row, rim = _pairs_within(leaves, neighbours, n_records)
    return Cuts(
        np.concatenate([row, rim_row]),
        np.concatenate([spoke, rim]),
        np.concatenate([np.ones(len(spoke)), np.full(len(rim), -1.0)]),
        np.arange(len(centers)),
        centers,
        np.full(len(centers), -1.0),
        np.zeros(len(centers)),
        _keys(row, leaf, len(centers), n_records) + _names(n_records, 1)[centers],
    )


def crowds(members: Mask, neighbours: Indices, k: int, n_records: int) -> Cuts:
    """Return the cuts x(Q) + a s(Q) <= b, for Q the marked ones in a row of `neighbours`, its size no multiple of k."""
    row, column = np.nonzero(members)
    record = neighbours[row, column]
    pair_row, pair = _pairs_within(members, neighbours, n_records)
    weight, limit = crowd_numbers(members.sum(axis=1), k)
    return Cuts(
        pair_row,
        pair,
        np.ones(len(pair)),
        row,
        record,
        weight[row],
        limit,
        _keys(row, record, len(members), n_records),
    )


def crowd_numbers(size: Indices, k: int) -> tuple[Vector, Vector]:
    """Return a and b of the crowd cut for sets of these sizes: multiples of one half, so nothing is rounded."""
    whole, rest = np.divmod(size, k)
    weight = (k - rest + 1) / 2
    return weight, whole * (k * (k - 1) / 2 + weight * k) + rest * k / 2


def separate(pairs: Indices, links: Vector, shares: Vector, k: int) -> Cuts:
    """Find stars and crowds that links and shares violate, the most violated first.

    Parameters
    ----------
    pairs : ndarray of shape (n_pairs,)
        Pair numbers in increasing order; links of other pairs are 0.
    links : ndarray of shape (n_pairs,)
        Between 0 and 1.
    shares : ndarray of shape (n_records,)
        Between 0 and 1.
    k : int
        Smallest cell size.
    """
    found, depth = None, np.empty(0)
    for near in _neighbourhoods(pairs, links, len(shares)):
        for cuts, violation in (_broken_stars(near, shares), _broken_crowds(near, shares, k)):
            found = cuts if found is None else found.join(cuts)
            depth = np.concatenate([depth, violation])
    assert found is not None
    order = np.argsort(-depth, kind="stable")
    first = np.sort(np.unique(found.key[order], return_index=True)[1])
    return found.take(order[first])


class _Near(NamedTuple):
    """Some records, each with its strongest links: their records (-1: none), their links, the links among them."""

    records: Indices
    neighbours: Indices
    links: Vector
    among: Vector


def _neighbourhoods(pairs: Indices, links: Vector, n_records: int) -> Iterator[_Near]:
    """Yield the records, chunk by chunk, each with its strongest links and the links among those."""
    on = links > 1e-3
    pairs, links = pairs[on], links[on]
    here = np.concatenate([pairs // n_records, pairs % n_records])
    there = np.concatenate([pairs % n_records, pairs // n_records])
    strength = np.concatenate([links, links])
    order = np.lexsort((-strength, here))
    here, there, strength = here[order], there[order], strength[order]
    place = np.arange(len(here)) - np.searchsorted(here, here)
    here, there, strength, place = (array[place < _N_NEIGHBOURS] for array in (here, there, strength, place))
    width = int(place.max(initial=0)) + 1
    neighbours = np.full((n_records, width), -1)
    neighbours[here, place] = there
    own = np.zeros((n_records, width))
    own[here, place] = strength
    for start in range(0, n_records, _CHUNK):
        records = np.arange(start, min(start + _CHUNK, n_records))
        yield _Near(records, neighbours[records], own[records], _among(neighbours[records], pairs, links, n_records))


def _among(neighbours: Indices, pairs: Indices, links: Vector, n_records: int) -> Vector:
    """Return the links between the neighbours of each record, shape (n_chunk, width, width)."""
    width = neighbours.shape[1]
    among = np.zeros((len(neighbours), width, width))
    if len(pairs) == 0:
        return among
    first, second = np.triu_indices(width, 1)
    wanted = _pairs(neighbours[:, first], neighbours[:, second], n_records)
    at = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
    known = (pairs[at] == wanted) & (neighbours[:, first] >= 0) & (neighbours[:, second] >= 0)
    among[:, first, second] = among[:, second, first] = np.where(known, links[at], 0.0)
    return among


def _broken_stars(near: _Near, shares: Vector) -> tuple[Cuts, Vector]:
    """Grow stars greedily from each of the strongest links; return those that are violated, and by how much."""
    n_chunk, width = near.links.shape
    n_starts = min(width, _N_STARTS)
    chunk, start = np.ogrid[:n_chunk, :n_starts]
    leaves = np.broadcast_to(np.eye(n_starts, width, dtype=bool), (n_chunk, n_starts, width)).copy()
    value = _links_to_start_from(near, n_starts)
    gain = near.links[:, None, :] - near.among[:, :n_starts]
    gain[leaves] = -np.inf
    for _ in range(min(_LARGEST_STAR, width) - 1):
        best = gain.argmax(axis=2)
        step = gain[chunk, start, best]
        grows = step > 1e-6
        if not grows.any():
            break
        value += np.where(grows, step, 0.0)
        gain -= np.where(grows[:, :, None], near.among[chunk, best], 0.0)
        leaves[chunk, start, best] |= grows
        gain[chunk, start, best] = np.where(grows, -np.inf, step)
    n_leaves = leaves.sum(axis=2)
    depth = (value - shares[near.records][:, None]) / np.sqrt(1 + n_leaves * (n_leaves + 1) / 2)
    chosen, of_start = _deepest(depth)
    return (
        stars(near.records[chosen], leaves[chosen, of_start], near.neighbours[chosen], len(shares)),
        depth[chosen, of_start],
    )


def _broken_crowds(near: _Near, shares: Vector, k: int) -> tuple[Cuts, Vector]:
    """Grow crowds greedily from each record and a strong link; return the violated ones, each at its worst size."""
    n_chunk, width = near.links.shape
    n_starts = min(width, _N_STARTS)
    chunk, start = np.ogrid[:n_chunk, :n_starts]
    # Column 0 stands for the record itself.
    neighbours = np.column_stack([near.records, near.neighbours])
    share = np.where(neighbours >= 0, shares[neighbours], 0.0)
    members = np.zeros((n_chunk, n_starts, width + 1), dtype=bool)
    members[:, :, 0] = True
    members[:, :, 1:] = np.eye(n_starts, width, dtype=bool)
    links = _links_to_start_from(near, n_starts)
    sum_of_shares = share[:, :1] + share[:, 1 : n_starts + 1]
    gain = near.links[:, None, :] + near.among[:, :n_starts]
    gain[members[:, :, 1:] | (near.neighbours < 0)[:, None, :]] = -np.inf
    depth, deepest = np.full((n_chunk, n_starts), -np.inf), members.copy()
    for size in range(3, min(width + 1, 3 * k - 1) + 1):
        best = gain.argmax(axis=2)
        links += gain[chunk, start, best]
        sum_of_shares += share[chunk, best + 1]
        gain += near.among[chunk, best]
        gain[chunk, start, best] = -np.inf
        members[chunk, start, best + 1] = True
        if size > k and size % k:
            weight, limit = crowd_numbers(np.array([size]), k)
            broken = (links + weight * sum_of_shares - limit) / np.sqrt(size * (size - 1) / 2 + size * weight**2)
            # Where the links run out the sum is -inf, which is never more violated.
            deeper = broken > depth
            depth[deeper] = broken[deeper]
            deepest[deeper] = members[deeper]
    chosen, of_start = _deepest(depth)
    return crowds(deepest[chosen, of_start], neighbours[chosen], k, len(shares)), depth[chosen, of_start]


def _links_to_start_from(near: _Near, n_starts: int) -> Vector:
    """Return each record's strongest links; -inf where it has no more, so that nothing grown from there is violated."""
    return np.where(near.neighbours >= 0, near.links, -np.inf)[:, :n_starts]


def _deepest(depth: Vector) -> tuple[Indices, Indices]:
    """Choose from each row the few most violated cuts."""
    order = np.argsort(-depth, axis=1, kind="stable")[:, :_PER_RECORD]
    row, place = np.nonzero(np.take_along_axis(depth, order, axis=1) > _SMALLEST_VIOLATION)
    return row, order[row, place]


def _pairs(one: Indices, other: Indices, n_records: int) -> Indices:
    """Return the numbers of the pairs of records."""
    return np.minimum(one, other) * n_records + np.maximum(one, other)


def _pairs_within(members: Mask, neighbours: Indices, n_records: int) -> tuple[Indices, Indices]:
    """Return, for the records marked in each row, all pairs of them: the rows and the pair numbers."""
    first, second = np.triu_indices(members.shape[1], 1)
    row, place = np.nonzero(members[:, first] & members[:, second])
    return row, _pairs(neighbours[row, first[place]], neighbours[row, second[place]], n_records)


def _names(n_records: int, series: int) -> NDArray[np.uint64]:
    """Give each record a random number, the same in every call."""
    return np.random.default_rng(series).integers(0, 2**64, n_records, dtype=np.uint64)


def _keys(row: Indices, record: Indices, n_cuts: int, n_records: int) -> NDArray[np.uint64]:
    """Sum the random numbers of the records of each cut, modulo 2**64."""
    keys = np.zeros(n_cuts, dtype=np.uint64)
    np.add.at(keys, row, _names(n_records, 0)[record])
    return keys
