"""Disk release: a release whose records lie in a scratch folder until they are written."""

import os
import secrets
import warnings as python_warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.arrays import as_cell_size
from shoal.columns.schema import Role, Roles, Schema
from shoal.engines.blocks.block_records import SUBJECT, check_column_names
from shoal.engines.blocks.block_release import BlockRelease
from shoal.engines.blocks.limits import check_limits
from shoal.engines.disk.checked_files import CheckedWriter, DamagedError, keep, open_checked
from shoal.engines.disk.engine import Made, make
from shoal.engines.disk.memory import Budget
from shoal.engines.disk.recounting import Asked, recount_batches
from shoal.engines.disk.scratch import scratch_folder, scratch_of
from shoal.errors import GuaranteeError, ParameterError, ShoalWarning
from shoal.job import Job, Order
from shoal.job.checks import check_job, check_late
from shoal.measures.recount import Verdict
from shoal.output.places import Files, FileTable, TableInTheMaking, check_reports
from shoal.output.published_order import record_hashes
from shoal.output.report.facts import Form
from shoal.output.writing import require_of_written, write_release
from shoal.sources import format_of
from shoal.sources.batches import Batches, has_batches, open_batches
from shoal.sources.clean import publishable
from shoal.typing import Progress


def execute_on_disk(
    job: Job,
    source: Batches,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    target: Path | None = None,
) -> "DiskRelease":
    """Make the release that a job describes from a table that is read in batches.

    Parameters
    ----------
    job : Job
        With ``engine = "disk"`` or a limit of memory.
    source : Batches
        The table.
    threads, progress
        As in `shoal.anonymize`.
    target : Path, optional
        Where the release will be written; the scratch folder is beside it. By default it is among the temporary files
        of the system.
    """
    schema = check_disk_job(job, source)
    budget = Budget.of(job.memory, threads)
    with ExitStack() as stack:
        folder = stack.enter_context(scratch_folder(scratch_of(job, source, target)))
        if job.seed is None:
            job = job.model_copy(update={"seed": _kept_seed(folder)})
        made = make(job, source, schema, folder, budget, progress)
        release = DiskRelease(source, made, folder, budget, stack.pop_all())
    try:
        release.review()
    except BaseException:
        release.close()
        raise
    if progress is not None:
        progress(max(source.n_records, 1), max(source.n_records, 1))
    return release


def check_disk_job(job: Job, source: Batches) -> Schema:
    """Return the schema of a table, or raise if the job cannot be done on it, whatever its records are."""
    check_late(job)
    check_column_names(source.types.names)
    schema = Schema.of(source.types, job.roles, job.columns)
    check_job(job, schema)
    check_limits(job, schema, "disk")
    if source.n_records:
        as_cell_size(job.k, source.n_records)
    Budget.of(job.memory, None)
    return schema


def check_parts(files: Files) -> None:
    """Refuse places and formats that a release made in blocks cannot be written to."""
    table = files.table
    if not isinstance(table, Path) or format_of(table)[1].write_parts is None or not has_batches(table):
        raise ParameterError(
            f"{files.title!r} cannot be written in parts and recounted. Write a CSV (not packed), Parquet or Arrow "
            'file, or use engine="memory".'
        )


def _kept_seed(folder: Path) -> int:
    """Return the seed that a killed process drew for the same job, or draw one."""
    path = folder / "drawn.seed"
    if not path.exists() and not any(found.suffix in (".done", ".piece") for found in folder.rglob("*")):
        keep(path, secrets.randbits(63))
    return int(open_checked(path).note)


