"""Types as editors and mypy see them: choices are those of the registries, and users' mistakes are found."""

import subprocess
import sys
from importlib import resources
from inspect import signature
from pathlib import Path
from typing import get_args

import pytest

import shoal
from shoal import typing
from shoal.columns.schema import Kind
from shoal.job.engine_facts import ENGINES
from shoal.methods import ALGORITHMS
from shoal.output.report import FORMATS
from shoal.settings import ALIASES

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("literal", "registry"),
    [
        (typing.Method, ALGORITHMS),
        (typing.Engine, ENGINES),
        (typing.KindName, [str(kind) for kind in Kind]),
        (typing.ReportFormat, FORMATS),
    ],
)
def test_the_choices_of_signatures_are_those_of_the_registries(literal, registry):
    assert list(get_args(literal)) == list(registry)


def test_the_names_of_sdcmicro_stand_in_the_signature():
    assert set(ALIASES) <= set(signature(shoal.anonymize).parameters)


def test_what_completes_is_for_users():
    offered = set(dir(shoal))

    assert offered == {*shoal.__all__, "datasets", "dp", "measures", "models", "sources", "spark"}
    for room in ("measures", "models", "sources", "dp"):
        module = getattr(shoal, room)
        assert dir(module) == sorted(module.__all__)
        assert all(hasattr(module, name) for name in dir(module))


def test_the_package_says_that_it_is_typed():
    assert (resources.files("shoal") / "py.typed").is_file()


def test_mypy_reads_a_users_code_and_finds_the_mistakes():
    pytest.importorskip("mypy")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "tests/typed/user.py"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout
