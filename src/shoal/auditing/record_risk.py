"""Risk of single records: which of them stand in classes that are too small. For internal use only."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.columns.equivalence import class_ids, distinct_in_classes, identity_codes
from shoal.columns.schema import as_names
from shoal.errors import ParameterError, SchemaError
from shoal.sources import read


def record_risk(
    table: Any, /, *, quasi_identifiers: Sequence[str] | str, subject: str | None = None, **reading: Any
) -> pa.Table:
    """Say for each record how large its class is, and how likely a guess in it is right.

    Parameters
    ----------
    table : path or frame
        Any table that `shoal.sources.read` takes.
    quasi_identifiers : sequence of str
        The columns that an intruder may know.
    subject : str, optional
        A column that says which records belong to one person: then classes are counted in persons.
    **reading
        How to read a file; see `shoal.sources.read`.

    Returns
    -------
    pyarrow.Table
        ``record`` (from 0, in the order of the table), ``class`` (its number), ``size`` and ``risk``, 1 / size.
        It holds no value of the table, but shows which records are at risk: do not publish it.

    Examples
    --------
    >>> published = pa.table({"age": [30, 30, 50]})
    >>> record_risk(published, quasi_identifiers=["age"]).to_pylist()[2]
    {'record': 2, 'class': 1, 'size': 1, 'risk': 1.0}
    """
    quasi = as_names(quasi_identifiers)
    if not quasi:
        raise SchemaError("No quasi-identifier is named, so there is nothing to count by.")
    arrow = read(table, columns=[*dict.fromkeys([*quasi, *([subject] if subject else [])])], **reading).arrow
    if arrow.num_rows == 0:
        raise ParameterError("The table has no records, so there is nothing to count.")
    classes = class_ids(arrow.select(quasi))
    sizes = distinct_in_classes(classes, identity_codes(arrow[subject])) if subject else np.bincount(classes)
    return pa.table(
        {
            "record": np.arange(len(classes)),
            "class": classes,
            "size": sizes[classes],
            "risk": 1 / sizes[classes],
        }
    )


def below(risks: pa.Table, k: int) -> pa.Table:
    """Return the records in classes smaller than k, the smallest classes first."""
    found = risks.filter(pc.less(risks["size"], k))
    return found.sort_by([("size", "ascending"), ("class", "ascending"), ("record", "ascending")])
