"""Measure a release from a CSV file to Parquet with its report, step by step, beside a bare read and write.

The table is the 204,309 records of gov_census: nine numeric and eight nominal quasi-identifiers with 804 categories.
Everything but the partition is compared with reading the same CSV file and writing it as Parquet with pyarrow, in the
same process, interleaved. CPU seconds are given beside wall time, because they are more reliable on a busy machine.
"""

import gzip
import json
import resource
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import click
import pyarrow.csv
import pyarrow.parquet

import shoal.constraints.constrained_cells
from bench_partition import ROOT, circumstances
from materials import data_folder
from shoal.job import Job
from shoal.release import run

DATA = "gov_census.csv.gz"
RESULTS = ROOT / "benchmarks" / "results" / "release.json"


class Clock:
    """Adds up the time of the calls that it wraps."""

    def __init__(self) -> None:
        self.wall = self.cpu = 0.0

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, timed."""

        def timed(*arguments: Any, **options: Any) -> Any:
            wall, cpu = perf_counter(), process_time()
            try:
                return function(*arguments, **options)
            finally:
                self.wall += perf_counter() - wall
                self.cpu += process_time() - cpu

        return timed


@click.command()
@click.option("-k", "k", default=10, show_default=True)
@click.option("--method", default="auto", show_default=True)
@click.option("--rounds", default=3, show_default=True, help="Interleaved bare and full runs; the best of each counts.")
@click.option("--output", type=click.Path(path_type=Path), default=RESULTS, show_default=True)
def main(k: int, method: str, rounds: int, output: Path) -> None:
    """Measure the steps around the partition."""
    folder = data_folder()
    source = None if folder is None else folder / DATA
    if source is None or not source.exists():
        click.echo(f"{DATA} not found; SHOAL_DATA may name the folder that has it.")
        sys.exit(1)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "people.csv"
        with gzip.open(source) as packed, path.open("wb") as file:
            shutil.copyfileobj(packed, file)
        measured = [measure(path, k, method) for _ in range(rounds)]
    best = {
        "bare": min((entry["bare"] for entry in measured), key=lambda t: t["wall"]),
        "around": min((entry["around"] for entry in measured), key=lambda t: t["wall"]),
        "partition": min((entry["partition"] for entry in measured), key=lambda t: t["wall"]),
    }
    result = {
        **circumstances(quick=rounds < 3),
        "data": DATA,
        "k": k,
        "method": method,
        "il": measured[0]["il"],
        **best,
        "ratio_wall": best["around"]["wall"] / best["bare"]["wall"],
        "ratio_cpu": best["around"]["cpu"] / best["bare"]["cpu"],
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        "runs": measured,
    }
    for name in ("bare", "partition", "around"):
        click.echo(f"{name:<12}{best[name]['wall']:8.2f} s wall {best[name]['cpu']:8.2f} s CPU")
    click.echo(
        f"around / bare: {result['ratio_wall']:.2f} by wall, {result['ratio_cpu']:.2f} by CPU; IL {result['il']:.3f} %"
    )
    click.echo(f"peak memory {result['peak_mb']:.0f} MB")
    output.write_text(json.dumps(result, indent=1) + "\n")


def measure(path: Path, k: int, method: str) -> dict[str, Any]:
    """Run both ways once."""
    bare = Clock()
    bare.around(read_and_write)(path, path.with_suffix(".bare.parquet"))
    names = pyarrow.csv.read_csv(path).column_names
    job = Job.of(
        k=k,
        method=method,
        seed=1,
        roles={"quasi_identifiers": names},
        accept=["codes", "missing-code"],  # all columns are released as they are, as before there were findings
        input={"path": str(path)},
        output={"path": str(path.with_suffix(".parquet")), "report": str(path.with_suffix(".html"))},
    )
    partition, whole = Clock(), Clock()
    original = shoal.constraints.constrained_cells.partition
    shoal.constraints.constrained_cells.partition = partition.around(original)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            release = whole.around(run)(job, force=True)
    finally:
        shoal.constraints.constrained_cells.partition = original
    return {
        "il": 100 * release.loss.il,
        "bare": vars(bare),
        "partition": vars(partition),
        "around": {"wall": whole.wall - partition.wall, "cpu": whole.cpu - partition.cpu},
    }


def read_and_write(path: Path, target: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(path), target)


if __name__ == "__main__":
    main()
