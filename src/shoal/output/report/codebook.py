"""Codebook: name, label, kind and treatment of each published column, for those who receive the release."""

from typing import Any

import pyarrow as pa

from shoal.columns.schema import Role, Schema
from shoal.output.report.sentences import kind_in_words, treatment
from shoal.sources import ValueLabels


def codebook(schema: Schema, labels: ValueLabels | None, published: pa.Table, scattered: bool) -> list[dict[str, Any]]:
    """Return an entry for each published column, in their order.

    Parameters
    ----------
    schema : Schema
        Roles, kinds and settings of the columns.
    labels : ValueLabels or None
        Labels that the original file gives to columns and values.
    published : pyarrow.Table
        Published columns; only labelled ones are needed. Labels of values that do not occur in them are
        left out.
    scattered : bool
        Whether numbers were scattered by random aggregation.
    """
    kept = ValueLabels() if labels is None else labels.of(published)
    book = []
    for column in schema.published:
        entry: dict[str, Any] = {
            "name": column.name,
            "label": kept.variables.get(column.name),
            "role": column.role.value,
            "kind": kind_in_words(column.kind),
            "done": treatment(column, scattered),
        }
        if column.name in kept.values:
            values = kept.values[column.name]
            entry["values"] = [{"value": value, "label": values[value]} for value in sorted(values, key=str)]
        if column.role is Role.QUASI and column.settings.round is not None:
            entry["decimals"] = column.settings.round
        if column.grid is not None:
            entry["step"] = float(column.grid.step)
        book.append(entry)
    return book
