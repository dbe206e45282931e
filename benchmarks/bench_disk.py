"""Compare the disk engine with the one in memory: loss, time and peak memory of whole releases, Parquet to Parquet.

Flights jittered to any number of records, 13 columns, k = 10. Every release is made in a process of its own. CPU
seconds stand beside wall time, because they tell more on a busy machine. A second table shows what border rounds gain.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench_partition import ROOT, circumstances
from materials import Missing, Source, census, covertype, timed
from problems import FLIGHTS_COLUMNS, K, Problem, flights, jittered, whole
from shoal import kernels
from shoal.engines.blocks.blueprint import CUTS
from shoal.engines.blocks.forest import Forest
from shoal.methods import partition
from shoal.methods.cell_building import members_of, renumbered
from shoal.methods.refine import refine
from shoal.typing import Labels, Matrix

RESULTS = ROOT / "benchmarks" / "results" / "disk.json"
FULL = 32_700_000
LARGEST = 3_270_000
INTERPRETER = 200
"""MB that a process takes before it reads a record."""

ONE_RELEASE = """
import json, sys, time, warnings
from shoal.job import Job
from shoal.release import run

warnings.simplefilter("ignore")
settings = json.loads(sys.argv[1])
began = time.perf_counter()
release = run(Job.of(**settings), force=True)
wall = time.perf_counter() - began
sys.path.insert(0, sys.argv[2])
from one_run import peak_memory
found = {"il": 100 * release.loss.il, "classes": release.verdict.n_classes, "smallest": release.verdict.smallest}
print(json.dumps({**found, "wall": wall, "cpu": time.process_time(), "peak_mb": peak_memory() / 1e6}))
"""


@click.command()
@click.option("--quick", is_flag=True, help="Small sizes, to see that it runs.")
@click.option("--full", is_flag=True, help=f"The disk engine alone on {FULL:,} records as well.")
@click.option("--only", type=click.Choice(["releases", "rounds"]), help="One of the two tables.")
@click.option("--memory", default="1GB", show_default=True, help="Limit of the disk engine up to 3.27 million records.")
@click.option("--output", type=click.Path(path_type=Path), default=RESULTS, show_default=True)
def main(quick: bool, full: bool, only: str | None, memory: str, output: Path) -> None:
    """Measure the disk engine."""
    source = flights()
    if isinstance(source, Missing):
        click.echo(f"Left out, {source.name}: {source.reason}")
        return
    result = json.loads(output.read_text()) if output.exists() and not quick else {}
    result |= circumstances(quick)
    if only != "rounds":
        sizes = (20_000, 40_000) if quick else (327_000, 3_270_000)
        result["releases"] = [row for row in result.get("releases", []) if row["n"] not in sizes and not quick]
        result["releases"] += releases(source, sizes, memory)
        if full:
            result["releases"] += [release(source, FULL, "disk", "2GB")]
        result["ratios"] = ratios(result["releases"])
        click.echo(json.dumps(result["ratios"], indent=1))
    if only != "releases":
        result["rounds"] = rounds(source, quick)
    output.write_text(json.dumps(result, indent=1) + "\n")


def releases(source: Source, sizes: tuple[int, ...], memory: str) -> list[dict[str, Any]]:
    """Make releases of each size in memory and on disk, in turns."""
    return [release(source, n, engine, memory) for n in sizes for engine in ("memory", "disk")]


def release(source: Source, n: int, engine: str, memory: str) -> dict[str, Any]:
    """Make one release in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "flights.parquet"
        write_flights(source, n, path)
        settings: dict[str, Any] = {"k": K, "seed": 1, "roles": {"quasi_identifiers": list(FLIGHTS_COLUMNS)}}
        settings |= {"input": {"path": str(path)}, "output": {"path": str(Path(folder) / "release.parquet")}}
        settings |= {"engine": "memory"} if engine == "memory" else {"engine": "disk", "memory": memory}
        command = [sys.executable, "-c", ONE_RELEASE, json.dumps(settings), str(Path(__file__).parent)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    row = {"n": n, "engine": engine, "memory": memory if engine == "disk" else None, **json.loads(done.stdout)}
    click.echo(
        f"{n:>11,} {engine:<7}IL {row['il']:.4f} %  {row['wall']:8.1f} s wall {row['cpu']:8.1f} s CPU  "
        f"peak {row['peak_mb']:,.0f} MB"
    )
    return row


def write_flights(source: Source, n: int, path: Path) -> None:
    """Write jittered flights, in parts where there are very many."""
    schema = pa.schema([(name, pa.float64()) for name in FLIGHTS_COLUMNS])
    left, n_parts = n, 0
    with pq.ParquetWriter(path, schema) as writer:
        while left:
            # The size is the seed, so that no two parts have the same size.
            size = min(left, LARGEST - n_parts)
            X = jittered(source, size).X
            writer.write_table(pa.table(dict(zip(FLIGHTS_COLUMNS, X.T, strict=True))), row_group_size=1 << 17)
            left, n_parts = left - size, n_parts + 1


def ratios(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Compare the engines at each size, and the largest sizes of the disk engine with each other."""
    found: dict[str, Any] = {}
    by = {(row["n"], row["engine"]): row for row in rows}
    for n in sorted({row["n"] for row in rows}):
        if (n, "memory") in by and (n, "disk") in by:
            memory, disk = by[n, "memory"], by[n, "disk"]
            found[str(n)] = {
                "loss_percent": 100 * (disk["il"] / memory["il"] - 1),
                "wall": disk["wall"] / memory["wall"],
                "cpu": disk["cpu"] / memory["cpu"],
                "peak_mb_beside_interpreter": disk["peak_mb"] - INTERPRETER,
            }
    on_disk = sorted((row for row in rows if row["engine"] == "disk"), key=lambda row: row["n"])
    if len(on_disk) > 1:
        sizes = np.log([row["n"] for row in on_disk])
        found["growth_cpu"] = float(np.polyfit(sizes, np.log([row["cpu"] for row in on_disk]), 1)[0])
        found["growth_wall"] = float(np.polyfit(sizes, np.log([row["wall"] for row in on_disk]), 1)[0])
    return found


def rounds(source: Source, quick: bool) -> list[dict[str, Any]]:
    """Measure the loss after the cuts and each border round, and of more refining without cuts, against auto."""
    others = [one for one in (census(204_309), covertype(286_048)) if isinstance(one, Source)]
    rows = []
    for problem in [whole(source)] if quick else [whole(one) for one in (source, *others)]:
        labels, auto = timed(partition, problem.X, problem.k, "auto", 1)
        base = spread(problem.X, labels)
        further, cpu = timed(refine, problem.X, labels, problem.k, least_gain=0.0, thorough=True)
        gain = 100 * (spread(problem.X, further) / base - 1)
        rows.append({"data": problem.data, "n": len(problem.X), "refined_further": gain, "cpu": 1 + cpu / auto})
        click.echo(f"{problem}: auto refined further: {gain:+.2f} %, {1 + cpu / auto:.2f} times the CPU time")
        for size in (100_000, 50_000):
            made, cpu = timed(after_rounds, problem, size)
            losses = [100 * (spread(problem.X, labels) / base - 1) for labels in made]
            row = {"data": problem.data, "n": len(problem.X), "block": size, "percent_above_auto": losses}
            rows.append({**row, "cpu": cpu / auto})
            click.echo(
                f"{problem}: blocks of {size:,}: {', '.join(f'{loss:+.2f} %' for loss in losses)}, "
                f"{cpu / auto:.2f} times the CPU time"
            )
    return rows


def after_rounds(problem: Problem, size: int) -> list[Labels]:
    """Return the cells after the cuts and after each border round."""
    X, n = problem.X, len(problem.X)
    drawn = np.random.default_rng(0).permutation(n)[:100_000]
    everywhere, sizes = np.zeros(n, dtype=np.int64), np.array([n])
    found: list[Labels] = []
    for first, share in CUTS:
        forest = Forest.grown(X[drawn], np.ones(len(drawn)), everywhere[drawn], sizes, size, first, share)
        if not found:
            leaves = forest.assign(X, everywhere)
        else:
            cells = np.bincount(found[-1])
            means = kernels.cell_sums(X, found[-1], len(cells)) / cells[:, None]
            leaves = forest.assign(means, np.zeros(len(cells), dtype=np.int64))[found[-1]]
        found.append(in_blocks(problem, renumbered(leaves), found[-1] if found else None))
    return found


def in_blocks(problem: Problem, blocks: Labels, labels: Labels | None) -> Labels:
    """Make or refine the cells of each block."""
    made, n_cells = np.empty(len(blocks), dtype=np.int64), 0
    for members in members_of(blocks):
        X = np.ascontiguousarray(problem.X[members])
        if labels is None:
            part = partition(X, problem.k, "auto", 1)
        else:
            part = refine(X, renumbered(labels[members]), problem.k)
        made[members] = part + n_cells
        n_cells = int(made[members].max()) + 1
    return made


def spread(X: Matrix, labels: Labels) -> float:
    """Return the sum of squared distances of the records from the means of their cells."""
    return float(kernels.cell_spread(X, labels, int(labels.max()) + 1).sum())


if __name__ == "__main__":
    main()
