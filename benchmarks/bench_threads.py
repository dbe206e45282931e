"""Speed-up by threads, and their cost where other programs occupy cores.

One command measures everything on the machine it runs on: 1, 2, 4, 8 and 16 threads, as far as there are cores; two
cores of which another program keeps one busy; half of all cores kept busy; many strata; and a model. Runs take turns.
What was not measured, for lack of cores or since `--section` left it out, is named in the result.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import click
import numpy as np

from materials import machine
from shoal import kernels, partition
from shoal.constraints.enforce import enforce
from shoal.methods.within_strata import within
from shoal.models import TCloseness
from shoal.typing import Labels, Matrix

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "threads.json"
K = 10
THREADS = (1, 2, 4, 8, 16)
SPIN = "while True: pass"
SECTIONS = ("idle", "two cores", "busy")


class Task(NamedTuple):
    """A method on Gaussian records, in one stratum or in many, or a model enforced on the cells of `auto`."""

    method: str
    n: int
    n_dims: int = 15
    n_strata: int = 1
    t: float | None = None

    def __str__(self) -> str:
        strata = f" in {self.n_strata} strata" if self.n_strata > 1 else ""
        model = "" if self.t is None else f" with {self.t}-closeness"
        return f"{self.method}, {self.n:,} x {self.n_dims}{strata}{model}"

    def run(self, X: Matrix, threads: int) -> Labels:
        """Return the cells, made with `threads` threads."""
        if self.t is not None:
            value = (X[:, 0] + 2 * np.random.default_rng(2).normal(size=len(X))).round(1)
            codes = np.unique(value, return_inverse=True)[1].astype(np.int64)
            model = TCloseness("value", t=self.t)
            with kernels.using(threads):
                return enforce(X, None, K, [(model, codes, int(codes.max()) + 1, True)], self.method, seed=1)
        if self.n_strata == 1:
            return partition(X, K, self.method, seed=1, threads=threads)
        strata = np.arange(len(X)) % self.n_strata

        def cut(part: Matrix, threads: int, progress: Any) -> Labels:
            return partition(part, K, self.method, seed=1, threads=threads, progress=progress)

        with kernels.using(threads):
            return within(X, strata, cut)


class Situation(NamedTuple):
    """Other load: the usable cores, and how many of them other programs keep busy."""

    name: str
    cores: int
    n_busy: int = 0


def tasks(quick: bool) -> Iterator[Task]:
    """Yield the tasks that have goals."""
    share = 20 if quick else 1
    yield Task("mdav", 300_000 // share)
    yield Task("auto", 1_000_000 // share)
    yield Task("auto", 200_000 // share, n_strata=50)
    for n in (5_000, 50_000, 200_000):
        yield Task("auto", n // share, 5, t=0.15)


def small_tasks(quick: bool) -> Iterator[Task]:
    """Yield the sizes at which one busy core of two was worst, and the one with a goal for two idle ones."""
    for n in (5_000, 50_000) if quick else (5_000, 50_000, 500_000):
        for method in ("mdav", "auto"):
            yield Task(method, n, 10)
    yield Task("mdav", 25_000 if quick else 500_000)


@contextmanager
def situated(situation: Situation) -> Iterator[None]:
    """Use some of the cores, and have other programs keep some of these busy."""
    before = os.sched_getaffinity(0)
    chosen = sorted(before)[: situation.cores]
    os.sched_setaffinity(0, chosen)
    others = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(situation.n_busy)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()
        os.sched_setaffinity(0, before)


def measured(task: Task, threads: Sequence[int], situation: Situation, rounds: int) -> list[dict[str, Any]]:
    """Return the best time of a task for each number of threads, interleaved; all must make the same cells."""
    X = np.random.default_rng(1).normal(size=(task.n, task.n_dims))
    times: dict[int, list[float]] = {count: [] for count in threads}
    cells = None
    with situated(situation):
        for _ in range(rounds):
            for count in threads:
                start = perf_counter()
                labels = task.run(X, count)
                times[count].append(perf_counter() - start)
                cells = labels if cells is None else cells
                if not np.array_equal(labels, cells):
                    raise SystemExit(f"{task}: {count} threads made different cells.")
    rows = [
        {
            "situation": situation.name,
            "task": str(task),
            "threads": count,
            "seconds": min(seconds),
            "median": float(np.median(seconds)),
            "speedup": min(times[threads[0]]) / min(seconds),
        }
        for count, seconds in times.items()
    ]
    for row in rows:
        click.echo("{situation}: {task}, {threads} threads: {seconds:.4g} s, {speedup:.2f}x".format(**row))
    return rows


def all_rows(quick: bool, cores: int, sections: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield everything of some sections that this machine has the cores for."""
    counts = [count for count in THREADS if count <= cores]
    if "idle" in sections:
        for task in tasks(quick):
            # Times below a second vary by more than what is looked for.
            rounds = 1 if quick else 2 if task.t is None else 5
            yield from measured(task, counts, Situation("idle", cores), rounds)
    if "two cores" in sections and cores >= 2:
        for task in small_tasks(quick):
            rounds = 2 if quick or task.n > 50_000 else 5
            yield from measured(task, (1, 2), Situation("two cores", 2), rounds)
            yield from measured(task, (1, 2), Situation("two cores, one busy", 2, 1), rounds)
    if "busy" in sections and cores >= 4:
        busy = Situation("half of the cores busy", cores, cores // 2)
        for task in list(tasks(quick))[:2]:
            yield from measured(task, (1, cores), busy, 1)


@click.command()
@click.option("--quick", is_flag=True, help="Small sizes, to check that it works.")
@click.option("--section", "sections", type=click.Choice(SECTIONS), multiple=True, help="Run only this; repeatable.")
@click.option("--output", type=click.Path(path_type=Path), help="Where to write the result.")
def main(quick: bool, sections: tuple[str, ...], output: Path | None) -> None:
    """Measure the gain and cost of threads."""
    cores = kernels.cores.n_cores()
    missing = [f"{count} threads: this process may use {cores} cores" for count in THREADS if count > cores]
    missing += [f"section {name!r}: not asked for" for name in SECTIONS if sections and name not in sections]
    for line in missing:
        click.echo(f"Left out: {line}.")
    target = output or (ROOT / "out" / "bench" / "threads.json" if quick or sections else RESULTS)
    target.parent.mkdir(parents=True, exist_ok=True)
    result: dict[str, Any] = {"machine": {**machine(), "may_use": cores}, "quick": quick, "missing": missing}
    result["rows"] = []
    for row in all_rows(quick, cores, sections or SECTIONS):  # saved as they come, since the whole takes long
        result["rows"].append(row)
        target.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
