"""Compare the engine "spark" with the one in memory: whole releases, Parquet to Parquet, on two cores.

Flights jittered to any number of records, 13 columns, k = 10. Every release is made in a process of its own; the start
of Spark is measured apart. CPU seconds of all processes stand beside wall time, because they tell more on a busy
machine. The memory of the driver is measured where it is a process of its own: on a standalone cluster of two workers
on the loopback interface.
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
import pyarrow as pa
import pyarrow.parquet as pq

from bench_partition import ROOT, circumstances
from problems import FLIGHTS_COLUMNS, K, flights, jittered
from shoal.job import Job
from shoal.release import run
from shoal.reproduce.data_and_results import Missing

RESULTS = ROOT / "benchmarks" / "results" / "spark.json"
N_FILES = 8
TICKS = os.sysconf("SC_CLK_TCK")

sys.path.insert(0, str(ROOT / "tests" / "spark"))


@click.group()
def commands() -> None:
    """Measure the engine on Spark."""


@commands.command()
@click.option("--quick", is_flag=True, help="Small sizes, to see that it runs.")
@click.option("--output", type=click.Path(path_type=Path), default=RESULTS, show_default=True)
def compare(quick: bool, output: Path) -> None:
    """Make releases in memory and on Spark, in turns."""
    rows = []
    for n in (20_000,) if quick else (327_000, 3_270_000):
        with tempfile.TemporaryDirectory() as folder:
            write_flights(n, Path(folder) / "flights")
            rows += [measured(n, master, Path(folder)) for master in ("memory", "local[2]", "cluster")]
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
    settings = {"k": K, "seed": 1, "roles": {"quasi_identifiers": list(FLIGHTS_COLUMNS)}}
    if master == "memory":
        # A table in memory is read from one file.
        whole = folder / "flights.parquet"
        pq.write_table(pq.read_table(source), whole)
        source, start = whole, {}
    else:
        settings["engine"] = "spark"
        start = started(master)
    began, cpu = time.perf_counter(), cpu_seconds()
    release = run(Job.of(**settings, input={"path": str(source)}, output={"path": str(target)}))
    took = {"wall": time.perf_counter() - began, "cpu": cpu_seconds() - cpu}
    memory = {f"{name}_peak_mb": peak_mb(pid) for name, pid in drivers().items()}
    return {"il": release.loss.il, "smallest": release.verdict.smallest, **took, **start, **memory}


def started(master: str) -> dict[str, float]:
    """Start Spark and its Python workers."""
    from pyspark.sql import SparkSession

    began = time.perf_counter()
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    memory = "2g" if master.startswith("local") else "512m"
    builder = SparkSession.builder.master(master).config("spark.driver.memory", memory)
    settings = {"spark.executor.memory": "2g", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.range(100).mapInArrow(lambda batches: batches, "id long").count()
    return {"start_wall": time.perf_counter() - began}


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


def cpu_seconds() -> float:
    """Return the CPU time of this process and of all that it has started."""
    parents, ticks = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(stat.parent.name)] = int(fields[1])
        ticks[int(stat.parent.name)] = sum(map(int, fields[11:15]))
    ours = {os.getpid()}
    while True:
        more = {pid for pid, parent in parents.items() if parent in ours} - ours
        if not more:
            return sum(ticks.get(pid, 0) for pid in ours) / TICKS
        ours |= more


def ratios(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Compare Spark with the engine in memory."""
    memory = {row["n"]: row for row in rows if row["master"] == "memory"}
    return [
        {
            "n": row["n"],
            "master": row["master"],
            "loss_percent": 100 * (row["il"] / memory[row["n"]]["il"] - 1),
            "wall": row["wall"] / memory[row["n"]]["wall"],
            "cpu": row["cpu"] / memory[row["n"]]["cpu"],
        }
        for row in rows
        if row["master"] != "memory"
    ]


if __name__ == "__main__":
    commands()