class DiskRelease(BlockRelease):
    """A release made in blocks; close it, or use it in a ``with`` statement, to remove its scratch folder.

    Attributes
    ----------
    source : Batches
        The input.
    """

    def __init__(self, source: Batches, made: Made, scratch: Path, budget: Budget, stack: ExitStack) -> None:
        super().__init__(made.blueprint, made.measured)
        self.source = source
        self._made, self._scratch, self._budget, self._stack = made, scratch, budget, stack
        self._verdict: Verdict | None = None

    def __enter__(self) -> "DiskRelease":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, traceback)

    def __del__(self) -> None:
        self._stack.close()

    def close(self) -> None:
        """Remove the scratch folder."""
        self._stack.close()

    def __repr__(self) -> str:
        return (
            f"DiskRelease(k={self.job.k}: {self._made.blueprint.n_records:,} records x {len(self.schema.published)} "
            f"columns, information loss {self.loss.il:.4g} %)"
        )

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
        names = [column.name for column in self.schema.published]
        return (publishable(table.select(names)) for table in self._sorted())

    def _sorted(self) -> Iterator[pa.Table]:
        """Yield the published records, sorted by the hash of their published values."""
        names = [column.name for column in self.schema.published]
        for bucket in range(self._made.n_buckets):
            tables = self._bucket(bucket)
            if tables:
                table = pa.concat_tables(tables)
                first, second = record_hashes((table[name] for name in names), table.num_rows)
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
        return Schema(self.schema.having(Role.QUASI, Role.BY, Role.CONFIDENTIAL), Roles())

    @property
    def _subject(self) -> list[str]:
        return [] if self.schema.roles.subject is None else [SUBJECT]

    def write(
        self,
        path: str | os.PathLike[str],
        *,
        report: str | os.PathLike[str] | None = None,
        form: Form = "internal",
        json: str | os.PathLike[str] | None = None,
        title: str | None = None,
        author: str | None = None,
        date: str | None = None,
        order: Order = "shuffle",
        save_job: str | os.PathLike[str] | None = None,
        force: bool = False,
        before_publishing: Callable[[], None] | None = None,
    ) -> list[Path]:
        """Write the release, its two manifests and, optionally, its report: all of them or none.

        Parameters and errors are those of `shoal.release.Release.write`. The order of the input cannot be kept, and
        there is no bound on the loss. The format has to be one that is written in parts: CSV, Parquet or Arrow.
        """
        check_reports(report, json, form, title=title, author=author, date=date)
        files = Files.of(path, report, json, save_job, form)
        self.write_files(
            files,
            order=order,
            force=force,
            said={"title": title, "author": author, "date": date},
            before=before_publishing,
        )
        return files.paths

    def write_files(
        self,
        files: Files,
        *,
        order: Order = "shuffle",
        force: bool = False,
        said: Mapping[str, Any],
        before: Callable[[], None] | None = None,
    ) -> None:
        """Write all files of the release, or none; the last step of `write`."""
        check_parts(files)
        write_release(self, files, order, force=force, said=said, before_publishing=before)
        for text in self.warnings:
            python_warnings.warn(text, ShoalWarning, stacklevel=4)

    @property
    def labels(self) -> None:
        """Nothing: the cells of single records are not kept."""
        return

    def rows(self, order: Order) -> NDArray[np.int64] | None:
        """Return nothing; the records are sorted while they are written."""
        if order == "keep":
            raise ParameterError("The engine 'disk' does not keep the order of the input. Leave the order out.")
        return None

    def write_table(self, table: TableInTheMaking, rows: NDArray[np.int64] | None) -> None:
        """Write the published table in parts, and the persons of its rows to the scratch folder."""
        assert isinstance(table, FileTable)
        ending, kind = format_of(table.path)
        assert kind.write_parts is not None
        with ExitStack() as stack:
            kind.write_parts(self._publishable(stack), table.path, ending, self.source)

    def _publishable(self, stack: ExitStack) -> Iterator[pa.Table]:
        names, persons = [column.name for column in self.schema.published], None
        for table in self._sorted():
            if self._subject:
                if persons is None:
                    persons = stack.enter_context(CheckedWriter(self._persons))
                for batch in table.select(self._subject).to_batches():
                    persons.add(batch)
            yield publishable(table.select(names))

    @property
    def _persons(self) -> Path:
        return self._scratch / "persons.piece"

    def recount_table(self, table: TableInTheMaking, rows: NDArray[np.int64] | None) -> None:
        """Recount the guarantees on the written file; raise if they do not hold."""
        assert isinstance(table, FileTable)
        written = open_batches(table.path, **format_of(table.path)[1].own_reading)
        n_records = self._made.blueprint.n_records
        if written.n_records != n_records:
            raise GuaranteeError(
                f"The written table, read back, has {written.n_records:,} records instead of the {n_records:,} of the "
                "release. Nothing was released. Choose another format."
            )
        batches = written.read([column.name for column in self._counted.columns])
        self._verdict = self._recounted(self._with_persons(batches) if self._subject else batches)
        require_of_written(self._verdict, self.job)

    def _with_persons(self, batches: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """Add the persons of the written rows to batches of them."""
        written = open_checked(self._persons)
        persons = _Column(written.read(number) for number in range(len(written.parts)))
        for batch in batches:
            yield batch.append_column(SUBJECT, persons.take(batch.num_rows))

    def _recounted(self, batches: Iterator[pa.Table]) -> Verdict:
        folder = self._scratch / f"recount-{secrets.token_hex(4)}"
        asked = Asked(self._counted, self.job.k, self.job.models)
        return recount_batches(batches, self._made.blueprint.n_records, asked, folder, self._budget.buffer)


class _Column:
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
