"""Hierarchy: groups of values, groups of groups, and one root above them all."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.columns.prepare import decoded
from shoal.errors import SchemaError
from shoal.sources.clean import nulled
from shoal.typing import Labels

Nodes = NDArray[np.int32]

ROOT = "*"
"""Label of the root where a rule builds the hierarchy, as in ARX's files."""


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """The ancestors of each value, level by level.

    Attributes
    ----------
    labels : tuple of str
        What each node is called; the first ones are the leaves, so that leaf i is node i.
    nodes : ndarray of shape (n_leaves, n_levels), int32
        The node of each leaf at every level: level 0 is the leaf itself, the last level is the root. Where a branch has
        fewer levels than others, a node is repeated.
    sizes : ndarray of shape (n_nodes,), int64
        Number of leaves below each node; 1 for a leaf.

    Examples
    --------
    >>> jobs = Hierarchy.of_rows([("nurse", "health", "*"), ("doctor", "health", "*"), ("cook", "food", "*")])
    >>> jobs.nodes
    array([[0, 3, 5],
           [1, 3, 5],
           [2, 4, 5]], dtype=int32)
    >>> jobs.sizes, jobs.labels[5]
    (array([1, 1, 1, 2, 1, 3]), '*')
    """

    labels: tuple[str, ...]
    nodes: Nodes
    sizes: NDArray[np.int64]

    @staticmethod
    def of_rows(rows: Iterable[Sequence[str]], what: str = "The hierarchy") -> "Hierarchy":
        """Build a hierarchy from the labels of each leaf, level by level, the leaf first and the root last.

        Raises
        ------
        SchemaError
            If rows differ in length, a leaf occurs twice, there is more than one root, a group has two parents, or a
            label stands for groups that do not contain one another. The message starts with `what`.
        """
        table = [tuple(row) for row in rows]
        if not table:
            raise SchemaError(f"{what} has no leaves. Give a row for each value: the value, its groups, the root.")
        _check_rows(table, what)
        labels, nodes = _numbered(table, what)
        sizes = np.zeros(len(labels), dtype=np.int64)
        for node, count in zip(*np.unique(_distinct_per_row(nodes), return_counts=True), strict=True):
            if node >= 0:
                sizes[node] = count
        found = Hierarchy(tuple(labels), nodes, sizes)
        _check_labels(found, what)
        return found

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self.nodes)

    @property
    def n_levels(self) -> int:
        """Number of levels: that of the leaves, those of the groups, and the root."""
        return int(self.nodes.shape[1])

    @property
    def leaves(self) -> tuple[str, ...]:
        """The labels of the leaves."""
        return self.labels[: self.n_leaves]

    @property
    def root(self) -> int:
        """The node above all leaves."""
        return int(self.nodes[0, -1])

    @cached_property
    def by_label(self) -> dict[str, int]:
        """The node that each label stands for: of several, which contain one another, the largest."""
        found: dict[str, int] = {}
        for node in np.argsort(self.sizes, kind="stable"):
            found[self.labels[node]] = int(node)
        return found

    def leaf_codes(self, values: pa.ChunkedArray | pa.Array) -> Labels:
        """Return the leaf of each value, -1 where it is missing or not in the hierarchy; shape (n_records,)."""
        found = pc.index_in(leaf_texts(values), value_set=pa.array(self.leaves, pa.large_string()))
        return np.asarray(found.fill_null(-1), dtype=np.int64)

    def below(self, leaf: Labels, node: Labels) -> NDArray[np.bool_]:
        """Return for pairs of leaf and node whether the leaf lies below the node, or is it."""
        return np.asarray((self.nodes[leaf] == node[:, None]).any(axis=1))

    def shared(self, leaf: Labels, k: int, persons: Labels | None = None) -> NDArray[np.bool_]:
        """Return for each node whether k persons have a leaf below it; by default every record is a person."""
        persons = np.arange(len(leaf)) if persons is None else persons
        found = np.zeros(len(self.labels), dtype=bool)
        for level in self.nodes.T.astype(np.int64):
            pairs = np.unique(np.column_stack([level[leaf], persons]), axis=0)
            found |= np.bincount(pairs[:, 0], minlength=len(found)) >= k
        found[self.root] = True  # it says nothing
        return found

    def common(
        self, leaf: Labels, cells: Labels, n_cells: int, lowest: int = 0, shown: NDArray[np.bool_] | None = None
    ) -> Labels:
        """Return the lowest node above all leaves of each cell; shape (n_cells,).

        Parameters
        ----------
        leaf : ndarray of shape (n_records,)
            Leaf of each record, none missing.
        cells : ndarray of shape (n_records,)
            Cell of each record.
        n_cells : int
            Number of cells; a cell without records gets the root.
        lowest : int
            Level below which no node is taken.
        shown : ndarray of shape (n_nodes,), optional
            Which nodes may be taken; the root always, and with a node all above it.
        """
        found = np.full(n_cells, self.root, dtype=np.int64)
        for level in reversed(range(lowest, self.n_levels)):
            at_level = self.nodes[:, level].astype(np.int64)[leaf]
            one = np.full(n_cells, -1, dtype=np.int64)
            one[cells] = at_level
            mixed = np.zeros(n_cells, dtype=bool)
            mixed[cells[at_level != one[cells]]] = True
            hidden = False if shown is None else ~shown[one]
            found = np.where(mixed | (one < 0) | hidden, found, one)
        return found

    def with_leaves(self, texts: Sequence[str]) -> "Hierarchy":
        """Return the hierarchy with further leaves directly under the root."""
        n_old, n_new = self.n_leaves, len(texts)
        moved = np.where(self.nodes >= n_old, self.nodes + n_new, self.nodes)
        own = np.repeat(np.arange(n_old, n_old + n_new)[:, None], self.n_levels, axis=1)
        own[:, -1] = self.root + n_new
        sizes = np.concatenate([self.sizes[:n_old], np.ones(n_new, np.int64), self.sizes[n_old:]])
        sizes[self.root + n_new] += n_new
        labels = (*self.leaves, *texts, *self.labels[n_old:])
        return replace(self, labels=labels, nodes=np.concatenate([moved, own]).astype(np.int32), sizes=sizes)


