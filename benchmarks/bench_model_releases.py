"""Measure whole releases with privacy models and without, interleaved: the cost of a model in time and loss.

The table is the 204,309 records of gov_census: eight numeric quasi-identifiers, salary confidential, k = 10. CPU
seconds are given beside wall time, because they are more reliable on a busy machine.
"""

import json
import sys
import warnings
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import click
import pyarrow.csv

from bench_partition import ROOT, circumstances
from materials import CENSUS_COLUMNS, data_folder
from shoal import LDiversity, ShoalWarning, TCloseness, anonymize
from shoal.models import Model

DATA = "gov_census.csv.gz"
RESULTS = ROOT / "benchmarks" / "results" / "model_releases.json"
ASKED: dict[str, list[Model]] = {
    "without": [],
    "t = 0.15": [TCloseness("salary", t=0.15)],
    "l = 5": [LDiversity("salary", l=5)],
}


@click.command()
@click.option("--rounds", default=3, show_default=True, help="Number of interleaved runs; the best of each counts.")
@click.option("--output", type=click.Path(path_type=Path), default=RESULTS, show_default=True)
def main(rounds: int, output: Path) -> None:
    """Measure releases with each model, and without."""
    folder = data_folder()
    if folder is None or not (folder / DATA).exists():
        click.echo(f"{DATA} not found; SHOAL_DATA may name the folder that has it.")
        sys.exit(1)
    table = pyarrow.csv.read_csv(folder / DATA).select(list(CENSUS_COLUMNS))
    runs = [{name: measure(table, models) for name, models in ASKED.items()} for _ in range(rounds)]
    best = {name: min((run[name] for run in runs), key=lambda found: found["cpu"]) for name in ASKED}
    for name, found in best.items():
        found["times_cpu"] = found["cpu"] / best["without"]["cpu"]
        click.echo(
            f"{name:<10}{found['wall']:7.2f} s wall {found['cpu']:7.2f} s CPU ({found['times_cpu']:.2f} times)  "
            f"IL {found['il']:.3f} %  {found['classes']:,} classes, reached {found['reached']}"
        )
    output.write_text(json.dumps({**circumstances(quick=rounds < 3), "data": DATA, "k": 10, **best}, indent=1) + "\n")


def measure(table: Any, models: list[Model]) -> dict[str, Any]:
    """Make one release."""
    others = [name for name in CENSUS_COLUMNS if name != "salary"]
    wall, cpu = perf_counter(), process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        release = anonymize(table, k=10, quasi_identifiers=others, confidential="salary", models=models, seed=1)
    wall, cpu = perf_counter() - wall, process_time() - cpu
    return {
        "wall": wall,
        "cpu": cpu,
        "il": 100 * release.loss.il,
        "classes": release.verdict.n_classes,
        "reached": [found.value for found in release.verdict.models],
    }


if __name__ == "__main__":
    main()
