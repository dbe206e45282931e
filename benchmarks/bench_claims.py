"""Measure the time and loss of single methods that pages of the docs quote, as JSON.

Times are processor seconds of one thread, which are more reliable than wall-clock time on a busy machine.
"""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time

import click
import numpy as np

import materials
from bench_partition import ROOT, circumstances
from materials import data_folder
from measure import say
from shoal import kernels
from shoal.arrays import standardize
from shoal.columns.prepare import prepare
from shoal.columns.schema import Roles, Schema
from shoal.measures import loss
from shoal.methods import partition
from shoal.methods.blocks import blocks
from shoal.methods.refine import refine
from shoal.sources import read
from shoal.space.space import Space
from shoal.typing import Labels, Matrix

RESULTS = ROOT / "benchmarks" / "results" / "claims.json"
SCRATCH = ROOT / "out" / "bench" / "claims.json"
CENSUS = "gov_census.csv.gz"

Method = Callable[[Matrix, int], Labels]


@dataclass(frozen=True)
class Row:
    """One method on one set of records."""

    page: str
    data: str
    n: int
    dims: int
    k: int
    method: str
    cpu_seconds: float
    il: float


def method(name: str) -> Method:
    return lambda X, k: partition(X, k, name, 0, threads=1)


def refined(name: str) -> Method:
    return lambda X, k: refine(X, partition(X, k, name, 0, threads=1), k)


def thoroughness() -> dict[str, Method]:
    """Return the default refinement, and one that ends with steps of more than two records."""
    names = {"blocks, refined": False, "blocks, refined thoroughly": True}
    return {name: lambda X, k, most=most: refine(X, blocks(X, k), k, thorough=most) for name, most in names.items()}


def claims(quick: bool) -> Iterator[tuple[str, str, Matrix, int, dict[str, Method]]]:
    """Yield the page, the name of the records, the records, k and the methods."""
    many, some = (20_000, 5_000) if quick else (1_000_000, 100_000)
    noise = standardize(np.random.default_rng(0).normal(size=(many, 15)))
    column = np.ascontiguousarray(noise[:, :1])
    for k in (3, 1000):
        yield "univariate.md", "gaussian", column, k, {"univariate": method("univariate")}
    yield "univariate.md", "gaussian", noise, 10, {"univariate": method("univariate")}
    yield "topdown.md", "gaussian", noise, 10, {"topdown": method("topdown")}
    part = standardize(noise[:some])
    yield "topdown.md", "gaussian", part, 10, {"topdown": method("topdown"), "mdav": method("mdav")}
    yield "auto.md", "gaussian", part, 10, thoroughness()
    folder = data_folder()
    if folder is None or not (folder / CENSUS).exists():
        say(f"Without {CENSUS}: not found; SHOAL_DATA may name the folder that has it")
        return
    for source in (materials.covertype(92_962), materials.census(204_309)):
        if isinstance(source, materials.Source) and source.records is not None:
            yield "auto.md", source.name, standardize(source.records[:many]), 10, thoroughness()
    starts = {f"{name}, refined": refined(name) for name in ("mdav", "blocks")}
    yield "auto.md", "gov_census with categories", census(folder / CENSUS, many), 10, starts


def census(path: Path, most: int) -> Matrix:
    """Return the points of the census records, all columns being quasi-identifiers."""
    table = read(path).arrow.slice(0, most)
    schema = Schema.of(table.schema, Roles(quasi_identifiers=tuple(table.column_names)))
    prepared = prepare(table, schema)
    return Space.fit(prepared, schema).encode(prepared)


@click.command()
@click.option("--quick", is_flag=True, help="Few records. Checks that it works.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="JSON file to write.")
def main(quick: bool, output: Path | None) -> None:
    """Measure the numbers that the docs quote about single methods."""
    output = output or (SCRATCH if quick else RESULTS)
    output.parent.mkdir(parents=True, exist_ok=True)
    rows = []
    for page, data, X, k, methods in claims(quick):
        for name, run in methods.items():
            with kernels.using(threads=1):
                start = process_time()
                labels = run(X, k)
                seconds = process_time() - start
            rows.append(Row(page, data, *X.shape, k, name, seconds, 100 * loss(X, labels).il))
            say(f"{page}: {data}, {len(X):,} x {X.shape[1]}, k = {k}, {name}: {seconds:.2f} s, IL {rows[-1].il:.4f} %")
    output.write_text(json.dumps({**circumstances(quick), "rows": [asdict(row) for row in rows]}, indent=1) + "\n")
    say(f"Written to {output}")


if __name__ == "__main__":
    sys.exit(main())
