"""Truth: whether the intervals, sets, ancestors and periods of a published file are true of the people in it.

k-anonymity is recounted from the release alone. This needs the originals, and which of them each published record is.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from shoal.columns.coarse import form_of, read_coarse
from shoal.columns.coarse.exposure import n_exposed
from shoal.columns.coarse.layout import gathered
from shoal.columns.coarse.schema import with_coarse_values
from shoal.columns.equivalence import identity_codes
from shoal.columns.hierarchy import hierarchy_of
from shoal.columns.prepare import prepare
from shoal.columns.schema import Column, ColumnSettings, Roles, as_settings
from shoal.errors import ParameterError
from shoal.findings.metadata import described_schema
from shoal.job import Job
from shoal.measures.recount import Truth
from shoal.output.manifest import internal_of
from shoal.sources import Table, format_of, read
from shoal.sources.clean import empty_made_missing
from shoal.sources.reading import as_reading
from shoal.spelling import setting


class Originals(NamedTuple):
    """The originals of a release, and what says which of them each published record is."""

    table: Any
    manifest: str | os.PathLike[str] | None
    same_order: bool
    settings: Mapping[str, ColumnSettings]
    """How quasi-identifiers were prepared, where no manifest says so."""
    reading: Mapping[str, Any] | None


def truth_of(release: Any, table: Table, names: Sequence[str], originals: Originals) -> tuple[Truth, ...]:
    """Compare every published interval, set, ancestor and period with the values of the people who show it.

    Parameters
    ----------
    release : path or frame
        The published table, beside which there may be a manifest.
    table : Table
        The same, read.
    names : sequence of str
        The columns to compare, by their names in the original. Columns that are published close to the originals, such
        as means, are left out.
    originals : Originals
        What they are compared with.

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
    """
    internal = internal_of(release, table, originals.manifest, originals.same_order)
    if internal is None and not originals.same_order:
        raise ParameterError(
            "Nothing says which published record belongs to which original. Give the internal manifest of the release "
            f"({setting('manifest')}), or say that the records are in the same order: {setting('same_order', True)}."
        )
    job, rows = (None, None) if internal is None else (internal.job, internal.rows)
    if job is not None and originals.settings:
        raise ParameterError(
            "The manifest says how columns were prepared; settings of quasi-identifiers cannot be given with it."
        )
    settings = originals.settings if job is None else job.columns
    reading = originals.reading
    if reading is None and job is not None and job.input is not None:
        reading = job.input.reading()
    subject = () if job is None or job.roles.counted is None else (job.roles.counted,)
    source = read(originals.table, columns=[*dict.fromkeys([*names, *subject])], **as_reading(reading))
    source = source if internal is None else internal.of_input(source)
    tells_empty = table.path is None or format_of(table.path)[1].tells_empty
    published = table.arrow if tells_empty else empty_made_missing(table.arrow)
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
    roles = Roles(quasi_identifiers=tuple(names), subject=job.roles.counted)
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
