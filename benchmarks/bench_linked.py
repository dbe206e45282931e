"""Measure releases in which the records of a person stay linked, beside releases of the same table without the link.

NAFLD laboratory values (survival::nafld2): 400,123 records of 15,666 persons, k = 5, two threads. The two kinds of
release are made in turn in one process, and their ratio is that of processor time.
"""

import json
import sys
import warnings
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.csv

from bench_partition import ROOT, circumstances
from measure import say
from problems import data_folder
from shoal import ShoalWarning, anonymize

DATA = "nafld_lab_stream.csv.gz"
RESULTS = ROOT / "benchmarks" / "results" / "linked.json"
K = 5
LINK = {"keep_link": "subject", "link_order": ["days", "test", "value"]}
POLICIES = ("cut", "unlink", "withhold")


def laboratory(quick: bool) -> pa.Table | None:
    """Return the laboratory values; a few invented ones for a quick run without data, None if there are none."""
    folder = data_folder()
    if folder is not None and (folder / DATA).is_file():
        table = pyarrow.csv.read_csv(folder / DATA)
        return table.filter(pa.compute.less(table["id"], 300)) if quick else table
    if not quick:
        return None
    rng = np.random.default_rng(1)
    person = np.repeat(np.arange(200), rng.geometric(0.2, 200))
    n = len(person)
    return pa.table(
        {
            "id": person,
            "days": rng.integers(-5000, 5000, n),
            "test": rng.choice(["hdl", "chol", "sbp"], n),
            "value": rng.normal(100, 20, n),
        }
    )


def measured(table: pa.Table, **settings: Any) -> dict[str, Any]:
    """Make one release."""
    wall, cpu = perf_counter(), process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        release = anonymize(
            table, k=K, quasi_identifiers=["days", "test", "value"], subject="id", seed=1, threads=2, **settings
        )
    found = {"wall": perf_counter() - wall, "cpu": process_time() - cpu, "il": 100 * release.loss.il}
    if release.linking is None or release.verdict.linked is None:
        return found
    linked = {"histories": release.verdict.linked.n_classes, "smallest": release.verdict.linked.smallest}
    return found | linked | release.linking.to_dict()


@click.command()
@click.option("--quick", is_flag=True, help="A few persons.")
@click.option("--rounds", default=2, show_default=True, help="Number of interleaved runs; the best of each counts.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="JSON file to write.")
def main(quick: bool, rounds: int, output: Path | None) -> None:
    """Measure each policy, and the release without the link."""
    table = laboratory(quick)
    if table is None:
        say(f"{DATA} not found; SHOAL_DATA may name the folder that has it")
        sys.exit(1)
    asked: dict[str, dict[str, Any]] = {
        "without link": {},
        **{policy: {**LINK, "rare_patterns": policy} for policy in POLICIES},
    }
    runs = [{name: measured(table, **settings) for name, settings in asked.items()} for _ in range(rounds)]
    rows = []
    for name in asked:
        best = min((run[name] for run in runs), key=lambda found: found["cpu"])
        rows.append(
            {"release": name, **best, "times_cpu": best["cpu"] / min(run["without link"]["cpu"] for run in runs)}
        )
        say(json.dumps(rows[-1]))
    output = output or (ROOT / "out" / "bench" / "linked.json" if quick else RESULTS)
    output.parent.mkdir(parents=True, exist_ok=True)
    content = {**circumstances(quick), "data": DATA, "k": K, "records": table.num_rows, "rows": rows}
    output.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    say(f"Written to {output}")


if __name__ == "__main__":
    main()
