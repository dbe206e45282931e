import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from shell import ROLES, SECRETS, people, write_csv

SCRIPT = Path(__file__).with_name("interrupted.py")


@pytest.fixture(scope="module")
def large_file(tmp_path_factory):
    return write_csv(tmp_path_factory.mktemp("large") / "people.csv", people(20_000))


def stopped(place, delay, *arguments, by="SIGINT"):
    """Run shoal, stopped that many seconds after it has come to a place."""
    module, name = place.rsplit(".", 1)
    command = [sys.executable, str(SCRIPT), module, name, str(delay), by, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("place", "delay"),
    [
        ("shoal.sources.csv.open_csv", 0),  # reading
        ("shoal.sources.csv.infer", 0.02),
        ("shoal.job.checks.prepare", 0),
        ("shoal.constraints.constrained_cells.partition", 0.02),  # making cells, in the kernels
        ("shoal.release.aggregate", 0),
        ("shoal.release.table_loss", 0.02),
        ("shoal.output.places.write_into", 0.02),  # writing
        ("shoal.output.places.sha256", 0),
        ("shoal.files._settle", 0),
    ],
)
def test_ctrl_c_at_any_moment_leaves_nothing(place, delay, large_file, tmp_path):
    result = stopped(place, delay, "anonymize", large_file, "-k", 5, *ROLES, "-o", tmp_path / "release.csv")

    assert result.returncode == 130, result.stderr
    assert result.stderr.endswith("Stopped.\n")
    assert "Traceback" not in result.stderr
    assert [secret for secret in SECRETS if secret in result.stderr] == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("place", "by"), [("shoal.files._claim", "SIGINT"), ("shoal.cli.execute.tell", "SIGTERM")])
def test_a_release_whose_files_get_their_names_is_made_whatever_comes(place, by, csv_file, tmp_path):
    result = stopped(place, 0, "anonymize", csv_file, "-k", 5, *ROLES, "-o", tmp_path / "release.csv", by=by)

    assert result.returncode == 0, result.stderr
    assert "Stopped" not in result.stderr
    assert "written           " in result.stdout
    assert {path.name for path in tmp_path.iterdir()} == {
        *("people.csv", "release.csv", "release.csv.public.json", "release.csv.internal.json")
    }


@pytest.mark.parametrize("place", ["shoal.constraints.constrained_cells.partition", "shoal.release.aggregate"])
def test_the_system_may_end_it_too(place, large_file, tmp_path):
    result = stopped(
        place, 0.01, "anonymize", large_file, "-k", 5, *ROLES, "-o", tmp_path / "release.csv", by="SIGTERM"
    )

    assert result.returncode == 143, result.stderr
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["shoal.release.group", "shoal.output.places.write_into"])
def test_what_was_there_before_stays(place, large_file, tmp_path):
    (tmp_path / "release.csv").write_text("older")
    result = stopped(place, 0, "anonymize", large_file, "-k", 5, *ROLES, "-o", tmp_path / "release.csv", "--force")

    assert result.returncode == 130, result.stderr
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("release.csv", "older")]


@pytest.mark.parametrize(
    ("place", "arguments"),
    [
        ("shoal.inspection.count", ("inspect",)),
        ("shoal.measures.recount.recount", ("audit", "--quasi-identifiers", "age,zip")),
        ("shoal.comparison.anonymize", ("compare", "-k", "5", "--methods", "blocks", *ROLES)),
    ],
)
def test_other_commands_stop_alike(place, arguments, large_file):
    result = stopped(place, 0, *arguments, large_file)

    assert (result.returncode, result.stdout) == (130, "")
    assert result.stderr.endswith("Stopped.\n")
    assert "Traceback" not in result.stderr


WAYS = {
    "shoal": [Path(sysconfig.get_path("scripts")) / "shoal"],
    "python -m shoal": ["-m", "shoal"],
    "python -m shoal.cli": ["-m", "shoal.cli"],
}

# Read by Python when it starts: sends Ctrl-C when a module is about to be imported.
SITE = """
import os, signal, sys

class Stop:
    def find_spec(self, name, *_):
        if name == os.environ["STOP_AT"]:
            signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Stop())
"""


def stopped_at(module, *words, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(SITE)
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "STOP_AT": module}
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=False, env=environment, cwd=tmp_path
    )


# Python tells a module that is written in C of an interrupt in an import of its own by another error.
@pytest.mark.parametrize("module", ["numpy", "secrets", "shoal._kernels", "click", "shoal.cli.exit_codes", "pyarrow"])
@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c_while_modules_are_imported_ends_the_command_alike(way, module, tmp_path):
    if way == "shoal" and not WAYS[way][0].exists():
        pytest.skip("the command is not installed here, or is a program of Windows")
    result = stopped_at(module, *WAYS[way], "inspect", "people.csv", tmp_path=tmp_path)

    assert (result.returncode, result.stdout, result.stderr) == (130, "", "\nStopped.\n")


def test_ctrl_c_while_somebody_else_imports_shoal_is_theirs(tmp_path):
    caught = "try:\n    import shoal\nexcept KeyboardInterrupt:\n    print('theirs')\nimport sys\nprint(sys.excepthook)"
    result = stopped_at("numpy", "-c", caught, tmp_path=tmp_path)

    assert result.stdout.splitlines() == ["theirs", str(sys.__excepthook__)]
