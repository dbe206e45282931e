"""Measure the certainty penalty of cells made for it beside that of the classes of ARX and of two Mondrians, as JSON.

Adult and a sample of gov_census are looked for in the folder that SHOAL_DATA names, or in shared/data in or beside the
project; the classes of ARX 3.9.2 and of anonypyx 0.2.11, and ARX's hierarchies, in the folder `peers` beside it. All
penalties are measured by one function, `shoal.measures.ncp`, on the exact ranges, sets and ancestors of the classes.
"""

import json
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import click
import numpy as np

from bench_partition import ROOT, circumstances
from materials import data_folder
from measure import say
from mondrian import mondrian
from shoal.constraints.constrained_cells import group
from shoal.errors import ShoalWarning
from shoal.job import Job
from shoal.job.checks import Prepared, prepared
from shoal.measures import ncp
from shoal.sources import read
from shoal.space.ncp_weights import Categories, Numbers, ncp_columns
from shoal.space.space import Space
from shoal.typing import Labels

RESULTS = ROOT / "benchmarks" / "results" / "ncp.json"
SCRATCH = ROOT / "out" / "bench" / "ncp.json"
NUMBERS = {
    "adult": ("age", "education_num", "hours_per_week", "capital_gain", "capital_loss"),
    "gov": (
        *("age", "citizenship", "family_size", "children", "education_level", "english_level", "hours_worked"),
        "weeks_worked",
    ),
}
CATEGORIES = {
    "adult": ("workclass", "marital_status", "occupation", "relationship", "race", "sex", "native_country"),
    "gov": (*("sex", "race", "hispanic_origin", "nativity", "marital", "economic_region", "occupation", "industry"),),
}
FILES = {"adult": "adult.csv.gz", "gov": "gov_census.csv.gz"}


@dataclass(frozen=True)
class Row:
    """One table, grouped by one contender."""

    data: str
    n: int
    k: int
    published: str
    """Ranges and sets, or ancestors."""
    contender: str
    ncp: float
    classes: int
    smallest: int
    seconds: float | None
    """To make the cells, in the best of the runs; None for classes that were made elsewhere."""
    cpu_seconds: float | None


def table_of(data: str, folder: Path, rows: Any, k: int, hierarchies: Path | None) -> Prepared:
    """Return the prepared records, with the settings under which they are published."""
    columns: dict[str, dict[str, str]] = {name: {"kind": "numeric"} for name in NUMBERS[data]}
    columns |= {name: {"kind": "nominal"} for name in CATEGORIES[data]}
    if hierarchies is not None:
        for name, settings in columns.items():
            settings |= {"hierarchy": str(hierarchies / f"{name}.csv"), "aggregate": "ancestor"}
    table = read(folder / FILES[data]).arrow.select(list(columns)).take(rows)
    for name in CATEGORIES[data]:
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, table[name].cast("string").fill_null("Missing"))
    roles = {"quasi_identifiers": tuple(columns)}
    job = Job.of(k=k, roles=roles, columns=columns, truthful=True, accept=["missing-code", "codes"], seed=1)
    return prepared(job, read(table))


def timed(make: Callable[[], Labels], runs: int) -> tuple[Labels, float, float]:
    """Return labels, and the least wall and processor time of some runs."""
    best = [np.inf, np.inf]
    for _ in range(runs):
        wall, processor = perf_counter(), process_time()
        labels = make()
        best = [min(best[0], perf_counter() - wall), min(best[1], process_time() - processor)]
    return labels, *best


