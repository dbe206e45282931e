"""Steps: numbers in ranges of growing width."""

import math
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.columns.hierarchy.tree import ROOT, Hierarchy, leaf_texts
from shoal.columns.prepare import decoded
from shoal.errors import SchemaError


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
    numbers = numbers.take(pc.sort_indices(numbers))
    found = np.asarray(numbers.cast(pa.float64(), safe=False))
    texts = leaf_texts(numbers).to_pylist()
    levels = [[_range(number, width) for number in found] for width in widths]
    return Hierarchy.of_rows(zip(texts, *levels, [ROOT] * len(texts), strict=True), what)


def _range(number: float, width: float) -> str:
    # Multiples of a decimal width, without the digits that binary arithmetic adds.
    start = math.floor(number / width)
    low, high = (f"{round(place * width, 12):.15g}" for place in (start, start + 1))
    return f"[{low}, {high})"


def _widths(arguments: list[str], what: str) -> list[float]:
    try:
        widths = [float(argument) for argument in arguments]
    except ValueError:
        widths = []
    if not widths or not all(math.isfinite(width) and width > 0 for width in widths):
        raise SchemaError(f"{what} needs the widths of the ranges: numbers above 0 such as steps:5,10,20.")
    for small, large in pairwise(widths):
        if large <= small or abs(large / small - round(large / small)) > 1e-9:
            raise SchemaError(
                f"{what} needs widths of which each is a multiple of the one before, such as steps:5,10,20; otherwise "
                "ranges would not contain one another."
            )
    return widths
