"""The programs in C++ that `make sanitize` and `make soak` build follow the kernels."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def compiler():
    """Return the compiler that the kernels are built with here."""
    named = shlex.split(os.environ.get("CXX", ""))
    return named or [next(name for name in ("c++", "g++", "clang++") if shutil.which(name))]


@pytest.mark.parametrize("program", ["tests/threads/pool.cpp", "tests/fuzz/fuzz_lines.cpp"])
def test_a_program_that_only_sanitizers_and_fuzzers_build_compiles(program):
    command = [*compiler(), "-std=c++20", "-fsyntax-only", "-Isrc/kernels", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)

    assert done.returncode == 0, done.stderr