def contenders(
    made: Prepared, k: int, seconds: float, *, ancestors: bool
) -> Iterator[tuple[str, Callable[[], Labels]]]:
    """Yield names, and what makes the cells."""
    space = Space.fit(made.original, made.schema)
    X = space.encode(made.original)

    def grouped(**settings: Any) -> Callable[[], Labels]:
        return lambda: group(made.original, made.schema, space, X, k, "auto", 1, **settings).labels

    yield "auto", grouped()
    yield "auto, ncp", grouped(objective="ncp")
    yield f"auto, ncp, best of {seconds:g} s", grouped(objective="ncp", effort="best", seconds=seconds)
    if not ancestors:
        columns = ncp_columns(made.original, made.schema).values()
        numbers = np.column_stack([column.values for column in columns if isinstance(column, Numbers)])
        codes = np.column_stack([column.codes for column in columns if isinstance(column, Categories)])
        yield "Mondrian, NumPy", lambda: mondrian(numbers, codes, k)


def measured(data: str, made: Prepared, k: int, published: str, contender: str, labels: Labels, *times: float) -> Row:
    """Return the row of one contender."""
    labels = np.unique(labels, return_inverse=True)[1]
    found = ncp(made.original, made.schema, dict.fromkeys(made.schema.quasi_names, labels))
    sizes = np.bincount(labels)
    row = Row(
        data,
        len(labels),
        k,
        published,
        contender,
        100 * found.ncp,
        len(sizes),
        int(sizes.min()),
        *(times or (None, None)),
    )
    say(
        f"{data}, k = {k}, {published}: {contender}: NCP {100 * found.ncp:.3f} %"
        + (f", {times[0]:.2f} s" if times else "")
    )
    return row


def measure(data: str, folder: Path, k: int, seconds: float, runs: int, n: int | None) -> Iterator[Row]:
    """Measure one table with one k: ranges and sets, and with ARX's hierarchies where there are some."""
    peers = np.load(folder.parent / "peers" / "classes.npz")
    rows = np.arange(len(peers[f"arx_{data}_{k}"])) if data == "adult" else peers["gov_sample_rows"]
    hierarchies = folder.parent / "peers" / f"{data}_hierarchies"
    for published, trees in (("ranges and sets", None), ("ancestors", hierarchies)):
        if trees is not None and not trees.exists():
            continue
        made = table_of(data, folder, rows[:n], k, trees)
        for name, make in contenders(made, k, seconds, ancestors=trees is not None):
            labels, *times = timed(make, 1 if "best" in name else runs)
            yield measured(data, made, k, published, name, labels, *times)
        for peer in ("arx", "anonypyx") if n is None else ():
            yield measured(data, made, k, published, peer, peers[f"{peer}_{data}_{k}"])


@click.command()
@click.option("--quick", is_flag=True, help="The first 2,000 records, k = 10, without peers. Checks that it works.")
@click.option("--seconds", default=20.0, show_default=True, help="Budget of effort=best.")
@click.option("--data", multiple=True, type=click.Choice(list(FILES)), help="Only these tables.")
@click.option("-k", "sizes", multiple=True, type=int, help="Only these k.")
@click.option("--runs", default=3, show_default=True, help="Runs of each contender, of which the fastest counts.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="JSON file to write.")
def main(
    quick: bool, seconds: float, data: tuple[str, ...], sizes: tuple[int, ...], runs: int, output: Path | None
) -> None:
    """Measure the certainty penalty of cells beside that of other tools' classes."""
    output = output or (SCRATCH if quick or data or sizes else RESULTS)
    output.parent.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", ShoalWarning)
    folder, found, missing = data_folder(), [], []
    for table, name in FILES.items():
        if data and table not in data:
            continue
        needed = () if folder is None else (folder / name, folder.parent / "peers" / "classes.npz")
        absent = [path.name for path in needed if not path.exists()] if needed else [name]
        if folder is None or absent:
            missing.append(f"{table}: {', '.join(absent)} not found; SHOAL_DATA may name the folder of data files")
            say(missing[-1])
            continue
        for k in sizes or ((10,) if quick else (5, 10, 50)):
            found += measure(
                table, folder, k, 1.0 if quick else seconds, 1 if quick else runs, 2_000 if quick else None
            )
    results = {**circumstances(quick), "rows": [asdict(row) for row in found], "missing": missing}
    output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    say(f"Written to {output}")


if __name__ == "__main__":
    main()
