"""Planted secrets: every public byte of releases of all kinds is searched for what was planted into their tables.

Each round draws a table with secrets in all that a frame or file can hold, an input, an engine, settings and an output;
a release in a database replaces one that had the secrets in a published column.
"""

from collections import Counter

import polars as pl
import pyarrow.parquet as pq

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
    """Make a release and search it; return what it was written to."""
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
    return Counter({ending: 1})
