"""Measure what reading a CSV file in batches takes: peak memory, and how often the bytes of the file are read.

Seeded files of 200 columns: whole numbers, numbers with decimals, quoted texts, dates. Each is opened and read in a
process of its own, as the engine `disk` does: once when it is opened, and twice more for its records.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import click
import numpy as np

from bench_partition import ROOT, circumstances
from measure import say

RESULTS = ROOT / "benchmarks" / "results" / "csv.json"
N_COLUMNS = 200
N_DIFFERENT = 2_000
"""Lines that are made; a file repeats them."""

ONE_READING = """
import json, sys, time
from pathlib import Path

sys.path.insert(0, sys.argv[3])
from one_run import peak_memory
from shoal.sources.batches import open_batches

def bytes_read():
    return int(Path("/proc/self/io").read_text().split()[1])

bare, before = peak_memory(), bytes_read()
source = open_batches(Path(sys.argv[1]), encoding=sys.argv[2])
opened = bytes_read() - before
for _ in range(2):
    n_records = sum(batch.num_rows for batch in source.read())
assert n_records == source.n_records
found = {"records": n_records, "types": sorted({str(kind) for kind in source.types.types})}
read = {"opening": opened, "all": bytes_read() - before}
print(json.dumps({**found, "bare": bare, "peak": peak_memory(), "read": read, "cpu": time.process_time()}))
"""


@click.command()
@click.option("--quick", is_flag=True, help="Small files, to see that it runs.")
@click.option("--gigabytes", default=5.0, show_default=True, help="Size of the largest file.")
@click.option("--output", type=click.Path(path_type=Path), default=RESULTS, show_default=True)
def main(quick: bool, gigabytes: float, output: Path) -> None:
    """Measure reading CSV files in batches."""
    largest = 0.05 if quick else gigabytes
    files = [(largest / 10, "utf-8"), (largest / 10, "cp1252"), (largest, "utf-8")]
    result = {**circumstances(quick), "columns": N_COLUMNS, "runs": [run(size, encoding) for size, encoding in files]}
    result["peak_ratio"] = result["runs"][-1]["peak_mb"] / result["runs"][0]["peak_mb"]
    say(f"ten times the bytes: {result['peak_ratio']:.2f} times the peak memory")
    if not quick:
        output.write_text(json.dumps(result, indent=1) + "\n")


def run(gigabytes: float, encoding: str) -> dict[str, Any]:
    """Read one file in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "wide.csv"
        write_file(path, int(gigabytes * 1e9), encoding)
        size = path.stat().st_size
        command = [sys.executable, "-c", ONE_READING, str(path), encoding, str(Path(__file__).parent)]
        found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    row = {
        "megabytes": size / 1e6,
        "encoding": encoding,
        "records": found["records"],
        "types": found["types"],
        "peak_mb": found["peak"] / 1e6,
        "peak_mb_without_interpreter": (found["peak"] - found["bare"]) / 1e6,
        "peak_of_file": (found["peak"] - found["bare"]) / size,
        "passes_to_open": found["read"]["opening"] / size,
        "passes": found["read"]["all"] / size,
        "cpu_seconds_per_gigabyte": found["cpu"] / (size / 1e9),
    }
    say(
        f"{row['megabytes']:7,.0f} MB {encoding:7} peak {row['peak_mb_without_interpreter']:6.1f} MB beside the "
        f"interpreter, {row['passes']:.3f} passes, {row['cpu_seconds_per_gigabyte']:.1f} s CPU per GB"
    )
    return row


def write_file(path: Path, n_bytes: int, encoding: str) -> None:
    """Write a seeded file of about that many bytes."""
    rng = np.random.default_rng(0)
    makers = [
        lambda: rng.integers(0, 10_000, N_DIFFERENT).astype(str),
        lambda: rng.normal(size=N_DIFFERENT).round(4).astype(str),
        lambda: np.char.add(np.char.add('"café ', rng.integers(0, 99, N_DIFFERENT).astype(str)), '"'),
        lambda: (np.datetime64("1950-01-01") + rng.integers(0, 20_000, N_DIFFERENT)).astype(str),
    ]
    columns = [makers[number % len(makers)]() for number in range(N_COLUMNS)]
    lines = "".join(",".join(fields) + "\n" for fields in zip(*columns, strict=True)).encode(encoding)
    with open(path, "wb") as file:
        file.write((",".join(f"c{number}" for number in range(N_COLUMNS)) + "\n").encode())
        while file.tell() < n_bytes:
            file.write(lines)


if __name__ == "__main__":
    main()
