"""Reading: a column of a truthful release, read for analysis."""

import os
import re
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.columns.coarse.column import Coarse, form_of, read_coarse
from shoal.columns.coarse.layout import gathered
from shoal.columns.coarse.missing import without_missing
from shoal.columns.coarse.ranges import Ranges
from shoal.columns.hierarchy import hierarchy_of, read_hierarchy, rule_of
from shoal.columns.hierarchy.tree import ROOT, leaf_texts
from shoal.errors import ParameterError

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}.*")


def read_published(column: Any, hierarchy: str | os.PathLike[str] | None = None, *, values: Any = None) -> Coarse:
    """Read a published column of intervals, periods, sets or ancestors, for analysis.

    Parameters
    ----------
    column : sequence of str
        A column of a release: of a pandas, polars or Arrow table, or a list.
    hierarchy : path or str, optional
        The hierarchy of a column that is published as ancestors: its file, or its rule, such as ``prefix:1,3``.
    values : sequence, optional
        The values that the column may have, such as all postcodes: what a rule groups. Needed for ``prefix``. Without
        them, the ancestors of ``steps`` are read as intervals and those of ``calendar`` as periods.

    Returns
    -------
    Ranges or Sets
        Intervals as `Ranges`, with ``low``, ``high``, ``midpoint`` and ``draw(seed)``; periods with ``first_day``,
        ``last_day`` and ``draw_days(seed)``, where a single day is read as its month. Sets, and ancestors as the set of
        the values below them, as `Sets`, with ``members``, ``codes`` and ``draw(seed)``.

    Raises
    ------
    ParameterError
        If the column holds something else, or `values` are missing or have no effect.

    Notes
    -----
    A midpoint or a draw treats all values of a range or set as equally likely. Draws of several columns are independent
    of one another: relations between columns within a class are lost, as they are in the release.

    Examples
    --------
    >>> ages = read_published(["[30, 39]", "[40, 44]"])
    >>> ages.low, ages.midpoint
    (array([30., 40.]), array([34.5, 42. ]))
    >>> read_published(["{married, widowed}", "{single}"]).members
    (('married', 'widowed'), ('single',))
    >>> read_published(["[20, 25)", "23", "*"], hierarchy="steps:5,10").low
    array([ 20.,  23., -inf])
    """
    published = gathered(pa.table({"": _as_arrow(column)}), [""])[""]
    rule = None if hierarchy is None else rule_of(os.fspath(hierarchy))
    if values is not None and rule is None:
        raise ParameterError(
            "Values were given without a rule that groups them. Give the rule of the hierarchy, such as prefix:1,3, or "
            "leave the values out: a hierarchy file lists its own."
        )
    if hierarchy is not None and rule is None:
        return read_coarse(published, "ancestor", read_hierarchy(hierarchy))
    if rule is not None:
        return _read_rule(leaf_texts(published), rule, os.fspath(hierarchy or ""), values)
    published = leaf_texts(published)  # years alone are read as numbers
    form = form_of(published, years=True)
    if form is None:
        raise ParameterError(
            "The column holds neither intervals such as [30, 39], nor periods such as 2024-Q2, nor sets such as "
            "{married, widowed}. For ancestors, give their hierarchy."
        )
    return read_coarse(published, form)


def _read_rule(published: pa.ChunkedArray, rule: str, given: str, values: Any) -> Coarse:
    """Read the ancestors of a rule: as sets of the values it groups, or by what their labels say."""
    if values is not None:
        return read_coarse(published, "ancestor", hierarchy_of(given, pa.chunked_array([_as_arrow(values)]), "values"))
    if rule == "prefix":
        raise ParameterError(
            f"The hierarchy {given!r} groups codes by their first characters, and a group does not say which codes it "
            "holds. Give all codes that the column may have: values=..."
        )
    codes = published.combine_chunks().dictionary_encode()
    labels = [without_missing(text) for text in codes.dictionary.to_pylist()]
    of_root = np.array([label == ROOT for label, _ in labels], dtype=bool)
    ranges = Ranges.of([None if label == ROOT else _as_range(label, rule) for label, _ in labels] + [None])
    low, high = (
        np.where([*of_root, False], end, known) for end, known in ((-np.inf, ranges.low), (np.inf, ranges.high))
    )
    missing = np.array([said for _, said in labels] + [False], dtype=bool)
    numbers = np.asarray(codes.indices.fill_null(len(labels)), dtype=np.int64)
    return Ranges(low, high, missing, rule == "calendar").take(numbers)


def _as_range(label: str, rule: str) -> str:
    """Return the interval or period that a label stands for, which may be a single number or day."""
    if rule == "calendar":
        return label[:7] if _DAY.fullmatch(label) else label
    return label if label.startswith("[") else f"[{label}, {label}]"


def _as_arrow(column: Any) -> pa.Array | pa.ChunkedArray:
    """Return a column of any frame as Arrow."""
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column
    return column.to_arrow() if hasattr(column, "to_arrow") else pa.array(column, from_pandas=True)
