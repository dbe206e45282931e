"""Soak: a stream on a Spark cluster whose executors, driver and query are killed in the middle of batches.

The cluster is a master and two workers on this machine. After the last kill, every input has to be once in the output,
in the side output or in what waited; cells are counted again, and all attempts of a batch have to agree in every byte.

    python tests/soak/spark_stream.py --kills 50 --seed 1 --output benchmarks/results/spark_stream_kills.json
"""

import argparse
import json
import random
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "engines" / "spark"), str(ROOT / "benchmarks")]

import query_under_attack  # noqa: E402
from cluster import Cluster  # noqa: E402

from bench_partition import circumstances  # noqa: E402
from conftest import SETTINGS, why_not  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, help="JSON file for the result")
    given = parser.parse_args()
    if (reason := why_not()) is not None:
        print(f"left out: {reason}")
        return
    rng, began = random.Random(given.seed), time.time()
    kinds = [rng.choice(query_under_attack.KINDS) for _ in range(given.kills)]
    with tempfile.TemporaryDirectory() as folder:
        logs, queries = Path(folder) / "logs", Path(folder) / "query"
        for each in (logs, queries):
            each.mkdir()
        with Cluster(logs) as cluster:
            found = query_under_attack.attack(cluster, queries, kinds, SETTINGS, given.seed)
    print(json.dumps(found))
    if given.output is not None:
        about = {"seed": given.seed, "minutes": round((time.time() - began) / 60, 1)}
        given.output.write_text(json.dumps({**circumstances(False), **about, **found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
