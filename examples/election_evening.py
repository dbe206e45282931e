"""An election evening: the polls close at 20:00, the release has to be out soon after.

Ballots arrive while the first cells are made, the machine dies in the middle, a late batch comes in, and the evening
ends in one audited release. Run it: python examples/election_evening.py
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

import shoal
from shoal.incremental.collection import Collection
from shoal.incremental.planning import Arrivals, Quadratic, as_seconds, plan
from shoal.sources import write

N_BALLOTS = 12_000


def ballots(first: int, last: int) -> pa.Table:
    """Return made-up ballots, by their numbers."""
    rng = np.random.default_rng(first)
    n = last - first
    return pa.table(
        {
            "ballot": np.arange(first, last),
            "age": rng.integers(18, 95, n),
            "income": rng.lognormal(10, 0.5, n).round(),
            "district": rng.choice(["harbour", "hills", "old town", "station"], n),
            "vote": rng.choice(["blue", "green", "red"], n),
        }
    )


def shell(*arguments: object) -> None:
    """Run the command line, as the team does."""
    subprocess.run([sys.executable, "-m", "shoal.cli", *map(str, arguments)], check=True)


def main(folder: Path) -> shoal.Release:
    print("Afternoon: when do we start?")
    evening = plan(Quadratic(as_seconds("2h")), Arrivals.uniform(as_seconds("10h")), as_seconds("30min"))
    print(evening.text())
    n_early = round(N_BALLOTS * (1 - evening.late_share))

    print(f"\nAt {1 - evening.late_share:.0%} of the ballots: begin. The machine dies while cells are made ...")
    write(ballots(0, n_early), folder / "early.parquet")
    die_in_the_middle(folder)
    shell("collect", "status", folder / "evening")

    print("\n... and it resumes where it stopped, while ballots keep arriving:")
    working = subprocess.Popen([sys.executable, "-m", "shoal.cli", "collect", "resume", folder / "evening"])
    write(ballots(n_early, n_early + 500), folder / "on-time.csv")
    shell("collect", "add", folder / "evening", folder / "on-time.csv")
    assert working.wait() == 0

    print("\n20:00, and the postal votes:")
    write(ballots(n_early + 500, N_BALLOTS), folder / "postal.parquet")
    shell("collect", "add", folder / "evening", folder / "postal.parquet")
    shell("collect", "finish", folder / "evening", "-o", folder / "release.csv")

    print("\nAnybody can recount:")
    quasi = "age,income,district"
    shell("audit", folder / "release.csv", "-k", 10, "--quasi-identifiers", quasi, "--confidential", "vote")
    return Collection.open(folder / "evening").finish()


def die_in_the_middle(folder: Path) -> None:
    """Begin the collection in a process that is killed in the middle of the partition."""
    begun = subprocess.run([sys.executable, "-c", DIE, folder / "evening", folder / "early.parquet"], check=False)
    assert begun.returncode == 9


DIE = """
import os, sys
from shoal.incremental.collection import begin

roles = {"quasi_identifiers": ["age", "income", "district"], "confidential": ["vote"], "subject": "ballot"}
begin(sys.argv[1], sys.argv[2], k=10, seed=1, progress=lambda done, total: os._exit(9), **roles)
"""

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(temporary))
