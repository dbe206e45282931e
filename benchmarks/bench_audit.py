"""Compare the audit with pyCANON: the same release of Adult, the same results, the time of each.

pyCANON needs an environment of its own: ``python -m venv P; P/bin/pip install pycanon``; then give this script
``--pycanon P/bin/python``.
"""

import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from time import perf_counter

import click

import shoal
from bench_partition import ROOT, circumstances
from materials import data_folder
from measure import say
from shoal.sources import read

RESULTS = ROOT / "benchmarks" / "results" / "audit.json"
DATA = "adult.csv.gz"
QUASI = ["age", "education_num", "hours_per_week", "sex", "race"]
CONFIDENTIAL = ["occupation", "capital_gain"]
K = 5
# Script for the other interpreter: one call per measure, as pyCANON provides them.
PYCANON = """
import json, sys
from importlib.metadata import version
from time import perf_counter
import pandas as pd
from pycanon import anonymity
path, quasi, confidential = sys.argv[1], *map(json.loads, sys.argv[2:])
table = pd.read_csv(path)
found = {"version": version("pycanon")}
def note(name, measure, *columns):
    start = perf_counter()
    value = measure(table, quasi, *columns)
    found[name] = {"value": float(value), "seconds": perf_counter() - start}
note("k", anonymity.k_anonymity)
for column in confidential:
    note(f"distinct l of {column}", anonymity.l_diversity, [column])
    note(f"entropy l of {column}", anonymity.entropy_l_diversity, [column])
    note(f"t of {column}", anonymity.t_closeness, [column])
print(json.dumps(found))
"""


@click.command()
@click.option("--pycanon", required=True, metavar="PYTHON", help="Interpreter of an environment that has pyCANON.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), default=RESULTS, show_default=True)
def main(pycanon: str, output: Path) -> None:
    """Compare the audit with pyCANON's."""
    folder = data_folder()
    if folder is None or not (folder / DATA).exists():
        say(f"{DATA} not found; SHOAL_DATA may name the folder that has it")
        sys.exit(1)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "release.csv"
        release(folder / DATA).write(path)
        start = perf_counter()
        verdict = shoal.audit(path, quasi_identifiers=QUASI, confidential=CONFIDENTIAL, k=K)
        seconds = perf_counter() - start
        arguments = [pycanon, "-c", PYCANON, str(path), json.dumps(QUASI), json.dumps(CONFIDENTIAL)]
        theirs = json.loads(subprocess.run(arguments, capture_output=True, text=True, check=True).stdout)
    ours = {"seconds for all, reading included": seconds, **verdict.to_dict()}
    say(f"shoal: {seconds:.2f} s for all")
    for name, found in theirs.items():
        say(f"pyCANON: {name}: {found}")
    output.write_text(json.dumps({**circumstances(quick=False), "shoal": ours, "pycanon": theirs}, indent=1) + "\n")


def release(path: Path) -> shoal.Release:
    """Return a release of the Adult records without missing values."""
    table = read(path, columns=[*QUASI, *CONFIDENTIAL]).arrow.drop_null()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", shoal.ShoalWarning)
        return shoal.anonymize(table, k=K, quasi_identifiers=QUASI, confidential=CONFIDENTIAL, seed=1)


if __name__ == "__main__":
    main()
