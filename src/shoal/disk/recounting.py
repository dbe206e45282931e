"""Recounting: the guarantees of a table that is larger than memory, from its batches alone.

Records are distributed by their class, so that each part holds whole classes and fits into memory.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from shoal.auditing import Verdict, recount
from shoal.blocks.records import SUBJECT
from shoal.blocks.recount import class_parts, merged_verdicts
from shoal.blocks.statistics import Counts
from shoal.columns.prepare import decoded
from shoal.columns.schema import Role, Schema
from shoal.disk.spill import Gathering, Spill, release_memory
from shoal.models import Model


class Asked(NamedTuple):
    """What is recounted."""

    schema: Schema
    k: int | None
    models: tuple[Model, ...]


def recount_batches(batches: Iterator[pa.Table], n_records: int, asked: Asked, scratch: Path, most: int) -> Verdict:
    """Recount a table that is read once.

    Parameters
    ----------
    batches : iterator of pyarrow.Table
        The columns of the schema and, if subjects count, a column `SUBJECT` that is the same for records of a person.
    n_records : int
        Number of records, about.
    asked : Asked
        What is recounted.
    scratch : Path
        A private folder that does not exist yet.
    most : int
        Bytes of records to hold in memory.
    """
    first = next(batches, None)
    if first is None:
        first = pa.table({column.name: pa.array([], column.type) for column in asked.schema.columns})
    n_parts = int(first.nbytes / max(first.num_rows, 1) * n_records // most) + 1
    counts = Counts([column.name for column in asked.schema.having(Role.CONFIDENTIAL)])
    spill = Spill(scratch)
    with Gathering(spill, "part", most) as gathered:
        batch: pa.Table | None = first
        while batch is not None:
            plain = pa.table({name: decoded(batch[name]) for name in batch.column_names})
            counts.add(plain)
            gathered.add(plain, class_parts(plain, asked.schema.quasi_names, n_parts))
            batch = next(batches, None)
    whole = counts.distributions(asked.schema)
    verdicts = []
    for part in spill.destinations:
        table = spill.read([part])
        subjects = table[SUBJECT] if SUBJECT in table.column_names else None
        verdicts.append(recount(table, asked.schema, asked.k, subjects, asked.models, whole))
        release_memory()
    return merged_verdicts(verdicts)
