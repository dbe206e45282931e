import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize(
    ("script", "arguments", "rows"),
    [("bench_incremental.py", ("--only", "thesis"), 15), ("bench_series.py", (), 12), ("bench_forecast.py", (), 2)],
)
def test_the_benchmark_runs_without_a_data_folder_and_notes_what_it_measured(script, arguments, rows, tmp_path):
    command = [sys.executable, BENCHMARKS / script, "--quick", *arguments, "--output", tmp_path / "results.json"]
    environment = {**os.environ, "SHOAL_DATA": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "results.json").read_text())

    assert len(results["rows"]) == rows
    assert results["quick"] is True
    assert results["machine"]["cpu"]


@pytest.mark.skipif(not (BENCHMARKS / "results").exists(), reason="a source distribution comes without results")
def test_the_page_shows_all_forecasts_that_were_measured():
    done = subprocess.run(
        [sys.executable, BENCHMARKS / "bench_forecast.py", "--table"], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() in (BENCHMARKS.parent / "docs" / "plan.md").read_text(encoding="utf-8")
