"""Compare linkage with SciPy's k-d tree and with brute force.

All get the same originals and the same released means, and answer the same two questions: is a record's original the
nearest of all, and is its released record the nearest. shoal also counts ties and ranks the released records.

With `--before PYTHON`, the interpreter of another checkout, the CPU time of its linkage is measured beside this one's.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, NamedTuple

import click
import numpy as np
import pyarrow.csv
from scipy.spatial import cKDTree

from bench_partition import CORES, ROOT, circumstances
from materials import Missing, Source, census, covertype, data_folder, gaussian
from measure import say
from problems import K, Problem, flights, sample, whole
from shoal import kernels, partition
from shoal.columns.schema import Roles, Schema
from shoal.measures.table_risk import SAMPLE
from shoal.space.space import Space
from shoal.typing import Labels, Matrix

RESULTS = ROOT / "benchmarks" / "results" / "linkage.json"
BEFORE = ROOT / "benchmarks" / "results" / "linkage_before.json"
SCRATCH = ROOT / "out" / "bench" / "linkage.json"
# Largest size for brute force.
MOST_BRUTE = 25_000


class Answer(NamedTuple):
    """Share of released records linked to their originals, and of originals linked to their released records."""

    dld: float
    linked: float


def shoal(X: Matrix, points: Matrix, labels: Labels) -> Answer:
    originals, released = kernels.linkage(X, points, labels)
    return Answer(*(float(np.mean((ranks.ahead == 0) / np.maximum(ranks.ties, 1))) for ranks in (originals, released)))


def kd_tree(X: Matrix, points: Matrix, labels: Labels) -> Answer:
    """Link by the nearest neighbour that the tree returns, ignoring ties."""
    originals = cKDTree(X).query(points, workers=CORES)[1]
    released = cKDTree(points).query(X, workers=CORES)[1]
    sizes = np.bincount(labels)
    dld = np.mean(originals[labels] == np.arange(len(X)))
    return Answer(float(dld), float(np.mean((released == labels) / sizes[labels])))


def brute_force(X: Matrix, points: Matrix, labels: Labels) -> Answer:
    """Link by brute force, one slice at a time."""
    own = np.empty(len(X))
    sizes = np.bincount(labels)
    nearest, n_nearest = np.full(len(points), np.inf), np.zeros(len(points))
    linked = 0.0
    for start in range(0, len(X), 256):
        part = slice(start, start + 256)
        squared = _squared(X[part], points)
        own[part] = squared[np.arange(len(squared)), labels[part]]
        linked += np.sum((squared.min(axis=1) == own[part]) / ((squared == own[part, None]) @ sizes))
        least = squared.min(axis=0)
        count = (squared == least).sum(axis=0)
        n_nearest = np.where(least < nearest, count, np.where(least == nearest, n_nearest + count, n_nearest))
        nearest = np.minimum(nearest, least)
    return Answer(float(np.mean((own == nearest[labels]) / n_nearest[labels])), float(linked / len(X)))


def _squared(A: Matrix, B: Matrix) -> Matrix:
    total = np.zeros((len(A), len(B)))
    for a, b in zip(A.T, B.T, strict=True):
        total += (a[:, None] - b) ** 2
    return total


CONTENDERS: dict[str, Callable[[Matrix, Matrix, Labels], Answer]] = {
    "shoal": shoal,
    "scipy cKDTree": kd_tree,
    "brute force in NumPy": brute_force,
}


def problems(quick: bool, missing: list[str]) -> Iterator[Problem]:
    """Yield Gaussian records, the hard case, and real ones where they are available."""
    for n in (5_000,) if quick else (25_000, 200_000):
        yield sample(gaussian(), n)
    for source in (census(204_309), covertype(286_048), flights()):
        if isinstance(source, Missing):
            missing.append(f"{source.name}: {source.reason}")
            say(f"Left out: {missing[-1]}.")
        else:
            yield from real(source, quick)


def real(source: Source, quick: bool) -> Iterator[Problem]:
    yield sample(source, 5_000 if quick else 25_000)
    if not quick:
        yield whole(source)


def measure(problem: Problem, rounds: int, most_tree: int) -> list[dict[str, Any]]:
    """Run the contenders interleaved; return a row for each."""
    X = problem.X
    labels = partition(X, problem.k, seed=0)
    points = kernels.cell_sums(X, labels, int(labels.max()) + 1) / np.bincount(labels)[:, None]
    tried = {name: run for name, run in CONTENDERS.items() if len(X) <= _most(name, problem, most_tree)}
    times: dict[str, list[float]] = {name: [] for name in tried}
    answers = {}
    for _ in range(rounds):
        for name, run in tried.items():
            start = perf_counter()
            answers[name] = run(X, points, labels)
            times[name].append(perf_counter() - start)
    best = {name: min(seconds) for name, seconds in times.items()}
    for name in tried:
        say(f"{problem}: {name}: {best[name]:.3f} s, {best[name] / best['shoal']:.1f} times shoal's, {answers[name]}")
    about = {"data": problem.data, "n": len(X), "dims": X.shape[1], "k": problem.k}
    return [
        {**about, "method": name, "seconds": best[name], "times": times[name], **answers[name]._asdict()}
        for name in tried
    ]


def _most(name: str, problem: Problem, most_tree: int) -> int:
    """Return the maximum number of records of a contender: trees take hours on large Gaussian sets."""
    if name == "brute force in NumPy":
        return MOST_BRUTE
    return most_tree if name == "scipy cKDTree" and problem.data == "gaussian" else len(problem.X)


def compared(quick: bool) -> Iterator[tuple[str, Matrix, int | None]]:
    """Yield names, records and the number of records to rank: a release of gov_census, and noise."""
    rng = np.random.default_rng(1)
    folder = data_folder()
    if folder is not None and (folder / "gov_census.csv.gz").is_file() and not quick:
        table = pyarrow.csv.read_csv(folder / "gov_census.csv.gz")
        schema = Schema.of(table.schema, Roles(quasi_identifiers=tuple(table.column_names)))
        yield "gov_census, all columns", Space.fit(table, schema).encode(table), SAMPLE
    for n_dims in (10, 15):
        yield f"gaussian x {n_dims}", rng.normal(size=(2_000 if quick else 50_000, n_dims)), None


def beside(before: str, quick: bool) -> list[dict[str, Any]]:
    """Measure the CPU time of two versions interleaved, each run in a process of its own; return a row for each."""
    rows = []
    with TemporaryDirectory() as scratch:
        file = Path(scratch) / "linkage.npz"
        for data, X, n_ranked in compared(quick):
            labels = partition(X, K, seed=0)
            points = kernels.cell_sums(X, labels, int(labels.max()) + 1) / np.bincount(labels)[:, None]
            drawn = np.random.default_rng(0).choice(len(X), n_ranked or len(X), replace=False)
            np.savez(file, X=X, points=points, labels=labels, asked=np.sort(drawn))
            rows += [_two_versions(before, file, threads, data, X) for threads in (1, 2)]
    return rows


def _two_versions(before: str, file: Path, threads: int, data: str, X: Matrix) -> dict[str, Any]:
    seconds: dict[str, list[float]] = {"before": [], "after": []}
    digests = set()
    for _ in range(3):
        for name, python in (("before", before), ("after", sys.executable)):
            script = Path(__file__).with_name("one_linkage.py")
            done = subprocess.run([python, script, file, str(threads)], check=True, capture_output=True, text=True)
            found = json.loads(done.stdout)
            seconds[name].append(found["seconds"])
            digests.add(found["digest"])
    best = {name: min(times) for name, times in seconds.items()}
    say(f"{data}, {threads} threads: {best['before']:.3f} s of CPU before, {best['after']:.3f} s after")
    return {"data": data, "n": len(X), "dims": X.shape[1], "threads": threads, **best, "same": len(digests) == 1}


def as_table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as a table, with times in multiples of shoal's."""
    ours = {(row["data"], row["n"]): row["seconds"] for row in rows if row["method"] == "shoal"}
    lines = [f"| records, k = {K} | who | seconds | over shoal's | DLD | linked |", "|---|---|---|---|---|---|"]
    for row in rows:
        factor = row["seconds"] / ours[row["data"], row["n"]]
        lines.append(
            f"| {row['data']}, {row['n']:,} x {row['dims']} | {row['method']} | {row['seconds']:.3f} | {factor:.1f} | "
            f"{row['dld']:.5f} | {row['linked']:.5f} |"
        )
    return "\n".join(lines)


@click.command()
@click.option("--quick", is_flag=True, help="Small samples, to check that it works.")
@click.option("--before", help="Python interpreter of another checkout, to compare with.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="JSON file to write.")
def main(quick: bool, before: str | None, output: Path | None) -> None:
    """Measure linkage beside SciPy's k-d tree and beside brute force, on all cores but brute force."""
    output = output or (SCRATCH if quick else BEFORE if before else RESULTS)
    output.parent.mkdir(parents=True, exist_ok=True)
    if before:
        rows = beside(before, quick)
        output.write_text(json.dumps({**circumstances(quick), "rows": rows}, indent=1) + "\n", encoding="utf-8")
        return
    missing: list[str] = []
    rows = []
    for problem in problems(quick, missing):
        rows += measure(problem, 1 if quick else 3, most_tree=25_000)
    results = {**circumstances(quick), "rows": rows, "missing": missing}
    output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    say(f"\nWritten to {output}\n")
    click.echo(as_table(rows))


if __name__ == "__main__":
    main()
