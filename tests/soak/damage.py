"""Damage: releases that continue from a scratch folder which was damaged at random are the same bytes, or refused.

Each round makes a release of a table at random, copies its scratch folder at several moments, and damages copies in
any file, in any way and as often as asked: flipped bits, lost ends, zeros, missing, swapped files, folders for files.

    python tests/soak/damage.py --seconds 600 --seed 1
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1] / "engines" / "disk"))
sys.path.insert(0, str(Path(__file__).parents[1]))

from damages import MOMENTS, damage, watched, written

from block_tables import people
from shoal.engines.blocks import blueprint
from shoal.errors import FileError

N_TRIALS = 12


def round_of(rng, folder):
    """Continue one release from damaged copies of its scratch folder; return how often it was the same and refused."""
    pq.write_table(people(int(rng.integers(50, 1500)), seed=int(rng.integers(1000))), folder / "people.parquet")
    seed, found = int(rng.integers(1000)) if rng.integers(3) else None, Counter()
    scratch, release = watched(folder, seed)
    moments = [name for name in MOMENTS if (folder / name).exists()]
    for _ in range(N_TRIALS):
        shutil.copytree(folder / str(rng.choice(moments)), scratch)
        damage(scratch, rng, n_files=int(rng.integers(1, 6)))
        try:
            assert written(folder, seed) == release, "damage made another release"
            found["the same"] += 1
        except FileError:
            assert not list(folder.glob("release*")), "a refused release was written"
            afresh = written(folder, seed)
            assert seed is None or afresh == release, "the next start did not begin afresh"
            found["refused"] += 1
        assert not scratch.exists(), "the scratch folder was left"
    return found


def main():
    """Damage scratch folders until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    blueprint.BLOCK_RECORDS = 200  # so that small tables have several blocks
    end, counts, number = time.monotonic() + given.seconds, Counter(), 0
    while time.monotonic() < end:
        seed = given.seed + number
        try:
            with tempfile.TemporaryDirectory() as name:
                counts += round_of(np.random.default_rng(seed), Path(name))
        except BaseException:
            print(f"round {number}: --seed {seed}", flush=True)
            raise
        number += 1
    print(f"{counts.total():,} releases from damaged scratch folders: {dict(counts)}")


if __name__ == "__main__":
    main()
