"""Soak: evenings whose processes are killed at random moments; each must end in the release of one that was not.

Every step (begin, add, finish and write) runs in a process of its own that is killed after a random time, again and
again until it comes through. After each kill the collection must open, or not be there at all, and never hold half a
batch; a step that is tried again continues, or says that it has been done. In the end nothing is left lying about.

    python tests/soak/evening.py --kills 500 --seed 1
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa

from shoal.errors import FileError, ShoalWarning
from shoal.incremental.collection import Collection, begin
from shoal.models import LDiversity

N_BASE, N_LATE, N_BATCHES = 3_000, 200, 2
ROLES = {"quasi_identifiers": ["age", "income", "district"], "confidential": ["vote"], "identifiers": ["name"]}


def voters(batch):
    """Return a batch, the same each time."""
    rng = np.random.default_rng(batch)
    n = N_BASE if batch == 0 else N_LATE
    return pa.table(
        {
            "name": [f"{batch}-{i}" for i in range(n)],
            "age": rng.integers(18, 95, n),
            "income": rng.lognormal(10, 0.5, n).round(-2),
            "district": rng.choice(["harbour", "hills", "station"], n),
            "vote": rng.choice(["blue", "green", "red"], n),
        }
    )


def start(folder):
    """Begin, or go on where a begin was killed."""
    if (folder / "evening").exists():
        Collection.open(folder / "evening").partition_base(threads=1)
    else:
        models = [LDiversity("vote", l=2)]
        begin(folder / "evening", voters(0), k=5, seed=1, threads=1, models=models, **ROLES)


def add(folder, batch):
    """Add a batch, unless it is there already."""
    try:
        Collection.open(folder / "evening").add(voters(batch))
    except FileError as error:
        if f"as batch {batch}" not in str(error):
            raise


def finish(folder):
    """Make the release and write it, over what an attempt before may have written."""
    Collection.open(folder / "evening").finish(threads=1).write(folder / "release.csv", force=True)


def check(folder, n_added):
    """Require a collection that is whole: with the batches that went in, and perhaps the one that was interrupted."""
    if (folder / "evening").exists():
        found = Collection.open(folder / "evening").n_records
        whole = [N_BASE, *[N_LATE] * (N_BATCHES)]
        assert found in (whole[: 1 + n_added], whole[: 2 + n_added]), found


STEPS = [start, *(lambda folder, batch=batch: add(folder, batch) for batch in range(1, N_BATCHES + 1)), finish]


def apart(task, *arguments, kill_after=None):
    """Run in a process of its own, killed after some seconds; return whether it succeeded."""
    child = os.fork()
    if child == 0:
        warnings.simplefilter("ignore", ShoalWarning)
        try:
            task(*arguments)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(3)
        os._exit(0)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL), f"{task} ended with {code}"
    return code == 0


def undisturbed(folder):
    """Return the bytes of an evening without kills, and how long each step takes."""
    lengths = []
    for step in STEPS:
        begun = time.perf_counter()
        assert apart(step, folder)
        lengths.append(time.perf_counter() - begun)
    return (folder / "release.csv").read_bytes(), lengths


def evening(folder, lengths, rng):
    """Run an evening under kills; return how many there were, by step."""
    kills = [0] * len(STEPS)
    for place, (step, length) in enumerate(zip(STEPS, lengths, strict=True)):
        # A step that is killed too often gets more time, so that every evening ends.
        while not apart(step, folder, kill_after=rng.uniform(0, 1.3) * length * (1 + kills[place] / 10)):
            kills[place] += 1
            assert apart(check, folder, max(place - 1, 0))
    left = [file.name for file in (*folder.iterdir(), *(folder / "evening").iterdir())]
    assert not [name for name in left if name.endswith((".evening", ".arrow", ".npy")) and name.startswith(".")], left
    return kills


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as temporary:
        whole = Path(temporary) / "undisturbed"
        whole.mkdir()
        release, lengths = undisturbed(whole)
        kills, n_evenings = [0] * len(STEPS), 0
        while sum(kills) < arguments.kills:
            folder = Path(temporary) / str(n_evenings)
            folder.mkdir()
            kills = [a + b for a, b in zip(kills, evening(folder, lengths, rng), strict=True)]
            assert (folder / "release.csv").read_bytes() == release
            n_evenings += 1
    print(f"{n_evenings} evenings, {sum(kills)} kills (by step {kills}), every release the same")


if __name__ == "__main__":
    main()
