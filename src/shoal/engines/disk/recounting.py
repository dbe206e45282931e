"""Recounting: the guarantees of a table that is larger than memory, from its batches alone.

Records are distributed by their class, so that each part holds whole classes and fits into memory.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from shoal.columns.prepare import decoded
from shoal.columns.schema import Role, Schema
from shoal.engines.blocks.block_records import SUBJECT, person_hashes, plain_schema
from shoal.engines.blocks.recount import class_parts, merged_verdicts, recount_part
from shoal.engines.blocks.statistics import Counts
from shoal.engines.disk.memory import MemoryBudget
from shoal.engines.disk.spill import Gathering, Spill, release_memory
from shoal.errors import ParameterError
from shoal.files import hidden_folder, temporary_path
from shoal.measures.recount import Question, Verdict
from shoal.models import Model
from shoal.sources.batches import open_batches
from shoal.sources.clean import check_wanted


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
        verdicts.append(recount_part(spill.read([part]), asked.schema, asked.k, asked.models, whole))
        release_memory()
    return merged_verdicts(verdicts)


def recount_in_parts(table: Any, asked: Question, memory: str, reading: Mapping[str, Any]) -> Verdict:
    """Recount a file or a folder of Parquet files that may be larger than memory, within so much (`shoal.audit`).

    Raises
    ------
    ParameterError
        If a model of frequencies is asked for with a subject: it needs all records of a person at once.
    """
    if asked.subject is not None and any(model.by_frequency for model in asked.models):
        raise ParameterError(
            "A model of frequencies with a subject counts each person once in the whole table, which cannot be done in "
            "parts. Leave out the limit of memory, the subject or the model."
        )
    budget = MemoryBudget.of(memory, None)
    source = open_batches(table, **reading)
    check_wanted(asked.needed, source.names)
    if source.n_records == 0:
        raise ParameterError("The table has no records, so there is nothing to count.")
    schema = plain_schema(asked.schema(source.types))
    with hidden_folder(temporary_path("audit")) as folder:
        batches = (_counted(batch, schema, asked.subject) for batch in source.read(asked.needed))
        wanted = Asked(schema, asked.k, asked.models)
        return recount_batches(batches, source.n_records, wanted, folder / "parts", budget.buffer)


def _counted(batch: pa.Table, schema: Schema, subject: str | None) -> pa.Table:
    columns = {column.name: batch[column.name] for column in schema.columns}
    return pa.table(columns if subject is None else {**columns, SUBJECT: person_hashes(batch[subject])})
