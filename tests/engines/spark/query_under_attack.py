"""A stream on a Spark cluster whose executors, driver and query are killed in the middle of batches.

The driver is a process of its own, which this file is the script of: it is started again after each kill, from the
checkpoint. What each attempt of a batch has delivered stays, so that attempts can be compared; the output is that of
the first complete attempt of each batch, as a sink that ignores repeated batches keeps it.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

OPTIONS = {
    "k": 3,
    "delay": 40,
    "quasi_identifiers": ["age", "income"],
    "confidential": ["diagnosis"],
    "other": ["number"],
    "subject": "person",
    "on_error": "side",
    "shards": 4,
    "side": True,
}
TYPES = "number long, age int, income double, diagnosis string, person string"
N_TUPLES, N_DIAGNOSES = 300, 2
KINDS = ("executor", "driver", "query")
HOLD = "hold"
"""A file; while it is there, a batch that was delivered is not committed, so that Spark repeats it after a kill."""
PATIENCE = 300.0
"""Seconds without any progress after which the attack has failed."""


def tuples(number):
    """Return the tuples of a file; one of them cannot be used, and one shard gets few."""
    rng = np.random.default_rng(number)
    numbers = np.arange(N_TUPLES) + N_TUPLES * number
    income = rng.normal(size=N_TUPLES)
    return pa.table(
        {
            "number": numbers,
            "age": pa.array(rng.integers(0, 90, N_TUPLES), pa.int32()),
            "income": pa.array(income, mask=numbers % N_TUPLES == 7),
            "diagnosis": rng.choice(["flu", "asthma", "gout"], N_TUPLES),
            "person": [f"p{each}" for each in rng.integers(0, 60, N_TUPLES)],
        }
    )


def add_files(folder, n_files):
    """Write files until there are that many, each at once."""
    for number in range(len(list(folder.glob("*.parquet"))), n_files):
        pq.write_table(tuples(number), folder / f".{number:05}")
        (folder / f".{number:05}").rename(folder / f"{number:05}.parquet")


# The driver.


def drive(master, folder, settings):
    """Run the query until the process is killed; SIGUSR1 stops and restarts it, SIGUSR2 ends it when all is read."""
    from pyspark.sql import SparkSession

    import shoal
    from shoal import LDiversity
    from shoal.stream.spark_query.operator import PROVIDER, ROCKSDB

    builder = SparkSession.builder.master(master)
    for name, value in {**settings, PROVIDER: ROCKSDB}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    asked = []
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda number, _: asked.append(number))

    def deliver(batch, number):
        batch.write.parquet(f"{folder}/out/{number:05}/{time.time_ns()}")
        end = time.monotonic() + PATIENCE
        while (Path(folder) / HOLD).exists() and time.monotonic() < end:
            time.sleep(0.02)

    def started(**trigger):
        source = spark.readStream.schema(TYPES).option("maxFilesPerTrigger", 1).parquet(f"{folder}/in")
        released = shoal.spark.stream(source, **OPTIONS, models=[LDiversity("diagnosis", N_DIAGNOSES)])
        writer = released.writeStream.foreachBatch(deliver).option("checkpointLocation", f"{folder}/checkpoint")
        return writer.trigger(**trigger).start()

    while signal.SIGUSR2 not in asked:
        asked.clear()
        query = started(processingTime="0 seconds")
        while not asked:
            if query.awaitTermination(0.05):
                raise SystemExit(str(query.exception()))
        query.stop()
    started(availableNow=True).awaitTermination()
    shoal.spark.finish(f"{folder}/checkpoint", side=True).write.parquet(f"{folder}/rest")


# The attack.


class Driver:
    """The process of the driver."""

    def __init__(self, master, folder, settings):
        command = [sys.executable, __file__, master, str(folder), *(f"{k}={v}" for k, v in settings.items())]
        with (folder / "driver.log").open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True, env=_environment()
            )

    def kill(self):
        """Kill the driver and its JVM."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def _environment():
    return {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}


