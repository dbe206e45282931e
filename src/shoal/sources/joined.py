"""Joined tables: a table of records and others with one record for each person, read as one.

The records of the first table are all there, each with what the others say about its person. Persons without a record
are counted and left out, since nothing in the first table is about them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import SchemaError, listed
from shoal.sources.labelled_files import ValueLabels
from shoal.sources.table import Table
from shoal.spelling import setting
from shoal.typing import Labels


@dataclass(frozen=True, eq=False)
class OfPersons:
    """A table with one record for each person.

    Attributes
    ----------
    table : Table
    key : str
        Its column that names the persons.
    output : str
        File for its release.
    """

    table: Table
    key: str
    output: str

    @property
    def names(self) -> list[str]:
        """Its columns without the key."""
        return [name for name in self.table.names if name != self.key]

    @property
    def title(self) -> str:
        """What messages call it."""
        return self.table.path.name if self.table.path is not None else "the table of persons"


def joined(records: Table, link: str, others: Sequence[OfPersons]) -> tuple[Table, int]:
    """Return the records with the columns of the other tables, and the number of persons who have no record.

    Parameters
    ----------
    records : Table
        Its column `link` names the person of each record.
    others : sequence of OfPersons
        None has a column of another table, except for the key.

    Raises
    ------
    SchemaError
        If a key is missing or occurs twice, a record has no person in another table, or a column is in two tables.
    """
    fields, labels, n_without = list(records.types), records.labels or ValueLabels(), 0
    sources: list[tuple[Table, Labels | None]] = [(records, None)]
    whom = records.load([link])[link]
    for other in others:
        twice = sorted({field.name for field in fields} & set(other.names))
        if twice:
            raise SchemaError(
                f"Several of the tables have a column {listed(twice)}. Rename it in one of them, so that each name is "
                "unique."
            )
        places = _places(whom, other)
        n_without = max(n_without, other.table.n_records - len(np.unique(places)))
        fields += [other.table.types.field(name) for name in other.names]
        sources.append((other.table, places))
        labels = labels.with_others(other.table.labels or ValueLabels())

    def load(names: Sequence[str]) -> pa.Table:
        found: dict[str, pa.ChunkedArray] = {}
        for table, places in sources:
            columns = table.load([name for name in names if name in table.names and name not in {*found, link}])
            rows = None if places is None else pa.array(places)
            found |= {
                name: columns[name] if rows is None else columns[name].take(rows) for name in columns.column_names
            }
        return pa.table({name: whom if name == link else found[name] for name in names})

    return replace(records, types=pa.schema(fields), labels=labels, _load=load), n_without


def _places(whom: pa.ChunkedArray, other: OfPersons) -> Labels:
    """Return the record of each person in another table."""
    if other.key not in other.table.names:
        raise SchemaError(
            f"The table {other.title!r} has no column {other.key!r}, which names the person. If another does, name it "
            f"in [[tables]]: {setting('key', 'COLUMN')}. Columns: {listed(other.table.names)}."
        )
    keys = other.table.load([other.key])[other.key]
    if keys.type != whom.type:
        keys, whom = keys.cast(pa.string()), whom.cast(pa.string())
    n_twice = len(keys) - len(pc.unique(keys))
    if keys.null_count or n_twice:
        raise SchemaError(
            f"Each record of {other.title!r} is a person, named by column {other.key!r}, but {keys.null_count:,} "
            f"records have no name and {n_twice:,} repeat one. Correct the keys."
        )
    places = pc.index_in(whom, value_set=keys.combine_chunks())
    if places.null_count:
        raise SchemaError(
            f"{places.null_count:,} of {len(whom):,} records belong to no person in {other.title!r} (column "
            f"{other.key!r}). Add the persons, or leave these records out."
        )
    found: Labels = places.to_numpy().astype(np.int64)
    return found
