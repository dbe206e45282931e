"""Rehearsal: run a whole collection in a temporary folder and time its commands, for the planner.

Start-up, reading, checking, auditing and writing take as long as the partition, so they are measured too: each command
of the collection is run as a separate process.
"""

import json
import secrets
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.arrays import as_cell_size
from shoal.columns.equivalence import identity_codes
from shoal.columns.prepare import prepare
from shoal.columns.schema import Schema
from shoal.constraints.strata import strata_of
from shoal.errors import GuaranteeError
from shoal.files import hidden_folder, temporary_path, write_text
from shoal.incremental.calibrate import Measurement, PartTimes, measure, refuse_few
from shoal.incremental.planning import Measured
from shoal.incremental.sample_enlarged import Donors
from shoal.incremental.two_stage_cells import ANY_SIZE
from shoal.job import Input, Job, Output
from shoal.sources import read, write
from shoal.sources.reading import as_reading
from shoal.space.space import Space
from shoal.system import system
from shoal.typing import Labels

JOB, RELEASE = "job.toml", "release.parquet"


def rehearse(
    table: Any,
    job: Job,
    n_records: int,
    *,
    variant: str = "reopen",
    seconds: float = 60.0,
    threads: int | None = None,
    reading: dict[str, Any] | None = None,
) -> Measured:
    """Time `begin` on the base, `add` and `finish` on the rest, and the ordinary job, for similar tables.

    Parameters
    ----------
    table : path or frame
        Records similar to those expected: those that have arrived so far, or last year's. At least 8 k records. If
        there are fewer than `n_records`, similar records are generated; they stay in a folder that only its owner can
        read.
    job : Job
        Settings of the release.
    n_records : int
        Number of records to plan for.
    variant : str
        Variant by which late records join.
    seconds : float
        Approximate measuring time.
    threads : int, optional
        Maximum number of threads, as in the planned run.
    reading : dict, optional
        Options for reading a file.

    Returns
    -------
    Measured
        For `shoal.incremental.planning.plan`. The base time is that of `begin`; the late time is that of one `add` and
        of `finish`, until the release is on disk.
    """
    source = read(table, **as_reading(reading)).arrow
    k = as_cell_size(job.k, source.num_rows)
    refuse_few(source.num_rows, k)
    job = job.model_copy(update={"seed": secrets.randbits(63) if job.seed is None else job.seed})
    tables = Tables(source, job)
    with hidden_folder(temporary_path("rehearsal")) as folder:
        stage = _Stage(folder, job.model_copy(update={"late": None}), variant, threads)
        return measure(lambda n, share: stage.turn(*tables.batches(n, share)), n_records, k, variant, seconds)


