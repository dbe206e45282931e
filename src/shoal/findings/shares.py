"""Columns with little information: mostly missing, or constant."""

import pyarrow as pa

from shoal.findings.column_view import ColumnView
from shoal.findings.finding import Finding, Remedy

_MOST = 0.5
_FEW = 1000


def mostly_missing(view: ColumnView) -> Finding | None:
    """Find a column that is missing in most records."""
    if not view.n_records or view.n_missing <= _MOST * view.n_records or not view.n_present:
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
    if view.n_present and (view.n_missing or not _is_constant(view)):
        return None
    return Finding(
        "constant",
        view.name,
        "it has the same value in all records",
        "It does not affect distances, and needs no protection",
        (Remedy("role", view.name, {"other": [view.name]}),),
    )


def _is_constant(view: ColumnView) -> bool:
    """Return whether all present values are equal; the first few records rule out most columns."""
    if view.is_text:
        return len(view.texts) == 1
    return all(_are_equal(values) for values in (view.present.slice(0, _FEW), view.present))


def _are_equal(values: pa.ChunkedArray) -> bool:
    return bool(values.equals(pa.chunked_array([pa.repeat(values[0], len(chunk)) for chunk in values.chunks])))
