"""Compare the engine "spark" with those in memory and on disk: whole releases, Parquet to Parquet, on two cores.

Flights jittered to any number of records, 13 columns, k = 10. Every release is made in a process of its own; the start
of Spark is measured apart. CPU seconds of all processes stand beside wall time, because they tell more on a busy
machine; those of the JVM and of the Python workers are also given apart. In local mode the driver is the executor too,
and its heap is limited to 1 GB. `--cluster` adds a standalone cluster of two workers on the loopback interface, whose
driver is a process of its own.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq

from bench_partition import ROOT, circumstances
from problems import FLIGHTS_COLUMNS, K, flights, jittered
from shoal.job import Job
from shoal.release import run
from shoal.reproduce.data_and_results import Missing
from shoal.table.published_order import record_hashes

RESULTS = ROOT / "benchmarks" / "results" / "spark.json"
N_FILES = 8
TICKS = os.sysconf("SC_CLK_TCK")

sys.path.insert(0, str(ROOT / "tests" / "spark"))


@click.group()
def commands() -> None:
    """Measure the engine on Spark."""


@commands.command()
@click.option("--quick", is_flag=True, help="Small sizes, to see that it runs.")
@click.option("--sizes", help="Numbers of records, with commas between them; 327000,3270000 if not given.")
@click.option("--cluster", is_flag=True, help="A standalone cluster of two workers as well.")
@click.option("--output", type=click.Path(path_type=Path), default=RESULTS, show_default=True)
def compare(quick: bool, sizes: str | None, cluster: bool, output: Path) -> None:
    """Make releases in memory, on disk and on Spark, in turns."""
    asked = (20_000,) if quick else tuple(map(int, (sizes or "327000,3270000").split(",")))
    masters = ("memory", "disk", "local[2]", *(("cluster",) if cluster else ()))
    before = json.loads(output.read_text())["releases"] if output.exists() and not quick else []
    rows = [row for row in before if row["n"] not in asked]
    for n in asked:
        with tempfile.TemporaryDirectory() as folder:
            write_flights(n, Path(folder) / "flights")
            rows += [measured(n, master, Path(folder)) for master in masters]
    rows.sort(key=lambda row: row["n"])
    result = {**circumstances(quick), "k": K, "releases": rows, "ratios": ratios(rows)}
    click.echo(json.dumps(result["ratios"], indent=1))
    output.write_text(json.dumps(result, indent=1) + "\n")


def write_flights(n: int, folder: Path) -> None:
    """Write jittered flights as a folder of Parquet files."""
    source = flights()
    if isinstance(source, Missing):
        click.echo(f"{source.name}: {source.reason}")
        sys.exit(1)
    folder.mkdir()
    table = pa.table(dict(zip(FLIGHTS_COLUMNS, jittered(source, n).X.T, strict=True)))
    size = -(-n // N_FILES)
    for number in range(N_FILES):
        pq.write_table(table.slice(number * size, size), folder / f"{number}.parquet")


def measured(n: int, master: str, folder: Path) -> dict[str, Any]:
    """Make one release in a process of its own."""
    command = [sys.executable, __file__, "one", master, str(folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    row = {"n": n, "master": master, **json.loads(done.stdout.splitlines()[-1])}
    click.echo(f"{n:>11,} {master:<9}IL {row['il']:.4f} %  {row['wall']:8.1f} s wall {row['cpu']:8.1f} s CPU  {row}")
    return row


@commands.command(hidden=True)
@click.argument("master")
@click.argument("folder", type=click.Path(path_type=Path))
def one(master: str, folder: Path) -> None:
    """Make one release, and print what it took."""
    warnings.simplefilter("ignore")
    if master == "cluster":
        from cluster import Cluster

        logs = folder / "cluster"
        logs.mkdir()
        with Cluster(logs, memory="3g") as cluster:
            found = released(cluster.url, folder)
    else:
        found = released(master, folder)
    print(json.dumps(found))


def released(master: str, folder: Path) -> dict[str, Any]:
    """Return loss, time and memory of a release."""
    source, target = folder / "flights", folder / f"release-{master[:5]}.parquet"
    engine = master if master in ("memory", "disk") else "spark"
    settings = {"k": K, "seed": 1, "roles": {"quasi_identifiers": list(FLIGHTS_COLUMNS)}, "engine": engine}
    start: dict[str, float] = {}
    if engine == "memory":
        # A table in memory is read from one file.
        whole = folder / "flights.parquet"
        pq.write_table(pq.read_table(source), whole)
        source = whole
    if engine == "spark":
        start = started(master)
    began, cpu, before = time.perf_counter(), cpu_seconds(), cpu_by_process()
    release = run(Job.of(**settings, input={"path": str(source)}, output={"path": str(target)}))
    took = {"wall": time.perf_counter() - began, "cpu": cpu_seconds() - cpu}
    took |= {f"cpu_{name}": spent - before[name] for name, spent in cpu_by_process().items()}
    memory = {f"{name}_peak_mb": peak_mb(pid) for name, pid in drivers().items()}
    found = {"il": release.loss.il, "classes": release.verdict.n_classes, "smallest": release.verdict.smallest}
    return {**found, "records": records_of(target), **took, **start, **memory}


def records_of(path: Path) -> str:
    """Return a sum of the hashes of all published records, which does not depend on their order."""
    sums = np.zeros(2, dtype=np.uint64)
    for batch in pads.dataset(path, format="parquet").to_batches(columns=list(FLIGHTS_COLUMNS)):
        columns = (pa.chunked_array([batch.column(name)]) for name in FLIGHTS_COLUMNS)
        sums += record_hashes(columns, batch.num_rows).sum(axis=1, dtype=np.uint64)
    return "".join(f"{half:016x}" for half in sums.tolist())


def started(master: str) -> dict[str, float]:
    """Start Spark and its Python workers."""
    from pyspark.sql import SparkSession

    began, cpu = time.perf_counter(), cpu_seconds()
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    builder = SparkSession.builder.master(master)
    settings = {
        "spark.driver.memory": "1g",
        "spark.executor.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.range(100).mapInArrow(lambda batches: batches, "id long").count()
    return {"start_wall": time.perf_counter() - began, "start_cpu": cpu_seconds() - cpu}


def drivers() -> dict[str, int]:
    """Return the processes of the driver: Python, and the JVM where there is one."""
    found = {"python": os.getpid()}
    if "pyspark" in sys.modules:
        from pyspark import SparkContext

        found["jvm"] = SparkContext._gateway.proc.pid
    return found


def peak_mb(pid: int) -> float:
    """Return the largest resident memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1e3 for line in lines if line.startswith("VmHWM"))


