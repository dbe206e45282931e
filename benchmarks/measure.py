"""Time contenders on a problem, interleaved, each run in a new process."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import click
import numpy as np

from contenders import shoal, with_threads
from materials import agreement
from problems import Problem
from shoal.measures import loss
from shoal.typing import Labels

ONE_RUN = Path(__file__).with_name("one_run.py")
# Time limit in seconds; a method that takes longer is reported as given up.
LIMIT = 600


class Entry(NamedTuple):
    """A contender and how many threads it may use."""

    name: str = shoal()
    threads: int = 1

    def __str__(self) -> str:
        return with_threads(self.name, self.threads)


class Effort(NamedTuple):
    """Number of interleaved rounds, and seconds for which fast contenders are repeated in each."""

    rounds: int
    seconds: float


@dataclass(frozen=True)
class Row:
    """One contender on one problem."""

    section: str
    data: str
    n: int
    dims: int
    k: int
    method: str
    threads: int
    seconds: float
    """Of the best run."""
    median: float
    runs: int
    il: float
    same_cells: float | None
    """Share of records whose cell holds the same records as in `same_as`; None where nothing was compared."""
    same_as: str | None
    matrix_mb: float
    bare_mb: float
    """The process with all its imports, before it has read the matrix."""
    peak_mb: float


def race(
    section: str, problem: Problem, entries: Sequence[Entry], reference: Entry, effort: Effort, folder: Path
) -> list[Row]:
    """Measure all entries interleaved, so that noise affects all of them, and compare labels with the reference.

    An entry that takes too long has no row.
    """
    np.save(folder / "matrix.npy", problem.X)
    measured: dict[Entry, list[dict[str, Any]]] = {entry: [] for entry in entries}
    labels = {}
    for _ in range(effort.rounds):
        for entry in list(measured):
            try:
                measured[entry].append(_run(entry, problem.k, effort.seconds, folder))
            except subprocess.TimeoutExpired:
                say(f"{problem}: {entry}: given up after {LIMIT} s")
                del measured[entry]
                continue
            labels[entry] = np.load(folder / "labels.npy")
            times = measured[entry][-1]["times"]
            say(f"{problem}: {entry}: {min(times):.4g} s" + (f" (best of {len(times)})" if len(times) > 1 else ""))
    compared = reference if reference in measured and len(measured) > 1 else None
    return [_row(section, problem, entry, runs, labels, compared) for entry, runs in measured.items()]


def _run(entry: Entry, k: int, seconds: float, folder: Path) -> dict[str, Any]:
    command = [sys.executable, ONE_RUN, folder, entry.name, entry.threads, k, seconds]
    done = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, text=True, check=True, timeout=LIMIT)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _row(
    section: str,
    problem: Problem,
    entry: Entry,
    runs: list[dict[str, Any]],
    labels: dict[Entry, Labels],
    reference: Entry | None,
) -> Row:
    times = [seconds for run in runs for seconds in run["times"]]
    n, dims = problem.X.shape
    return Row(
        section=section,
        data=problem.data,
        n=n,
        dims=dims,
        k=problem.k,
        method=entry.name,
        threads=entry.threads,
        seconds=min(times),
        median=median(times),
        runs=len(times),
        il=100 * loss(problem.X, labels[entry]).il,
        same_cells=agreement(labels[reference], labels[entry]) if reference else None,
        same_as=str(reference) if reference else None,
        matrix_mb=problem.X.nbytes / 1e6,
        bare_mb=max(run["bare"] for run in runs) / 1e6,
        peak_mb=max(run["peak"] for run in runs) / 1e6,
    )


def growth(rows: Sequence[Row]) -> float:
    """Fit time = c * n^exponent to rows of two or more sizes, and return the exponent."""
    return float(np.polyfit(np.log([row.n for row in rows]), np.log([row.seconds for row in rows]), 1)[0])


def say(line: str) -> None:
    """Report progress."""
    click.echo(line, err=True)