class Tables:
    """Tables of any size similar to the source; the last one is cached."""

    def __init__(self, source: pa.Table, job: Job) -> None:
        self._source, self._job = source, job
        self._schema = Schema.of(source.schema, job.roles, job.columns)
        prepared = prepare(source, self._schema, job.missing)
        self._X = Space.fit(prepared, self._schema, job.scaling).encode(prepared)
        self._latest: tuple[int, pa.Table] = (0, source)

    def batches(self, n: int, share: float) -> list[pa.Table]:
        """Return the base and the late records, or everything in one batch."""
        if self._latest[0] != n:
            self._latest = n, self._without_small_strata(self._of(n))
        table = self._latest[1]
        if share == 0:
            return [table]
        n_base = self._border(table, round(table.num_rows * (1 - share)))
        return [table.slice(0, n_base), table.slice(n_base)]

    def _of(self, n: int) -> pa.Table:
        """Return `n` records in random order, those of a person or a household consecutively."""
        source, roles = self._source, self._schema.roles
        donors = Donors(self._X, max(n, len(self._X)), self._job.seed or 0)
        mixed = set() if roles.household else {column.name for column in self._schema.quasi}
        columns = {}
        for name in source.column_names:
            if name in (roles.subject, roles.household):
                codes = identity_codes(source[name])
                columns[name] = pa.array(codes[donors.models] + donors.copies * (codes.max() + 1))
            else:
                columns[name] = source[name].take(pa.array(donors.donor_rows() if name in mixed else donors.models))
        grown = pa.table(columns)
        return grown.take(pa.array(self._order(grown)[:n]))

    def _order(self, table: pa.Table) -> Labels:
        rng = np.random.default_rng(self._job.seed)
        together = self._together(table)
        return np.argsort(rng.permutation(int(together.max()) + 1)[together], kind="stable")

    def _together(self, table: pa.Table) -> Labels:
        """Return a number for each record, equal for records that arrive together."""
        name = self._schema.roles.household or self._schema.roles.subject
        return np.arange(table.num_rows) if name is None else np.asarray(table[name])

    def _border(self, table: pa.Table, near: int) -> int:
        """Return the size of the base nearest to `near` that does not divide a person or household."""
        together = self._together(table)
        ends = np.flatnonzero(np.diff(together)) + 1
        return int(ends[np.abs(ends - near).argmin()]) if len(ends) else near

    def _without_small_strata(self, table: pa.Table) -> pa.Table:
        schema = Schema.of(table.schema, self._job.roles, self._job.columns)
        strata, _ = strata_of(prepare(table, schema, self._job.missing), schema, ANY_SIZE)
        return table.filter(pa.array(np.bincount(strata)[strata] >= self._job.k))


class _Stage:
    """A folder in which the commands of a collection are run."""

    def __init__(self, folder: Path, job: Job, variant: str, threads: int | None) -> None:
        self._folder, self._job = folder, job.model_copy(update={"input": None, "output": None})
        self._variant = ("--variant", variant)
        self._threads = () if threads is None else ("--threads", str(threads))

    def turn(self, base: pa.Table, late: pa.Table | None = None) -> Measurement:
        """Run a collection with a base and a late batch, or the ordinary job."""
        with tempfile.TemporaryDirectory(dir=self._folder) as temporary:
            here = Path(temporary)
            write(base, here / "base.parquet")
            if late is None:
                return Measurement(self._ordinary(here), PartTimes(0.0, 0.0), _lost(here))
            write(late, here / "late.parquet")
            return Measurement(self._begin(here), self._finish(here), _lost(here))

    def _ordinary(self, here: Path) -> PartTimes:
        paths = {"input": Input(path=str(here / "base.parquet")), "output": Output(path=str(here / RELEASE))}
        _save(self._job.model_copy(update=paths), here)
        return _command("run", str(here / JOB), *self._threads)

    def _begin(self, here: Path) -> PartTimes:
        _save(self._job, here)
        files = str(here / "collection"), str(here / "base.parquet"), "--job", str(here / JOB)
        return _command("collect", "begin", *files, *self._variant, *self._threads)

    def _finish(self, here: Path) -> PartTimes:
        folder = str(here / "collection")
        adding = _command("collect", "add", folder, str(here / "late.parquet"))
        finishing = _command("collect", "finish", folder, "-o", str(here / RELEASE), *self._threads)
        return PartTimes(adding.cpu + finishing.cpu, adding.wall + finishing.wall)


def _save(job: Job, here: Path) -> None:
    write_text(here / JOB, job.to_toml())


def _lost(here: Path) -> float:
    """Return the loss of the release that was written."""
    manifest = json.loads((here / f"{RELEASE}.internal.json").read_text(encoding="utf-8"))
    return float(manifest["loss"]["sse"])


def _command(*arguments: str) -> PartTimes:
    """Run a shoal command and return its processor and wall-clock time."""
    clock = perf_counter()
    python = [sys.executable, "-P", "-m", "shoal.cli"]  # -P: not a csv.py that lies beside the data
    done, cpu = system.run_measured([*python, *arguments])
    wall = perf_counter() - clock
    if done.returncode != 0:
        raise GuaranteeError(f"The rehearsal with similar records failed. {' '.join(done.stderr.split())}")
    return PartTimes(max(cpu, 1e-9), wall)
