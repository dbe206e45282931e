"""Plan a collection from a rehearsal, execute the plan with the commands, and compare the finish with the forecast.

Settings differ in records, in the share that the rehearsal sees, in threads and in other load on the machine. All
settings that were tried are in the results.
"""

import json
import multiprocessing
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import click
import numpy as np
import pyarrow as pa

from bench_partition import ROOT, circumstances
from materials import Missing, census, covertype, gaussian
from measure import say
from shoal.incremental.planning import Arrivals, Plan, plan
from shoal.incremental.rehearsal import rehearse
from shoal.job import Job
from shoal.sources import write

RESULTS = ROOT / "benchmarks" / "results" / "forecast.json"
SCRATCH = ROOT / "out" / "bench" / "forecast.json"
K = 10
AIM = 20.0


class Setting(NamedTuple):
    """A data set to plan for, and the conditions of the run."""

    data: str
    n: int
    seen: int
    """One in this many records is available for the rehearsal."""
    threads: int | None = None
    spinning: int = 0
    """Number of other processes that keep the processors busy, during the rehearsal and the collection."""


SETTINGS = [
    Setting("gaussian", 100_000, 4),
    Setting("census", 100_000, 4),
    Setting("covertype", 100_000, 4),
    Setting("census", 100_000, 1),
    Setting("census", 100_000, 16),
    Setting("census", 100_000, 4, threads=1),
    Setting("census", 100_000, 4, spinning=2),
    Setting("census", 20_000, 4),
    Setting("gaussian", 400_000, 16),
]
QUICK = [Setting("gaussian", 2_000, 4)]


def records(setting: Setting) -> pa.Table | Missing:
    """Return the records of the collection, in order of arrival."""
    source = {"gaussian": lambda n: gaussian(), "census": census, "covertype": covertype}[setting.data](setting.n)
    if isinstance(source, Missing):
        return source
    X = source.sample(setting.n, np.random.default_rng([1, setting.n]))
    return pa.table({f"c{i:02d}": X[:, i] for i in range(X.shape[1])})


@contextmanager
def other_work(n_processes: int) -> Iterator[None]:
    """Keep processors busy within the block."""
    workers = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(n_processes)]
    for worker in workers:
        worker.start()
    yield
    for worker in workers:
        worker.terminate()
        worker.join()


def _spin() -> None:
    X = np.random.default_rng(0).normal(size=(200_000, 8))
    while True:
        X = X[np.random.default_rng(1).permutation(len(X))]


class Took(NamedTuple):
    """Wall-clock and processor seconds."""

    wall: float
    cpu: float