def cpu_by_process() -> dict[str, float]:
    """Return the CPU time of the driver in Python, and of the JVM and the Python workers where there is one."""
    found = {"python": time.process_time()}
    if "jvm" in drivers():
        jvm = drivers()["jvm"]
        spent = processes()[1]
        found |= {"jvm": spent[jvm], "workers": cpu_seconds() - found["python"] - spent[jvm]}
    return found


def cpu_seconds() -> float:
    """Return the CPU time of this process and of all that it has started."""
    parents, spent, waited = processes()
    ours = {os.getpid()}
    while True:
        more = {pid for pid, parent in parents.items() if parent in ours} - ours
        if not more:
            return sum(spent.get(pid, 0) + waited.get(pid, 0) for pid in ours)
        ours |= more


def processes() -> tuple[dict[int, int], dict[int, float], dict[int, float]]:
    """Return of each process its parent, its CPU time, and the CPU time of those that it started and that ended."""
    parents: dict[int, int] = {}
    spent: dict[int, float] = {}
    waited: dict[int, float] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(stat.parent.name)
        parents[pid] = int(fields[1])
        spent[pid], waited[pid] = (sum(map(int, fields[at : at + 2])) / TICKS for at in (11, 13))
    return parents, spent, waited


def ratios(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Compare each release on Spark with those of the same size in memory and on disk."""
    by = {(row["n"], row["master"]): row for row in rows}
    found = []
    for row in rows:
        if row["master"] in ("memory", "disk"):
            continue
        memory, disk = by[row["n"], "memory"], by[row["n"], "disk"]
        found.append(
            {
                "n": row["n"],
                "master": row["master"],
                "loss_percent": 100 * (row["il"] / memory["il"] - 1),
                "wall": row["wall"] / memory["wall"],
                "cpu": row["cpu"] / memory["cpu"],
                "wall_of_disk": row["wall"] / disk["wall"],
                "cpu_of_disk": row["cpu"] / disk["cpu"],
                "records_of_disk": row["records"] == disk["records"],
            }
        )
    return found


if __name__ == "__main__":
    commands()
