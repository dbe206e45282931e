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
from threading import Thread
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq

from bench_partition import ROOT, circumstances
from materials import Missing
from problems import FLIGHTS_COLUMNS, K, flights, jittered
from shoal.columns.value_hashes import record_hashes
from shoal.job import Job
from shoal.release import run

RESULTS = ROOT / "benchmarks" / "results" / "spark.json"
N_FILES = 8
TICKS = os.sysconf("SC_CLK_TCK")
JVM_THREADS = {"jvm_compiler": ("C1 Compiler", "C2 Compiler"), "jvm_collector": ("GC ", "G1 ")}
"""Threads of a JVM that work for it and not for Spark, by how their names begin."""


sys.path.insert(0, str(ROOT / "tests" / "engines" / "spark"))


@click.group()
def commands() -> None:
    """Measure the engine on Spark."""


@commands.command()
@click.option("--quick", is_flag=True, help="Small sizes, to see that it runs.")
@click.option("--sizes", help="Numbers of records, with commas between them; 327000,3270000 if not given.")
@click.option("--cluster", is_flag=True, help="A standalone cluster of two workers as well.")
@click.option("--only", help="One of memory, disk, local[2] and cluster; the others are kept as they were measured.")
@click.option("--output", type=click.Path(path_type=Path), default=RESULTS, show_default=True)
def compare(quick: bool, sizes: str | None, cluster: bool, only: str | None, output: Path) -> None:
    """Make releases in memory, on disk and on Spark, in turns."""
    asked = (20_000,) if quick else tuple(map(int, (sizes or "327000,3270000").split(",")))
    masters = ("memory", "disk", "local[2]", *(("cluster",) if cluster else ())) if only is None else (only,)
    before = json.loads(output.read_text())["releases"] if output.exists() and not quick else []
    rows = [row for row in before if row["n"] not in asked or row["master"] not in masters]
    for n in asked:
        with tempfile.TemporaryDirectory() as folder:
            write_flights(n, Path(folder) / "flights")
            for master in masters:
                rows = sorted([*rows, measured(n, master, Path(folder))], key=lambda row: row["n"])
                result = {**circumstances(quick), "k": K, "releases": rows, "ratios": ratios(rows)}
                output.write_text(json.dumps(result, indent=1) + "\n")
    click.echo(json.dumps(result["ratios"], indent=1))


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


class Cpu(Thread):
    """Watches the CPU time of this process and of all that it starts.

    Spark ends Python workers that are idle for a minute, and no process then has their CPU time: they are watched while
    they live.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._spent: dict[int, float] = {}
        self._names: dict[int, str] = {os.getpid(): "driver"}
        self._threads: dict[tuple[int, str], tuple[str, float]] = {}
        self._watching = 0.0
        self._watch()
        self.start()

    def run(self) -> None:
        """Watch until the end."""
        while True:
            time.sleep(1)
            self._watch()
            self._watching = time.thread_time()

    def _watch(self) -> None:
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                name, _, rest = stat.read_text().partition("(")[2].rpartition(")")
            except OSError:
                continue
            fields, pid = rest.split(), int(stat.parent.name)
            if pid in self._names or int(fields[1]) in self._names:
                self._spent[pid] = sum(map(int, fields[11:13])) / TICKS
            if int(fields[1]) in self._names:
                self._names[pid] = "jvm" if name == "java" else "workers"
            if self._names.get(pid) == "jvm":
                self._watch_threads(pid)

    def _watch_threads(self, pid: int) -> None:
        for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
            try:
                name, rest = stat.read_text().split("(", 1)[1].rsplit(")", 1)
            except OSError:
                continue
            spent = sum(map(int, rest.split()[11:13])) / TICKS
            self._threads[pid, stat.parent.name] = (name, spent)

    def jvm_seconds(self) -> dict[str, float]:
        """Return the CPU seconds so far of what the JVM does for itself: to compile its code, and to free memory."""
        self._watch()
        found = dict.fromkeys(JVM_THREADS, 0.0)
        for name, spent in self._threads.values():
            for kind, beginnings in JVM_THREADS.items():
                if name.startswith(beginnings):
                    found[kind] += spent
        return found

    def seconds(self) -> dict[str, float]:
        """Return the CPU seconds so far of the driver in Python, of the JVMs and of the Python workers."""
        self._watch()
        found: dict[str, float] = {}
        for pid, name in list(self._names.items()):
            found[name] = found.get(name, 0.0) + self._spent[pid]
        found["driver"] -= self._watching
        return found


def released(master: str, folder: Path) -> dict[str, Any]:
    """Return loss, time and memory of a release."""
    cpu = Cpu()
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
        start = started(master, cpu)
    began, before, jvm = time.perf_counter(), cpu.seconds(), cpu.jvm_seconds()
    release = run(Job.of(**settings, input={"path": str(source)}, output={"path": str(target)}))
    wall = time.perf_counter() - began
    spent = {f"cpu_{name}": total - before.get(name, 0.0) for name, total in cpu.seconds().items()}
    shares = {f"cpu_{name}": total - jvm[name] for name, total in cpu.jvm_seconds().items()} if start else {}
    took = {"wall": wall, "cpu": sum(spent.values()), **spent, **shares}
    memory = {f"{name}_peak_mb": peak_mb(pid) for name, pid in drivers().items()}
    found = {"il": 100 * release.loss.il, "classes": release.verdict.n_classes, "smallest": release.verdict.smallest}
    return {**found, "records": records_of(target), **took, **start, **memory}


def records_of(path: Path) -> str:
    """Return a sum of the hashes of all published records, which does not depend on their order."""
    sums = np.zeros(2, dtype=np.uint64)
    for batch in pads.dataset(path, format="parquet").to_batches(columns=list(FLIGHTS_COLUMNS)):
        columns = (pa.chunked_array([batch.column(name)]) for name in FLIGHTS_COLUMNS)
        sums += record_hashes(columns, batch.num_rows).sum(axis=1, dtype=np.uint64)
    return "".join(f"{half:016x}" for half in sums.tolist())


def started(master: str, cpu: Cpu) -> dict[str, float]:
    """Start Spark and its Python workers."""
    from pyspark.sql import SparkSession

    began = time.perf_counter()
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
    return {"start_wall": time.perf_counter() - began, "start_cpu": sum(cpu.seconds().values())}


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


def ratios(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Compare each release on Spark with those of the same size in memory and on disk."""
    by = {(row["n"], row["master"]): row for row in rows}
    found = []
    for row in rows:
        if row["master"] in ("memory", "disk"):
            continue
        memory, disk = by.get((row["n"], "memory")), by.get((row["n"], "disk"))
        if memory is None or disk is None:
            continue
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
