"""Measure how many coordinates a nominal column needs: the loss with at most 2, 4, 8, 16 or 32, as JSON.

The loss is measured on the categories themselves, whatever coordinates represented them during the partition.
"""

import json
import os
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time

import click
import numpy as np

from bench_partition import ROOT, circumstances
from materials import data_folder
from measure import say
from shoal import release
from shoal.errors import ShoalWarning
from shoal.sources import Table, read
from shoal.space import axes

RESULTS = ROOT / "benchmarks" / "results" / "nominal.json"
SCRATCH = ROOT / "out" / "bench" / "nominal.json"
DIMS = (2, 4, 8, 16, 32)
# The files, their columns that are not quasi-identifiers, and the number of records drawn.
FILES = {
    "adult": ("adult.csv.gz", ["fnlwgt", "education_num", "income", "split"], None),
    "gov_census": ("gov_census.csv.gz", [], 50_000),
}


@dataclass(frozen=True)
class Row:
    """One table with a maximum number of coordinates per nominal column."""

    data: str
    n: int
    k: int
    method: str
    most_dims: int
    coordinates: int
    il: float
    il_nominal: float
    """Mean of the loss of the nominal columns."""
    cpu_seconds: float


def measure(data: str, table: Table, dropped: list[str], most_dims: int, k: int, method: str) -> Row:
    """Anonymize a table with at most `most_dims` coordinates for each nominal column."""
    axes.MOST_DIMS = most_dims
    quasi = [name for name in table.names if name not in dropped]
    start = process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        found = release.anonymize(
            table.arrow, k=k, quasi_identifiers=quasi, identifiers=dropped, missing="own-value", method=method, seed=1
        )
    seconds = process_time() - start
    nominal = [axis.column.name for axis in found.space.axes if isinstance(axis, axes.NominalAxis)]
    return Row(
        data=data,
        n=table.n_records,
        k=k,
        method=method,
        most_dims=most_dims,
        coordinates=sum(axis.n_dims for axis in found.space.axes),
        il=100 * found.loss.il,
        il_nominal=float(100 * np.mean([found.loss.columns[name].il for name in nominal])),
        cpu_seconds=seconds,
    )


def sampled(path: Path, n: int | None) -> Table:
    """Read a table, or `n` records of it drawn at random, the same ones each time."""
    table = read(path)
    if n is None or n >= table.n_records:
        return table
    chosen = np.sort(np.random.default_rng([0, n]).choice(table.n_records, n, replace=False))
    return read(table.arrow.take(chosen))


@click.command()
@click.option("--quick", is_flag=True, help="Samples of 2,000 records. Checks that it works.")
@click.option("--k", default=10, show_default=True)
@click.option("--method", default="auto", show_default=True)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="JSON file to write.")
def main(quick: bool, k: int, method: str, output: Path | None) -> None:
    """Measure the loss of mixed tables with fewer and with more coordinates for each nominal column."""
    output = output or (SCRATCH if quick else RESULTS)
    output.parent.mkdir(parents=True, exist_ok=True)
    folder, rows, missing = data_folder(), [], []
    for data, (name, dropped, n) in FILES.items():
        if folder is None or not os.path.exists(folder / name):
            missing.append(f"{data}: {name} not found; SHOAL_DATA may name the folder of data files")
            say(missing[-1])
            continue
        table = sampled(folder / name, 2_000 if quick else n)
        for most_dims in DIMS:
            rows.append(measure(data, table, dropped, most_dims, k, method))
            row = rows[-1]
            say(f"{data}, {row.n:,} records: at most {most_dims} a column, {row.coordinates} in all: IL {row.il:.2f} %")
    results = {**circumstances(quick), "rows": [asdict(row) for row in rows], "missing": missing}
    output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    say(f"Written to {output}")


if __name__ == "__main__":
    main()
