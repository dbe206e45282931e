"""Schema: its columns with what their coarse values are made from, which follows from all records."""

from dataclasses import replace

import pyarrow as pa

from shoal.columns.coarse.interval_ends import calendar_of, grid_of
from shoal.columns.equivalence import identity_codes
from shoal.columns.hierarchy import Hierarchy, hierarchy_of
from shoal.columns.prepare import is_present
from shoal.columns.schema import Column, Role, Schema
from shoal.errors import SchemaError
from shoal.typing import Labels


def with_coarse_values(schema: Schema, original: pa.Table, k: int) -> Schema:
    """Return the schema with the hierarchies of its columns, and with where their intervals and periods end.

    Parameters
    ----------
    schema : Schema
        The columns and their roles.
    original : pyarrow.Table
        The prepared records, with the subject, if there is one.
    k : int
        Smallest number of records, or of subjects, that share where a range ends.
    """
    subject = schema.roles.counted
    persons = None if subject is None else identity_codes(original[subject])

    def completed(column: Column) -> Column:
        if column.role is not Role.QUASI:
            return column
        values = original[column.name]
        if column.settings.hierarchy is not None:
            return _with_hierarchy(column, values, k, persons)
        if column.form == "interval":
            return replace(column, grid=grid_of(values, column, k, persons))
        if column.form == "period":
            return replace(column, calendar=calendar_of(values, k, persons))
        return column

    return replace(schema, columns=tuple(completed(column) for column in schema.columns))


def _with_hierarchy(column: Column, values: pa.ChunkedArray, k: int, persons: Labels | None) -> Column:
    tree = hierarchy_of(str(column.settings.hierarchy), values, column.name, column.settings.outside)
    _check_level(column, tree)
    if column.form != "ancestor":
        return replace(column, hierarchy=tree)
    there = is_present(values)
    shared = tree.shared(tree.leaf_codes(values)[there], k, persons if persons is None else persons[there])
    return replace(column, hierarchy=tree, shared_nodes=shared)


def _check_level(column: Column, tree: Hierarchy) -> None:
    level = column.settings.level
    if level is not None and level >= tree.n_levels:
        raise SchemaError(
            f"Level {level} of the hierarchy of column {column.name!r} was asked for, but its root is level "
            f"{tree.n_levels - 1}. Levels are counted from the values, which are level 0."
        )
