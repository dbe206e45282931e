"""Specialisation: parts of the table are cut, column by column, into groups that say more, as long as each keeps k.

Top-down specialisation (Fung, Wang and Yu, ICDE 2005) within each part. Of all cuts the one is taken that lowers the
certainty penalty of its column most for the entropy of the groups: only so much can be cut before groups fall below k. A hierarchy is cut into the children of the common ancestor, categories into single ones, or the largest of these is
cut off; numbers are cut at the median. Groups of fewer than k records stay together.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from shoal.columns.penalty import Categories, Numbers, PenaltyColumn
from shoal.typing import Labels, Vector


def specialised(columns: Sequence[PenaltyColumn], k: int) -> Labels:
    """Return cells of at least `k` records, numbered from 0 and without gaps; takes O(n log n + n / k) time."""
    n_records = len(columns[0])
    labels = np.empty(n_records, dtype=np.int64)
    parts, n_cells = [np.arange(n_records)], 0
    while parts:
        part = parts.pop()
        gain, groups = max(_cuts(columns, part, k), key=lambda cut: cut[0], default=(0.0, part))
        if gain <= 0:
            labels[part], n_cells = n_cells, n_cells + 1
        else:
            parts += [part[groups == group] for group in range(int(groups.max()) + 1)]
    return labels


def _cuts(columns: Sequence[PenaltyColumn], part: Labels, k: int) -> Iterator[tuple[float, Labels]]:
    """Yield by how much each cut lowers the penalty for its entropy, and the group of each record."""
    for column in columns if len(part) >= 2 * k else ():
        values = _values(column, part, k)
        found, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
        for told_apart in [codes] + [(codes == counts.argmax()).astype(np.int64)] * (len(found) > 2):
            groups = _grouped(told_apart, k)
            if groups.any():
                yield _gain(column.part(part), groups), groups


def _gain(column: PenaltyColumn, groups: Labels) -> float:
    """Return by how much groups lower the penalty of a column, over their entropy."""
    shares = np.bincount(groups) / len(groups)
    after = (column.penalties(groups, len(shares)) * shares).sum()
    before = column.penalties(np.zeros_like(groups), 1)[0]
    return float(column.weight * (before - after) / -(shares * np.log(shares)).sum())


def _values(column: PenaltyColumn, part: Labels, k: int) -> Labels:
    """Return what tells the records of a part apart in a column."""
    if isinstance(column, Numbers):
        return _lower_half(column.values[part], k)
    if isinstance(column, Categories):
        return column.codes[part]
    nodes = column.nodes[column.leaves[part]]
    mixed = (nodes != nodes[0]).any(axis=0)
    return nodes[:, np.flatnonzero(mixed).max(initial=0)].astype(np.int64)


def _lower_half(values: Vector, k: int) -> Labels:
    """Return 0 below the cut nearest to the median that leaves k on both sides, 1 above, 2 where missing."""
    ordered = np.sort(values[~np.isnan(values)])
    cuts = np.flatnonzero(np.diff(ordered)) + 1
    cuts = cuts[(cuts >= k) & (cuts <= len(ordered) - k)]
    above = values >= ordered[cuts[np.argmin(np.abs(cuts - len(ordered) / 2))]] if len(cuts) else np.zeros(len(values))
    return np.where(np.isnan(values), 2, above).astype(np.int64)


def _grouped(values: Labels, k: int) -> Labels:
    """Return a group for each value of at least k records and one for the others, which takes the smallest if too few."""
    found, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    small = counts < k
    n_small = counts[small].sum()
    if 0 < n_small < k and not small.all():
        small |= np.arange(len(found)) == np.where(small, len(values) + 1, counts).argmin()
    number = np.cumsum(~small) - 1 + small.any()
    number[small] = 0
    return np.asarray(number[codes], dtype=np.int64)