def attack(cluster, folder, kinds, settings, seed=0):
    """Kill each of these kinds in the middle of a batch; return what was done and found."""
    rng = random.Random(seed)
    (folder / "in").mkdir()
    add_files(folder / "in", 4)
    driver, done = Driver(cluster.url, folder, settings), Counter()
    try:
        for number, kind in enumerate(kinds):
            if number % 2:
                (folder / HOLD).touch()
            begun = _wait(lambda: _in_a_batch(folder), driver, folder)
            if number % 2:
                _wait(lambda begun=begun: _is_delivered(folder, begun), driver, folder)
            else:
                time.sleep(rng.uniform(0, 1.2))
            if kind == "driver":
                driver.kill()
                driver = Driver(cluster.url, folder, settings)
            elif kind == "query":
                driver.process.send_signal(signal.SIGUSR1)
            elif not _kill_an_executor(cluster, rng):
                done["no executor was there"] += 1
            done[kind] += 1
            (folder / HOLD).unlink(missing_ok=True)
            add_files(folder / "in", begun + 5)
            _wait(lambda begun=begun: _number(folder, "commits") >= begun, driver, folder)
        driver.process.send_signal(signal.SIGUSR2)
        driver.process.wait(PATIENCE)
        assert driver.process.returncode == 0, (folder / "driver.log").read_text(errors="replace")[-3000:]
    finally:
        if driver.process.poll() is None:
            driver.kill()
    return {"kills": dict(done), **verified(folder)}


def _number(folder, log):
    """Return the number of the last batch in a log of the checkpoint; -1 if there is none."""
    names = [path.name for path in (folder / "checkpoint" / log).glob("[0-9]*")]
    return max((int(name) for name in names if name.isdigit()), default=-1)


def _in_a_batch(folder):
    """Return the number of the batch that has begun and is not complete, or None."""
    begun = _number(folder, "offsets")
    return begun if begun > _number(folder, "commits") else None


def _is_delivered(folder, number):
    return any((folder / "out" / f"{number:05}").glob("*/_SUCCESS"))


def _wait(condition, driver, folder):
    """Return what the condition returns as soon as it is true."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = condition()
        if found is not None and found is not False:
            return found
        if driver.process.poll() is not None:
            raise AssertionError((folder / "driver.log").read_text(errors="replace")[-3000:])
        time.sleep(0.02)
    raise TimeoutError(f"Nothing has happened for {PATIENCE:g} seconds: {folder}.")


def _kill_an_executor(cluster, rng):
    """Kill the JVM of an executor; return whether there was one."""
    found = [pid for node in cluster.workers for pid in _descendants(node.process.pid) if _is_executor(pid)]
    if found:
        os.kill(rng.choice(found), signal.SIGKILL)
    return bool(found)


def _descendants(pid):
    children = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(stat.parent.name))
    found = list(children.get(pid, ()))
    for each in found:
        found += children.get(each, ())
    return found


def _is_executor(pid):
    try:
        return b"CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


# What left.


def verified(folder):
    """Check what left: each tuple once, cells recounted, and the same bytes of each attempt; return the numbers."""
    output, n_repeated = [], 0
    for batch in sorted((folder / "out").iterdir()):
        attempts = [_content(path) for path in sorted(batch.iterdir()) if (path / "_SUCCESS").exists()]
        assert all(attempt.equals(attempts[0]) for attempt in attempts), f"the attempts of batch {batch.name} differ"
        n_repeated += len(attempts) > 1
        output += attempts[0].to_pylist()
    rest = _content(folder / "rest").to_pylist()
    inputs = pa.concat_tables([pq.read_table(path) for path in sorted((folder / "in").glob("*.parquet"))])
    persons = dict(zip(inputs["number"].to_pylist(), inputs["person"].to_pylist(), strict=True))
    left = Counter((row["released"] or row["side"])["number"] for row in [*output, *rest])
    assert left == Counter(list(persons)), "a tuple was lost or has left twice"
    cells = {}
    for row in [*output, *rest]:
        if row["released"]:
            cell = cells.setdefault((row["released"]["age"], row["released"]["income"]), [])
            cell.append((persons[row["released"]["number"]], row["released"]["diagnosis"]))
    for values, least in ((0, OPTIONS["k"]), (1, N_DIAGNOSES)):
        assert min(len({each[values] for each in cell}) for cell in cells.values()) >= least
    n_side = sum(row["side"] is not None for row in [*output, *rest])
    return {"n_tuples": len(persons), "n_side": n_side, "n_cells": len(cells), "n_repeated_batches": n_repeated}


def _content(folder):
    tables = [pq.read_table(path) for path in sorted(folder.glob("*.parquet"))]
    return pa.concat_tables(tables).combine_chunks()


if __name__ == "__main__":
    drive(sys.argv[1], Path(sys.argv[2]), dict(pair.split("=", 1) for pair in sys.argv[3:]))
