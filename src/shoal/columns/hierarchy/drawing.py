"""Drawing: a hierarchy as an indented tree of text."""

from collections.abc import Iterator
from itertools import islice, pairwise

from shoal.columns.hierarchy.tree import Hierarchy


def drawn(tree: Hierarchy, most: int) -> list[str]:
    r"""Return the lines of a drawing, up to a maximum number: lower levels are counted where there is no room for them.

    Examples
    --------
    >>> jobs = Hierarchy.of_rows([("nurse", "health", "*"), ("doctor", "health", "*"), ("cook", "food", "*")])
    >>> print("\n".join(drawn(jobs, most=9)))
    *
    ├─ health
    │  ├─ nurse
    │  └─ doctor
    └─ food
       └─ cook
    >>> print("\n".join(drawn(jobs, most=3)))
    *
    ├─ health (2 values)
    └─ food (1 value)
    """
    children = _children(tree)
    for depth in range(tree.n_levels, 0, -1):
        lines = list(islice(_lines(tree, children, depth), most + 1))
        if len(lines) <= most:
            break
    return lines


def _children(tree: Hierarchy) -> dict[int, list[int]]:
    """Return the nodes directly below each node, in the order of the leaves."""
    found: dict[int, dict[int, None]] = {}
    for path in tree.nodes.tolist():
        for child, parent in pairwise(path):
            if child != parent:
                found.setdefault(parent, {})[child] = None
    return {parent: list(below) for parent, below in found.items()}


def _lines(tree: Hierarchy, children: dict[int, list[int]], depth: int) -> Iterator[str]:
    """Yield the root and what is below it, down to a depth."""
    waiting = [(tree.root, "", "", depth)]  # not by recursion: a hierarchy may be deeper than the stack
    while waiting:
        node, before, indent, depth = waiting.pop()
        below = children.get(node, [])
        n_leaves = int(tree.sizes[node])
        hidden = f" ({n_leaves:,} value{'s' if n_leaves > 1 else ''})" if below and depth == 1 else ""
        yield before + tree.labels[node] + hidden
        branches = [("├─ ", "│  ")] * (len(below) - 1) + [("└─ ", "   ")]
        for child, (branch, trunk) in reversed(list(zip(below, branches, strict=False)) if depth > 1 else []):
            waiting.append((child, indent + branch, indent + trunk, depth - 1))
