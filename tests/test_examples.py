import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
EXAMPLES = TESTS.parent / "examples"


@pytest.mark.parametrize(
    "name", ["hospital_release", "linked_visits", "steered_visits", "survey_weights", "yearly_survey"]
)
def test_an_example_runs_in_an_empty_folder_without_a_warning(name, tmp_path):
    arguments = [sys.executable, "-W", "error", EXAMPLES / f"{name}.py"]
    done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_every_example_is_run_by_a_test_or_used_by_another_example():
    users = [*TESTS.rglob("test_*.py"), *EXAMPLES.glob("*.py")]
    texts = {file: file.read_text(encoding="utf-8") for file in users}
    examples = [*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*.ipynb")]
    idle = [
        example.stem
        for example in examples
        if not any(example.stem in text for file, text in texts.items() if file != example)
    ]

    assert idle == []
