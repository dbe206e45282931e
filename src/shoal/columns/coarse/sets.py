"""Sets: several categories of which each record has one, listed as ``{married, widowed}`` or named by an ancestor.

In a set, a value stands in double quotes, with a double quote in it doubled, if it holds a comma, a brace, a quote or a
line break, starts or ends with a blank, is empty, or is the word ``missing``, which without quotes stands for no value.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.columns.coarse.missing import MISSING, without_missing
from shoal.columns.hierarchy import Hierarchy
from shoal.columns.hierarchy.tree import leaf_texts
from shoal.errors import ParameterError
from shoal.typing import Seed

_SPECIAL = re.compile(r'[,{}"\r\n]')
# No part can match what follows it, so that a text of any length is read once.
_ENTRY = re.compile(r'\s*+"((?:[^"]|"")*+)"\s*+(,|\Z)|([^,{}"]*+)(,|\Z)')


def written_set(values: Iterable[str], missing: bool = False) -> str:
    """Return values as a set.

    Examples
    --------
    >>> written_set(["married", "widowed"]), written_set(["a, b", "missing"], missing=True)
    ('{married, widowed}', '{"a, b", "missing", missing}')
    """
    return f"{{{', '.join([*map(_entry, values), *([MISSING] if missing else [])])}}}"


def _entry(value: str) -> str:
    plain = value and value == value.strip() and value != MISSING and not _SPECIAL.search(value)
    return value if plain else '"' + value.replace('"', '""') + '"'


def read_set(text: str) -> tuple[tuple[str, ...], bool]:
    """Return the values of a set, and whether some records have none.

    Examples
    --------
    >>> read_set('{"a, b", "missing", missing}')
    (('a, b', 'missing'), True)
    """
    if not (text.startswith("{") and text.endswith("}")):
        raise _no_set()
    inner, place = text[1:-1], 0
    values: list[str] = []
    missing = False
    while True:
        found = _ENTRY.match(inner, place)
        if found is None:
            raise _no_set()
        quoted, plain = found[1], (found[3] or "").strip()
        if quoted is None and plain == MISSING:
            missing = True
        else:
            values.append(plain if quoted is None else quoted.replace('""', '"'))
        place = found.end()
        if not (found[2] or found[4]):
            return tuple(values), missing


def _no_set() -> ParameterError:
    return ParameterError(
        "The column holds a value that is not a set such as {married, widowed}. Name a column that was published as a "
        "set, or give the hierarchy of its ancestors."
    )


@dataclass(frozen=True, eq=False)
class Sets:
    """A column of sets, one for each record.

    Attributes
    ----------
    members : tuple of tuple of str
        The values of each different set.
    has_missing : ndarray of shape (n_sets,), bool
        Whether some records of the class have no value.
    codes : ndarray of shape (n_records,)
        Number of each record's set.

    Examples
    --------
    >>> status = Sets.of(["{married, widowed}", "{single}", None])
    >>> status.members
    (('married', 'widowed'), ('single',), ())
    >>> [str(value) for value in status.draw(seed=1)]
    ['widowed', 'single', 'None']
    """

    members: tuple[tuple[str, ...], ...]
    has_missing: NDArray[np.bool_]
    codes: NDArray[np.int64]

    @staticmethod
    def of(texts: Sequence[str | None], hierarchy: Hierarchy | None = None) -> "Sets":
        """Read published texts: sets, or the labels of a hierarchy; None stands for a class without values.

        Raises
        ------
        ParameterError
            If a text is neither a set nor a label of the hierarchy.
        """
        found = [_members(text, hierarchy) for text in texts]
        missing = np.array([entry[1] for entry in found], dtype=bool)
        return Sets(tuple(entry[0] for entry in found), missing, np.arange(len(found)))

    def take(self, codes: NDArray[np.int64]) -> "Sets":
        """Return the sets of records, given the number of each record's set."""
        return Sets(self.members, self.has_missing, self.codes[codes])

    def draw(self, seed: Seed = None) -> NDArray[np.object_]:
        """Return a value drawn evenly from each record's set, None where it has none."""
        sizes = np.array([len(values) for values in self.members], dtype=np.int64)
        places = (np.random.default_rng(seed).random(len(self.codes)) * sizes[self.codes]).astype(np.int64)
        pairs = zip(self.codes, places, strict=True)
        return np.array([self.members[c][p] if sizes[c] else None for c, p in pairs], dtype=object)

    def holds(self, values: pa.ChunkedArray) -> NDArray[np.bool_]:
        """Return for each record whether its own value is in its set; a missing one where the set includes it."""
        texts = leaf_texts(values)
        known = pc.unique(texts).drop_null()
        number = {text: place for place, text in enumerate(known.to_pylist())}
        own = np.asarray(pc.index_in(texts, value_set=known).fill_null(-1), dtype=np.int64)
        pairs = [
            code * len(number) + number[text]
            for code, members in enumerate(self.members)
            for text in members
            if text in number
        ]
        empty = np.array([not members for members in self.members], dtype=bool)
        allowed = (self.has_missing | empty)[self.codes]
        return np.where(own < 0, allowed, np.isin(self.codes * len(number) + own, pairs))

    def likeliest(self, known: Sequence[str]) -> NDArray[np.int64]:
        """Return the place among the `known` values, for each different set, of that which most records may have.

        Each record counts for all values of its set, in equal parts; of equally frequent ones the first is taken; -1
        where no value is known.
        """
        inside = self._places(known)
        n_records = np.bincount(self.codes, minlength=len(self.members))
        weight = np.zeros(len(known))
        for places, count in zip(inside, n_records, strict=True):
            weight[places] += count / max(len(places), 1)
        return np.array([places[np.argmax(weight[places])] if len(places) else -1 for places in inside], np.int64)

    def middle(self, known: Sequence[str]) -> NDArray[np.int64]:
        """Return the place among the `known` values, for each different set, of the middle one; -1 without one."""
        inside = self._places(known)
        return np.array([places[(len(places) - 1) // 2] if len(places) else -1 for places in inside], np.int64)

    def _places(self, known: Sequence[str]) -> list[NDArray[np.int64]]:
        """Return where the values of each different set stand among those known, in their order."""
        number = {text: place for place, text in enumerate(known)}
        return [
            np.array(sorted(number[text] for text in members if text in number), np.int64) for members in self.members
        ]


def _members(text: str | None, hierarchy: Hierarchy | None) -> tuple[tuple[str, ...], bool]:
    if text is None:
        return (), False
    if hierarchy is None:
        return read_set(text)
    label, missing = without_missing(text)
    node = hierarchy.by_label.get(label)
    if node is None:
        raise ParameterError(
            "The column holds a value that is not a label of the hierarchy. Give the one it was made with."
        )
    leaves = np.flatnonzero((hierarchy.nodes == node).any(axis=1))
    return tuple(hierarchy.labels[leaf] for leaf in leaves), missing
