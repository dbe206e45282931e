"""Measure shoal's partition beside NumPy and beside brute force, and write the numbers as JSON.

Each section below is one function and one line in SECTIONS. README.md in this folder says how to read the numbers.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import click

import brute_force
import contenders
import table
from materials import Missing, Source, census, covertype, gaussian, machine
from measure import LIMIT, Effort, Entry, Row, growth, race, say
from problems import Problem, california, flights, jittered, sample, whole
from shoal import datasets
from shoal.arrays import standardize
from shoal.methods import ALGORITHMS

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "partition.json"
SCRATCH = ROOT / "out" / "bench" / "partition.json"
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Bench:
    """Results so far, and how thoroughly to measure."""

    def __init__(self, quick: bool, folder: Path) -> None:
        self.quick = quick
        self.folder = folder
        self.results: dict[str, Any] = {"rows": [], "growth": [], "claims": [], "missing": []}

    def race(
        self, section: str, problem: Problem, entries: Sequence[Entry], rounds: int, reference: Entry | None = None
    ) -> list[Row]:
        """Measure the entries interleaved and compare their labels with the reference's, by default the first entry."""
        effort = Effort(1, 0.2) if self.quick else Effort(rounds, 1.0)
        rows = race(section, problem, entries, reference or entries[0], effort, self.folder)
        self.results["rows"] += [asdict(row) for row in rows]
        for entry in set(entries) - {Entry(row.method, row.threads) for row in rows}:
            self.missing(f"{entry} on {problem}: given up after {LIMIT} s")
        return rows

    def fit(self, section: str, rows: Sequence[Row]) -> None:
        """Record how the time of one contender grows over the sizes in the rows."""
        if len(rows) < 2:
            return
        few, many = min(row.n for row in rows), max(row.n for row in rows)
        exponent = growth(rows)
        say(f"{rows[0].data}, {few:,} to {many:,} records: {rows[0].method}: time grows as n^{exponent:.2f}")
        entry = {"section": section, "data": rows[0].data, "method": rows[0].method, "threads": rows[0].threads}
        self.results["growth"].append({**entry, "n_from": few, "n_to": many, "exponent": exponent})

    def claim(self, what: str, value: float, unit: str, **aim: float | None) -> dict[str, Any]:
        """Record a number and its goal in a full run: `at_least` or `at_most`."""
        claim = {"what": what, "value": value, "unit": unit, **({} if self.quick else aim)}
        self.results["claims"].append(claim)
        return claim

    def claim_faster(self, what: str, rows: Sequence[Row], slow: Entry, fast: Entry, aim: float | None = None) -> None:
        """Record by how much one of the rows is faster than another, if both are there."""
        by_entry = {Entry(row.method, row.threads): row for row in rows}
        if slow in by_entry and fast in by_entry:
            a, b = by_entry[slow], by_entry[fast]
            claim = self.claim(f"{a.data}, {a.n:,} x {a.dims}: {what}", a.seconds / b.seconds, "x", at_least=aim)
            claim["by_medians"] = a.median / b.median

    def missing(self, reason: str) -> None:
        """Print and record what is left out."""
        say(f"Left out: {reason}.")
        self.results["missing"].append(reason)

    def at_hand(self, *sources: Source | Missing) -> list[Source]:
        """Return the data sets that were found, and report those that were not."""
        for source in sources:
            if isinstance(source, Missing):
                self.missing(f"{source.name}: {source.reason}")
        return [source for source in sources if isinstance(source, Source)]


def side_by_side(bench: Bench) -> None:
    """Compare traditional NumPy MDAV in two forms, NumPy F-MDAV and shoal: Gaussian records, one thread each."""
    entries = [Entry(contenders.PLAIN), Entry(contenders.COLUMNS), Entry(contenders.FMDAV), Entry()]
    sizes = (1_250, 2_500, 5_000) if bench.quick else (6_250, 12_500, 25_000, 50_000)
    rows = [row for n in sizes for row in bench.race("side-by-side", sample(gaussian(), n), entries, rounds=2)]
    for entry in entries:
        bench.fit("side-by-side", [row for row in rows if row.method == entry.name])
    for entry in entries[:-1]:
        what = f"shoal faster than {contenders.TITLES[entry.name]}, one thread"
        largest = [row for row in rows if row.n == sizes[-1]]
        bench.claim_faster(what, largest, entry, Entry(), 200.0 if entry.name == contenders.PLAIN else None)


