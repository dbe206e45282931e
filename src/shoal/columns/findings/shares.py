"""Columns with little information: mostly missing, or constant."""

import pyarrow as pa

from shoal.columns.findings.column_view import ColumnView
from shoal.columns.findings.finding import Finding, Remedy

_MOST = 0.5


def mostly_missing(view: ColumnView) -> Finding | None:
    """Find a column that is missing in most records."""
    if not view.n_records or view.n_missing <= _MOST * view.n_records or not len(view.present):
        return None
    return Finding(
        "mostly-missing",
        view.name,
        f"{view.share(view.n_missing)} of the records have no value",
        "A cell publishes a missing value where most of its records have none, so little of the column may be left",
        (Remedy("role", view.name, {"identifiers": [view.name]}),),
    )


def constant(view: ColumnView) -> Finding | None:
    """Find a column with the same value in all records."""
    if view.n_records < 2 or view.kind is None:
        return None
    first = view.present.slice(0, 1)
    if len(first) and (view.n_missing or not view.present.equals(_repeated(view))):
        return None
    return Finding(
        "constant",
        view.name,
        "it has the same value in all records",
        "It does not affect distances, and needs no protection",
        (Remedy("role", view.name, {"other": [view.name]}),),
    )


def _repeated(view: ColumnView) -> pa.ChunkedArray:
    return pa.chunked_array([pa.repeat(view.present[0], len(chunk)) for chunk in view.present.chunks])
