"""Prefix: codes whose first characters name their group, such as postcodes, ICD, NACE and ISCO codes."""

import pyarrow as pa
import pyarrow.compute as pc

from shoal.columns.hierarchy.tree import ROOT, Hierarchy, leaf_texts
from shoal.errors import SchemaError


def prefix(values: pa.ChunkedArray, arguments: list[str], what: str) -> Hierarchy:
    """Group codes by their first characters; `arguments` holds the lengths, as in ``prefix:1,3,5``.

    A group is written with a star for each character that it leaves out, ``43***``, or with one star where codes differ
    in length.

    Examples
    --------
    >>> zips = prefix(pa.chunked_array([["43002", "43007", "50001"]]), ["2"], "prefix:2")
    >>> [zips.labels[node] for node in zips.nodes[1]]
    ['43007', '43***', '*']
    """
    lengths = _lengths(arguments, what)
    codes = pc.unique(leaf_texts(values).drop_null())
    codes = codes.take(pc.sort_indices(codes)).to_pylist()
    width = max((len(code) for code in codes), default=0)
    if lengths[-1] > width:
        raise SchemaError(
            f"{what} asks for groups by the first {lengths[-1]} characters, but the longest code has {width}. Give "
            "smaller lengths."
        )
    stars = width if min(map(len, codes)) == width else None
    rows = [(code, *(_cut(code, length, stars) for length in reversed(lengths)), ROOT) for code in codes]
    return Hierarchy.of_rows(rows, what)


def _cut(code: str, length: int, width: int | None) -> str:
    """Return the label of the codes that start like one."""
    if width is None:
        return code if len(code) < length else f"{code[:length]}*"
    return code[:length].ljust(width, "*")


def _lengths(arguments: list[str], what: str) -> list[int]:
    if not arguments or not all(argument.isdecimal() and int(argument) > 0 for argument in arguments):
        raise SchemaError(f"{what} needs the lengths of the prefixes: whole numbers such as prefix:1,3,5.")
    lengths = [int(argument) for argument in arguments]
    if sorted(set(lengths)) != lengths:
        raise SchemaError(f"{what} needs its lengths in ascending order, each once, such as prefix:1,3,5.")
    return lengths