def yardstick(bench: Bench) -> None:
    """Compare three tuned brute-force passes in C++ and shoal: real records, one thread each."""
    aims = {"covertype": 4.0, "census": 7.0}
    sources = bench.at_hand(covertype(92_962), census(204_309))
    if not sources:
        return
    built = brute_force.build(bench.folder)
    if built is None:
        bench.missing("brute force: no C++ compiler found; CXX may name one")
        return
    bench.results["yardstick"] = built
    brute, ours = Entry(contenders.BRUTE_FORCE), Entry()
    for source in sources:
        problem = sample(source, 20_000) if bench.quick else whole(source)
        rows = bench.race("yardstick", problem, [brute, ours], rounds=3, reference=ours)
        what = "shoal faster than three brute-force passes, one thread"
        bench.claim_faster(what, rows, brute, ours, aims[source.name])


def threads(bench: Bench) -> None:
    """Compare two threads and one."""
    if CORES < 2:
        bench.missing("threads: this process may use only one core")
        return
    one, two = Entry(threads=1), Entry(threads=2)
    rows = bench.race("threads", sample(gaussian(), 50_000 if bench.quick else 500_000), [one, two], rounds=3)
    bench.claim_faster("two threads faster than one", rows, one, two, 1.7)


def million(bench: Bench) -> None:
    """Partition a million records: time, memory, and the same cells for any number of threads."""
    problem = sample(gaussian(), 100_000 if bench.quick else 1_000_000)
    entries = [Entry(threads=count) for count in sorted({1, CORES})]
    for row in bench.race("million", problem, entries, rounds=1):
        what = f"{row.data}, {row.n:,} x {row.dims}: peak memory, {contenders.with_threads('shoal', row.threads)}"
        bench.claim(what, row.peak_mb / row.matrix_mb, "matrices", at_most=3.0)
        bench.claim(f"{what}, without the interpreter", (row.peak_mb - row.bare_mb) / row.matrix_mb, "matrices")


def importing(bench: Bench) -> None:
    """Import shoal in a fresh process, and NumPy alone, which takes most of the time."""
    best: dict[str, float] = {}
    for _ in range(3 if bench.quick else 10):
        for module in ("numpy", "shoal"):
            timed = f"from time import perf_counter as now; start = now(); import {module}; print(now() - start)"
            printed = subprocess.run([sys.executable, "-c", timed], capture_output=True, text=True, check=True).stdout
            best[module] = min(best.get(module, float("inf")), float(printed))
    for module, seconds in best.items():
        say(f"import {module}: {seconds:.3f} s")
    bench.results["import"] = best
    bench.claim("import shoal, NumPy included", best["shoal"], "s", at_most=0.3)


def growing(bench: Bench) -> None:
    """Fit the growth of shoal's time with the number of records; small samples are compared with NumPy's cells."""
    for source in [gaussian(), *bench.at_hand(covertype(286_048), census(204_309), flights())]:
        largest = 200_000 if source.records is None else len(source.records)
        rows = []
        for part in (64, 32, 16) if bench.quick else (16, 8, 4, 2, 1):
            n = largest // part
            compared = [Entry(contenders.COLUMNS)] if n <= (5_000 if bench.quick else 25_000) else []
            rows += bench.race("growth", sample(source, n), [*compared, Entry()], rounds=2)
        bench.fit("growth", [row for row in rows if row.method == contenders.shoal()])


def less_loss(bench: Bench) -> None:
    """Compare the default method with exact MDAV, one thread each: loss and time, on real records and on noise."""
    sources = bench.at_hand(california(), covertype(92_962), census(204_309), covertype(286_048), flights())
    problems = [sample(source, 10_000) if bench.quick else whole(source) for source in sources]
    problems.append(sample(gaussian(), 10_000 if bench.quick else 200_000))
    for k in (10,) if bench.quick else (5, 10, 50):
        for problem in problems:
            # Real records form clusters that a search can find; noise has none.
            aim = 11.0 if k == 10 and problem.data != "gaussian" else 0.0
            _compare_with_mdav(bench, problem._replace(k=k), aim)
    _compare_with_mdav(bench, sample(gaussian(), 10_000 if bench.quick else 100_000)._replace(k=3), 0.0)


MDAV, AUTO = Entry(), Entry(contenders.shoal("auto"))


