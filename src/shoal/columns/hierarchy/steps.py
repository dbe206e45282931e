"""Steps: numbers in ranges of growing width."""

import math
from decimal import Context, Decimal, InvalidOperation, localcontext
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from shoal.columns.hierarchy.tree import ROOT, Hierarchy, leaf_texts
from shoal.columns.prepare import decoded
from shoal.errors import SchemaError

_EXACT = Context(prec=1_000)
"""Digits enough for any float and any width."""


def steps(values: pa.ChunkedArray, arguments: list[str], what: str) -> Hierarchy:
    """Group numbers in half-open ranges; `arguments` holds the widths, as in ``steps:5,10,20``.

    Each width is a multiple of the one before, so that ranges contain one another. Ranges start at multiples of their
    width.

    Examples
    --------
    >>> ages = steps(pa.chunked_array([[17, 23, 38]]), ["5", "10"], "steps:5,10")
    >>> [ages.labels[node] for node in ages.nodes[1]]
    ['23', '[20, 25)', '[20, 30)', '*']
    """
    widths = _widths(arguments, what)
    numbers = pc.unique(decoded(values).drop_null())
    if not (pa.types.is_integer(numbers.type) or pa.types.is_floating(numbers.type)):
        raise SchemaError(f"{what} groups numbers, but the column holds {numbers.type}. Give another hierarchy.")
    texts = leaf_texts(numbers.take(pc.sort_indices(numbers))).to_pylist()
    with localcontext(_EXACT):
        levels = [[_range(Decimal(text), width) for text in texts] for width in widths]
    return Hierarchy.of_rows(zip(texts, *levels, [ROOT] * len(texts), strict=True), what)


def _range(number: Decimal, width: Decimal) -> str:
    """Return the range that holds a number, both as they are written: in binary, 0.3 / 0.1 is below 3."""
    low = number // width * width
    low -= width * (low > number)  # whole parts are cut towards zero
    return f"[{_written(low)}, {_written(low + width)})"


def _written(end: Decimal) -> str:
    return f"{end.normalize():f}" if end else "0"


def _widths(arguments: list[str], what: str) -> list[Decimal]:
    try:
        widths = [Decimal(argument) for argument in arguments]
    except InvalidOperation:
        widths = []
    if not widths or not all(width.is_finite() and 0 < float(width) < math.inf for width in widths):
        raise SchemaError(f"{what} needs the widths of the ranges: numbers above 0 such as steps:5,10,20.")
    for small, large in pairwise(widths):
        if large <= small or _EXACT.remainder(large, small):
            raise SchemaError(
                f"{what} needs widths of which each is a multiple of the one before, such as steps:5,10,20; otherwise "
                "ranges would not contain one another."
            )
    return widths
