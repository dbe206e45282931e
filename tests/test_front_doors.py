"""The five front doors: command line, job file, Python call, estimator and notebook give the same release."""

import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import polars as pl
import pyarrow.csv
import pytest
from nbclient import NotebookClient

import shoal
from shoal import datasets

NOTEBOOK = Path(__file__).parents[1] / "examples" / "first_release.ipynb"
FILE = datasets.path("eia")
MEASURES = list(datasets.eia(n_columns=10).columns)
SETTINGS = {
    "k": 5,
    "seed": 1,
    "identifiers": ["UTILITYID", "UTILNAME"],
    "subject": "UTILITYID",
    "by": ["MONTH"],
    "quasi_identifiers": ["STATE", *MEASURES],
    "other": ["YEAR"],
    "columns": {name: {"round": 0} for name in MEASURES},
}
COMMAND = [
    *("anonymize", FILE, "-k", 5, "--seed", 1, "--identifiers", "UTILITYID,UTILNAME", "--subject", "UTILITYID"),
    *("--by", "MONTH", "--quasi-identifiers", ",".join(["STATE", *MEASURES]), "--other", "YEAR"),
    *(word for name in MEASURES for word in ("--round", f"{name}=0")),
]
FRAMES = {"pandas": pd.read_csv, "polars": pl.read_csv, "pyarrow": pyarrow.csv.read_csv}


def command_line(*words, folder):
    arguments = [sys.executable, "-m", "shoal.cli", *map(str, words)]
    subprocess.run(arguments, cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def wanted(tmp_path_factory):
    """Return the bytes that the notebook writes."""
    folder = tmp_path_factory.mktemp("notebook")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, resources={"metadata": {"path": str(folder)}}, timeout=600, startup_timeout=600).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]

    assert (folder / "report.html").stat().st_size > 10_000
    assert any("<caption>Every person" in output.get("data", {}).get("text/html", "") for output in outputs)
    assert not any(output.get("name") == "stderr" for output in outputs)
    return (folder / "release.csv").read_bytes()


def test_the_notebook_is_kept_without_what_it_printed():
    cells = nbformat.read(NOTEBOOK, as_version=4).cells

    assert [cell.id for cell in cells if cell.get("outputs") or cell.get("execution_count")] == []


def test_the_command_line_and_its_job_give_the_release_of_the_notebook(wanted, tmp_path):
    command_line(*COMMAND, "-o", "release.csv", "--save-job", "job.toml", folder=tmp_path)
    first = (tmp_path / "release.csv").read_bytes()
    command_line("run", "job.toml", "--force", folder=tmp_path)

    assert first == wanted
    assert (tmp_path / "release.csv").read_bytes() == wanted


@pytest.mark.parametrize("kind", FRAMES)
def test_a_python_call_on_any_frame_gives_the_release_of_the_notebook(wanted, kind, tmp_path):
    shoal.anonymize(FRAMES[kind](FILE), **SETTINGS).write(tmp_path / "release.csv")

    assert (tmp_path / "release.csv").read_bytes() == wanted


@pytest.mark.parametrize("kind", FRAMES)
def test_a_job_on_any_frame_gives_the_release_of_the_notebook(wanted, kind, tmp_path):
    roles = {name: value for name, value in SETTINGS.items() if name not in ("k", "seed", "columns")}
    output = {"path": str(tmp_path / "release.csv")}
    job = shoal.Job.of(k=5, seed=1, roles=roles, columns=SETTINGS["columns"], output=output)
    shoal.run(job, FRAMES[kind](FILE))

    assert (tmp_path / "release.csv").read_bytes() == wanted


def test_the_estimator_gives_the_values_of_the_command_line(tmp_path):
    numbers = pd.read_csv(FILE)[MEASURES]
    numbers.to_csv(tmp_path / "numbers.csv", index=False)
    words = (
        "anonymize",
        "numbers.csv",
        "-k",
        5,
        "--seed",
        1,
        "--quasi-identifiers",
        ",".join(MEASURES),
        "--order",
        "keep",
    )
    command_line(*words, "-o", "release.parquet", folder=tmp_path)
    released = pd.read_parquet(tmp_path / "release.parquet").to_numpy()

    assert np.array_equal(shoal.Microaggregator(k=5, seed=1).fit_transform(numbers), released)
