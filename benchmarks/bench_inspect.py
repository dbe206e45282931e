"""Measure what `inspect` takes beside a bare read of the same file: seconds of the clock and of the processors.

Both are repeated in turns in one process, on gov_census and the other real files in ``SHOAL_DATA`` (by default
``../shared/data``); with ``--quick``, on a bundled one.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import click

import shoal
from bench_partition import ROOT, circumstances
from measure import say
from shoal import datasets
from shoal.sources import read

RESULTS = ROOT / "benchmarks" / "results" / "inspect.json"
FILES = ("gov_census.csv.gz", "nycflights13_flights.csv.gz", "adult.csv.gz", "covertype_two_class.csv.gz")
ROUNDS = 7


@click.command()
@click.option("--quick", is_flag=True, help="One small file, to see that it runs.")
@click.option("--output", type=click.Path(path_type=Path), default=RESULTS, show_default=True)
def main(quick: bool, output: Path) -> None:
    """Measure inspecting beside reading."""
    folder = Path(os.environ.get("SHOAL_DATA", ROOT.parent / "shared" / "data"))
    paths = [] if quick else [folder / name for name in FILES if (folder / name).is_file()]
    runs = [run(path) for path in paths or [datasets.path("census")]]
    if not quick:
        output.write_text(json.dumps({**circumstances(quick), "runs": runs}, indent=1) + "\n")


def run(path: Path) -> dict[str, Any]:
    """Read and inspect one file in turns; the first round warms up."""

    def bare() -> None:
        table = read(path)
        table.load(table.names)

    rounds = [(timed(bare), timed(lambda: shoal.inspect(path))) for _ in range(ROUNDS + 1)][1:]
    row = {
        "file": path.name,
        "read_seconds": median(reading[0] for reading, _ in rounds),
        "inspect_seconds": median(inspecting[0] for _, inspecting in rounds),
        "ratio": median(inspecting[0] / reading[0] for reading, inspecting in rounds),
        "ratio_of_cpu": median(inspecting[1] / reading[1] for reading, inspecting in rounds),
    }
    say(f"{row['file']:28} inspect takes {row['ratio']:.2f} times a read, {row['ratio_of_cpu']:.2f} of CPU time")
    return row


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds of the clock and of the processors."""
    clock, cpu = perf_counter(), process_time()
    work()
    return perf_counter() - clock, process_time() - cpu


if __name__ == "__main__":
    main()
