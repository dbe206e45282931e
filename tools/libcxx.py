"""Compare cells with those of kernels that are built with libc++, the C++ library of macOS: python tools/libcxx.py.

Needs clang and libc++, version 16 or newer (Debian: clang-16 libc++-16-dev libc++abi-16-dev); without them nothing is
compared. LIBCXX_CXX names another compiler, with its options.

The standard leaves to each library how it orders equals, and what a selection leaves beside the element selected. So
most problems have many ties: whole numbers, and cells of few records.
"""

import hashlib
import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).parents[1]
BUILT = ROOT / "build" / "libcxx"
FAST = {"auto", "mdav", "blocks", "topdown", "univariate"}
COMPILERS = ["clang++", *(f"clang++-{version}" for version in range(25, 15, -1))]
SAMPLE = """
#include <algorithm>
#include <vector>
#ifndef _LIBCPP_VERSION
#error another library
#endif
int main() { std::vector<int> few{2, 1}; std::ranges::sort(few); return few[0] - 1; }
"""


def compiler() -> str | None:
    """Return the command of a compiler that builds with a libc++ that is new enough, if there is one."""
    named = os.environ.get("LIBCXX_CXX")
    for command in [named] if named else [f"{name} -stdlib=libc++" for name in COMPILERS if shutil.which(name)]:
        tried = [*shlex.split(command), "-std=c++20", "-x", "c++", "-", "-o", os.devnull]
        if subprocess.run(tried, input=SAMPLE, capture_output=True, text=True, check=False).returncode == 0:
            return command
    return None


def build(command: str) -> Path:
    """Build the kernels with libc++; return the compiled module."""
    install = [
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--upgrade",
        "--target",
        BUILT / "site",
    ]
    options = [f"-Cbuild-dir={BUILT / 'build'}"]
    environment = {**os.environ, "CXX": command}
    subprocess.run([sys.executable, "-m", "pip", *install, *options, "."], check=True, cwd=ROOT, env=environment)
    return next(BUILT.glob("site/shoal/_kernels*.so"))


def whole_numbers(seed: int, n: int, n_dims: int, n_values: int) -> NDArray[np.float64]:
    """Draw records whose columns have `n_values` different values."""
    return np.random.default_rng(seed).integers(0, n_values, (n, n_dims)).astype(float)


def problems() -> Iterator[tuple[str, NDArray[np.float64], int]]:
    """Yield names, records and k."""
    for seed in range(40):
        n, n_dims, n_values = 200 + 397 * seed, 1 + seed % 6, 2 + seed % 9
        yield f"whole numbers {seed}", whole_numbers(seed, n, n_dims, n_values), 2 + seed % 3 * seed % 5
    for seed, n in enumerate([700, 5_000, 70_000]):
        yield f"normal {n}", np.random.default_rng(seed).normal(size=(n, 4)), 3 + seed
    yield "two columns", whole_numbers(1, 40_000, 2, 60), 2
    yield "many records", whole_numbers(2, 150_000, 5, 12), 5


def cells() -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Yield what each kernel that makes or ranks cells finds in each problem; the kernels have been loaded before."""
    from shoal import kernels, partition
    from shoal.incremental import VARIANTS, join
    from shoal.methods import ALGORITHMS

    for name, X, k in problems():
        for method in ALGORITHMS:
            if (method != "univariate" or X.shape[1] == 1) and (method in FAST or len(X) <= 1_500):
                yield f"{name}: {method}", partition(X, k, method, 1)
        method = "mdav" if len(X) < 10_000 else "blocks"
        labels = partition(X, k, method)
        base = partition(X[: len(X) * 3 // 4], k, method)
        for variant in VARIANTS:
            yield f"{name}: {variant}", join(X, base, k, variant)
        yield f"{name}: neighbours", kernels.cell_neighbours(X, labels, k, 5)
        codes = (np.arange(len(X)) * 7919) % 9
        yield f"{name}: balanced", kernels.balanced_cells(X, codes, max(k, 4), 3)
        guarantees = kernels.Guarantees()
        guarantees.distinct(codes, 2)
        guarantees.ordered_closeness(codes, np.bincount(codes), 45, 100)
        effort = kernels.Effort(rounds=4, neighbours=15, least_gain=0.01, at_any_cost=True)
        yield f"{name}: guarded", kernels.guarded_search(X, labels, k, guarantees, effort)
        table = kernels.NcpTable(len(X))
        table.numbers(X[:, 0].copy(), float(np.ptp(X[:, 0])), 1.0)
        table.categories(codes, 9, 0.5)
        found = kernels.ncp_specialise(table, k)
        yield f"{name}: specialised", found
        yield f"{name}: recoded", kernels.ncp_recode(table, found, k, kernels.Guarantees(), len(X), 1)
        schedule = kernels.Schedule(20 * len(X), hot=1.0, fall=7.0)
        yield f"{name}: searched", kernels.ncp_search(table, X, labels, k, kernels.Guarantees(), 2, schedule, 1)
        if len(X) < 20_000:
            sizes = np.bincount(labels)
            means = kernels.cell_sums(X, labels, len(sizes)) / sizes[:, None]
            yield f"{name}: linkage", np.concatenate([np.stack(ranks) for ranks in kernels.linkage(X, means, labels)])
        window = kernels.Window(X.shape[1], k, delay=50, max_cell=2 * k, least=(2,))
        none, tags = np.empty((len(X), 0), dtype=np.uint64), codes[:, None].astype(np.uint64)
        gone = window.push(kernels.Tuples(X, none, tags, np.zeros(len(X))))
        yield f"{name}: stream", np.concatenate([gone.rows, gone.sizes, gone.side])


def print_cells(module: str) -> None:
    """Print a hash of the cells of each problem, made by a compiled module, as JSON."""
    spec = importlib.util.spec_from_file_location("shoal._kernels", module)
    assert spec is not None
    assert spec.loader is not None
    sys.modules["shoal._kernels"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["shoal._kernels"])
    print(json.dumps({name: hashlib.sha256(labels.tobytes()).hexdigest() for name, labels in cells()}))


def main() -> None:
    """Build, compare, and end with exit code 1 if a cell differs."""
    command = compiler()
    if command is None:
        print("Cells are not compared with those of libc++: no clang here can build with it.")
        print("  Debian, Ubuntu:  sudo apt install clang-16 libc++-16-dev libc++abi-16-dev")
        return
    began = time.monotonic()
    installed = importlib.util.find_spec("shoal._kernels")
    assert installed is not None
    modules = [installed.origin, build(command)]
    print(f"Kernels built with {command} in {time.monotonic() - began:.0f} s.", flush=True)
    processes = [
        subprocess.Popen([sys.executable, __file__, module], cwd=ROOT, text=True, stdout=subprocess.PIPE)
        for module in modules
    ]
    ours, theirs = (json.loads(process.communicate()[0]) for process in processes)
    differ = [name for name, cells in ours.items() if theirs[name] != cells]
    print(
        f"{len(ours) - len(differ)} of {len(ours)} partitions are the same with both C++ libraries.", *differ, sep="\n"
    )
    sys.exit(bool(differ))


if __name__ == "__main__":
    if len(sys.argv) == 2:
        print_cells(sys.argv[1])
    else:
        main()
