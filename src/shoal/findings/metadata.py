"""Metadata: settings of columns taken from a labelled file, unless the user sets them.

The measurement level gives the kind, values declared missing become missing codes, and a column whose values all have
labels is nominal.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shoal.columns.schema import ColumnSettings, Kind, Role, Roles, Schema, natural_kind
from shoal.findings import ColumnView
from shoal.findings.declared import is_labelled
from shoal.sources import ColumnLabels, ValueLabels
from shoal.sources.clean import nulled

Load = Callable[[list[str]], pa.Table]


def described_schema(
    types: pa.Schema,
    roles: Roles,
    settings: Mapping[str, ColumnSettings],
    labels: ValueLabels | None,
    load: Load,
    truthful: bool = False,
) -> Schema:
    """Return the schema of a table whose file describes its columns; `load` returns some of them."""
    plain = Schema.of(types, roles, settings, truthful)
    if labels is None:
        return plain
    described = dict(settings)
    declared: set[str] = set()
    for column in plain.columns:
        about = labels.of_column(column.name)
        if about is None or column.role is Role.IDENTIFIER:
            continue
        found = _settings(column.name, column.type, column.settings, about, load, column.role is Role.QUASI)
        if (about.missing or about.has_special) and column.role is Role.QUASI:
            declared.add(column.name)
        if found:
            described[column.name] = ColumnSettings(**{**column.settings.model_dump(exclude_unset=True), **found})
    schema = Schema.of(types, roles, described, truthful)
    columns = tuple(replace(column, own_missing=column.name in declared) for column in schema.columns)
    return replace(schema, columns=columns)


def described_kind(view: ColumnView) -> Kind | None:
    """Return the kind that the file gives a column, if it gives one that the values can have."""
    about = view.description
    if about is None or natural_kind(view.values.type) is not Kind.NUMERIC:
        return None
    if about.measure in ("nominal", "ordinal"):
        return Kind(about.measure)
    return Kind.NOMINAL if about.measure is None and is_labelled(view, about) else None


def without_declared(values: pa.ChunkedArray, about: ColumnLabels | None) -> pa.ChunkedArray:
    """Return a column with null in place of the values that its file declares missing."""
    codes = () if about is None else declared_codes(values, about)
    return nulled(values, pc.is_in(values, value_set=pa.array(codes, values.type))) if codes else values


def declared_codes(values: pa.ChunkedArray, about: ColumnLabels) -> tuple[Any, ...]:
    """Return the values of a column that its file declares missing and that occur."""
    if not about.missing:
        return ()
    return tuple(sorted(value for value in pc.unique(values).drop_null().to_pylist() if about.is_missing(value)))


def _settings(
    name: str, type_: pa.DataType, given: ColumnSettings, about: ColumnLabels, load: Load, is_quasi: bool
) -> dict[str, Any]:
    """Return the settings from the file that the user has not set."""
    found: dict[str, Any] = {}
    values = load([name])[name]
    if given.kind is None and given.categories is None and natural_kind(type_) is Kind.NUMERIC:
        kind = described_kind(ColumnView(name, values, description=about))
        found |= {"kind": kind} if kind else {}
    if is_quasi and not given.missing_codes:
        codes = declared_codes(values, about)
        found |= {"missing_codes": codes} if codes else {}
    return found
