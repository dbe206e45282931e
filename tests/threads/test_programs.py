"""Programs in C++: about parts of the kernels that Python cannot reach, and those for sanitizers and fuzzers."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def compile_program(program, *options):
    """Compile a program with the compiler that the kernels are built with here."""
    compiler = shlex.split(os.environ.get("CXX", ""))
    compiler = compiler or [next(name for name in ("c++", "g++", "clang++") if shutil.which(name))]
    command = [*compiler, "-std=c++20", "-ffp-contract=off", "-pthread", "-Isrc/kernels", program, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("program", ["tests/threads/pool.cpp", "tests/fuzz/fuzz_lines.cpp"])
def test_a_program_that_only_sanitizers_and_fuzzers_build_compiles(program):
    compile_program(program, "-fsyntax-only")


@pytest.mark.parametrize("name", ["pace", "selection"])
def test_what_a_program_requires_holds(name, tmp_path):
    compile_program(f"tests/threads/{name}.cpp", "-O1", "-o", tmp_path / name)
    done = subprocess.run([tmp_path / name], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def test_no_kernel_leaves_a_selection_or_random_numbers_to_the_library():
    # Libraries differ in what they leave beside the element selected, and in their distributions.
    sources = [*ROOT.glob("src/kernels/[!v]*/*.hpp"), *ROOT.glob("src/kernels/[!v]*/*.cpp")]
    used = [
        path.name
        for path in sources
        if re.search(r"nth_element\(|std::\w+_distribution|std::shuffle", path.read_text())
    ]

    assert sources
    assert used == []
