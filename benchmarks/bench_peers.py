"""Measure MDAV as sdcMicro has it beside shoal's, in loss and processor time, as JSON.

``--sdcmicro package`` takes the R package; where that cannot be installed, a path is that of a shared library with the
function ``Mdav`` of its sources, made by ``R CMD SHLIB``. Both standardize the columns, and use one thread.
"""

import json
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time

import click
import numpy as np

from bench_partition import ROOT, circumstances
from measure import say
from shoal import datasets, kernels
from shoal.arrays import standardize
from shoal.measures import loss
from shoal.methods import partition
from shoal.typing import Labels, Matrix

RESULTS = ROOT / "benchmarks" / "results" / "peers.json"
PROGRAM = ROOT / "benchmarks" / "mdav_of_sdcmicro.R"
GAUSSIAN = (5_000, 20_000)
ENOUGH = 0.1  # processor seconds of a run, of as many calls as it takes


@dataclass(frozen=True)
class Row:
    """One table, grouped by one contender."""

    data: str
    n: int
    k: int
    contender: str
    il: float
    """Information loss, from 0 to 1, of standardized columns."""
    n_classes: int
    smallest: int
    cpu_seconds: float
    """Of a call, in the best run."""


def problems() -> Iterator[tuple[str, Matrix, int]]:
    """Yield the tables and cell sizes."""
    for data in (datasets.census(), datasets.tarragona(), datasets.eia()):
        for k in (3, 5, 10):
            yield data.name, data.X, k
    for n in GAUSSIAN:
        yield "gaussian", np.random.default_rng(1).standard_normal((n, 10)), 10


def of_sdcmicro(library: str, X: Matrix, k: int, runs: int) -> tuple[Labels, float]:
    """Return the cells of sdcMicro's MDAV, and the processor time of the best run."""
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "given.csv", Path(folder) / "made.csv"
        np.savetxt(given, X, "%.17g", ",", header=",".join(f"c{i}" for i in range(X.shape[1])), comments="")
        words = ["Rscript", PROGRAM, library, k, runs, given, made]
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=True)
        Y = np.loadtxt(made, delimiter=",", skiprows=1)
    return np.unique(Y, axis=0, return_inverse=True)[1].reshape(-1), min(map(float, done.stdout.split()))


def of_shoal(method: str, X: Matrix, k: int, runs: int) -> tuple[Labels, float]:
    """Return the cells of a method of shoal, and the processor time of the best run."""
    times = []
    with kernels.using(threads=1):
        for _ in range(runs):
            start, n_calls = process_time(), 0
            while process_time() < start + ENOUGH:
                labels = partition(standardize(X), k, method, seed=1)
                n_calls += 1
            times.append((process_time() - start) / n_calls)
    return labels, min(times)


def measured(library: str, runs: int) -> Iterator[Row]:
    """Measure all contenders on all problems, one after another on each."""
    for name, X, k in problems():
        found = {
            "sdcMicro, mdav": of_sdcmicro(library, X, k, runs),
            "shoal, mdav": of_shoal("mdav", X, k, runs),
            "shoal, auto": of_shoal("auto", X, k, runs),
        }
        for contender, (labels, seconds) in found.items():
            sizes = np.bincount(labels)
            il = loss(standardize(X), labels).il
            yield Row(name, len(X), k, contender, il, len(sizes), int(sizes.min()), seconds)


@click.command()
@click.option("--sdcmicro", "library", default="package", show_default=True, help="The package, or a shared library.")
@click.option("--runs", type=int, default=3, show_default=True)
@click.option("--output", type=click.Path(path_type=Path), default=RESULTS)
def main(library: str, runs: int, output: Path) -> None:
    """Measure, and write the results."""
    rows = []
    for row in measured(library, runs):
        rows.append(asdict(row))
        say(f"{row.data:<10}{row.k:>4}  {row.contender:<16}{row.il:>10.6f}{row.n_classes:>7}{row.cpu_seconds:>10.4f} s")
    how = "the R package" if library == "package" else "the function Mdav of its sources, compiled by itself"
    content = {**circumstances(quick=False), "sdcmicro": how, "runs": runs, "rows": rows}
    output.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
