"""Rounds: releases and streams are attacked at random, in rounds, for as long as asked.

    python tests/soak/rounds.py [NAME ...] --seconds 600 --seed 1

Each NAME is a file here with a function `round_of`; without one, all are run, each for so many seconds. A round that
fails says the seed that repeats it: ``--rounds 1 --seed SEED``.
"""

# ruff: noqa: E402 - what is in other folders can be imported then

import argparse
import json
import sys
import tempfile
import time
import warnings
from collections import Counter
from importlib import import_module
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "engines" / "disk"), str(ROOT / "tests" / "series")]
sys.path.insert(0, str(ROOT / "benchmarks"))

from bench_partition import circumstances
from shoal.engines.blocks import blueprint

NAMES = ("streams", "order", "planted_secrets", "containment", "damage", "histories")


def repeated(name, seconds, most, seed):
    """Run rounds until the time is over; return how many there were and the sums of what they counted."""
    module, end = import_module(name), time.monotonic() + seconds
    counts, number = Counter(), 0
    while time.monotonic() < end and number < most:
        try:
            with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                counts += module.round_of(np.random.default_rng(seed + number), Path(folder))
        except BaseException:
            print(f"{name}: --rounds 1 --seed {seed + number}", flush=True)
            raise
        number += 1
    return {"name": name, "seed": seed, "rounds": number, "found": dict(sorted(counts.items()))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[[], *NAMES], metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--rounds", type=int, default=sys.maxsize)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--output", type=Path, help="JSON file for the results")
    given = parser.parse_args()
    blueprint.BLOCK_RECORDS = 200  # so that small tables have several blocks
    results = {**circumstances(quick=False), "seconds": given.seconds, "rows": []}
    for name in given.names or NAMES:
        row = repeated(name, given.seconds, given.rounds, given.seed)
        print(f"{name}: {row['rounds']:,} rounds, nothing broken: {row['found']}", flush=True)
        results["rows"].append(row)
        if given.output is not None:
            given.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
