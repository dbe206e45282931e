"""Combinations: pairs and triples of columns that make most records unique, though no column does so alone."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations as choose
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.typing import Labels

MOST = 0.5
"""The share that counts as most records."""

WORK = 40_000_000
"""Limit on combinations times records examined, which takes a few seconds."""

_SHOWN = 5


class Combination(NamedTuple):
    """Columns, and the share of the records that they make unique."""

    columns: tuple[str, ...]
    unique: float


def revealing(codes: Mapping[str, NDArray[np.int32]]) -> tuple[list[Combination], bool]:
    """Return the pairs, and the triples without such a pair, that make most records unique, worst first.

    Parameters
    ----------
    codes : mapping of str to ndarray of shape (n_records,)
        The values of each column as numbers from 0.

    Returns
    -------
    found : list of Combination
        At most five pairs and five triples.
    complete : bool
        Whether all pairs, and the triples that extend the worst pairs, were examined.
    """
    if len(codes) < 2:
        return [], True
    n_records = len(next(iter(codes.values())))
    widths = {name: int(column.max(initial=0)) + 1 for name, column in codes.items()}
    budget = WORK // max(n_records, 1)
    all_pairs = list(choose(codes, 2))
    pairs = _worst_pairs(codes, all_pairs[:budget], widths)
    telling = [pair for pair in pairs if pair.unique >= MOST]
    others = [pair.columns for pair in pairs if pair.unique < MOST]
    wanted = [columns for columns in _grown(others[:_SHOWN], list(codes)) if not _holds_one(columns, telling)]
    affordable = wanted[: max(budget - len(all_pairs), 0)]
    triples = _measured(codes, [columns for columns in affordable if _most(columns, widths, n_records) >= MOST])
    found = telling[:_SHOWN] + [triple for triple in triples if triple.unique >= MOST][:_SHOWN]
    return found, len(all_pairs) + len(wanted) <= budget


def _most(columns: Sequence[str], widths: Mapping[str, int], n_records: int) -> float:
    """Return an upper bound of the share: each combination of values makes at most one record unique."""
    return prod(widths[name] for name in columns) / max(n_records, 1)


def _worst_pairs(
    codes: Mapping[str, NDArray[np.int32]], pairs: Sequence[tuple[str, ...]], widths: Mapping[str, int]
) -> list[Combination]:
    """Measure the pairs that may make most records unique or be among the next worst; the worst first."""
    n_records = len(codes[pairs[0][0]]) if pairs else 0
    found: dict[tuple[str, ...], float] = {}
    others: list[float] = []
    for pair in sorted(pairs, key=lambda pair: -_most(pair, widths, n_records)):
        most = _most(pair, widths, n_records)
        if most < MOST and len(others) >= _SHOWN and most < sorted(others)[-_SHOWN]:
            break
        found[pair] = unique_share(joined([codes[name] for name in pair]))
        others += [found[pair]] if found[pair] < MOST else []
    in_order = (Combination(pair, found[pair]) for pair in pairs if pair in found)
    return sorted(in_order, key=lambda pair: -pair.unique)


def _holds_one(columns: Sequence[str], pairs: Iterable[Combination]) -> bool:
    """Return whether the columns contain one of the pairs, so that they add nothing new."""
    return any(set(pair.columns) <= set(columns) for pair in pairs)


def _grown(pairs: Iterable[tuple[str, ...]], names: Sequence[str]) -> list[tuple[str, ...]]:
    """Add every other column to each pair, each set of columns once."""
    place = {name: number for number, name in enumerate(names)}
    grown = {frozenset((*pair, name)) for pair in pairs for name in names if name not in pair}
    in_order = (tuple(sorted(columns, key=place.__getitem__)) for columns in grown)
    return sorted(in_order, key=lambda columns: [place[name] for name in columns])


def _measured(codes: Mapping[str, NDArray[np.int32]], wanted: Iterable[tuple[str, ...]]) -> list[Combination]:
    found = [Combination(columns, unique_share(joined([codes[name] for name in columns]))) for columns in wanted]
    return sorted(found, key=lambda combination: -combination.unique)


def joined(parts: Sequence[NDArray[np.int32]] | Sequence[Labels]) -> Labels:
    """Return one number per record, equal for records that agree in all parts; numbers may have gaps."""
    ids = parts[0].astype(np.int64)
    for part in parts[1:]:
        width = int(part.max(initial=0)) + 1
        if int(ids.max(initial=0)) >= np.iinfo(np.int64).max // width - 1:
            ids = np.unique(ids, return_inverse=True)[1].astype(np.int64)
        ids = ids * width + part
    return ids


def unique_share(ids: Labels) -> float:
    """Return the share of the records whose number occurs once."""
    if not len(ids):
        return 0.0
    if ids.max() < 8 * len(ids):  # counting is faster than sorting unless the numbers are much larger than their count
        return float(np.count_nonzero(np.bincount(ids) == 1) / len(ids))
    ordered = np.sort(ids)
    new = np.concatenate([[True], ordered[1:] != ordered[:-1], [True]])
    return float(np.count_nonzero(new[1:] & new[:-1]) / len(ids))
