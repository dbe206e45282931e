"""Auditing: published tables examined, from shoal or from another tool: what they promise, and what intruders learn.

`audit` recounts; `shoal.auditing.attacks` tries attacks. The numbers that both share with a release are in
`shoal.measures`, which knows arrays and prepared tables only; what is asked here starts with a file.
"""

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from shoal.auditing.truth import Originals, truth_of
from shoal.columns.coarse import form_of
from shoal.columns.coarse.layout import gathered
from shoal.columns.schema import as_names, as_settings
from shoal.errors import ParameterError, SchemaError, ShoalWarning
from shoal.measures.recount import Question, Truth, Verdict, recount
from shoal.models import Model
from shoal.sources import Table, read
from shoal.spelling import named, setting


def audit(
    table: Any,
    /,
    *,
    quasi_identifiers: Sequence[str] | str,
    k: int | None = None,
    confidential: Sequence[str] | str = (),
    models: Sequence[Model] | Model = (),
    subject: str | None = None,
    household: str | None = None,
    keep_link: Literal["subject", "household"] | None = None,
    columns: Mapping[str, Any] | None = None,
    original: Any = None,
    manifest: str | os.PathLike[str] | None = None,
    same_order: bool = False,
    original_reading: Mapping[str, Any] | None = None,
    records: bool = False,
    memory: str | None = None,
    **reading: Any,
) -> Verdict:
    """Recount the guarantees of a published table.

    Parameters
    ----------
    table : path or frame
        Any table that `shoal.sources.read` accepts; from shoal or from another tool.
    quasi_identifiers : sequence of str
        The columns that an intruder may know.
    k : int, optional
        Minimum size of every class; without it the verdict only reports the sizes found.
    confidential : sequence of str
        Columns whose l-diversity and t-closeness are measured.
    models : sequence of Model
        Models that every class must satisfy, such as ``shoal.TCloseness("salary", t=0.1)``.
    subject : str, optional
        Column that identifies the person of each record: k then counts different persons, and models must also hold
        with each person counted once for each value.
    household : str, optional
        Column that identifies households, for `keep_link`.
    keep_link : {"subject", "household"}, optional
        The records of that column are linked: whole histories are compared as well, k counts those that are identical,
        and models must also hold at each place of them and for persons (``docs/linked.md``). Records whose link is
        missing are counted as records.
    columns : dict of str to dict, optional
        Settings of single columns; an ordinal confidential column needs its order here. For a quasi-identifier that is
        compared with originals and has no manifest: how the originals were prepared, such as a hierarchy of ancestors.
    original : path or frame, optional
        The table that the release was made from, with the same number of records: every published interval, set,
        ancestor and period is compared with the values of the people who show it.
    manifest : path, optional
        For `original`: the internal manifest of the release, which maps originals to published records and says how
        columns were prepared; by default the one beside the file.
    same_order : bool
        For `original`, without a manifest: both tables have their records in the same order, as other tools leave them.
    original_reading : dict, optional
        How to read the file of the originals; see `shoal.sources.read`. By default it is read as the manifest says.
    records : bool
        Whether to return class, size and risk of every record, as `Verdict.records`.
    memory : str, optional
        How much memory may be used, such as ``"2GB"``: a file, or a folder of Parquet files, is then counted in parts.
        With a subject, distances (t) are those from the distribution of the records.
    **reading
        How to read the file of the published table; see `shoal.sources.read`.

    Returns
    -------
    Verdict
        `holds` is True if every class has k records and satisfies every model, and no published value is false or
        shows where fewer than k people are; `require` raises otherwise.

    Raises
    ------
    SchemaError
        If a column is not in the table, or the column of a model is not confidential.
    ParameterError
        If nothing says which record is which original, or what is asked for needs all records in memory.

    Notes
    -----
    Takes O(n log n) time in records.

    Examples
    --------
    >>> import pyarrow as pa
    >>> published = pa.table({"age": [30, 30, 50, 50, 50], "disease": ["flu", "cold", "flu", "flu", "flu"]})
    >>> verdict = audit(published, quasi_identifiers=["age"], confidential=["disease"], k=2)
    >>> verdict.holds, verdict.smallest, verdict.confidential["disease"].distinct
    (True, 2, 1)
    >>> published = pa.table({"age": ["[30, 39]", "[30, 39]", "[50, 55]", "[50, 55]"]})
    >>> people = pa.table({"age": [31, 38, 52, 57]})
    >>> audit(published, quasi_identifiers="age", original=people, same_order=True).truth
    (Truth(column='age', form='interval', n_values=2, n_false=1, n_exposed=None),)
    """
    if original is None and (manifest is not None or same_order):
        raise ParameterError(
            f"{setting('manifest')} and {setting('same_order', True)} say which original each record is, but there are "
            f"no originals. Give them, {setting('original', 'people.csv')}, or leave this out."
        )
    if memory is not None and (records or original is not None or keep_link is not None):
        raise ParameterError(
            f"Single records, originals and linked records need all records in memory. Leave them out, or "
            f"{named('memory')}."
        )
    quasi, settings = as_names(quasi_identifiers), as_settings(columns)
    of_originals = {} if original is None else {name: settings.pop(name) for name in quasi if name in settings}
    asked = Question.of(quasi, k, confidential, models, subject, settings, household, keep_link)
    if memory is not None:
        from shoal.engines.disk.recounting import recount_in_parts  # a file that fits into memory does without

        return recount_in_parts(table, asked, memory, reading)
    source = _read(table, asked.needed, reading)
    for text in source.receipt.notes:
        warnings.warn(text, ShoalWarning, stacklevel=2)
    arrow = gathered(source.arrow, asked.needed)
    if arrow.num_rows == 0:
        raise ParameterError("The table has no records, so there is nothing to count.")
    subjects = asked.subjects(arrow)
    verdict = recount(arrow, asked.schema(arrow.schema), asked.k, subjects, asked.models, records=records)
    if original is not None:
        originals = Originals(original, manifest, same_order, of_originals, original_reading)
        return replace(verdict, truth=truth_of(table, source, asked.quasi, originals))
    forms = {name: form_of(arrow[name]) for name in asked.quasi}
    truth = [Truth(name, form, len(arrow[name].unique()), None) for name, form in forms.items() if form is not None]
    return replace(verdict, truth=tuple(truth))


def _read(table: Any, names: list[str], reading: dict[str, Any]) -> Table:
    """Read the columns to count; an interval that has columns of its own for its ends may be named as one."""
    try:
        return read(table, columns=names, **reading)
    except SchemaError:
        whole = read(table, **reading)
        if not all({name, f"{name}.low"} & set(whole.names) for name in names):
            raise
        return whole
