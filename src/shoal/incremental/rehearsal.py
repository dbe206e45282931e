"""Rehearsal: the whole evening in a throwaway collection, for the planner: what commands take, not cells alone.

Reading, checking, counting again and writing take as long as the cells do, so they are measured with them: each step
in a process of its own, as on the evening. The processor time of a process is known when it ends.
"""

import resource
import secrets
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.classes import identity_codes
from shoal.errors import GuaranteeError, ShoalError, ShoalWarning
from shoal.grouping import strata_of
from shoal.incremental.calibrate import Part, Turn, measure, refuse_few
from shoal.incremental.cells import ANY_SIZE
from shoal.incremental.collection import Collection, begin
from shoal.incremental.enlarge import Mates
from shoal.job import Job
from shoal.plan import Measured
from shoal.prepare import prepare
from shoal.release import Release, run
from shoal.schema import Schema
from shoal.space import Space, as_cell_size
from shoal.table import read, write
from shoal.typing import Labels

REFUSED = 2
"""How a step ends that cannot be done; anything else has no words for a user."""


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
    """Time `begin` on the base, `add` and `finish` on the rest, and the ordinary job, for tables like this one.

    Parameters
    ----------
    table : path or frame
        Records like those to come: what has arrived so far, or last year's. At least 8 k of them. Where these are fewer
        than `n_records`, records like them are made up; they never leave a folder that only you can read.
    job : Job
        What to make of the records.
    n_records : int
        How many records to plan for.
    variant : str
        How late records join.
    seconds : float
        About how long to measure.
    threads : int, optional
        How many threads may work, as in the run to come.
    reading : dict, optional
        How to read a file.

    Returns
    -------
    Measured
        For `shoal.plan.plan`. The base's time is that of `begin`; the late records' time is that of adding them in one
        batch and of `finish`, until the release is on the disk.
    """
    source = read(table, **(reading or {})).arrow
    k = as_cell_size(job.k, source.num_rows)
    refuse_few(source.num_rows, k)
    job = job.model_copy(update={"seed": secrets.randbits(63) if job.seed is None else job.seed})
    tables = _Tables(source, job)
    with tempfile.TemporaryDirectory(prefix="shoal-rehearsal-") as folder:
        (Path(folder) / "job.toml").write_text(job.to_toml(), encoding="utf-8")
        stage = _Stage(Path(folder), variant, threads)
        fixed = 2 * stage.nothing()
        return measure(lambda n, share: stage.turn(*tables.batches(n, share)), n_records, k, variant, seconds, fixed)


class _Tables:
    """Tables of any size like the one at hand, the last one kept."""

    def __init__(self, source: pa.Table, job: Job) -> None:
        self._source, self._job = source, job
        self._schema = Schema.of(source.schema, job.roles, job.columns)
        prepared = prepare(source, self._schema, job.missing)
        self._X = Space.fit(prepared, self._schema, job.scaling).encode(prepared)
        self._made: tuple[int, pa.Table] = (0, source)

    def batches(self, n: int, share: float) -> list[pa.Table]:
        """Return the base and the late records, or everything in one batch."""
        if self._made[0] != n:
            self._made = n, self._without_small_strata(self._of(n))
        table = self._made[1]
        if share == 0:
            return [table]
        n_base = self._border(table, round(table.num_rows * (1 - share)))
        return [table.slice(0, n_base), table.slice(n_base)]

    def _of(self, n: int) -> pa.Table:
        """Return so many records in random order, those of a person or a household in a row."""
        source, roles = self._source, self._schema.roles
        mates = Mates(self._X, max(n, len(self._X)), self._job.seed or 0)
        mixed = set() if roles.household else {column.name for column in self._schema.quasi}
        columns = {}
        for name in source.column_names:
            if name in (roles.subject, roles.household):
                codes = identity_codes(source[name])
                columns[name] = pa.array(codes[mates.models] + mates.copies * (codes.max() + 1))
            else:
                columns[name] = source[name].take(pa.array(mates.lenders() if name in mixed else mates.models))
        grown = pa.table(columns)
        return grown.take(pa.array(self._order(grown)[:n]))

    def _order(self, table: pa.Table) -> Labels:
        rng = np.random.default_rng(self._job.seed)
        together = self._together(table)
        return np.argsort(rng.permutation(int(together.max()) + 1)[together], kind="stable")

    def _together(self, table: pa.Table) -> Labels:
        """Return a number for each record, the same for those that arrive together."""
        name = self._schema.roles.household or self._schema.roles.subject
        return np.arange(table.num_rows) if name is None else np.asarray(table[name])

    def _border(self, table: pa.Table, near: int) -> int:
        """Return where the base may end: not within a person or household."""
        together = self._together(table)
        ends = np.flatnonzero(np.diff(together)) + 1
        return int(ends[np.abs(ends - near).argmin()]) if len(ends) else near

    def _without_small_strata(self, table: pa.Table) -> pa.Table:
        schema = Schema.of(table.schema, self._job.roles, self._job.columns)
        strata, _ = strata_of(prepare(table, schema, self._job.missing), schema, ANY_SIZE)
        return table.filter(pa.array(np.bincount(strata)[strata] >= self._job.k))


class _Stage:
    """A folder in which the steps of an evening are run, one process each."""

    def __init__(self, folder: Path, variant: str, threads: int | None) -> None:
        self._folder, self._variant, self._threads = folder, variant, threads
        self._n_turns = 0

    def turn(self, *batches: pa.Table) -> Turn:
        """Run an evening with a base and a late batch, or the ordinary job."""
        self._n_turns += 1
        here = self._folder / str(self._n_turns)
        here.mkdir()
        for name, batch in zip(("base", "late"), batches, strict=False):
            write(batch, here / f"{name}.parquet")
        steps = ["ordinary"] if len(batches) == 1 else ["begin", "finish"]
        base, *late = (self._step(step, here) for step in steps)
        lost = float((here / "loss").read_text())
        shutil.rmtree(here)
        return Turn(base, late[0] if late else Part(0.0, 0.0), lost)

    def nothing(self) -> float:
        """Say how long a process takes that has nothing to do, in seconds."""
        return self._step("nothing", self._folder).wall

    def _step(self, step: str, here: Path) -> Part:
        command = [sys.executable, "-m", __name__, step, str(here), self._variant, str(self._threads or 0)]
        before, clock = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        wall, after = perf_counter() - clock, resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode != 0:
            said = done.stderr.strip() if done.returncode == REFUSED else f"it ended with {done.returncode}"
            raise GuaranteeError(f"The rehearsal with records like these failed: {said}")
        cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        return Part(max(cpu, 1e-9), wall)


def _act(step: str, here: Path, variant: str, threads: int | None) -> None:
    """Carry out one step, in the process of its own."""
    if step == "nothing":
        return
    job = Job.load(here.parent / "job.toml")
    release: Release | None = None
    if step == "ordinary":
        release = run(job, here / "base.parquet", threads=threads)
    elif step == "begin":
        begin(here / "evening", here / "base.parquet", job, variant=variant, threads=threads)
    else:
        Collection.open(here / "evening").add(here / "late.parquet")
        release = Collection.open(here / "evening").finish(threads=threads)
    if release is not None:
        release.write(here / "release.parquet")
        (here / "loss").write_text(str(release.loss.sse))


if __name__ == "__main__":
    warnings.simplefilter("ignore", ShoalWarning)
    try:
        _act(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]) or None)
    except ShoalError as error:
        print(error, file=sys.stderr)
        sys.exit(REFUSED)
