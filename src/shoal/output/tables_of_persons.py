"""Tables of persons: what is written beside linked records, a file for each further table of the same persons.

Each has one record for a person whose records stay linked, with the same new identifier. What is recounted is the join
of all files, as a reader makes it.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.columns.coarse.layout import laid_out
from shoal.columns.equivalence import class_ids
from shoal.errors import GuaranteeError
from shoal.output.places import FileTable, Published, TableOfOneMachine
from shoal.output.published_order import published_order
from shoal.sources import write_into
from shoal.sources.clean import publishable
from shoal.sources.joined import OfPersons
from shoal.sources.labelled_files import ValueLabels


def without_tables(columns: Published, others: Sequence[OfPersons]) -> Published:
    """Return the published columns of the linked records alone."""
    theirs = {name for other in others for name in other.names}
    own = tuple(column for column in columns.schema.columns if column.name not in theirs)
    return replace(columns, schema=replace(columns.schema, columns=own))


def published_persons(columns: Published, other: OfPersons) -> pa.Table:
    """Return the release of a table of persons, in an order that follows from what is published.

    Raises
    ------
    GuaranteeError
        If records of a person say different things about her.
    """
    link = columns.schema.link
    assert link is not None
    names = [column.name for column in columns.schema.published if column.name in other.names]
    whole = laid_out(columns.select([link.name, *names]), columns.schema, "text")
    numbers = whole[link.name].to_numpy(zero_copy_only=False)
    linked = np.flatnonzero(np.asarray(whole[link.name].is_valid()))
    first = linked[np.unique(numbers[linked], return_index=True)[1]]
    if int(class_ids(whole.take(pa.array(linked))).max()) + 1 != len(first):
        raise GuaranteeError(
            f"The records of a person differ in the columns of {other.title!r}, so that the tables do not fit. Nothing "
            "was released. This is a bug in shoal; please report it."
        )
    persons = whole.take(pa.array(first)).rename_columns([other.key, *names])
    return persons.take(pa.array(published_order(persons.columns, len(first))))


@contextmanager
def begun_with_persons(
    begun: AbstractContextManager[tuple[TableOfOneMachine, dict[Path, Path]]], others: Sequence[OfPersons]
) -> Iterator[tuple[TableOfOneMachine, dict[Path, Path]]]:
    """Yield what is yielded, with the tables of persons in their files."""
    with begun as (table, beside):
        yield WithPersons(table, {other: FileTable(beside[Path(other.output)]) for other in others}), beside


@dataclass
class WithPersons:
    """A table of linked records, and the tables of their persons, which are read back as their join."""

    records: TableOfOneMachine
    persons: Mapping[OfPersons, FileTable]

    def write(self, published: Published, rows: NDArray[np.int64] | None) -> None:
        """Write the columns of each table."""
        self._published, self._rows = published, rows
        self.records.write(without_tables(published, list(self.persons)), rows)
        for other, file in self.persons.items():
            labels = other.table.labels or ValueLabels()
            like = replace(other.table, labels=labels.without(other.key))
            write_into(publishable(published_persons(published, other)), file.path, like=like)

    def read_back(self, names: Sequence[str], coded: Sequence[str] = ()) -> pa.Table:
        """Return some columns of the join, as a reader makes it.

        Records without the link have no person there; they have what was published before the tables were taken apart,
        in which their classes are no larger.
        """
        link = self._published.schema.link
        assert link is not None
        theirs = {name for other in self.persons for name in other.names}
        own, others = ([name for name in some if name not in theirs] for some in (names, coded))
        found = self.records.read_back(own, others)
        for other, file in self.persons.items():
            wanted = [name for name in names if name in other.names]
            persons = file.read_back([other.key, *wanted])
            places = _places(found[link.name], persons[other.key], other)
            for name in wanted:
                values = persons[name].take(places)
                if places.null_count:
                    before = self._published[name]
                    before = before if self._rows is None else before.take(pa.array(self._rows))
                    values = pc.if_else(places.is_valid(), values, before.cast(values.type))
                found = found.append_column(name, values)
        return found.select(list(names))

    def sha256(self) -> str:
        """Return the SHA-256 of the table of records."""
        return self.records.sha256()

    def sha256_of_persons(self) -> dict[str, str]:
        """Return that of each table of persons, by the name of its file; raise if an input has changed."""
        for other in self.persons:
            other.table.check_unchanged()
        return {Path(other.output).name: file.sha256() for other, file in self.persons.items()}

    def describe(self, manifests: Mapping[str, str], output: str) -> None:
        """Describe the table of records."""
        self.records.describe(manifests, output)


def _places(links: pa.ChunkedArray, keys: pa.ChunkedArray, other: OfPersons) -> pa.ChunkedArray:
    """Return the record of each linked record's person in a table that was read back."""
    places = pc.index_in(links, value_set=keys.cast(links.type).combine_chunks())
    is_odd = keys.null_count or len(pc.unique(keys)) != len(keys)
    if is_odd or places.null_count != links.null_count:
        raise GuaranteeError(
            f"The release of {other.title!r}, read back, does not have every identifier once. Nothing was released. "
            "Choose another format."
        )
    return places
