"""Run one contender in a separate process, so that time and peak memory are those of the contender only.

``one_run.py FOLDER CONTENDER THREADS K SECONDS`` reads ``matrix.npy`` in the folder, runs the contender repeatedly
for SECONDS, at least once, writes ``labels.npy`` there and prints times and memory as JSON.
"""

import json
import resource
import sys
from pathlib import Path
from time import perf_counter

import numpy as np

import contenders

MOST_RUNS = 20


def main(folder: str, name: str, threads: str, k: str, seconds: str) -> None:
    run = contenders.load(name, int(threads), Path(folder))
    bare = peak_memory()
    X = np.load(Path(folder) / "matrix.npy")
    times: list[float] = []
    while not times or (sum(times) < float(seconds) and len(times) < MOST_RUNS):
        start = perf_counter()
        labels = run(X, int(k))
        times.append(perf_counter() - start)
    peak = peak_memory()
    np.save(Path(folder) / "labels.npy", labels)
    print(json.dumps({"times": times, "bare": bare, "peak": peak}))


def peak_memory() -> int:
    """Return the peak memory of this process in bytes."""
    # On Linux ru_maxrss is inherited from the parent process; the peak in /proc is not.
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    main(*sys.argv[1:])
