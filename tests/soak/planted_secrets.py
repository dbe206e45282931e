"""Planted secrets: every public byte of releases of all kinds is searched for what was planted into their tables.

Each round draws a table with secrets in all that a frame or file can hold, an input, an engine, settings and an output;
a release in a database replaces one that had the secrets in a published column.

    python tests/soak/planted_secrets.py --seconds 600 --seed 1
"""

import argparse
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1]))

from planted import columns_of, exposed, people, released, with_hidden
from row_order import public_bytes, public_files
from shoal import LDiversity
from shoal.sources import write

FRAMES = ("arrow", "pandas", "polars")
FILES = (".csv", ".tsv.gz", ".ndjson", ".xlsx", ".parquet", ".arrow", ".sav", ".dta", ".xpt")
PARTS = (".csv", ".parquet", ".arrow")
DATABASES = (".db", ".duckdb")


def as_source(table, source, folder):
    """Return an input of a kind; those of Arrow and pandas hold what no record has."""
    if source in FRAMES:
        return {"arrow": lambda: table, "pandas": table.to_pandas, "polars": lambda: pl.from_arrow(table)}[source]()
    path = folder / f"people{source}"
    if source == ".parquet":
        pq.write_table(table, path)
    else:
        write(table, path)
    return path


def draw(rng):
    """Draw the settings of a release."""
    source = str(rng.choice([*FRAMES, *FILES]))
    is_on_disk = source in (*FRAMES, *PARTS) and bool(rng.integers(2))
    ending = str(rng.choice(PARTS if is_on_disk else (*FILES, *DATABASES)))
    settings = {"k": int(rng.integers(3, 9)), "seed": int(rng.integers(1000))}
    if is_on_disk:
        settings |= {"engine": "disk", "memory": "300MB"}
    else:
        settings |= {"method": str(rng.choice(["auto", "mdav"]))}
    if rng.integers(2):
        settings["models"] = [LDiversity("illness", l=2)]
    return source, ending, settings, bool(rng.integers(2)) and not is_on_disk


def round_of(rng, folder):
    """Make a release and search it; return the input and the output."""
    source, ending, settings, is_truthful = draw(rng)
    table = people(rng, int(rng.integers(20, 150)))
    has_gaps = source in ("arrow", "pandas", ".parquet")
    table = with_hidden(table) if has_gaps else table
    settings |= columns_of(*(["gap"] if has_gaps else []), truthful=is_truthful)
    given = as_source(table, source, folder)
    release, place = released(given, **settings), {}
    if ending in DATABASES:
        place = {"to_table": "release", "force": True}
        shown = {"identifiers": [], "subject": None, "other": [*settings["other"], "name", "who"]}
        public_bytes(released(given, **settings | shown), folder / "out", ending, to_table="release")
        release.write(folder / "out" / f"release{ending}", **place)
        files = {name: text for name, text in public_files(folder / "out").items() if name.startswith("release.")}
    else:
        files = public_bytes(release, folder / "out", ending)
    found = exposed(files)
    assert not found, (found, source, ending, settings)
    if "engine" in settings:
        release.close()
    return source, ending


def main():
    """Search releases until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    end, counts, number = time.monotonic() + given.seconds, Counter(), 0
    while time.monotonic() < end:
        seed = given.seed + number
        try:
            with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                counts[round_of(np.random.default_rng(seed), Path(name))[1]] += 1
        except BaseException:
            print(f"round {number}: --seed {seed}", flush=True)
            raise
        number += 1
    print(f"{number:,} releases show no planted secret: {dict(counts)}")


if __name__ == "__main__":
    main()
