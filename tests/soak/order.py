"""Row order: releases of all kinds of tables from two orders of the people, compared byte by byte.

Each round draws a table with categories that are listed by first occurrence, unused, missing or listed twice, an input,
an engine, settings and an output, and permutes and cuts the table anew.
"""

from collections import Counter

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from row_order import ORDER, K, people, permuted, public_bytes, released, with_categories, with_nested
from shoal import LDiversity, TCloseness
from shoal.sources import write

FRAMES = ("arrow", "pandas", "polars")
FILES = (".csv", ".tsv.gz", ".ndjson", ".xlsx", ".parquet", ".arrow", ".sav", ".dta", ".xpt")
DATABASES = (".db", ".duckdb")
CATEGORICAL = ("arrow", "polars", "pandas", ".parquet", ".arrow")
AGGREGATES = ("mean", "median", "mode", "medoid", "interval")


def draw(rng):
    """Draw what both releases of a round have in common."""
    source = str(rng.choice([*FRAMES, *FILES]))
    engine = str(rng.choice(["memory", "memory", "disk"])) if source not in _NOT_IN_BATCHES else "memory"
    ending = str(rng.choice([".csv", ".parquet", ".arrow"] if engine == "disk" else [*FILES, *DATABASES]))
    is_nested = source in ("arrow", ".parquet", ".arrow") and ending in (".parquet", ".arrow") and rng.integers(2)
    return source, engine, ending, bool(is_nested)


_NOT_IN_BATCHES = (".tsv.gz", ".ndjson", ".xlsx", ".sav", ".dta", ".xpt")


def draw_settings(rng, engine):
    """Draw settings of a release; on disk cells do not depend on the order, in memory each stratum is one."""
    settings = {"engine": engine, "missing": "own-value", "seed": int(rng.integers(100))}
    columns = {"grade": {"categories": ORDER}, "pain": {"categories": ORDER}}
    if engine == "disk":
        settings |= {"by": [], "memory": str(rng.choice(["300MB", "1GB"]))}
    else:
        for name in ("age", "height", "children"):
            columns[name] = {"aggregate": str(rng.choice(AGGREGATES))}
            if columns[name]["aggregate"] in ("mean", "median") and rng.integers(2):
                columns[name]["round"] = int(rng.integers(0, 3))
        columns["born"] = {"aggregate": str(rng.choice(["mean", "median", "mode", "medoid", "period"]))}
        columns["city"] = {"aggregate": str(rng.choice(["mode", "withhold", "set"]))}
        columns["grade"]["aggregate"] = str(rng.choice(["median", "mode", "medoid", "set"]))
    if rng.integers(2):
        settings["weights"] = "weight"
    models = [LDiversity("salary", l=2), TCloseness("income", t=0.9), TCloseness("salary", t=1.0)]
    return {**settings, "columns": columns, "models": [model for model in models if rng.integers(2)]}


def gappy(table, rng):
    """Return a table in which some values are missing."""
    for name in ("age", "height", "city", "born", "salary", "note", "illness"):
        column = table[name].combine_chunks()
        gaps = pa.array(rng.random(table.num_rows) < 0.1)
        table = table.set_column(table.column_names.index(name), name, pa.compute.if_else(gaps, None, column))
    return table


def as_chunks(table, rng):
    """Return a table in chunks, whose texts are listed anew in each."""
    cuts = sorted(rng.integers(0, table.num_rows, int(rng.integers(4))).tolist())
    parts = [table.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, table.num_rows], strict=True)]
    return pa.concat_tables([with_categories(part) for part in parts])


def strangely_listed(table, rng, source):
    """Return a table whose categories are listed in any order, unused ones too; twice or null where the source can."""
    for name in ("salary", "note", "illness", "city"):
        texts = table[name].cast(pa.string()).combine_chunks()
        known = texts.unique().drop_null().to_pylist()
        listed = [*known, *([] if source == "pandas" else known[:3]), *([None] * (source == "arrow")), "nobody has it"]
        listed = [listed[i] for i in rng.permutation(len(listed)).tolist()]
        places: dict[object, list[int]] = {}
        for place, text in enumerate(listed):
            places.setdefault(text, []).append(place)
        codes = [int(rng.choice(places[text])) if text in places else None for text in texts.to_pylist()]
        array = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(listed, pa.string()))
        table = table.set_column(table.column_names.index(name), name, array)
    return table


def as_source(table, source, folder, rng):
    """Return an input of a kind."""
    if source == "pandas":
        return table.to_pandas()
    if source == "polars":
        return pl.from_arrow(table.unify_dictionaries()).cast({name: pl.Enum(ORDER) for name in ("grade", "pain")})
    if source == "arrow":
        return table
    path = folder / f"people{source}"
    if source == ".parquet":  # with its categories as they are listed
        size = int(rng.integers(20, 400)) if not any(map(_is_nested, table.schema.types)) else table.num_rows
        pq.write_table(table, path, row_group_size=size)
    else:
        write(table, path)
    return path


def _is_nested(kind):
    return pa.types.is_nested(kind)


def stored(files):
    """Return what is public, with the content of a DuckDB file, which has an identity of its own."""
    return {name: content for name, content in files.items() if not name.endswith(".duckdb")}


def round_of(rng, folder):
    """Make two releases of one table and compare them; return what they were made from."""
    source, engine, ending, is_nested = draw(rng)
    table = people(int(rng.integers(4, 80)) * K, seed=int(rng.integers(1000)))
    if rng.integers(2):
        table = gappy(table, rng)
    settings, found = draw_settings(rng, engine), []
    listing = rng.choice(["plain", "chunks", "strange"])
    for _ in range(2):
        mixed = permuted(table, int(rng.integers(1_000_000)))
        if source in CATEGORICAL:
            listed = {"plain": with_categories, "chunks": lambda each: as_chunks(each, rng)}.get(listing)
            listed = listed or (lambda each: strangely_listed(with_categories(each), rng, source))
            mixed = with_nested(mixed) if is_nested else listed(mixed)
        place = folder / str(len(found))
        place.mkdir()
        release = released(as_source(mixed, source, place, rng), mixed.column_names, **settings)
        writing = {"to_table": "release"} if ending in DATABASES else {}
        files = stored(public_bytes(release, place / "out", ending, **writing))
        if ending == ".duckdb":
            with duckdb.connect(place / "out" / f"release{ending}", read_only=True) as connection:
                files["rows"] = connection.sql("SELECT rowid, * FROM release").fetchall()
                files["manifest"] = connection.sql("FROM shoal_manifest").fetchall()
        found.append(files)
        if engine == "disk":
            release.close()
    different = [name for name in found[0] if found[0][name] != found[1][name]]
    drawn = (source, engine, ending, is_nested, str(listing), settings)
    assert not different, (different, drawn)
    return Counter({source: 1})
