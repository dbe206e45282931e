"""Build ``brute_force.cpp`` for this machine, and call it."""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np

from shoal.typing import Labels, Matrix

SOURCE = Path(__file__).with_name("brute_force.cpp")
LIBRARY = "brute_force.so"

# The parts of -ffast-math, one by one: with the flag itself, GCC links start-up code into a library that disables
# subnormal numbers in the whole process.
_FAST = ("-fassociative-math", "-ffinite-math-only", "-fno-signed-zeros", "-fno-trapping-math", "-fno-math-errno")
_ALWAYS = ("-std=c++20", "-O3", *_FAST, "-shared", "-fPIC")
# The best first: not every compiler knows the preferred width, and some name the machine differently.
_MACHINE = (("-march=native", "-mprefer-vector-width=512"), ("-march=native",), ("-mcpu=native",), ())


def build(folder: Path) -> str | None:
    """Compile into the folder and return the command used, or None if none works."""
    compiler = _compiler()
    for machine in _MACHINE if compiler else ():
        flags = [*_ALWAYS, *machine]
        command = [*compiler, *flags, str(SOURCE), "-o", str(folder / LIBRARY)]
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            return " ".join([_version(compiler), *flags])
    return None


def load(folder: Path) -> Callable[[Matrix, int], Labels]:
    """Return the library built in the folder, as a function of the matrix and k."""
    function = ctypes.CDLL(str(folder / LIBRARY)).brute_force_mdav
    function.restype = None
    function.argtypes = [ctypes.c_void_p, *[ctypes.c_size_t] * 3, ctypes.c_void_p]

    def brute_force_mdav(X: Matrix, k: int) -> Labels:
        labels = np.empty(len(X), dtype=np.int64)
        function(X.ctypes.data, *X.shape, k, labels.ctypes.data)
        return labels

    return brute_force_mdav


def _compiler() -> list[str]:
    """Return the command that CXX gives, or else a usual one; nothing if it is not there."""
    asked = os.environ.get("CXX", "").split()
    candidates = [asked] if asked else [["c++"], ["g++"], ["clang++"]]
    return next((command for command in candidates if shutil.which(command[0])), [])


def _version(compiler: list[str]) -> str:
    asked = subprocess.run([*compiler, "--version"], capture_output=True, text=True, check=False)
    return next(iter(asked.stdout.splitlines()), compiler[0])
