"""Normalised certainty penalty: how much less the exact ranges and sets of the classes say than the records did.

Xu, Wang, Pei, Wang, Shi and Fu, "Utility-based anonymization using local recoding", KDD 2006; for hierarchies,
Ghinita, Karras, Kalnis and Mamoulis, "Fast data anonymization with low information loss", VLDB 2007.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.columns.schema import Schema
from shoal.space.ncp_weights import ncp_columns
from shoal.typing import Labels


@dataclass(frozen=True)
class Ncp:
    """Normalised certainty penalty of a release, from 0 to 1.

    Attributes
    ----------
    ncp : float
        Mean over the records and quasi-identifiers: 0 if every class holds equal records, 1 if nothing is known.
    columns : dict of str to float
        The same for each quasi-identifier.
    """

    ncp: float
    columns: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Return the penalty as plain values, for JSON."""
        return {"ncp": self.ncp, "columns": self.columns}


def ncp(table: pa.Table, schema: Schema, labels_of: Mapping[str, Labels]) -> Ncp:
    """Measure the normalised certainty penalty of the classes of a table.

    Parameters
    ----------
    table : pyarrow.Table
        The prepared records, as `shoal.columns.prepare.prepare` returns them.
    schema : Schema
        How each quasi-identifier is published, which says how it counts: a number by the range of its class over that
        of the column, a category by (different values - 1) over those of the column, a value with a hierarchy by
        (leaves below the common ancestor - 1) over those of the hierarchy.
    labels_of : mapping of str to ndarray of shape (n_records,)
        The class of each record, for each quasi-identifier.

    Returns
    -------
    Ncp
        Counted on exact ranges, before ends are rounded outwards; columns count equally, whatever their weights.

    Notes
    -----
    Takes O(n log n) time in records. Missing values are one more category of a set; a class in which some records have
    a number, or a value with a hierarchy, and others have none has the penalty 1 there.

    Examples
    --------
    >>> from shoal.columns.schema import Roles
    >>> people = pa.table({"age": [20, 30, 40, 60], "sex": ["f", "f", "f", "m"]})
    >>> schema = Schema.of(people.schema, Roles(quasi_identifiers=("age", "sex")))
    >>> labels = np.array([0, 0, 1, 1])
    >>> ncp(people, schema, {"age": labels, "sex": labels}).columns
    {'age': 0.375, 'sex': 0.5}
    """
    columns = {}
    for name, column in ncp_columns(table, schema).items():
        sizes = np.bincount(labels_of[name])
        found = column.ncp_of(labels_of[name], len(sizes))
        columns[name] = float((found * sizes).sum() / max(int(sizes.sum()), 1))
    return Ncp(float(np.mean(list(columns.values()))) if columns else 0.0, columns)