def shell(*arguments: object) -> Took:
    """Run a command of shoal."""
    before, clock = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    subprocess.run([sys.executable, "-m", "shoal.cli", *map(str, arguments)], check=True, capture_output=True)
    wall, after = perf_counter() - clock, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Took(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def evening(table: pa.Table, planned: Plan, setting: Setting, load: tuple[float, float]) -> tuple[float, float]:
    """Execute the plan; return when it was ready, in seconds after the collection ended.

    In wall-clock time, and scaled to the load that the machine had during the rehearsal.
    """
    limit = () if setting.threads is None else ("--threads", setting.threads)
    quasi = ",".join(table.column_names)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        n_base = round(table.num_rows * (1 - planned.late_share))
        write(table.slice(0, n_base), folder / "base.parquet")
        if n_base == table.num_rows:
            files = folder / "base.parquet", "-o", folder / "release.parquet"
            took = shell("anonymize", *files, "-k", K, "--quasi", quasi, *limit)
            return took.wall, took.cpu * load[0]
        write(table.slice(n_base), folder / "late.parquet")
        base = shell("collect", "begin", folder / "c", folder / "base.parquet", "-k", K, "--quasi", quasi, *limit)
        adding = shell("collect", "add", folder / "c", folder / "late.parquet")
        finishing = shell("collect", "finish", folder / "c", "-o", folder / "release.parquet", *limit)
    return (
        max(base.wall + planned.start, 0.0) + adding.wall + finishing.wall,
        max(base.cpu * load[0] + planned.start, 0.0) + (adding.cpu + finishing.cpu) * load[1],
    )


def one_setting(setting: Setting, table: pa.Table, seconds: float, turns: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each kind of plan."""
    job = Job.of(k=K, roles={"quasi_identifiers": table.column_names})
    measured = rehearse(
        table.slice(0, table.num_rows // setting.seen), job, setting.n, seconds=seconds, threads=setting.threads
    )
    ordinary = measured.base(0.0)
    # In a long collection the base is finished before the end; in a short one it is not, and its time counts too.
    for kind, collection in {"long": 20 * ordinary, "short": 2 * ordinary}.items():
        planned = plan(measured, Arrivals.uniform(collection))
        found = [evening(table, planned, setting, measured.load) for _ in range(turns)]
        clock, alike = (median(times) for times in zip(*found, strict=True))
        low, high = planned.finish_between
        yield {
            **setting._asdict(),
            "collection": kind,
            "largest_rehearsed": max(run.n_records for run in measured.runs),
            "late_share": planned.late_share,
            "predicted": planned.finish,
            "between": [low, high],
            "load": measured.load,
            "measured": [wall for wall, _ in found],
            "measured_at_that_load": [cpu for _, cpu in found],
            "error_percent": 100 * (planned.finish / clock - 1),
            "error_percent_at_that_load": 100 * (planned.finish / alike - 1),
            "within": low <= clock <= high,
        }


def as_table(results: dict[str, Any]) -> str:
    """Format the results as in docs/plan.md."""
    lines = [
        "| records | seen | threads | other work | collection | late | predicted | measured | off | at equal load |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in results["rows"]:
        cells = [
            f"{row['data']}, {row['n']:,}",
            "all" if row["seen"] == 1 else f"1/{row['seen']}",
            "all" if row["threads"] is None else str(row["threads"]),
            f"{row['spinning']} processes" if row["spinning"] else "",
            row["collection"],
            f"{row['late_share']:.1%}",
            f"{row['predicted']:.1f} s",
            ", ".join(f"{seconds:.1f}" for seconds in row["measured"]) + " s",
            f"{row['error_percent']:+.0f} %",
            f"{row['error_percent_at_that_load']:+.0f} %",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


@click.command()
@click.option("--table", is_flag=True, help="Measure nothing; print the results as in docs/plan.md.")
@click.option("--quick", is_flag=True, help="Small sizes, single runs. Checks that it works.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="JSON file to write.")
def main(table: bool, quick: bool, output: Path | None) -> None:
    """Compare forecasts of the planner with executed collections."""
    if table:
        click.echo(as_table(json.loads(RESULTS.read_text(encoding="utf-8"))))
        return
    output = output or (SCRATCH if quick else RESULTS)
    output.parent.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    missing: list[str] = []
    about = circumstances(quick)
    for setting in QUICK if quick else SETTINGS:
        drawn = records(setting)
        if isinstance(drawn, Missing):
            missing.append(f"{drawn.name}: {drawn.reason}")
            continue
        with other_work(setting.spinning):
            for row in one_setting(setting, drawn, 2 if quick else 60, 1 if quick else 2):
                rows.append(row)
                say("  ".join(f"{name} {value}" for name, value in row.items()))
        output.write_text(json.dumps({**about, **summary(rows), "rows": rows, "missing": missing}, indent=1) + "\n")
    say(f"\nWritten to {output}")


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Count how often the forecast was close: by wall-clock time, and at the load of the rehearsal."""
    found: dict[str, Any] = {"n_forecasts": len(rows), "aim_percent": AIM, "n_within": sum(r["within"] for r in rows)}
    for name in ("error_percent", "error_percent_at_that_load"):
        errors = [abs(row[name]) for row in rows]
        found[name] = {"n_near": sum(e <= AIM for e in errors), "median": median(errors), "largest": max(errors)}
    return found


if __name__ == "__main__":
    main()
