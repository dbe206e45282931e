"""Damage: releases that continue from a scratch folder which was damaged at random are the same bytes, or refused.

Each round makes a release of a table at random, copies its scratch folder at several moments, and damages copies in
any file, in any way and as often as asked: flipped bits, lost ends, zeros, missing, swapped files, folders for files.
"""

import shutil
from collections import Counter

import pyarrow.parquet as pq
from damages import MOMENTS, damage, watched, written

from block_tables import people
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
