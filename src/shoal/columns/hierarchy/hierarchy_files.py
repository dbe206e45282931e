"""Hierarchy files: ARX's (leaf;level 1;...;*), and lists of child and parent. No header, or one that says child,parent.

A file with two columns is a list of child and parent; one with a single level of groups reads the same either way.
"""

import csv
import io
import os
from pathlib import Path

from shoal.columns.hierarchy.tree import Hierarchy
from shoal.errors import FileError, SchemaError

_DELIMITERS = ";\t|,"

Rows = list[tuple[str, ...]]


def read_hierarchy(path: str | os.PathLike[str]) -> Hierarchy:
    """Read and check a hierarchy file.

    Raises
    ------
    FileError
        If the file cannot be read or is not UTF-8 text.
    SchemaError
        If it is not a hierarchy: a cycle, several roots, a leaf twice, inconsistent levels.
    """
    name = os.fspath(path)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise FileError(f"The hierarchy file {name!r} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise FileError(f"The hierarchy file {name!r} is not UTF-8 text.") from None
    what = f"The hierarchy in {name!r}"
    try:
        rows = _rows(text, what)
    except csv.Error:
        raise FileError(
            f"The hierarchy file {name!r} cannot be split into fields: a quote is probably opened and never closed."
        ) from None
    if rows and len(rows[0]) == 2:
        return Hierarchy.of_rows(_from_parents(_without_header(rows), what), what)
    return Hierarchy.of_rows(rows, what)


def _rows(text: str, what: str) -> Rows:
    """Split the text at the first delimiter that gives all rows the same number of fields, at least two."""
    found = [_fields(text, delimiter) for delimiter in _DELIMITERS]
    several = [rows for rows in found if rows and len(rows[0]) > 1]
    even = [rows for rows in several if len({len(row) for row in rows}) == 1]
    if several:
        return (even or several)[0]  # the check of the levels explains rows of different lengths
    raise SchemaError(
        f"{what} is not a table of values and groups. Give a line for each value: the value, its groups and the root, "
        "separated by semicolons; or lines of child and parent."
    )


def _fields(text: str, delimiter: str) -> Rows:
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows = [tuple(field.strip() for field in row) for row in lines]
    return [row for row in rows if any(row)]


def _without_header(rows: Rows) -> Rows:
    return rows[1:] if [name.lower() for name in rows[0]] == ["child", "parent"] else rows


def _from_parents(rows: Rows, what: str) -> Rows:
    """Return the labels of each leaf up to the root; leaves of short branches are repeated."""
    parent: dict[str, str] = {}
    for number, (child, above) in enumerate(rows, 1):
        if not above or above == child:
            continue  # the root, written with no parent or with itself
        if child in parent:
            raise SchemaError(
                f"{what} has a leaf or group twice: row {number} gives a second parent to a child that has one. Every "
                "child has one parent."
            )
        parent[child] = above
    roots = {above for above in parent.values() if above not in parent} | {child for child, _ in rows} - set(parent)
    if len(roots) > 1:
        raise SchemaError(
            f"{what} has {len(roots)} roots: labels without a parent. Give all but one a parent, such as *."
        )
    inner = set(parent.values())
    paths = [_path(leaf, parent, what) for leaf in parent if leaf not in inner]
    if not roots or not _all_reached(paths, parent):
        raise _cycle(what)
    depth = max(len(path) for path in paths)
    return [(path[0],) * (depth - len(path)) + path for path in paths]


def _path(leaf: str, parent: dict[str, str], what: str) -> tuple[str, ...]:
    """Return the labels from a leaf to the root."""
    path = [leaf]
    while path[-1] in parent:
        path.append(parent[path[-1]])
        if len(path) > len(parent) + 1:
            raise _cycle(what)
    return tuple(path)


def _all_reached(paths: list[tuple[str, ...]], parent: dict[str, str]) -> bool:
    """Return whether every label lies above a leaf; one that does not is part of a cycle."""
    return set(parent) <= {label for path in paths for label in path}


def _cycle(what: str) -> SchemaError:
    return SchemaError(
        f"{what} has a cycle: following the parents of some label leads back to it, and never to a root. Correct the "
        "parent of one of its labels."
    )