def leaf_texts(values: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Return values as hierarchy files write them: whole numbers without decimals, dates as 2024-05-31."""
    plain = decoded(values)
    if pa.types.is_floating(plain.type):
        whole = pc.and_(pc.equal(plain, pc.floor(plain)), pc.less(pc.abs(plain), 2.0**53))
        as_whole = nulled(plain, pc.invert(whole)).cast(pa.int64(), safe=False).cast(pa.large_string())
        return pc.coalesce(as_whole, plain.cast(pa.large_string()))
    return plain.cast(pa.large_string())


def _check_rows(rows: list[tuple[str, ...]], what: str) -> None:
    """Refuse rows of different lengths, leaves that occur twice and several roots."""
    n_levels = len(rows[0])
    uneven = next((number for number, row in enumerate(rows, 1) if len(row) != n_levels), None)
    if uneven is not None:
        raise SchemaError(
            f"{what} has {n_levels} levels in row 1 and {len(rows[uneven - 1])} in row {uneven}. Give every row the "
            "same number, repeating a label where a branch has fewer."
        )
    if n_levels < 2:
        raise SchemaError(f"{what} has a single level. Give at least the value and the root, such as value;*.")
    unnamed = next((number for number, row in enumerate(rows, 1) if not all(row[1:])), None)
    if unnamed is not None:
        raise SchemaError(
            f"{what} has an empty label in row {unnamed}; published, it would read as a missing value. Name every "
            "group, and end rows with the root, without a delimiter after it."
        )
    first: dict[str, int] = {}
    for number, row in enumerate(rows, 1):
        if first.setdefault(row[0], number) != number:
            raise SchemaError(
                f"{what} has a leaf twice: rows {first[row[0]]} and {number} are about the same value. Remove one."
            )
    if len({row[-1] for row in rows}) > 1:
        number = next(number for number, row in enumerate(rows, 1) if row[-1] != rows[0][-1])
        raise SchemaError(
            f"{what} has {len({row[-1] for row in rows})} roots: rows 1 and {number} end differently. End every row "
            "with the same label, such as *."
        )


def _numbered(rows: list[tuple[str, ...]], what: str) -> tuple[list[str], Nodes]:
    """Return the labels of the nodes and the node of each leaf at each level.

    A group is a label at a level. One that holds the same leaves as a group of the same label below it is that group:
    a repetition.
    """
    labels = [row[0] for row in rows]
    columns = [np.arange(len(rows), dtype=np.int64)]
    for level in range(1, len(rows[0])):
        below = columns[-1]
        parents: dict[int, tuple[str, int]] = {}
        for number, row in enumerate(rows, 1):
            label, first = parents.setdefault(int(below[number - 1]), (row[level], number))
            if label != row[level]:
                raise SchemaError(
                    f"{what} has inconsistent levels: rows {first} and {number} are in one group at level {level - 1} "
                    f"and in different groups at level {level}. Every group has one parent."
                )
        children: dict[str, list[int]] = {}
        for child, (label, _) in parents.items():
            children.setdefault(label, []).append(child)
        of_child = {}
        for label, members in children.items():
            if len(members) == 1 and labels[members[0]] == label:
                of_child[members[0]] = members[0]
            else:
                of_child |= dict.fromkeys(members, len(labels))
                labels.append(label)
        columns.append(np.array([of_child[int(node)] for node in below], dtype=np.int64))
    return labels, np.stack(columns, axis=1).astype(np.int32)


def _distinct_per_row(nodes: Nodes) -> Nodes:
    """Return the nodes of each leaf with repetitions replaced by -1."""
    repeated = np.zeros(nodes.shape, dtype=bool)
    repeated[:, 1:] = nodes[:, 1:] == nodes[:, :-1]
    return np.where(repeated, -1, nodes).astype(np.int32)


def _first_leaves(hierarchy: Hierarchy) -> Labels:
    """Return the first leaf below each node."""
    first = np.zeros(len(hierarchy.labels), dtype=np.int64)
    for level in hierarchy.nodes.T:
        nodes, leaves = np.unique(level, return_index=True)
        first[nodes] = leaves
    return first


def _check_labels(hierarchy: Hierarchy, what: str) -> None:
    """Refuse a label that stands for groups of which none contains the others: a published one would be ambiguous."""
    of_label: dict[str, list[int]] = {}
    for node, label in enumerate(hierarchy.labels):
        if label.endswith(" or missing"):
            raise SchemaError(
                f"{what} has a label that ends with ' or missing', which is what a release adds where values are "
                "missing. Rename it."
            )
        of_label.setdefault(label, []).append(node)
    leaf = _first_leaves(hierarchy)
    for label, found in of_label.items():
        # A group is inside a larger one if any of its leaves is.
        if len(found) > 1 and not (hierarchy.nodes[leaf[found]] == hierarchy.by_label[label]).any(axis=1).all():
            rows = leaf[found] + 1
            raise SchemaError(
                f"{what} has one label for different groups: rows {rows[0]} and {rows[1]} use it for groups that do "
                "not contain one another, so a published label would be ambiguous. Rename one."
            )
