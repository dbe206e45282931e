"""An evening whose processes are killed ends in the same release; tests/soak/evening.py does this for longer."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "soak" / "evening.py"


def test_killed_at_random_moments_an_evening_ends_in_the_same_release():
    done = subprocess.run(
        [sys.executable, SCRIPT, "--kills", "8", "--seed", "1"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert "every release the same" in done.stdout