def _compare_with_mdav(bench: Bench, problem: Problem, aim: float) -> None:
    rows = {row.method: row for row in bench.race("less loss", problem, [MDAV, AUTO], rounds=2)}
    if len(rows) == 2:
        mdav, auto = rows[MDAV.name], rows[AUTO.name]
        bench.claim(f"{problem}: loss of auto below MDAV's", 100 * (1 - auto.il / mdav.il), "%", at_least=aim)
        slowest = 1.0 if auto.n > 300_000 else 2.0
        bench.claim(f"{problem}: time of auto over MDAV's", auto.seconds / mdav.seconds, "x", at_most=slowest)


def near_linear(bench: Bench) -> None:
    """Fit the growth of the default method's time up to millions of records; a million beside exact MDAV; memory."""
    sizes = (10_000, 20_000, 40_000) if bench.quick else (100_000, 300_000, 1_000_000, 3_000_000)
    makers = [lambda n: sample(gaussian(), n)]
    makers += [lambda n, source=source: jittered(source, n) for source in bench.at_hand(flights())]
    for make in makers:
        rows = [row for n in sizes for row in bench.race("near linear", make(n), [AUTO], rounds=1)]
        bench.fit("near linear", rows)
        for row in rows[-2:]:
            what = f"{row.data}, {row.n:,} x {row.dims}: auto"
            bench.claim(f"{what}, time for a million records", row.seconds / row.n * 1e6, "s")
            bench.claim(f"{what}, peak memory", row.peak_mb / row.matrix_mb, "matrices", at_most=4.0)
    million = sample(gaussian(), 20_000 if bench.quick else 1_000_000)
    rows = {row.method: row for row in bench.race("near linear", million, [MDAV, AUTO], rounds=1)}
    share = rows[AUTO.name].seconds / rows[MDAV.name].seconds
    bench.claim(f"{million}: time of auto over MDAV's", share, "x", at_most=0.1)


def algorithms(bench: Bench) -> None:
    """Run every registered algorithm on the reference sets and a little of covertype: loss and time, beside NumPy."""
    entries = [Entry(contenders.COLUMNS), *(Entry(contenders.shoal(name)) for name in ALGORITHMS)]
    for dataset in (datasets.census(), datasets.tarragona(), datasets.eia()):
        for k in (5,) if bench.quick else (3, 5, 10):
            bench.race("algorithms", Problem(dataset.name, standardize(dataset.X), k), entries, rounds=1)
    for source in bench.at_hand(covertype(92_962)):
        bench.race("algorithms", sample(source, 5_000), entries, rounds=1)


SECTIONS = {
    "side-by-side": side_by_side,
    "yardstick": yardstick,
    "threads": threads,
    "million": million,
    "import": importing,
    "growth": growing,
    "less-loss": less_loss,
    "near-linear": near_linear,
    "algorithms": algorithms,
}


@click.command()
@click.option("--quick", is_flag=True, help="Small sizes, single runs: half a minute. Checks that it works.")
@click.option("--only", multiple=True, type=click.Choice(list(SECTIONS)), help="A section; may be given several times.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="JSON file to write.  [default: benchmarks/results/partition.json; with --quick or --only "
    "out/bench/partition.json, so that the results in the repository stay]",
)
def main(quick: bool, only: tuple[str, ...], output: Path | None) -> None:
    """Measure shoal beside NumPy and beside brute force.

    Progress goes to stderr, tables to stdout, and all numbers to a JSON file. A full run takes about eight minutes and
    needs an idle machine. Real data are searched in the folder that SHOAL_DATA names, or in shared/data in or beside
    the project.
    """
    output = output or (SCRATCH if quick or only else RESULTS)
    output.parent.mkdir(parents=True, exist_ok=True)
    start, about = perf_counter(), circumstances(quick)
    with TemporaryDirectory() as folder:
        bench = Bench(quick, Path(folder))
        for name in only or SECTIONS:
            say(f"\n{name}: {SECTIONS[name].__doc__}")
            SECTIONS[name](bench)
            # After each section, so that an interrupted run keeps its results.
            results = {**about, "minutes": (perf_counter() - start) / 60, **bench.results}
            output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    say(f"\nWritten to {output}\n")
    click.echo(table.everything(results))


def circumstances(quick: bool) -> dict[str, Any]:
    """Return what was measured, when and on which machine."""
    return {
        "quick": quick,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _git("rev-parse", "HEAD"),
        "uncommitted": bool(_git("status", "--porcelain", "--", "src", "benchmarks", ":!benchmarks/results")),
        "machine": {**machine(), "threads_at_most": CORES},
    }


def _git(*arguments: str) -> str | None:
    """Return the output of a git command; None where there is no git, or no repository."""
    try:
        asked = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return asked.stdout.strip()


if __name__ == "__main__":
    main()
