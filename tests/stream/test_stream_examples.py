import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", ["flights_stream", "laboratory_stream"])
def test_the_example_runs_without_its_data_and_says_so(name, tmp_path):
    environment = {**os.environ, "SHOAL_DATA": str(tmp_path), "SHOAL_EXAMPLE_SIZE": "2000"}
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py", "--output", tmp_path],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "made-up data" in done.stdout
    assert done.stdout.count("smallest cell") == 12
    assert (tmp_path / f"{name}.png").exists()
