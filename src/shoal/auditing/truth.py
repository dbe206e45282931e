"""Truth: whether the intervals, sets, ancestors and periods of a published file are true of the people in it.

k-anonymity is recounted from the release alone (`shoal.audit`). This needs the originals, and which of them each
published record is.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.columns.coarse import form_of, read_coarse
from shoal.columns.coarse.completed import with_coarse_values
from shoal.columns.coarse.exposure import n_exposed
from shoal.columns.coarse.layout import gathered
from shoal.columns.equivalence import identity_codes
from shoal.columns.hierarchy import hierarchy_of
from shoal.columns.prepare import prepare
from shoal.columns.schema import Column, ColumnSettings, Roles, as_names, as_settings
from shoal.errors import ParameterError, SchemaError
from shoal.findings.metadata import described_schema
from shoal.job import Job
from shoal.measures.recount import Truth
from shoal.output.manifest import manifest_of, read_internal
from shoal.sources import Table, format_of, read
from shoal.sources.clean import empty_made_missing


def audit_truth(
    release: Any,
    original: Any,
    *,
    quasi_identifiers: Sequence[str] | str,
    manifest: str | os.PathLike[str] | None = None,
    same_order: bool = False,
    columns: Mapping[str, Any] | None = None,
    reading: Mapping[str, Any] | None = None,
    release_reading: Mapping[str, Any] | None = None,
) -> tuple[Truth, ...]:
    """Compare every published interval, set, ancestor and period with the values of the people who show it.

    Parameters
    ----------
    release, original : path or frame
        The published table and the original it was made from, with the same number of records.
    quasi_identifiers : sequence of str
        The columns to compare, by their names in the original. Columns that are published close to the originals, such
        as means, are left out.
    manifest : path, optional
        The internal manifest of the release, which maps originals to published records and says how columns were
        prepared; by default the one beside the file.
    same_order : bool
        Without a manifest: the records of the release are in the order of the original, as other tools leave them.
    columns : dict of str to dict, optional
        Without a manifest: settings of single columns, such as the hierarchy of ancestors or missing codes.
    reading, release_reading : dict, optional
        How to read the files; see `shoal.sources.read`. By default the original is read as the manifest says.

    Returns
    -------
    tuple of Truth
        The count of false records for each column; with a manifest, also of those that show where fewer than k people
        are.

    Raises
    ------
    ParameterError
        If nothing says which record is which, or the numbers of records differ.
    SchemaError
        If a column is not in both tables.

    Examples
    --------
    >>> people = pa.table({"age": [31, 38, 52, 57]})
    >>> published = pa.table({"age": ["[30, 39]", "[30, 39]", "[50, 55]", "[50, 55]"]})
    >>> audit_truth(published, people, quasi_identifiers="age", same_order=True)
    (Truth(column='age', form='interval', n_values=2, n_false=1, n_exposed=None),)
    """
    names = as_names(quasi_identifiers)
    table = read(release, **(release_reading or {}))
    rows, job = _mapping(release, table, manifest, same_order)
    if job is not None and columns:
        raise ParameterError(
            "The manifest says how columns were prepared; settings of columns cannot be given with it."
        )
    settings = as_settings(columns) if job is None else job.columns
    if reading is None and job is not None and job.input is not None:
        reading = job.input.reading()
    subject = () if job is None or job.roles.subject is None else (job.roles.subject,)
    source = read(original, columns=[*dict.fromkeys([*names, *subject])], **(reading or {}))
    tells_empty = table.path is None or format_of(table.path)[1].tells_empty
    published = table.arrow if tells_empty else empty_made_missing(table.arrow)
    absent = [name for name in names if not {name, f"{name}.low"} & set(published.column_names)]
    if absent:
        raise SchemaError(f"The release has no column {absent[0]!r}. Columns: {', '.join(published.column_names)}.")
    if published.num_rows != source.n_records:
        raise ParameterError(
            f"The release has {published.num_rows:,} records and the original {source.n_records:,}; both must hold the "
            "same people."
        )
    own = as_settings({name: _uncoded(given) for name, given in settings.items() if name in names})
    roles, truthful = Roles(quasi_identifiers=tuple(names)), job is not None and job.truthful
    types = pa.schema([source.types.field(name) for name in names])
    schema = described_schema(types, roles, own, source.labels, source.load, truthful)
    people = prepare(source.load(names), schema, "own-value")
    shown = gathered(published, names)
    found = [_truth(column, people[column.name], shown[column.name], rows) for column in schema.quasi]
    exposed = {} if job is None else _exposed(job, source, names, shown)
    return tuple(replace(truth, n_exposed=exposed.get(truth.column)) for truth in found if truth is not None)


def _exposed(job: Job, source: Table, names: Sequence[str], shown: pa.Table) -> dict[str, int | None]:
    """Count for each column the records that show where fewer than k people are, with the steps made once more."""
    roles = Roles(quasi_identifiers=tuple(names), subject=job.roles.subject)
    settings = {name: job.columns[name] for name in names if name in job.columns}
    schema = described_schema(source.types, roles, settings, source.labels, source.load, job.truthful)
    people = prepare(source.load(list(source.types.names)), schema, "own-value")
    schema = with_coarse_values(schema, people, job.k)
    persons = None if roles.subject is None else identity_codes(people[roles.subject])
    return {
        column.name: n_exposed(shown[column.name], column, people[column.name], job.k, persons)
        for column in schema.quasi
        if column.is_true
    }


def _uncoded(settings: ColumnSettings) -> dict[str, Any]:
    """Return settings without top and bottom codes: values beyond them are compared with the open end itself."""
    return settings.model_dump(exclude_unset=True, exclude={"top", "bottom"})


def _mapping(
    release: Any, shown: Table, manifest: str | os.PathLike[str] | None, same_order: bool
) -> tuple[np.ndarray[Any, np.dtype[np.int64]] | None, Job | None]:
    """Return the original of each published record, None if they are in the same order, and the job if it is known."""
    found = manifest_of(release, manifest, same_order)
    if found is not None:
        internal = read_internal(found, beside=shown if manifest is None else None)
        return internal.rows, internal.job
    if not same_order:
        raise ParameterError(
            "Nothing says which published record belongs to which original. Give the internal manifest of the release "
            "(manifest=...), or say that the records are in the same order: same_order=True."
        )
    return None, None


def _truth(
    column: Column, own: pa.ChunkedArray, shown: pa.ChunkedArray, rows: np.ndarray[Any, np.dtype[np.int64]] | None
) -> Truth | None:
    """Compare one column; None if it is not published as coarse values."""
    settings = column.settings
    form = column.form or form_of(shown)
    if form is None:
        return None
    tree = None if settings.hierarchy is None else hierarchy_of(settings.hierarchy, own, column.name, settings.outside)
    found = read_coarse(shown, form, tree)
    values = own if rows is None else own.take(pa.array(rows))
    return Truth(column.name, form, len(shown.unique()), int(np.count_nonzero(~found.holds(values))))
