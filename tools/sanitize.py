"""Run the tests of the kernels with sanitizers: python tools/sanitize.py VENV [--output FILE].

Two runs. The tests of everything that is compiled, on kernels that were built with the address and undefined-behaviour
sanitizers; then a program of its own for the threads (`tests/threads/pool.cpp`), with the thread sanitizer, which does
not work under Python.
"""

import argparse
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
# One test or more for everything that is compiled, on small problems.
TESTS = [
    "tests/kernels/test_kernels.py",  # distances, remaining records, linkage, sums
    "tests/kernels/test_kernel_checks.py",
    "tests/kernels/test_ncp_search.py",  # certainty penalty
    "tests/kernels/test_kernel_searches.py",  # refining, annealing, guarded search
    "tests/methods/test_contract.py",  # every algorithm
    "tests/methods/test_mdav.py",
    "tests/methods/test_refine.py",
    "tests/methods/test_topdown.py",
    "tests/methods/test_univariate.py",
    "tests/methods/test_dissolve.py",
    "tests/fuzz",  # the parser of bytes, on the corpus of the fuzzers
    "tests/stream/test_numbers_of_lines.py",
    "tests/stream/test_stream_kernel.py",
    "tests/incremental/test_join.py",  # arrivals
    "tests/measures/test_linkage.py",
    "tests/models/test_t_closeness.py",
    "tests/models/test_l_diversity.py",
]


def sanitized_tests(venv: Path) -> dict[str, object]:
    """Run the tests with the sanitizers loaded ahead of Python."""
    # libstdc++ goes with them, or they miss what C++ throws.
    module = next(venv.glob("lib/python3*/site-packages/shoal/_kernels*.so"))
    linked = subprocess.run(["ldd", module], capture_output=True, text=True, check=True).stdout
    preload = re.findall(r"(?:libasan|libubsan|libstdc\+\+)\S* => (\S+)", linked)
    # Python itself leaks on purpose; behind its own allocator the address sanitizer would not see where objects end.
    environment = {
        **os.environ,
        "LD_PRELOAD": " ".join(preload),
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        "PYTHONMALLOC": "malloc",
    }
    # What a sanitizer says as it ends the process must not be caught by pytest.
    shared = ["-n", "auto", "--maxprocesses", "8", "--dist", "loadfile"]
    command = [venv / "bin" / "python", "-m", "pytest", "-rs", "--capture=sys", *shared, *TESTS]
    said, row = ran("address, undefined", command, environment)
    passed = re.findall(r"(\d+) passed", said)
    return {**row, "passed": int(passed[-1]) if passed else 0}


def sanitized_threads() -> dict[str, object]:
    """Build the program of the threads and run it."""
    program = ROOT / "build" / "threads" / "pool"
    program.parent.mkdir(parents=True, exist_ok=True)
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    flags = ["-std=c++20", "-O1", "-g", "-fsanitize=thread", "-ffp-contract=off", "-pthread", "-Isrc/kernels"]
    sources = ["tests/threads/pool.cpp", "src/kernels/numeric/simd.cpp"]
    subprocess.run([*compiler, *flags, *sources, "-o", program], check=True, cwd=ROOT)
    _, row = ran("thread", [program], {**os.environ, "TSAN_OPTIONS": "halt_on_error=1"})
    return row


def ran(sanitizers: str, command: list[object], environment: dict[str, str]) -> tuple[str, dict[str, object]]:
    """Run a command, show what it says as it does, and return that with how it ended."""
    began, said = time.monotonic(), []
    with subprocess.Popen(
        list(map(str, command)), env=environment, cwd=ROOT, text=True, errors="replace",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            said.append(line)
    seconds = round(time.monotonic() - began)
    return "".join(said), {"sanitizers": sanitizers, "exit_code": process.returncode, "seconds": seconds}


def main() -> None:
    """Run both, and end with exit code 1 if one has found something."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("venv", type=Path)
    parser.add_argument("--output", type=Path, help="where to write what was run")
    given = parser.parse_args()
    if platform.system() != "Linux":
        sys.exit("make sanitize runs on Linux only: elsewhere the sanitizers cannot be loaded ahead of Python.")
    rows = [sanitized_tests(ROOT / given.venv), sanitized_threads()]
    if given.output:
        sys.path.insert(0, str(ROOT / "benchmarks"))
        from bench_partition import circumstances

        results = {**circumstances(quick=False), "tests": TESTS, "rows": rows}
        given.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    sys.exit(any(row["exit_code"] for row in rows))


if __name__ == "__main__":
    main()
