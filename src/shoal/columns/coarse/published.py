"""Published: a column of a truthful release, read for analysis."""

import os
from typing import Any

import pyarrow as pa

from shoal.columns.coarse.column import Coarse, form_of, read_coarse
from shoal.columns.coarse.layout import gathered
from shoal.columns.hierarchy import read_hierarchy
from shoal.columns.hierarchy.tree import leaf_texts
from shoal.errors import ParameterError


def read_published(column: Any, hierarchy: str | os.PathLike[str] | None = None) -> Coarse:
    """Read a published column of intervals, periods, sets or ancestors, for analysis.

    Parameters
    ----------
    column : sequence of str
        A column of a release: of a pandas, polars or Arrow table, or a list.
    hierarchy : path, optional
        The hierarchy file of a column that is published as ancestors.

    Returns
    -------
    Ranges or Sets
        Intervals as `Ranges`, with ``low``, ``high``, ``midpoint`` and ``draw(seed)``; periods with ``first_day``,
        ``last_day`` and ``draw_days(seed)``. Sets, and ancestors as the set of the values below them, as `Sets`, with
        ``members``, ``codes`` and ``draw(seed)``.

    Raises
    ------
    ParameterError
        If the column holds something else.

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
    """
    values = gathered(pa.table({"": _as_arrow(column)}), [""])[""]
    if hierarchy is not None:
        return read_coarse(values, "ancestor", read_hierarchy(hierarchy))
    values = leaf_texts(values)  # years alone are read as numbers
    form = form_of(values, years=True)
    if form is None:
        raise ParameterError(
            "The column holds neither intervals such as [30, 39], nor periods such as 2024-Q2, nor sets such as "
            "{married, widowed}. For ancestors, give their hierarchy."
        )
    return read_coarse(values, form)


def _as_arrow(column: Any) -> pa.Array | pa.ChunkedArray:
    """Return a column of any frame as Arrow."""
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column
    return column.to_arrow() if hasattr(column, "to_arrow") else pa.array(column, from_pandas=True)
