"""Compare reading and writing of sources by shoal with the library underneath, on 200,000 records of 17 columns.

A source is an entry of `CASES`: how its table is made, and pairs of what the library does alone and what shoal does.
Runs are interleaved, so that other programs slow both alike; processor time is compared, elapsed time stands beside it.
A server works in another process, so for databases elapsed time is compared. PostgreSQL is measured where
SHOAL_POSTGRESQL is the address of a database for it.
"""

import json
import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import adbc_driver_postgresql.dbapi
import adbc_driver_sqlite.dbapi
import click
import numpy as np
import pyarrow as pa
import python_calamine

from bench_partition import ROOT, circumstances
from measure import say
from shoal import ShoalWarning, anonymize
from shoal.sources import read, write

RESULTS = ROOT / "benchmarks" / "results" / "sources.json"
N, N_QUICK = 200_000, 2_000

Work = Callable[[], Any]


class Pair(NamedTuple):
    """What is compared: the library alone, and shoal."""

    what: str
    bare: Work
    shoal: Work


class Case(NamedTuple):
    """A source: what its library is called, the most that shoal may take, and how the pairs are made in a folder."""

    library: str
    goal: float
    pairs: Callable[[pa.Table, Path], list[Pair]]
    by_elapsed_time: bool = False


def people(n: int) -> pa.Table:
    """Return seeded records: twelve real and three whole numbers, two texts."""
    rng = np.random.default_rng(0)
    numbers = {f"x{i}": rng.normal(size=n) for i in range(12)} | {f"n{i}": rng.integers(0, 100, n) for i in range(3)}
    texts = {f"t{i}": rng.choice(["low", "middle", "high"], n) for i in range(2)}
    return pa.table(numbers | texts)


def excel(table: pa.Table, folder: Path) -> list[Pair]:
    path = folder / "people.xlsx"
    write(table, path)

    def bare() -> Any:
        with python_calamine.load_workbook(path) as book:
            return book.get_sheet_by_index(0).to_python()

    return [Pair("read", bare, lambda: read(path).arrow)]


def database(connect: Callable[[], Any], address: str, table: pa.Table, folder: Path) -> list[Pair]:
    """Return the pairs of a database: read a table; write one; both. A release is read back before it is committed."""

    def ingest(name: str) -> None:
        with connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS {name}")
            cursor.adbc_ingest(name, table, mode="create")
            connection.commit()

    def fetch() -> None:
        with connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT * FROM people")
            cursor.fetch_arrow_table()

    ingest("people")
    quasi = ["n0", "n1"]
    others = [name for name in table.column_names if name not in quasi]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        release = anonymize(address, k=5, seed=0, quasi_identifiers=quasi, other=others, reading={"table": "people"})
    _ = release.measures  # measured once, whatever the release is written to

    def released() -> None:
        manifest = folder / "release.internal.json"
        release.write(address, to_table="release", manifest=manifest, order="keep", force=True)

    def own() -> None:
        _ = read(address, table="people").arrow

    return [
        Pair("read", fetch, own),
        Pair("write", lambda: ingest("bare"), released),
        Pair("read and write", lambda: (fetch(), ingest("bare")), lambda: (own(), released())),
    ]


def sqlite(table: pa.Table, folder: Path) -> list[Pair]:
    path = str(folder / "people.db")
    return database(lambda: adbc_driver_sqlite.dbapi.connect(path), path, table, folder)


def postgresql(table: pa.Table, folder: Path) -> list[Pair]:
    address = os.environ.get("SHOAL_POSTGRESQL")
    if address is None:
        say("postgresql: not measured, since SHOAL_POSTGRESQL is not set")
        return []
    return database(lambda: adbc_driver_postgresql.dbapi.connect(address), address, table, folder)


CASES = {
    "excel": Case("python-calamine", 1.5, excel),
    "sqlite": Case("ADBC", 2, sqlite, by_elapsed_time=True),
    "postgresql": Case("ADBC", 2, postgresql, by_elapsed_time=True),
}
"""Sources that are measured."""


def timed(work: Work) -> tuple[float, float]:
    """Return processor time and elapsed time of one run."""
    start, began = process_time(), perf_counter()
    work()
    return process_time() - start, perf_counter() - began


def compared(pair: Pair, rounds: int, by_elapsed_time: bool) -> dict[str, Any]:
    """Return the best times of both, and how many times as long shoal takes."""
    runs = [(timed(pair.bare), timed(pair.shoal)) for _ in range(rounds)]
    (bare, bare_elapsed), (own, own_elapsed) = (
        tuple(min(run[side][time] for run in runs) for time in range(2)) for side in range(2)
    )
    return {
        "what": pair.what,
        "bare_seconds": round(bare, 3),
        "seconds": round(own, 3),
        "ratio": round(own_elapsed / bare_elapsed if by_elapsed_time else own / bare, 2),
        "bare_elapsed": round(bare_elapsed, 3),
        "elapsed": round(own_elapsed, 3),
        "rounds": rounds,
    }


@click.command()
@click.option("--only", multiple=True, type=click.Choice(list(CASES)), help="Sources to measure; all by default.")
@click.option("--quick", is_flag=True, help="Few records, to see that it works; nothing is kept.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), default=RESULTS, show_default=True)
def main(only: tuple[str, ...], quick: bool, output: Path) -> None:
    """Measure reading and writing of sources."""
    table = people(N_QUICK if quick else N)
    kept = json.loads(output.read_text(encoding="utf-8"))["sources"] if output.exists() and not quick else {}
    for name in only or CASES:
        case = CASES[name]
        with tempfile.TemporaryDirectory() as folder:
            found = [
                compared(pair, 2 if quick else 5, case.by_elapsed_time) for pair in case.pairs(table, Path(folder))
            ]
        if not found:
            continue
        about = {"library": case.library, "goal": case.goal, "records": table.num_rows, "runs": found}
        kept[name] = {**about, **circumstances(quick)}
        for one in found:
            own, bare = (
                (one["elapsed"], one["bare_elapsed"]) if case.by_elapsed_time else (one["seconds"], one["bare_seconds"])
            )
            say(f"{name}: {one['what']} {own} s, {case.library} {bare} s: {one['ratio']} times")
    if not quick:
        output.write_text(json.dumps({"sources": kept}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
