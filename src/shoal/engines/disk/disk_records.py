"""Disk records: the published records of a release lie in a scratch folder until they are written."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.arrays import as_cell_size
from shoal.columns.schema import Role, Roles, Schema
from shoal.columns.value_hashes import record_hashes
from shoal.engines.blocks.block_records import SUBJECT
from shoal.engines.blocks.limits import schema_in_blocks
from shoal.engines.blocks.measure import release_in_blocks
from shoal.engines.disk.checked_files import CheckedWriter, DamagedError, keep, open_checked
from shoal.engines.disk.engine import DiskOutcome, make
from shoal.engines.disk.memory import MemoryBudget
from shoal.engines.disk.recounting import Asked, recount_batches
from shoal.engines.disk.scratch import scratch_folder, scratch_of
from shoal.job import Job, Order
from shoal.measures.recount import Verdict
from shoal.output.destination import Destination
from shoal.output.places import FileTable, TableOfOneMachine, begun
from shoal.output.release import Release, Written
from shoal.output.writing import require_as_many, require_of_written
from shoal.sources import format_of
from shoal.sources.batches import Batches, open_batches
from shoal.sources.clean import publishable
from shoal.typing import Progress

T = TypeVar("T")


def execute_on_disk(
    job: Job,
    source: Batches,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    target: Path | None = None,
) -> Release:
    """Make the release that a job describes from a table that is read in batches.

    The scratch folder is beside the `target`, where the release will be written, or among the temporary files.
    """
    schema = check_disk_job(job, source)
    budget = MemoryBudget.of(job.memory, threads)
    with ExitStack() as stack:
        folder = stack.enter_context(scratch_folder(scratch_of(job, source, target)))
        if job.seed is None:
            job = job.model_copy(update={"seed": _kept_seed(folder)})
        made = make(job, source, schema, folder, budget, progress)
        records = DiskRecords(source, made, folder, budget, stack.pop_all())
    release = release_in_blocks(made.blueprint, made.measured, records)
    if progress is not None:
        progress(max(source.n_records, 1), max(source.n_records, 1))
    return release


def check_disk_job(job: Job, source: Batches) -> Schema:
    """Return the schema of a table, or raise if the job cannot be done on it, whatever its records are."""
    schema = schema_in_blocks(job, source.types, "disk")
    if source.n_records:
        as_cell_size(job.k, source.n_records)
    MemoryBudget.of(job.memory, None)
    return schema


def _kept_seed(folder: Path) -> int:
    """Return the seed that a killed process drew for the same job, or draw one."""
    path = folder / "drawn.seed"
    if not path.exists() and not any(found.suffix in (".done", ".piece") for found in folder.rglob("*")):
        keep(path, secrets.randbits(63))
    return int(open_checked(path).note)


class DiskRecords:
    """The published records in a scratch folder; see `shoal.output.release.Records`."""

    engine = "disk"
    table = arrow = cells = series = None

    def __init__(
        self, source: Batches, made: DiskOutcome, scratch: Path, budget: MemoryBudget, stack: ExitStack
    ) -> None:
        self.source = source
        self._made, self._scratch, self._budget, self._stack = made, scratch, budget, stack
        self._job, self._schema = made.blueprint.job, made.blueprint.schema
        self._names = [column.name for column in self._schema.published]
        self._verdict: Verdict | None = None

    def __del__(self) -> None:
        self._stack.close()

    def close(self) -> None:
        """Remove the scratch folder."""
        self._stack.close()

    def at_work(self, work: Callable[[], T]) -> T:
        """Return what some work returns; its threads are those of the budget."""
        return work()

    @property
    def is_counted(self) -> bool:
        """Whether the verdict is there already."""
        return self._verdict is not None

    @property
    def verdict(self) -> Verdict:
        """The recounted guarantees: of the written file, or else of the records that will be written."""
        if self._verdict is None:
            names = [*(column.name for column in self._counted.columns), *self._subject]
            batches = (table.select(names) for table in self._sorted())
            self._verdict = self._recounted(batches)
            self._verdict.require()
        return self._verdict

    def batches(self) -> Iterator[pa.Table]:
        """Yield the published records in the order in which they are written."""
        return (publishable(table.select(self._names)) for table in self._sorted())

    def _sorted(self) -> Iterator[pa.Table]:
        """Yield the published records, sorted by the hash of their published values."""
        for bucket in range(self._made.n_buckets):
            tables = self._bucket(bucket)
            if tables:
                table = pa.concat_tables(tables)
                first, second = record_hashes((table[name] for name in self._names), table.num_rows)
                yield table.take(pa.array(np.lexsort((second, first))))

    def _bucket(self, number: int) -> list[pa.Table]:
        """Return the published records of a bucket, in which damaged pieces are made again."""
        while True:
            try:
                return list(self._made.published.batches([number]))
            except DamagedError as damage:
                self._made = self._made.again(damage)

    @property
    def _counted(self) -> Schema:
        """The columns that are recounted."""
        return Schema(self._schema.having(Role.QUASI, Role.BY, Role.CONFIDENTIAL), Roles())

    @property
    def _subject(self) -> list[str]:
        return [] if self._schema.roles.subject is None else [SUBJECT]

    def rows(self, order: Order) -> None:
        """Return nothing: the records are sorted while they are written."""

    def begun(self, destination: Destination) -> AbstractContextManager[tuple[TableOfOneMachine, dict[Path, Path]]]:
        """Yield the table to write and the temporary path of each file."""
        return begun(destination, self.source, self._job.files)

    def write(self, table: FileTable, rows: NDArray[np.int64] | None) -> None:
        """Write the published table in parts, and the persons of its rows to the scratch folder."""
        ending, kind = format_of(table.path)
        assert kind.write_parts is not None
        with ExitStack() as stack:
            kind.write_parts(self._publishable(stack), table.path, ending, self.source)

    def _publishable(self, stack: ExitStack) -> Iterator[pa.Table]:
        persons = None
        for table in self._sorted():
            if self._subject:
                if persons is None:
                    persons = stack.enter_context(CheckedWriter(self._persons))
                for batch in table.select(self._subject).to_batches():
                    persons.add(batch)
            yield publishable(table.select(self._names))

    @property
    def _persons(self) -> Path:
        return self._scratch / "persons.piece"

    def recount(self, table: FileTable, rows: NDArray[np.int64] | None) -> Written:
        """Recount the guarantees on the written file; raise if they do not hold."""
        written = open_batches(table.path, **format_of(table.path)[1].own_reading)
        require_as_many(written.n_records, self._made.blueprint.n_records)
        batches = written.read([column.name for column in self._counted.columns])
        self._verdict = self._recounted(self._with_persons(batches) if self._subject else batches)
        require_of_written(self._verdict, self._job)
        return Written(table.sha256())

    def _with_persons(self, batches: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """Add the persons of the written rows to batches of them."""
        written = open_checked(self._persons)
        persons = _ReadColumn(written.read(number) for number in range(len(written.parts)))
        for batch in batches:
            yield batch.append_column(SUBJECT, persons.take(batch.num_rows))

    def _recounted(self, batches: Iterator[pa.Table]) -> Verdict:
        folder = self._scratch / f"recount-{secrets.token_hex(4)}"
        asked = Asked(self._counted, self._job.k, self._job.models)
        blueprint = self._made.blueprint
        return blueprint.described(recount_batches(batches, blueprint.n_records, asked, folder, self._budget.buffer))


class _ReadColumn:
    """A column that is read in batches and taken in parts of other sizes."""

    def __init__(self, batches: Iterator[pa.Table]) -> None:
        self._batches = batches
        self._rest: pa.Table | None = None

    def take(self, n: int) -> pa.ChunkedArray:
        """Return the next `n` values."""
        parts: list[pa.Table] = []
        while n > 0:
            if self._rest is None or self._rest.num_rows == 0:
                self._rest = next(self._batches)
            parts.append(self._rest.slice(0, n))
            n -= parts[-1].num_rows
            self._rest = self._rest.slice(parts[-1].num_rows)
        return pa.concat_tables(parts).column(0)
